#pragma once
/*
 * Keeps one freed structure of a kind for reuse: most requests end before the next begins, so no
 * allocation is needed then. The owner of all structures owns the spare.
 *
 *	struct spare spare_thing;
 *	t = spare_take(&owner->spare_thing, sizeof(*t));
 *	spare_give(&owner->spare_thing, t);
 *	spare_fini(&owner->spare_thing);	with the owner
 *
 * Disabled under AddressSanitizer, so that it finds uses after free.
 */
#include "base/mem.h"

struct spare {
	void *p; /* NULL: none */
};

#if defined(__SANITIZE_ADDRESS__)
enum { SPARE_KEEPS = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SPARE_KEEPS = 0 };
#else
enum { SPARE_KEEPS = 1 };
#endif
#else
enum { SPARE_KEEPS = 1 };
#endif

/* Zeroed. n must be the same for all calls on one spare. NULL if memory is short. */
static inline void *spare_take(struct spare *s, size_t n)
{
	void *p = s->p;

	if (!p)
		return mem_zalloc(n);
	s->p = NULL;
	__asm__("" : "+r"(n)); /* else the compiler has a slow loop of its own for a known n */
	return memset(p, 0, n);
}

/* p may be NULL. */
static inline void spare_give(struct spare *s, void *p)
{
	if (SPARE_KEEPS && !s->p)
		s->p = p;
	else
		free(p);
}

static inline void spare_fini(struct spare *s)
{
	free(take_ptr(s->p));
}
