#pragma once
/* Shared by the files behind json/field/field.h: the bounds of a row, and where its member is. */
#include "json/field/field.h"

/* The bounds of a number or count, including those of the type. */
struct field_bounds {
	int64_t min, max;
	bool has_min, has_max;
};

struct field_bounds field_bounds(const struct field *f);

/* item_min and item_max of the strings in an array or a map. */
struct field_bounds field_item_bounds(const struct field *f);

static inline void *field_at(const struct field *f, void *base)
{
	return (char *)base + f->at;
}

static inline const void *field_in(const struct field *f, const void *base)
{
	return (const char *)base + f->at;
}

/* The bool that .has names; NULL for none. */
static inline bool *field_has(const struct field *f, void *base)
{
	return f->has ? (bool *)((char *)base + f->has - 1) : NULL;
}
