/*
 * Descriptors that epoll supports are polled, then read. Files and some devices are not supported
 * and never block, so an idle handle reads them.
 */
#include "loop/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/fd.h"

enum { PIECE = 64 << 10 };

struct loop_reader {
	uv_poll_t poll;
	uv_idle_t idle; /* in place of poll */
	bool polled;
	bool wanted; /* a piece was asked for */
	bool running; /* the handle is started */
	bool closing;
	int fd;
	const struct loop_reader_events *ev;
	void *owner;
	void (*on_closed)(void *owner);
	char piece[PIECE];
};

static void reader_stop(struct loop_reader *r)
{
	if (!r->running)
		return;
	if (r->polled)
		uv_poll_stop(&r->poll);
	else
		uv_idle_stop(&r->idle);
	r->running = false;
}

/* failed: the descriptor is no longer polled, so waiting is useless */
static void read_piece(struct loop_reader *r, bool failed)
{
	ssize_t n = read(r->fd, r->piece, PIECE);
	struct err e;

	if (n < 0 && !failed && (errno == EAGAIN || errno == EINTR))
		return;
	r->wanted = false;
	if (n <= 0) {
		if (n < 0)
			err_sys(&e, errno, "read");
		reader_stop(r);
		r->ev->on_end(r->owner, n < 0 ? &e : NULL);
		return;
	}
	r->ev->on_bytes(r->owner, (struct str){ r->piece, (size_t)n });
	if (!r->wanted && !r->closing)
		reader_stop(r);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	read_piece(poll->data, status < 0);
}

static void on_idle(uv_idle_t *idle)
{
	read_piece(idle->data, false);
}

struct loop_reader *loop_reader_new(uv_loop_t *loop, int fd, const struct loop_reader_events *ev,
				    void *owner, struct err *e)
{
	struct loop_reader *r = NULL;
	autoclose int owned = fd;

	if (loop_fd_unblock(&owned, e) < 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	r->polled = uv_poll_init(loop, &r->poll, owned) == 0;
	if (!r->polled)
		uv_idle_init(loop, &r->idle);
	r->poll.data = r;
	r->idle.data = r;
	r->fd = take_fd(&owned);
	r->ev = ev;
	r->owner = owner;
	return r;
}

void loop_reader_next(struct loop_reader *r)
{
	r->wanted = true;
	if (r->running || r->closing)
		return;
	r->running = true;
	if (r->polled)
		uv_poll_start(&r->poll, UV_READABLE, on_poll);
	else
		uv_idle_start(&r->idle, on_idle);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct loop_reader *r = handle->data;
	void (*on_closed)(void *) = r->on_closed;
	void *owner = r->owner;

	close_fd(&r->fd);
	free(r);
	if (on_closed)
		on_closed(owner);
}

void loop_reader_close(struct loop_reader *r, void (*on_closed)(void *owner))
{
	r->on_closed = on_closed;
	r->closing = true;
	reader_stop(r);
	uv_close(r->polled ? (uv_handle_t *)&r->poll : (uv_handle_t *)&r->idle, on_handle_closed);
}
