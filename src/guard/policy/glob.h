#pragma once
/* Patterns of the operator's file. */
#include "base/str.h"

/* '*' stands for any bytes, also none; every other byte for itself. Takes O(n m) at most. */
bool policy_glob(struct str pattern, struct str text);
