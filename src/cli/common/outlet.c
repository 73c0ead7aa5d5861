#include "cli/common/outlet.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

/* After a hold, the engine still delivers what the pipe contains when a program ends. */
enum { KEPT_MAX = 8 * 1024 * 1024 };

static bool takes(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) > 0;
}

/* Writes as much as possible without blocking. Returns how much. */
static size_t write_now(struct outlet *o, const char *p, size_t n)
{
	size_t done = 0;

	while (done < n && !o->errnum && takes(o->fd)) {
		/* A writable pipe accepts at least this much at once. */
		size_t part = n - done < PIPE_BUF ? n - done : PIPE_BUF;
		ssize_t w = write(o->fd, p + done, part);

		if (w > 0)
			done += (size_t)w;
		else if (w < 0 && errno != EINTR && errno != EAGAIN)
			o->errnum = errno;
	}
	return done;
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct outlet *o = poll->data;

	buf_drop(&o->kept, write_now(o, o->kept.p, o->kept.n));
	if (o->errnum)
		buf_fini(&o->kept);
	if (!outlet_empty(o))
		return;
	uv_poll_stop(&o->poll);
	o->hold(o->arg, o->fd, false);
	o->on_ready(o->arg);
}

int outlet_init(struct outlet *o, uv_loop_t *loop, int fd, struct err *e)
{
	struct epoll_event want = { .events = EPOLLOUT };

	o->fd = fd;
	o->kept = BUF_INIT(KEPT_MAX);
	o->watch = epoll_create1(EPOLL_CLOEXEC);
	if (o->watch < 0)
		return err_sys(e, errno, "output");
	if (epoll_ctl(o->watch, EPOLL_CTL_ADD, fd, &want) < 0) {
		close_fd(&o->watch);
		return 0;
	}
	if (uv_poll_init(loop, &o->poll, o->watch) < 0)
		return err_set(e, ERR_LIMIT, "output can't be watched");
	o->poll.data = o;
	o->polled = true;
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct outlet *o = h->data;

	close_fd(&o->watch);
}

void outlet_close(struct outlet *o)
{
	buf_fini(&o->kept);
	if (!o->polled)
		return;
	o->polled = false;
	uv_close((uv_handle_t *)&o->poll, on_closed);
}

void outlet_write(struct outlet *o, const char *p, size_t n)
{
	size_t done = outlet_empty(o) ? write_now(o, p, n) : 0;
	struct err e;

	if (o->errnum) {
		o->on_ready(o->arg);
		return;
	}
	if (done == n)
		return;
	/* Only output that other processes write after the program's end is cut off here. */
	if (buf_add(&o->kept, p + done, n - done, &e) < 0)
		return;
	o->hold(o->arg, o->fd, true);
	uv_poll_start(&o->poll, UV_READABLE, on_writable); /* the epoll is, when fd is writable */
}
