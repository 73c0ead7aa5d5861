#include "wire.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

enum { HEAD_MAX = 1024, MESSAGE_MAX = 65535, KEEP_SHOWN = 400 };

struct wire *wire_new(void)
{
	const char *port = getenv("HOLT_BENCH_PORT");
	struct wire *w = malloc(sizeof(*w)); /* its pages come when they are read into */
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)atoi(port ? port : "0")) };
	int yes = 1;

	if (!w)
		die("no memory");
	w->at = w->have = 0;
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(w->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die("no hub at HOLT_BENCH_PORT");
	return w;
}

void wire_free(struct wire *w)
{
	close(w->fd);
	free(w);
}

/* ---- out ------------------------------------------------------------------------------------- */

static void put(struct wire *w, const char *p, size_t n, int flags)
{
	while (n > 0) {
		ssize_t sent = send(w->fd, p, n, flags | MSG_NOSIGNAL);

		if (sent <= 0)
			die("the hub takes no more");
		p += sent;
		n -= (size_t)sent;
	}
}

/* The request line and the fields that all requests have, without the empty line. */
static size_t head(char *to, const char *method, const char *path)
{
	const char *token = getenv("HOLT_BENCH_TOKEN");
	int n = snprintf(to, HEAD_MAX,
			 "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n",
			 method, path, token ? token : "");

	if (n < 0 || n >= HEAD_MAX)
		die("a request that is too long");
	return (size_t)n;
}

void wire_send(struct wire *w, const char *method, const char *path, const char *body)
{
	char text[HEAD_MAX + 128];
	size_t n = head(text, method, path), size = body ? strlen(body) : 0;

	if (body)
		n += (size_t)sprintf(text + n,
				     "Content-Type: application/json\r\nContent-Length: %zu\r\n",
				     size);
	n += (size_t)sprintf(text + n, "\r\n");
	put(w, text, n, body ? MSG_MORE : 0);
	put(w, body, size, 0);
}

void wire_send_file(struct wire *w, const char *method, const char *path, const char *type, int fd)
{
	char text[HEAD_MAX + 256];
	size_t n = head(text, method, path);
	struct stat st;
	off_t at = 0;

	if (fstat(fd, &st) < 0)
		die("no file to send");
	n += (size_t)snprintf(text + n, 256, "Content-Type: %s\r\nContent-Length: %jd\r\n\r\n",
			      type, (intmax_t)st.st_size);
	put(w, text, n, MSG_MORE);
	while (at < st.st_size) {
		if (sendfile(w->fd, fd, &at, (size_t)(st.st_size - at)) <= 0)
			die("the hub takes no more of a file");
	}
}

/* ---- in -------------------------------------------------------------------------------------- */

static void fill(struct wire *w)
{
	ssize_t n;

	if (w->have == WIRE_MAX || w->at == w->have) {
		memmove(w->in, w->in + w->at, w->have - w->at);
		w->have -= w->at;
		w->at = 0;
	}
	if (w->have == WIRE_MAX)
		die("an answer that is too long");
	n = recv(w->fd, w->in + w->have, WIRE_MAX - w->have, 0);
	if (n <= 0)
		die("the hub has closed a connection");
	w->have += (size_t)n;
}

/* The next n bytes. */
static char *take(struct wire *w, size_t n)
{
	while (w->have - w->at < n)
		fill(w);
	w->at += n;
	return w->in + w->at - n;
}

/* The next line without its end. */
static char *line(struct wire *w)
{
	char *from, *end;

	while (!(end = memchr(w->in + w->at, '\n', w->have - w->at)))
		fill(w);
	from = take(w, (size_t)(end + 1 - (w->in + w->at)));
	end[end > from && end[-1] == '\r' ? -1 : 0] = '\0';
	return from;
}

struct head {
	int status;
	bool chunked;
	uint64_t length;
};

static struct head read_head(struct wire *w)
{
	struct head h = { 0 };
	const char *l = line(w);

	h.status = strlen(l) > 9 ? atoi(l + 9) : 0;
	while (*(l = line(w))) {
		if (strncasecmp(l, "content-length:", 15) == 0)
			h.length = strtoull(l + 15, NULL, 10);
		else if (strncasecmp(l, "transfer-encoding:", 18) == 0)
			h.chunked = true;
	}
	return h;
}

static const char *body(struct wire *w, const struct head *h)
{
	char *p = take(w, h->chunked ? 0 : h->length);

	p[h->chunked ? 0 : h->length] =
		'\0'; /* nothing has come behind it: nothing was asked for */
	if (h->status != 200) {
		fprintf(stderr, "%d %.*s\n", h->status, KEEP_SHOWN, p);
		die("the hub refused a request");
	}
	return p;
}

const char *wire_reply(struct wire *w)
{
	struct head h = read_head(w);

	if (h.chunked)
		die("a stream where a document should be");
	return body(w, &h);
}

static void skip(struct wire *w, uint64_t n)
{
	while (n > 0) {
		size_t here = w->have - w->at;

		if (here == 0) {
			fill(w);
			continue;
		}
		here = here < n ? here : (size_t)n;
		w->at += here;
		n -= here;
	}
}

uint64_t wire_drain(struct wire *w)
{
	struct head h = read_head(w);
	uint64_t n, all = 0;

	if (h.status != 200)
		body(w, &h);
	if (!h.chunked) {
		skip(w, h.length);
		return h.length;
	}
	while ((n = strtoull(line(w), NULL, 16)) > 0) {
		skip(w, n);
		line(w);
		all += n;
	}
	while (*line(w))
		;
	return all;
}

const char *wire_ask(struct wire *w, const char *method, const char *path, const char *body_)
{
	wire_send(w, method, path, body_);
	return wire_reply(w);
}

/* ---- WebSocket ------------------------------------------------------------------------------- */

void ws_open(struct wire *w, const char *path, const char *protocol)
{
	char text[HEAD_MAX + 256];
	size_t n = head(text, "GET", path);

	n += (size_t)snprintf(
		text + n, 256,
		"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: %s\r\n\r\n",
		protocol);
	put(w, text, n, 0);
	if (read_head(w).status != 101)
		die("the hub opens no WebSocket");
}

/* The mask is zero, which leaves everything as it is: the rule wants one, and time is what is
 * measured. */
void ws_say(struct wire *w, int opcode, const char *p, size_t n)
{
	unsigned char head_[8] = { (unsigned char)(0x80 | opcode), (unsigned char)(0x80 | n) };
	size_t n_head = 6;

	if (n > MESSAGE_MAX)
		die("a message that is too long");
	if (n > 125) {
		head_[1] = 0x80 | 126;
		head_[2] = (unsigned char)(n >> 8);
		head_[3] = (unsigned char)n;
		n_head = 8;
	}
	put(w, (const char *)head_, n_head, MSG_MORE);
	put(w, p, n, 0);
}

struct ws_frame ws_hear(struct wire *w)
{
	const unsigned char *h = (const unsigned char *)take(w, 2);
	struct ws_frame f = { .opcode = h[0] & 15, .n = h[1] & 127 };
	size_t n_length = f.n == 126 ? 2 : f.n == 127 ? 8 : 0;

	if (n_length > 0) {
		h = (const unsigned char *)take(w, n_length);
		f.n = 0;
		for (size_t i = 0; i < n_length; i++)
			f.n = f.n << 8 | h[i];
	}
	f.p = take(w, f.n);
	return f;
}
