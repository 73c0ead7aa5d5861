#include "rpc/line.h"

enum { KEEP = 64 << 10 }; /* A larger buffer is freed after its line. */

void line_init(struct line_reader *l, size_t max)
{
	*l = (struct line_reader){
		.part = BUF_INIT(max + 1), /* One more for a CR. */
		.max = max,
	};
}

void line_fini(struct line_reader *l)
{
	buf_fini(&l->part);
}

static void line_forget(struct line_reader *l)
{
	if (l->part.cap > KEEP)
		buf_fini(&l->part);
	l->part.n = 0;
	l->given = false;
}

/* The rest of the line is only searched for its id. */
static void line_skip(struct line_reader *l, bool lost)
{
	l->skipping = true;
	l->lost = lost;
	l->sniff = (struct rpc_sniff){ 0 };
	rpc_sniff_feed(&l->sniff, buf_str(&l->part));
	line_forget(l);
}

static enum line_event end_skip(struct line_reader *l)
{
	l->skipping = false;
	return l->lost ? LINE_LOST : LINE_TOO_LONG;
}

struct str line_unmarked(struct str text)
{
	size_t n = str_starts(text, "\xef\xbb\xbf") ? 3 : 0;

	return (struct str){ text.p + n, text.n - n };
}

static enum line_event end_line(struct line_reader *l, struct str line, struct str *ret)
{
	if (line.n > 0 && line.p[line.n - 1] == '\r')
		line.n--;
	if (!l->begun)
		line = line_unmarked(line);
	l->begun = true;
	if (line.n > l->max) {
		l->sniff = (struct rpc_sniff){ 0 };
		rpc_sniff_feed(&l->sniff, line);
		return LINE_TOO_LONG;
	}
	*ret = line;
	return LINE_TEXT;
}

/* Takes a piece of a line; ends: the piece reaches the line's end. LINE_MORE, or the event to
 * report. */
static enum line_event line_take(struct line_reader *l, struct str piece, bool ends,
				 struct str *ret)
{
	struct err e;

	if (!l->skipping && piece.n > l->part.max - l->part.n)
		line_skip(l, false);
	if (ends && !l->skipping && l->part.n == 0)
		return end_line(l, piece, ret);
	if (!l->skipping && buf_add(&l->part, piece.p, piece.n, &e) < 0)
		line_skip(l, true);
	if (l->skipping) {
		rpc_sniff_feed(&l->sniff, piece);
		return ends ? end_skip(l) : LINE_MORE;
	}
	l->given = ends;
	return ends ? end_line(l, buf_str(&l->part), ret) : LINE_MORE;
}

enum line_event line_next(struct line_reader *l, struct str *input, struct str *ret_line)
{
	if (l->given)
		line_forget(l);
	while (input->n > 0) {
		const char *end = memchr(input->p, '\n', input->n);
		size_t n = end ? (size_t)(end - input->p) : input->n;
		enum line_event event = line_take(l, (struct str){ input->p, n }, end != NULL,
						  ret_line);

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
		line_forget(l);
	if (l->skipping)
		return end_skip(l);
	if (l->part.n == 0)
		return LINE_MORE;
	l->given = true;
	return end_line(l, buf_str(&l->part), ret_line);
}
