#pragma once
/* Patterns of what may be allowed. */
#include "base/str.h"

/* '*' is any bytes, also none, but control characters and those by which a shell begins another
 * command or puts in what one prints: ;&|`$<>(){}\ and line ends. Any other byte is itself.
 * The pattern "*" alone matches every text. Takes O(n m) at most. */
bool glob_allows(struct str pattern, struct str text);
