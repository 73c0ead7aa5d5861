#pragma once
/*
 * Labels: what the maker of a sandbox notes about it, and by which lists can be narrowed. As text
 * they are one "KEY=VALUE\n" each, in the order of their keys. The hub keeps this text.
 *
 * A key has letters, digits and ._-/ and begins and ends with a letter or digit. A value is text
 * without control characters, and may be empty.
 */
#include "json/field/field.h"

enum { LABELS_MAX = 32, LABEL_KEY_MAX = 128, LABEL_VALUE_MAX = 256, LABELS_BYTES_MAX = 8192 };

/* Sorts the labels. ERR_INVALID names the one that is wrong. */
int labels_normalize(struct field_map *m, struct arena *a, struct err *e) MUST_USE;

/* The text of normalized labels, in the arena. STR_NONE: there are none. */
int labels_text(const struct field_map *m, struct arena *a, struct str *ret,
		struct err *e) MUST_USE;

/* The labels of a text, which they borrow; the array is in the arena. */
int labels_of(struct str text, struct arena *a, struct field_map *ret, struct err *e) MUST_USE;

/* wanted: KEY, or KEY=VALUE. */
bool labels_have(struct str text, struct str wanted);
