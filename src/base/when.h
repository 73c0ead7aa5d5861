#pragma once
/* Points in time as clients read them: RFC 3339 in UTC, to the millisecond. */
#include <stdint.h>

enum { WHEN_MAX = 32 };
void when_text(char to[WHEN_MAX], int64_t unix_ms);
