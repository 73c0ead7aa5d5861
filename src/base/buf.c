#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/large.h"

enum { FIRST_ROOM = 128 };

/* Bytes that a buffer of that size takes from its budget. */
static size_t cost(const struct buf *b, size_t cap)
{
	return b->of && cap > BUF_SMALL ? cap : 0;
}

void buf_fini(struct buf *b)
{
	budget_give(b->of, cost(b, b->cap));
	free(b->p);
	b->p = NULL;
	b->n = 0;
	b->cap = 0;
}

void buf_wipe(struct buf *b)
{
	if (b->p)
		explicit_bzero(b->p, b->cap);
	buf_fini(b);
}

char *buf_reserve(struct buf *b, size_t n, struct err *e)
{
	size_t want, cap, more;
	char *p;

	if (n > b->max - b->n) {
		err_set(e, ERR_TOO_LARGE, "more than %zu bytes", b->max);
		return NULL;
	}
	want = b->n + n;
	if (b->p && want <= b->cap)
		return b->p + b->n;
	cap = b->cap ? b->cap : FIRST_ROOM;
	while (cap < want)
		cap *= 2; /* can't wrap: want <= max, an allocation's size */
	if (cap > b->max)
		cap = b->max;
	more = cost(b, cap) - cost(b, b->cap);
	if (budget_take(b->of, more, e) < 0)
		return NULL;
	p = large_hint(realloc(b->p, cap + 1), cap + 1);
	if (!p) {
		budget_give(b->of, more);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	b->p = p;
	b->cap = cap;
	b->p[b->n] = '\0';
	return b->p + b->n;
}

void buf_advance(struct buf *b, size_t n)
{
	b->n += n;
	b->p[b->n] = '\0';
}

int buf_add(struct buf *b, const void *p, size_t n, struct err *e)
{
	char *at;

	if (n == 0)
		return 0;
	at = buf_reserve(b, n, e);
	if (!at)
		return -1;
	memcpy(at, p, n);
	buf_advance(b, n);
	return 0;
}

int buf_addf(struct buf *b, struct err *e, const char *fmt, ...)
{
	va_list ap;
	char *at;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return err_set(e, ERR_BUG, "bad format");
	at = buf_reserve(b, (size_t)n, e);
	if (!at)
		return -1;
	va_start(ap, fmt);
	vsnprintf(at, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf_advance(b, (size_t)n);
	return 0;
}

void buf_fit(struct buf *b)
{
	size_t was = b->cap;
	char *p = b->n < was ? realloc(b->p, b->n + 1) : NULL;

	if (!p)
		return;
	b->p = p;
	b->cap = b->n;
	budget_give(b->of, cost(b, was) - cost(b, b->cap));
}

void buf_drop(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	memmove(b->p, b->p + n, b->n - n + 1);
	b->n -= n;
}

char *buf_take(struct buf *b)
{
	char *p = b->p;

	budget_give(b->of, cost(b, b->cap));
	b->p = NULL;
	b->n = 0;
	b->cap = 0;
	return p;
}
