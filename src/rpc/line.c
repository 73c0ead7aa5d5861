#include "rpc/line.h"

enum { KEEP = 64 << 10 }; /* a larger buffer is given back after its line */

void line_init(struct line_reader *l, size_t max)
{
	*l = (struct line_reader){
		.part = BUF_INIT(max + 1), /* and a CR */
		.max = max,
	};
}

void line_fini(struct line_reader *l)
{
	buf_fini(&l->part);
}

static void forget(struct line_reader *l)
{
	if (l->part.cap > KEEP)
		buf_fini(&l->part);
	l->part.n = 0;
	l->given = false;
}

static struct str without_cr(struct str s)
{
	if (s.n > 0 && s.p[s.n - 1] == '\r')
		s.n--;
	return s;
}

static enum line_event give(struct line_reader *l, struct str line, struct str *ret)
{
	line = without_cr(line);
	if (line.n > l->max)
		return LINE_TOO_LONG;
	*ret = line;
	return LINE_TEXT;
}

/* A piece of a line, up to its end if there is one: LINE_MORE, or what to report. */
static int take(struct line_reader *l, struct str piece, bool ends, struct str *ret, struct err *e)
{
	if (l->skipping) {
		l->skipping = !ends;
		return LINE_MORE;
	}
	if (piece.n > l->part.max - l->part.n) {
		forget(l);
		l->skipping = !ends;
		return LINE_TOO_LONG;
	}
	if (ends && l->part.n == 0)
		return (int)give(l, piece, ret);
	if (buf_add(&l->part, piece.p, piece.n, e) < 0) {
		forget(l);
		l->skipping = !ends;
		return -1;
	}
	l->given = ends;
	return ends ? (int)give(l, buf_str(&l->part), ret) : LINE_MORE;
}

int line_next(struct line_reader *l, struct str *input, struct str *ret_line, struct err *e)
{
	if (l->given)
		forget(l);
	while (input->n > 0) {
		const char *end = memchr(input->p, '\n', input->n);
		size_t n = end ? (size_t)(end - input->p) : input->n;
		int event = take(l, (struct str){ input->p, n }, end != NULL, ret_line, e);

		n += end != NULL;
		input->p += n;
		input->n -= n;
		if (event != LINE_MORE)
			return event;
	}
	return LINE_MORE;
}

enum line_event line_last(struct line_reader *l, struct str *ret_line)
{
	if (l->given)
		forget(l);
	if (l->part.n == 0)
		return LINE_MORE;
	l->given = true;
	return give(l, buf_str(&l->part), ret_line);
}
