/*
 * Bytes are queued during a turn of the loop. The idle handle, which runs in the next turn before
 * the loop waits, writes them all at once. Poll waits for a descriptor that does not accept all.
 */
#include "loop/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "loop/fd.h"

enum { KEEP = 64 << 10 }; /* a larger buffer is freed once it is empty */

struct loop_writer {
	uv_poll_t poll;
	uv_idle_t idle;
	bool polled; /* poll is in use */
	bool broken; /* on_broken was called, or will be by the idle handle */
	bool told;
	struct err why;
	int fd;
	unsigned handles; /* open */
	struct buf queue;
	size_t written; /* of the queue's front */
	const struct loop_writer_events *ev;
	void *owner;
	void (*on_closed)(void *owner);
};

size_t loop_writer_queued(const struct loop_writer *w)
{
	return w->queue.n - w->written;
}

static void writer_empty(struct loop_writer *w)
{
	if (w->queue.cap > KEEP)
		buf_fini(&w->queue);
	w->queue.n = 0;
	w->written = 0;
}

static bool is_polling(const struct loop_writer *w)
{
	return w->polled && uv_is_active((const uv_handle_t *)&w->poll);
}

/* Stopping poll costs a system call, even if it is not started. */
static void writer_stop(struct loop_writer *w)
{
	uv_idle_stop(&w->idle);
	if (is_polling(w))
		uv_poll_stop(&w->poll);
}

static void tell_broken(struct loop_writer *w)
{
	writer_stop(w);
	if (w->told)
		return;
	w->told = true;
	w->ev->on_broken(w->owner, &w->why);
}

static void on_poll(uv_poll_t *poll, int status, int events);

/* failed: the descriptor is no longer polled, so waiting is useless */
static void writer_flush(struct loop_writer *w, bool failed)
{
	ssize_t n = 0;

	while (loop_writer_queued(w) > 0) {
		n = write(w->fd, w->queue.p + w->written, loop_writer_queued(w));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		w->written += (size_t)n;
	}
	if (loop_writer_queued(w) == 0) {
		writer_empty(w);
		writer_stop(w);
	} else if (errno == EAGAIN && w->polled && !failed) {
		uv_idle_stop(&w->idle);
		uv_poll_start(&w->poll, UV_WRITABLE, on_poll);
	} else {
		w->broken = true;
		err_sys(&w->why, errno, "write");
		writer_empty(w);
		tell_broken(w);
		return;
	}
	w->ev->on_written(w->owner);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	writer_flush(poll->data, status < 0);
}

static void on_idle(uv_idle_t *idle)
{
	struct loop_writer *w = idle->data;

	if (w->broken)
		tell_broken(w);
	else
		writer_flush(w, false);
}

struct loop_writer *loop_writer_new(uv_loop_t *loop, int fd, size_t max,
				    const struct loop_writer_events *ev, void *owner, struct err *e)
{
	struct loop_writer *w = NULL;
	autoclose int owned = fd;

	if (loop_fd_unblock(&owned, e) < 0)
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	w->polled = uv_poll_init(loop, &w->poll, owned) == 0;
	uv_idle_init(loop, &w->idle);
	w->handles = 1 + w->polled;
	w->poll.data = w;
	w->idle.data = w;
	w->fd = take_fd(&owned);
	w->queue = BUF_INIT(max);
	w->ev = ev;
	w->owner = owner;
	return w;
}

void loop_writer_put(struct loop_writer *w, struct str bytes)
{
	if (w->broken || bytes.n == 0)
		return;
	if (w->written > w->queue.n / 2) { /* its room is used again before the queue grows */
		buf_drop(&w->queue, w->written);
		w->written = 0;
	}
	if (buf_add(&w->queue, bytes.p, bytes.n, &w->why) < 0) {
		w->broken = true;
		err_wrap(&w->why, "the reader is too slow");
		writer_empty(w);
	}
	if (w->broken || !is_polling(w))
		uv_idle_start(&w->idle, on_idle);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct loop_writer *w = handle->data;
	void (*on_closed)(void *) = w->on_closed;
	void *owner = w->owner;

	if (--w->handles > 0)
		return;
	close_fd(&w->fd);
	buf_fini(&w->queue);
	free(w);
	if (on_closed)
		on_closed(owner);
}

void loop_writer_close(struct loop_writer *w, void (*on_closed)(void *owner))
{
	w->on_closed = on_closed;
	w->broken = true;
	uv_close((uv_handle_t *)&w->idle, on_handle_closed);
	if (w->polled)
		uv_close((uv_handle_t *)&w->poll, on_handle_closed);
}
