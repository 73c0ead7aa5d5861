#pragma once
/*
 * JSON Schema: draft 2020-12, and draft-07 where $schema says so. A schema is compiled once and
 * then checks any number of values. It never changes, so several users may share it.
 *
 * Nothing is fetched. $ref and $dynamicRef resolve within the same document: by JSON pointer, by
 * $anchor, or by the $id of an embedded schema. The schema is refused if a reference leaves the
 * document, if $schema names an unknown dialect, if a keyword has a value of the wrong type, or if
 * a reference leads back to itself without descending into the value. Unknown keywords are ignored,
 * and `format` is an annotation unless the options say otherwise.
 *
 * Everything is bounded, since schema and value may both be hostile. A check that exceeds a limit
 * ends in an error, which is neither "valid" nor "invalid".
 */
#include <stdint.h>

#include "json/document/json.h"

struct schema;

enum schema_dialect { SCHEMA_2020_12, SCHEMA_DRAFT_07 };

/* 0 stands for the default, given after each member. */
struct schema_options {
	enum schema_dialect dialect; /* for a document without $schema */
	bool formats; /* assert the formats of json/schema/format.h */
	unsigned subschemas; /* 4096 */
	unsigned depth; /* schemas nested within each other during a check: 256, at most 1024 */
	uint64_t steps; /* per check, some 50 ns each: 4 million */
};

/* v is borrowed until schema_free(); o may be NULL. NULL with ERR_INVALID: the message has the JSON
 * pointer of the place in the schema; ERR_UNSUPPORTED: an unknown dialect; ERR_TOO_LARGE: a limit
 * was exceeded; ERR_LIMIT: no memory. */
struct schema *schema_new(const struct json_val *v, const struct schema_options *o,
			  struct err *e) MUST_USE;

/* The same from a text, which is borrowed for the call only. */
struct schema *schema_parse(struct str text, const struct schema_options *o,
			    struct err *e) MUST_USE;

void schema_free(struct schema *s); /* NULL-safe */
AUTO_DEFINE(schema_free, struct schema)

/* The place where a value violates the schema. */
struct schema_fault {
	char instance[JSON_POINTER_MAX + 4]; /* pointer into the value; "": the whole value */
	char keyword[JSON_POINTER_MAX + 4]; /* pointer to the keyword in the schema's document */
	char says[120]; /* "has fewer than 3 characters"; contains no part of the value */
};

struct schema_faults {
	struct schema_fault *p; /* owned by the caller */
	size_t max; /* size of p; the check ends when it is full */
	size_t n; /* faults found: 0 for a valid value */
};

/* 0 if v is valid; else -1 with *e. ERR_INVALID: the message describes the first fault ("/user/age:
 * is less than 18 (schema: /properties/age/minimum)"); ERR_TOO_LARGE: a limit was exceeded;
 * ERR_LIMIT: no memory. v NULL is not valid. ret may be NULL; with ERR_INVALID it has at least one
 * fault. */
int schema_check(const struct schema *s, const struct json_val *v, struct schema_faults *ret,
		 struct err *e) MUST_USE;
