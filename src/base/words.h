#pragma once
/* Lists of words in one text, with a blank between two. */
#include "base/str.h"

/* Takes the next word of *rest, which ends at a blank; false: there is none. */
static inline bool str_word(struct str *rest, struct str *ret)
{
	const char *blank = rest->n ? (const char *)memchr(rest->p, ' ', rest->n) : NULL;

	if (rest->n == 0)
		return false;
	ret->p = rest->p;
	ret->n = blank ? (size_t)(blank - rest->p) : rest->n;
	rest->p += ret->n + (blank != NULL);
	rest->n -= ret->n + (blank != NULL);
	return true;
}
