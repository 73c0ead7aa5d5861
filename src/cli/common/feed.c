#include "cli/common/feed.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/mem.h"

/* Passes the held bytes on. False if the consumer is full or has stopped reading. */
static bool hand_on(struct feed *f)
{
	if (!f->to->reads(f->arg)) {
		feed_stop(f);
		return false;
	}
	if (f->held_n > 0 && !f->to->take(f->arg, f->held, f->held_n)) {
		f->waiting = true;
		if (f->polled)
			uv_poll_stop(&f->poll);
		return false;
	}
	f->held_n = 0;
	return true;
}

static void on_readable(uv_poll_t *p, int status, int events);

/* Reads once if a second read could block, else until the consumer is full. */
static void feed_pump(struct feed *f)
{
	ssize_t n;

	do {
		if (f->waiting || !hand_on(f))
			return;
		n = read(STDIN_FILENO, f->held, sizeof(f->held));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			break;
		if (n <= 0) {
			f->to->end(f->arg);
			feed_stop(f);
			return;
		}
		f->held_n = (size_t)n;
	} while (hand_on(f) && !f->polled);
	if (f->polled && !f->waiting)
		uv_poll_start(&f->poll, UV_READABLE, on_readable);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	feed_pump(p->data);
}

/* A descriptor that can block is read only when it is readable. */
void feed_resume(struct feed *f)
{
	if (!f->open || !f->waiting)
		return;
	f->waiting = false;
	if (!f->polled)
		feed_pump(f);
	else if (hand_on(f))
		uv_poll_start(&f->poll, UV_READABLE, on_readable);
}

int feed_start(struct feed *f, uv_loop_t *loop, const struct feed_to *to, void *arg, struct err *e)
{
	struct epoll_event want = { .events = EPOLLIN };

	f->to = to;
	f->arg = arg;
	f->open = true;
	f->watch = epoll_create1(EPOLL_CLOEXEC);
	if (f->watch < 0)
		return err_sys(e, errno, "standard input");
	if (epoll_ctl(f->watch, EPOLL_CTL_ADD, STDIN_FILENO, &want) < 0) {
		close_fd(&f->watch);
		feed_pump(f);
		return 0;
	}
	if (uv_poll_init(loop, &f->poll, f->watch) < 0)
		return err_set(e, ERR_LIMIT, "standard input can't be watched");
	f->polled = true;
	f->poll.data = f;
	uv_poll_start(&f->poll, UV_READABLE, on_readable);
	return 0;
}

static void on_closed(uv_handle_t *h)
{
	struct feed *f = h->data;

	close_fd(&f->watch);
}

void feed_stop(struct feed *f)
{
	f->open = false;
	if (!f->polled)
		return;
	f->polled = false;
	uv_close((uv_handle_t *)&f->poll, on_closed);
}
