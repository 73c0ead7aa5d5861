#pragma once
/* Patterns of the operator: '*' stands for any bytes, also none; every other byte for itself. The
 * time is linear in the text. */
#include "base/str.h"

bool glob_matches(struct str pattern, struct str text);

/* Of what may be allowed: here '*' stands neither for control characters nor for those by which a
 * shell begins another command or puts in what one prints, ;&|`$<>(){}\ and line ends. The pattern
 * "*" alone matches every text. */
bool glob_allows(struct str pattern, struct str text);
