#pragma once
/*
 * Redacts an answer that is long in the work pool: a search may take 100 ns for each byte, and the
 * loop has others to serve. Most answers are short and are redacted at once: a copy of the answer
 * is made anyway, and where it turns out to be long, its remaining texts are copied as they are and
 * redacted in a second copy, in the pool.
 */
#include <uv.h>

#include "guard/redact/redact.h"
#include "json/field/field.h"

/* Texts of an answer that are parts of others: what stands around them decides, too. */
struct aside_parts {
	struct redact_part *p;
	size_t n, cap, next;
};
/* The part with this text, or NULL. Fastest in the order in which they were added. */
const struct redact_part *aside_part_of(struct aside_parts *parts, struct str text);

/* A first copy, as it comes to its texts. */
struct aside_count {
	size_t texts, bytes;
	bool is_long; /* this text and all others are left to the second copy */
	size_t first; /* which of them is the first that is */
};
/* Counts a text. False: it is left as it is. */
bool aside_takes(struct aside_count *k, struct str text);

struct aside {
	uv_work_t work;
	struct redactor *redactor;
	struct arena *arena;
	const struct field_table *table;
	const void *from, *result; /* result: NULL where memory was short */
	size_t first, at;
	/* Of parts: which texts they are, and what they are parts of. */
	struct aside_place {
		size_t text;
		struct redact_part part;
	} * places;
	size_t n_places, place;
	void (*on_done)(struct aside *a);
};
/* Redacts the texts of a copy from the first on that was left. r is shared (redactor_share());
 * from, and what stands around the parts, stay until on_done, which owns a and is called on the
 * loop. max: bytes of the result. -1: on_done is not called. */
int aside_start(struct aside *a, uv_loop_t *loop, struct redactor *r, size_t max,
		struct err *e) MUST_USE;
/* Moves the result to an arena. -1: it is full. */
int aside_take(struct aside *a, struct arena *to, struct err *e) MUST_USE;
void aside_fini(struct aside *a); /* not while it works; zeroed is fine */
