#pragma once
/* Points in time as clients read them: RFC 3339 in UTC, to the millisecond. */
#include "base/arena.h"

enum { WHEN_MAX = 32 };
void when_text(char to[WHEN_MAX], int64_t unix_ms);

/* In the arena; STR_NONE: unix_ms is 0. */
int when_dup(struct arena *a, int64_t unix_ms, struct str *ret, struct err *e) MUST_USE;
