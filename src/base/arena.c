#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/large.h"

enum { BLOCK = 4096 };

struct arena_block {
	struct arena_block *next;
	alignas(max_align_t) char bytes[];
};

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena){ .max = max };
}

void arena_fini(struct arena *a)
{
	for (struct arena_block *b = a->blocks, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	a->blocks = NULL;
}

struct arena *arena_new(size_t max)
{
	struct arena *a = malloc(sizeof(*a));

	if (a)
		arena_init(a, max);
	return a;
}

void arena_free(struct arena *a)
{
	if (a)
		arena_fini(a);
	free(a);
}

void *arena_alloc(struct arena *a, size_t n, struct err *e)
{
	const size_t align = alignof(max_align_t);
	struct arena_block *b;
	void *p;

	if (n > a->max - a->total) {
		err_set(e, ERR_TOO_LARGE, "the request needs more than %zu bytes", a->max);
		return NULL;
	}
	n = ((n ? n : 1) + align - 1) / align * align;
	if (n > a->size - a->used) {
		size_t size = n > BLOCK ? n : BLOCK;

		b = size > BLOCK ? large_hint(calloc(1, sizeof(*b) + size), size)
				 : malloc(sizeof(*b) + size);
		if (!b) {
			err_set(e, ERR_LIMIT, "out of memory");
			return NULL;
		}
		b->next = a->blocks;
		a->blocks = b;
		a->used = 0;
		a->size = size;
	}
	p = a->blocks->bytes + a->used;
	a->used += n;
	a->total += n < a->max - a->total ? n : a->max - a->total;
	/* less than the block: most arenas use a part of their only one */
	return a->size > BLOCK ? p : memset(p, 0, n);
}

void *arena_array(struct arena *a, size_t count, size_t size, struct err *e)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n)) {
		err_set(e, ERR_TOO_LARGE, "the request needs too much memory");
		return NULL;
	}
	return arena_alloc(a, n, e);
}

int arena_take(struct arena *a, struct arena *from, struct err *e)
{
	struct arena_block **last = &a->blocks;

	if (from->total > a->max - a->total)
		return err_set(e, ERR_TOO_LARGE, "the request needs more than %zu bytes", a->max);
	/* Behind the others: the newest one of a still has room. */
	while (*last)
		last = &(*last)->next;
	*last = from->blocks;
	if (a->size == 0) {
		a->used = from->used;
		a->size = from->size;
	}
	a->total += from->total;
	*from = (struct arena){ .max = from->max };
	return 0;
}

char *arena_dup(struct arena *a, struct str s, struct err *e)
{
	char *p = arena_alloc(a, s.n + 1, e);

	if (p && s.n)
		memcpy(p, s.p, s.n);
	return p;
}

char *arena_printf(struct arena *a, struct err *e, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		err_set(e, ERR_BUG, "bad format");
		return NULL;
	}
	p = arena_alloc(a, (size_t)n + 1, e);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}
