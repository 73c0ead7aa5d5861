#pragma once
/*
 * The forms in which a server may give a secret back: as it is, escaped for JSON and for URLs, and
 * within Base64, wherever in it the secret begins. Pure.
 */
#include "base/buf.h"

enum { FORMS_MAX = 14 };

/* Appends form i, below FORMS_MAX; form 0 is the value itself. Forms of one value may be equal. */
int form_add(struct buf *to, struct str value, size_t i, struct err *e) MUST_USE;

/* No form of n bytes has more. */
static inline size_t form_room(size_t n)
{
	return 6 * (n + 8);
}
