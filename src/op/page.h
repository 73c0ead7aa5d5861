#pragma once
/* A place between two things that count up, as the cursor of a page: the number of the one
 * before. */
#include "json/field/field.h"

enum { CURSOR_MAX = 17, PAGE_MAX = 1000, PAGE_DEFAULT = 100 };
#define CURSOR_ROW(S)                                                                              \
	FIELD(S, cursor, .min = 1, .max = CURSOR_MAX, .doc = "next_cursor of the previous page.")
#define NEXT_CURSOR_ROW(S)                                                                         \
	FIELD(S, next_cursor, .doc = "Value of cursor for the next page; absent: this is the last.")

void cursor_text(char to[CURSOR_MAX], uint64_t seq);
int cursor_read(struct str text, uint64_t *ret, struct err *e) MUST_USE;
