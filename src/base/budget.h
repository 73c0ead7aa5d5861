#pragma once
/*
 * Bytes that many may keep together: each takes before it keeps, and gives back what it keeps no
 * more. Who would pass the maximum is refused, and the others go on.
 */
#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct budget {
	size_t used, max;
};

/* ERR_LIMIT where n more would pass the maximum; b may be NULL: there is none. */
int budget_take(struct budget *b, size_t n, struct err *e) MUST_USE;
void budget_give(struct budget *b, size_t n);
