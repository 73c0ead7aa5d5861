#pragma once
/*
 * Work on content that may be long. It is done in the work pool, since a search for secrets may
 * take 100 ns for each byte and the loop has others to serve; what is short is done at once.
 */
#include <uv.h>

#include "guard/redact/redact.h"
#include "json/field/field.h"

/* Embedded by who waits for it. */
struct aside_work {
	uv_work_t pool;
	/* The arena of run(), where there is one: that of the loop, or for its thread alone. */
	struct redactor *redactor;
	void (*run)(struct aside_work *w); /* touches nothing that the loop may change meanwhile */
	void (*then)(struct aside_work *w); /* on the loop; owns w */
};
/* Calls run(), then then(); where `bytes` are few, both before it returns. The two are set before,
 * and r may be NULL. -1: neither is called. */
int aside_work_start(struct aside_work *w, uv_loop_t *loop, struct redactor *r, size_t bytes,
		     struct err *e) MUST_USE;

/* A field_text_fn of struct aside_texts: what may leave, in its arena; else the text itself. */
struct aside_texts {
	struct redactor *redactor; /* may be NULL */
	struct arena *arena;
};
struct str aside_redact(void *texts, const struct field *row, struct str text);

/*
 * An answer is redacted so. A copy of it is made anyway; where it turns out to be long, its
 * remaining texts are copied as they are and redacted in a second copy, in the pool.
 */

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
	struct aside_work work; /* first: the two are cast */
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
	/* op_sink.write, which is called behind the copy; may be NULL. */
	void (*write)(void *client, const struct field_table *t, const void *result);
	void *client;
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
