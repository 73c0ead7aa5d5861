#pragma once
/*
 * A common limit on the bytes that several owners keep. An owner takes bytes before it keeps them
 * and gives them back afterwards. An owner that would exceed the maximum is refused; the others are
 * not affected.
 */
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct budget {
	size_t used, max;
};

/* ERR_LIMIT: n more bytes would exceed the maximum. b may be NULL: no limit. */
int budget_take(struct budget *b, size_t n, struct err *e) MUST_USE;
void budget_give(struct budget *b, size_t n);
