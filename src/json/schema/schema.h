#pragma once
/*
 * JSON Schema: draft 2020-12, and draft-07 where $schema says so. A schema is compiled once and
 * then checks any number of values; it never changes, so it may be used by several at once.
 *
 * Nothing is ever fetched. $ref and $dynamicRef reach what stands in the same document: by JSON
 * pointer, by $anchor, by the $id of an embedded schema. A reference that leaves the document, an
 * unknown dialect in $schema, a keyword whose value is of a wrong kind and a reference that leads
 * back to itself without going into the value are errors of the schema. Keywords that are not known
 * are ignored, and `format` is an annotation unless it is asked for.
 *
 * Everything is bounded, since both the schema and the value may be hostile: a check that goes over
 * a bound is an error, which is neither "valid" nor "invalid".
 */
#include <stdint.h>

#include "json/document/json.h"

struct schema;

enum schema_dialect { SCHEMA_2020_12, SCHEMA_DRAFT_07 };

/* 0 takes what is said behind. */
struct schema_options {
	enum schema_dialect dialect; /* of a document without $schema */
	bool formats; /* assert the formats of json/schema/format.h */
	unsigned subschemas; /* 4096 */
	unsigned depth; /* schemas that one check may be inside of: 256, at most 1024 */
	uint64_t steps; /* of one check, some 50 ns each: 4 million */
};

/* v is borrowed until schema_free(); o may be NULL. NULL with ERR_INVALID and a message that has
 * the JSON pointer of the place in the schema, ERR_UNSUPPORTED for a dialect that is not served,
 * ERR_TOO_LARGE over a bound, ERR_LIMIT without memory. */
struct schema *schema_new(const struct json_val *v, const struct schema_options *o,
			  struct err *e) MUST_USE;

/* The same for a text, which need not live on. */
struct schema *schema_parse(struct str text, const struct schema_options *o,
			    struct err *e) MUST_USE;

void schema_free(struct schema *s); /* NULL-safe */
AUTO_DEFINE(schema_free, struct schema)

/* The place where a value is not as the schema wants it. */
struct schema_fault {
	char instance[JSON_POINTER_MAX + 4]; /* pointer into the value; "" is all of it */
	char keyword[JSON_POINTER_MAX + 4]; /* pointer to the keyword in the schema's document */
	char says[120]; /* "has fewer than 3 characters"; no part of the value is in it */
};

struct schema_faults {
	struct schema_fault *p; /* the caller's */
	size_t max; /* of them; the check ends at the last that fits */
	size_t n; /* found: 0 for a valid value */
};

/* 0 where v is valid; else -1 with *e: ERR_INVALID and a message about the first fault ("/user/age:
 * is less than 18 (schema: /properties/age/minimum)"), ERR_TOO_LARGE over a bound, ERR_LIMIT
 * without memory. v NULL is not valid. ret may be NULL; with ERR_INVALID it has one fault or
 * more. */
int schema_check(const struct schema *s, const struct json_val *v, struct schema_faults *ret,
		 struct err *e) MUST_USE;
