#include "coding/lines.h"

void lines_init(struct lines *l,
		void (*on_line)(void *arg, unsigned stream, struct str line, bool cut), void *arg)
{
	*l = (struct lines){ .on_line = on_line, .arg = arg };
	for (size_t i = 0; i < LINES_STREAMS; i++)
		l->streams[i].buf = BUF_INIT(CODING_LINE_MAX);
}

void lines_fini(struct lines *l)
{
	for (size_t i = 0; i < LINES_STREAMS; i++)
		buf_fini(&l->streams[i].buf);
}

static void lines_emit(struct lines *l, unsigned stream)
{
	struct lines_stream *s = &l->streams[stream];

	while (s->buf.n > 0 && s->buf.p[s->buf.n - 1] == '\r')
		s->buf.n--;
	if (s->buf.p)
		s->buf.p[s->buf.n] = '\0';
	l->on_line(l->arg, stream, buf_str(&s->buf), s->cut);
	s->buf.n = 0;
	s->cut = false;
	s->escape = 0;
}

static void lines_add(struct lines_stream *s, const char *p, size_t n)
{
	size_t room = s->buf.max - s->buf.n;
	struct err e;

	if (n > room || buf_add(&s->buf, p, n, &e) < 0) {
		s->cut = true;
		if (buf_add(&s->buf, p, n < room ? n : room, &e) < 0)
			s->cut = true;
	}
}

/* One byte of an escape sequence: of CSI up to its final byte, of others one. */
static void lines_escape(struct lines_stream *s, char c)
{
	if (s->escape == 1)
		s->escape = c == '[' ? 2 : 0;
	else if (c >= '@' && c <= '~')
		s->escape = 0;
}

void lines_feed(struct lines *l, unsigned stream, struct str bytes)
{
	struct lines_stream *s = &l->streams[stream];

	for (size_t i = 0; i < bytes.n;) {
		size_t n = 0;

		if (bytes.p[i] == '\n') {
			lines_emit(l, stream);
			i++;
			continue;
		}
		if (s->escape || bytes.p[i] == '\x1b') {
			if (s->escape)
				lines_escape(s, bytes.p[i]);
			else
				s->escape = 1;
			i++;
			continue;
		}
		while (i + n < bytes.n && bytes.p[i + n] != '\n' && bytes.p[i + n] != '\x1b')
			n++;
		lines_add(s, bytes.p + i, n);
		i += n;
	}
}

void lines_end(struct lines *l)
{
	for (unsigned i = 0; i < LINES_STREAMS; i++) {
		if (l->streams[i].buf.n > 0 || l->streams[i].cut)
			lines_emit(l, i);
	}
}
