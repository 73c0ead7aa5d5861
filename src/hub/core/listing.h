#pragma once
/* A directory of a sandbox as agents see it: the tool that lists one and the resource that is one
 * show the same. */
#include "base/arena.h"
#include "box/host/box.h"
#include "json/field/field.h"

struct file_view {
	struct str name;
	enum file_type type;
	uint64_t size;
	struct str mode, modified_at;
};

struct listing {
	struct {
		const struct file_view *p;
		size_t n;
	} entries;
	bool truncated;
};
extern const struct field_table listing_table;

/* The texts are in the arena, but for the names. */
int listing_fill(struct arena *a, const struct file_entry *entries, size_t n, bool truncated,
		 struct listing *ret, struct err *e) MUST_USE;
