#include "net/egress/tunnel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { HEAD_MAX = 16 * 1024, REQUEST_MAX = 4 * 1024 };

int tunnel_init(struct tunnel *t, const char *host, uint16_t port, const struct secret *auth,
		struct err *e)
{
	*t = (struct tunnel){ .out = BUF_INIT(REQUEST_MAX), .in = BUF_INIT(HEAD_MAX) };
	if (buf_addf(&t->out, e, "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n", host, port, host,
		     port) < 0)
		return -1;
	if (auth) {
		struct str value = secret_expose(auth, "sent to the network's proxy");

		if (buf_addf(&t->out, e, "Proxy-Authorization: Basic %.*s\r\n", STR_ARG(value)) < 0)
			return -1;
	}
	return buf_addf(&t->out, e, "\r\n");
}

void tunnel_fini(struct tunnel *t)
{
	buf_wipe(&t->out);
	buf_fini(&t->in);
}

/* What stands behind the head is the host's, and stays in the socket. */
static enum tunnel_state tunnel_read(struct tunnel *t, int fd)
{
	static const char end[] = "\r\n\r\n";
	size_t had = t->in.n;
	struct err e;
	char *to = buf_reserve(&t->in, HEAD_MAX - had, &e), *at;
	ssize_t n = to && had < HEAD_MAX ? recv(fd, to, HEAD_MAX - had, MSG_PEEK) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return TUNNEL_READ;
	if (n <= 0)
		return TUNNEL_REFUSED;
	at = memmem(t->in.p, had + (size_t)n, end, sizeof(end) - 1);
	if (at)
		n = at + sizeof(end) - 1 - to;
	if (recv(fd, to, (size_t)n, 0) != n)
		return TUNNEL_REFUSED;
	buf_advance(&t->in, (size_t)n);
	if (!at)
		return TUNNEL_READ;
	return t->in.n > 12 && memcmp(t->in.p, "HTTP/1.", 7) == 0 && t->in.p[8] == ' ' &&
			       t->in.p[9] == '2'
		     ? TUNNEL_OPEN
		     : TUNNEL_REFUSED;
}

enum tunnel_state tunnel_run(struct tunnel *t, int fd)
{
	while (t->out.n > 0) {
		ssize_t n = send(fd, t->out.p, t->out.n, MSG_NOSIGNAL);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return TUNNEL_WRITE;
		if (n < 0)
			return TUNNEL_REFUSED;
		buf_drop(&t->out, (size_t)n);
	}
	return tunnel_read(t, fd);
}
