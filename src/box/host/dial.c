/*
 * Connections into a sandbox. The warden makes a socket in its network (box/warden/socket.c), which
 * is connected here: first over IPv4 and, if nobody listens, over IPv6. The server is the sandbox's
 * code, so everything has a time limit.
 *
 * A socket that init made could be set to make the hub block, so it does not make it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "box/host/internal.h"

enum { DIAL_MS = 10000 };

struct dial {
	struct sandbox *sb; /* a reference */
	uint16_t port;
	int family;
	int fd; /* the one being connected */
	uv_poll_t *poll;
	uv_timer_t *timer;
	dial_cb on_done; /* NULL: cancelled */
	void *arg;
	bool asking; /* the warden or the loop still refers to it */
	struct err err;
};

static void free_dial(struct dial *d)
{
	if (d->poll) {
		uv_poll_stop(d->poll);
		box_close_handle(d->poll);
	}
	if (d->timer) {
		uv_timer_stop(d->timer);
		box_close_handle(d->timer);
	}
	close_fd(&d->fd);
	sandbox_unref(d->sb);
	free(d);
}

static void dial_finish(struct dial *d, const struct err *err)
{
	int fd = err ? -1 : take_fd(&d->fd);
	dial_cb on_done = d->on_done;
	void *arg = d->arg;

	free_dial(d);
	if (on_done)
		on_done(arg, fd, err);
	else if (fd >= 0)
		close(fd);
}

static void dial_fail(struct dial *d, enum err_code code, const char *why)
{
	struct err e;

	err_set(&e, code, "port %u of sandbox %s: %s", d->port, d->sb->id, why);
	dial_finish(d, &e);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void dial_ask(struct dial *d, int family);

/* If nobody listens on a port that the kernel also assigns by itself, the socket may connect to
 * itself. */
static bool met_itself(const struct dial *d)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t n = sizeof(own), m = sizeof(peer);

	return getsockname(d->fd, (struct sockaddr *)&own, &n) == 0 &&
	       getpeername(d->fd, (struct sockaddr *)&peer, &m) == 0 &&
	       memcmp(&own, &peer, sizeof(own)) == 0;
}

static void connected(struct dial *d, int errnum)
{
	if (errnum == 0 && !met_itself(d)) {
		dial_finish(d, NULL);
	} else if (d->family == AF_INET) {
		if (d->poll) {
			uv_poll_stop(d->poll);
			box_close_handle(take_ptr(d->poll));
		}
		close_fd(&d->fd);
		dial_ask(d, AF_INET6);
	} else {
		dial_fail(d, ERR_PORT, "nobody listens there");
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct dial *d = poll->data;
	int errnum = 0;
	socklen_t n = sizeof(errnum);

	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &errnum, &n) < 0)
		errnum = errno;
	connected(d, errnum);
}

