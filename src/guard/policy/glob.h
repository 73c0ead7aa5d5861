#pragma once
/* Patterns of the operator's file. */
#include "base/str.h"

/* '*' stands for any bytes, also none; every other byte for itself. Takes O(n m) at most. */
bool glob_match(struct str pattern, struct str text);
