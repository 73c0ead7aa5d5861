#include <stdlib.h>

#include "modules/guest/internal.h"
#include "base/str.h"

void guest_exit(enum code_exit how)
{
	_exit((int)how);
}

static void read_all(char *p, size_t n)
{
	while (n > 0) {
		ssize_t got = read(STDIN_FILENO, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			guest_exit(got == 0 ? CODE_EXIT_OVER : CODE_EXIT_WIRE);
		p += got;
		n -= (size_t)got;
	}
}

static void write_all(const char *p, size_t n)
{
	while (n > 0) {
		ssize_t put = write(STDOUT_FILENO, p, n);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			guest_exit(CODE_EXIT_WIRE);
		p += put;
		n -= (size_t)put;
	}
}

JSValue guest_read(struct guest *g)
{
	unsigned char head[CODE_HEAD];
	struct err e;
	char *p;
	size_t n;

	read_all((char *)head, sizeof(head));
	n = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	if (n > CODE_FRAME_MAX)
		guest_exit(CODE_EXIT_WIRE);
	g->in.n = 0;
	p = buf_reserve(&g->in, n + 1, &e);
	if (!p)
		guest_exit(CODE_EXIT_MEMORY);
	read_all(p, n);
	p[n] = '\0';
	return guest_parse(g->ctx, p, n);
}

static void put(struct buf *to, const void *p, size_t n)
{
	struct err e;

	if (buf_add(to, p, n, &e) < 0)
		guest_exit(CODE_EXIT_MEMORY);
}

struct buf guest_frame(const char *kind)
{
	struct buf frame = BUF_INIT(CODE_FRAME_MAX + CODE_HEAD);
	struct err e;

	if (buf_addf(&frame, &e, "%*s{\"kind\":\"%s\"", CODE_HEAD, "", kind) < 0)
		guest_exit(CODE_EXIT_MEMORY);
	return frame;
}

void guest_send(struct buf *frame)
{
	size_t n;

	put(frame, "}", 1);
	n = frame->n - CODE_HEAD;
	for (int i = 0; i < CODE_HEAD; i++)
		frame->p[i] = (char)(n >> 8 * i & 0xff);
	write_all(frame->p, frame->n);
	buf_fini(frame);
}

static void put_key(struct buf *to, const char *key)
{
	struct err e;

	if (buf_addf(to, &e, ",\"%s\":", key) < 0)
		guest_exit(CODE_EXIT_MEMORY);
}

/* QuickJS writes half a surrogate pair as UTF-8 would, had it one: ED A0..BF and a byte. */
static bool is_half(struct str s, size_t i)
{
	return (unsigned char)s.p[i] == 0xed && i + 2 < s.n && (unsigned char)s.p[i + 1] >= 0xa0;
}

void guest_put(struct buf *to, const char *key, struct str s)
{
	size_t from = 0;

	put_key(to, key);
	put(to, "\"", 1);
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		char escape[8];
		int n = 0;

		if (c == '"' || c == '\\')
			n = snprintf(escape, sizeof(escape), "\\%c", c);
		else if (c < 0x20)
			n = snprintf(escape, sizeof(escape), "\\u%04x", c);
		else if (is_half(s, i))
			n = snprintf(escape, sizeof(escape), "\\ufffd");
		if (n == 0)
			continue;
		put(to, s.p + from, i - from);
		put(to, escape, (size_t)n);
		i += is_half(s, i) ? 2 : 0;
		from = i + 1;
	}
	put(to, s.p + from, s.n - from);
	put(to, "\"", 1);
}

void guest_put_int(struct buf *to, const char *key, uint64_t value)
{
	struct err e;

	put_key(to, key);
	if (buf_addf(to, &e, "%llu", (unsigned long long)value) < 0)
		guest_exit(CODE_EXIT_MEMORY);
}

/* JSON.stringify() writes half a surrogate pair as \ud83d, which no strict reader takes. */
void guest_put_json(struct buf *to, const char *key, struct str s)
{
	size_t from = 0;

	put_key(to, key);
	for (size_t i = 0; i + 1 < s.n; i++) {
		if (s.p[i] != '\\')
			continue;
		if (i + 5 < s.n && s.p[i + 1] == 'u' && (s.p[i + 2] == 'd' || s.p[i + 2] == 'D')) {
			put(to, s.p + from, i - from);
			put(to, "\\ufffd", 6);
			from = i + 6;
		}
		i += s.p[i + 1] == 'u' ? 5 : 1;
	}
	if (from < s.n)
		put(to, s.p + from, s.n - from);
}
