/*
 * A client that still sends when its answer is there often reads the answer only afterwards. If its
 * connection were closed with bytes that nobody has read, the kernel would reset it, and the answer
 * would be lost (RFC 9112, section 9.6). So a second descriptor keeps the socket while the daemon
 * closes its own, and some bytes are read and dropped for some time.
 */
#include "http/server/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LINGERS_MAX = 64,
	LINGER_MS = 30000,
	LINGER_SILENT_MS = 2000,
	LINGER_BYTES = 128 << 20,
	LINGER_STEP = 256 << 10, /* bytes in one turn of the loop */
};

struct lingering {
	uv_poll_t poll;
	struct http_server *srv;
	struct lingering *next;
	int fd;
	size_t left; /* bytes that may come */
	uint64_t until_ms, silent_ms; /* it ends then */
};

static void linger_closed(uv_handle_t *handle)
{
	struct lingering *l = handle->data;

	close_fd(&l->fd);
	server_handle_closed(l->srv);
	free(l);
}

static void linger_end(struct lingering *l)
{
	struct lingering **at = &l->srv->lingers;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	l->srv->n_lingers--;
	uv_close((uv_handle_t *)&l->poll, linger_closed);
}

static void linger_on_readable(uv_poll_t *poll, int status, int events)
{
	static char dropped[64 << 10];
	struct lingering *l = poll->data;
	size_t step = 0;
	ssize_t n = 1;

	(void)events;
	while (status == 0 && n > 0 && step < LINGER_STEP) {
		n = recv(l->fd, dropped, sizeof(dropped), MSG_DONTWAIT);
		step += n > 0 ? (size_t)n : 0;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 1;
	if (status < 0 || n <= 0 || step >= l->left) {
		linger_end(l);
		return;
	}
	l->left -= step;
	l->silent_ms = server_now_ms(l->srv) + LINGER_SILENT_MS;
}

void linger_start(const struct conn *c)
{
	struct http_server *srv = c->srv;
	struct lingering *l;

	if (srv->closing || srv->n_lingers == LINGERS_MAX)
		return;
	l = calloc(1, sizeof(*l));
	if (!l)
		return;
	l->srv = srv;
	l->fd = fcntl(c->fd, F_DUPFD_CLOEXEC, 0);
	if (l->fd < 0 || uv_poll_init(srv->loop, &l->poll, l->fd) < 0) {
		close_fd(&l->fd);
		free(l);
		return;
	}
	shutdown(l->fd, SHUT_WR);
	l->poll.data = l;
	l->left = LINGER_BYTES;
	l->until_ms = server_now_ms(srv) + LINGER_MS;
	l->silent_ms = server_now_ms(srv) + LINGER_SILENT_MS;
	l->next = srv->lingers;
	srv->lingers = l;
	srv->n_lingers++;
	srv->handles++;
	uv_poll_start(&l->poll, UV_READABLE, linger_on_readable);
	server_tick(srv);
}

void linger_expire(struct http_server *srv, uint64_t now_ms)
{
	struct lingering *next;

	for (struct lingering *l = srv->lingers; l; l = next) {
		next = l->next;
		if (now_ms >= l->until_ms || now_ms >= l->silent_ms)
			linger_end(l);
	}
}
