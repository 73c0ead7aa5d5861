#include "net/egress/internal.h"

#include <sys/socket.h>

static void on_closed(uv_handle_t *h)
{
	free(h);
}

uv_poll_t *poll_new(uv_loop_t *loop, int fd, void *data)
{
	uv_poll_t *poll = malloc(sizeof(*poll));

	if (!poll || uv_poll_init(loop, poll, fd) < 0) {
		free(poll);
		return NULL;
	}
	poll->data = data;
	return poll;
}

void poll_drop(uv_poll_t **poll)
{
	if (*poll)
		uv_close((uv_handle_t *)take_ptr(*poll), on_closed);
}

uv_timer_t *timer_new(uv_loop_t *loop, void *data)
{
	uv_timer_t *timer = malloc(sizeof(*timer));

	if (!timer)
		return NULL;
	uv_timer_init(loop, timer);
	timer->data = data;
	return timer;
}

void timer_drop(uv_timer_t **timer)
{
	if (*timer)
		uv_close((uv_handle_t *)take_ptr(*timer), on_closed);
}

void fd_reset(int fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}