static void dial_begin(struct dial *d)
{
	const struct sockaddr_in v4 = { .sin_family = AF_INET,
					.sin_port = htons(d->port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
					 .sin6_port = htons(d->port),
					 .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int rc = d->family == AF_INET ? connect(d->fd, (const struct sockaddr *)&v4, sizeof(v4))
				      : connect(d->fd, (const struct sockaddr *)&v6, sizeof(v6));

	if (rc == 0) {
		connected(d, 0);
		return;
	}
	if (errno != EINPROGRESS) {
		connected(d, errno);
		return;
	}
	d->poll = calloc(1, sizeof(*d->poll));
	if (!d->poll || uv_poll_init(d->sb->box->loop, d->poll, d->fd) < 0) {
		free(take_ptr(d->poll));
		dial_fail(d, ERR_LIMIT, "out of memory");
		return;
	}
	d->poll->data = d;
	uv_poll_start(d->poll, UV_WRITABLE, on_poll);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int sockets_ask(struct sandbox *sb, struct wm_socket *m, sockets_cb on_done, void *arg,
		       struct err *e)
{
	struct pending *p;

	if (!sb->live || sb->destroying)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", sb->id);
	p = box_expect(sb->box, arg);
	if (!p)
		return err_set(e, ERR_LIMIT, "out of memory");
	p->on_sockets = on_done;
	m->h = (struct wm_head){ WM_SOCKET, p->seq };
	m->key = sb->key;
	if (box_send(sb->box, m, sizeof(*m), e) == 0)
		return 0;
	box_forget(box_expected(sb->box, p->seq));
	return -1;
}

int sandbox_sockets_start(struct sandbox *sb, const struct sandbox_address *at, size_t n,
			  sockets_cb on_done, void *arg, struct err *e)
{
	struct wm_socket m = { .family = AF_INET, .n = (uint32_t)n };

	if (n < 1 || n > WIRE_SOCKETS_MAX)
		return err_set(e, ERR_LIMIT, "from 1 to %d sockets", WIRE_SOCKETS_MAX);
	for (size_t i = 0; i < n; i++)
		m.at[i] = (struct wm_address){ at[i].ip, at[i].port, at[i].datagram };
	return sockets_ask(sb, &m, on_done, arg, e);
}

/* ---- connecting from one --------------------------------------------------------------------- */

static void on_socket(void *arg, int *fds, size_t n, const struct err *err)
{
	struct dial *d = arg;

	d->asking = false;
	d->fd = n ? take_fd(&fds[0]) : -1;
	if (!d->on_done)
		free_dial(d);
	else if (err && err->code == ERR_PORT)
		dial_fail(d, ERR_PORT,
			  "nobody listens there"); /* over IPv4, and there is no IPv6 */
	else if (err)
		dial_finish(d, err);
	else if (d->fd < 0)
		/* this process could not take the descriptor */
		dial_fail(d, ERR_LIMIT, "too many files are open");
	else
		dial_begin(d);
}

static void on_refused(void *arg)
{
	struct dial *d = arg;

	const struct err err = d->err;

	on_socket(d, NULL, 0, &err);
}

static int send_ask(struct dial *d, struct err *e)
{
	struct sandbox *sb = d->sb;
	struct wm_socket m = { .family = (uint32_t)d->family };

	if (sb->paused || (sb->pausing && sb->pausing->pause))
		return err_set(e, ERR_PAUSED, "sandbox %s is paused", sb->id);
	if (sb->sleep) /* nothing runs in it */
		return err_set(e, ERR_PORT, "sandbox %s is asleep", sb->id);
	return sockets_ask(sb, &m, on_socket, d, e);
}

static void dial_ask(struct dial *d, int family)
{
	d->family = family;
	d->asking = true;
	if (send_ask(d, &d->err) < 0 && box_later(d->sb->box, on_refused, d, &d->err) < 0)
		abort(); /* without memory, no promise of an answer can be kept */
}

/* ---- for the hub ----------------------------------------------------------------------------- */

static void on_timeout(uv_timer_t *t)
{
	struct dial *d = t->data;
	dial_cb on_done = d->on_done;
	void *arg = d->arg;
	struct err e;

	err_set(&e, ERR_PORT, "port %u of sandbox %s: nobody accepts there", d->port, d->sb->id);
	sandbox_dial_cancel(d);
	on_done(arg, -1, &e);
}

struct dial *sandbox_dial_start(struct sandbox *sb, uint16_t port, dial_cb on_done, void *arg)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (!d || !(d->timer = calloc(1, sizeof(*d->timer))))
		abort(); /* see dial_ask() */
	d->sb = sandbox_ref(sb);
	d->port = port;
	d->fd = -1;
	d->on_done = on_done;
	d->arg = arg;
	d->err = ERR_INIT;
	uv_timer_init(sb->box->loop, d->timer);
	d->timer->data = d;
	uv_timer_start(d->timer, on_timeout, DIAL_MS, 0);
	dial_ask(d, AF_INET);
	return d;
}

void sandbox_dial_cancel(struct dial *d)
{
	d->on_done = NULL;
	uv_timer_stop(d->timer);
	if (!d->asking)
		free_dial(d);
}
