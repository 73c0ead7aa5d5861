#pragma once
/*
 * The differences of two texts as hunks of the unified format, as `diff -u` and `patch` have them,
 * without the two lines of names. Time is linear in their lines, and memory bounded: texts that
 * differ in more lines than UNIFIED_EDITS_MAX get a right answer, but maybe not the shortest one.
 */
#include "base/buf.h"

enum { UNIFIED_EDITS_MAX = 1000, UNIFIED_CONTEXT = 3 };

/* Appends them to `to`. 1: they did not fit, so they end after a line that did. */
int unified_diff(struct str a, struct str b, struct buf *to, struct err *e) MUST_USE;
