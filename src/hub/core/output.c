#include "hub/core/output.h"

void output_init(struct output *o, size_t budget)
{
	*o = (struct output){ .head = BUF_INIT(budget / 2), .tail = BUF_INIT(budget - budget / 2) };
}

void output_fini(struct output *o)
{
	buf_fini(&o->head);
	buf_fini(&o->tail);
}

/* Appends as much of p as b has room for. Returns how much. */
static size_t output_fill(struct buf *b, const char *p, size_t n)
{
	struct err e;

	if (n > b->max - b->n)
		n = b->max - b->n;
	return buf_add(b, p, n, &e) < 0 ? 0 : n;
}

static void turn(struct output *o, const char *p, size_t n)
{
	size_t size = o->tail.n;

	o->ring = true;
	if (n >= size) {
		memcpy(o->tail.p, p + (n - size), size);
		o->tail_at = 0;
		return;
	}
	while (n > 0) {
		size_t part = n < size - o->tail_at ? n : size - o->tail_at;

		memcpy(o->tail.p + o->tail_at, p, part);
		o->tail_at = (o->tail_at + part) % size;
		p += part;
		n -= part;
	}
}

void output_add(struct output *o, const char *p, size_t n)
{
	size_t kept = 0;

	o->total += n;
	if (o->tail.n == 0)
		kept = output_fill(&o->head, p, n);
	if (kept < n && !o->ring)
		kept += output_fill(&o->tail, p + kept, n - kept);
	if (kept < n && o->tail.n > 0)
		turn(o, p + kept, n - kept);
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Length of the UTF-8 character that starts with c, as far as c tells. */
static size_t length_of(char c)
{
	unsigned char u = (unsigned char)c;

	return u >= 0xf0 ? 4 : u >= 0xe0 ? 3 : u >= 0xc0 ? 2 : 1;
}

/* n without the start of a character that is cut off at the end of p. */
static size_t whole_end(const char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		if (continues(p[n - back]))
			continue;
		return length_of(p[n - back]) > back ? n - back : n;
	}
	return n;
}

/* Appends the ring from its start, without its first skip bytes. */
static int add_tail(const struct output *o, size_t skip, struct buf *to, struct err *e)
{
	size_t at = o->tail_at + skip, first;

	if (at >= o->tail.n)
		return buf_add(to, o->tail.p + (at - o->tail.n), o->tail.n - skip, e);
	first = o->tail.n - at;
	if (buf_add(to, o->tail.p + at, first, e) < 0)
		return -1;
	return buf_add(to, o->tail.p, o->tail_at, e);
}

static size_t cut_front(const struct output *o)
{
	size_t skip = 0;

	while (skip < 3 && skip < o->tail.n &&
	       continues(o->tail.p[(o->tail_at + skip) % o->tail.n]))
		skip++;
	return skip;
}

int output_text(const struct output *o, struct buf *to, uint64_t *ret_elided, struct err *e)
{
	size_t head = o->head.n, skip = 0;

	*ret_elided = o->total - o->head.n - o->tail.n;
	if (*ret_elided > 0) {
		head = whole_end(o->head.p, o->head.n);
		skip = cut_front(o);
		*ret_elided += o->head.n - head + skip;
	}
	if (buf_add(to, o->head.p, head, e) < 0)
		return -1;
	if (*ret_elided > 0 &&
	    buf_addf(to, e, "\n[... %llu bytes elided ...]\n", (unsigned long long)*ret_elided) < 0)
		return -1;
	return o->tail.n > skip ? add_tail(o, skip, to, e) : 0;
}
