/*
 * Messages from the hub to the warden, in order. The kernel buffers some 200 KiB of them, which a
 * burst of requests or the records of one fork can exceed; the rest waits here. A queued message
 * has not reached the warden, so nothing that depends on it may be acknowledged yet: a request
 * whose effect a later process must know is answered when the last of its messages was sent.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/sock.h"
#include "box/host/internal.h"

enum { REQUESTS_MAX = 1024 * 1024, RECORDS_MAX = 64 * 1024 * 1024 };

struct unsent {
	struct unsent *next;
	struct pending *then; /* answered when this message was sent; NULL: none */
	int fd; /* sent with it; -1: none */
	size_t n;
	char bytes[];
};

/* 1: sent, 0: there is no room. */
static int send_now(struct box *box, const void *msg, size_t n, int fd, struct err *e)
{
	if (sock_send(box->socket, msg, n, &fd, fd >= 0, MSG_DONTWAIT) >= 0)
		return 1;
	if (errno == EAGAIN || errno == ENOBUFS)
		return 0;
	if ((errno == EPIPE || errno == ECONNRESET) && box->state == BOX_STARTING)
		return 1; /* box_ended() follows, which knows the reason */
	if (errno == EPIPE || errno == ECONNRESET)
		return err_set(e, ERR_GUEST, "the process that holds all sandboxes ended");
	return err_sys(e, errno, "ask the warden");
}

/* Limits how much may be queued before this message. Other messages are small, and there are no
 * more of them than sandboxes. */
static size_t room_before(const struct wm_head *h)
{
	switch (h->type) {
	case WM_CREATE:
	case WM_FORK:
		return REQUESTS_MAX;
	case WM_RECORD:
		return RECORDS_MAX;
	default:
		return SIZE_MAX;
	}
}

static int hold_back(struct box *box, const void *msg, size_t n, int fd, struct err *e)
{
	struct unsent *u = box->unsent_bytes <= room_before(msg) ? malloc(sizeof(*u) + n) : NULL;

	if (!u)
		return err_set(e, ERR_LIMIT, "too many requests for sandboxes at once");
	*u = (struct unsent){ .n = n, .fd = -1 };
	memcpy(u->bytes, msg, n);
	if (fd >= 0 && (u->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0) {
		free(u);
		return err_sys(e, errno, "keep a descriptor for the warden");
	}
	if (box->unsent)
		box->last_unsent->next = u;
	else
		box->unsent = u;
	box->last_unsent = u;
	box->unsent_bytes += n;
	box_warden_listen(box);
	return 0;
}

int box_send_fd(struct box *box, const void *msg, size_t n, int fd, struct err *e)
{
	int sent;

	if (box->socket < 0)
		return err_set(e, ERR_GUEST, "the process that holds all sandboxes ended");
	sent = box->unsent ? 0 : send_now(box, msg, n, fd, e);
	if (sent == 0)
		return hold_back(box, msg, n, fd, e);
	return sent < 0 ? -1 : 0;
}

int box_send(struct box *box, const void *msg, size_t n, struct err *e)
{
	return box_send_fd(box, msg, n, -1, e);
}

void box_wait_no_more(struct pending *p)
{
	if (p->last)
		p->last->then = NULL;
	p->last = NULL;
}

bool box_wait_sent(struct box *box, struct pending *p)
{
	if (!box->unsent || box->last_unsent->then)
		return false;
	box_wait_no_more(p);
	box->last_unsent->then = p;
	p->last = box->last_unsent;
	return true;
}

/* Removes the first message; returns the request that waits for it, or NULL. */
static struct pending *take_first(struct box *box)
{
	struct unsent *u = box->unsent;
	struct pending *then = u->then;

	if (then)
		box_wait_no_more(then);
	box->unsent = u->next;
	box->unsent_bytes -= u->n;
	close_fd(&u->fd);
	free(u);
	return then;
}

void box_send_more(struct box *box)
{
	struct err e = ERR_INIT;

	while (box->unsent) {
		int sent = send_now(box, box->unsent->bytes, box->unsent->n, box->unsent->fd, &e);
		struct pending *then;

		if (sent == 0)
			return;
		if (sent < 0) { /* the warden ends soon, which answers all who wait */
			log_debug("%s", e.msg);
			box_warden_kill(box);
			return;
		}
		then = take_first(box);
		if (then)
			box_confirmed(box, then);
	}
	box_warden_listen(box);
}

void box_send_no_more(struct box *box)
{
	while (box->unsent)
		take_first(box);
}
