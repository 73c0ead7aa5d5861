#pragma once
/*
 * Short forms of what a server says of a tool, for lists that a model reads as a whole: of texts
 * the first sentences, of schemas what decides whether a value is valid. A value is valid for the
 * short form of a schema if, and only if, it is for the whole. Both are deterministic. Input is
 * cleaned (modules/code/clean.h).
 */
#include "json/document/json.h"

struct buf;

enum {
	BRIEF_TEXT_CHARS = 200, /* of a tool's description */
	BRIEF_ARGUMENT_CHARS = 100, /* of an argument's */
};

/* What stands at the end of a text that was cut. */
#define BRIEF_CUT "…"

/* Appends the text on one line: all of it, if it has at most `chars` characters, else as many
 * sentences, or words, as fit, and BRIEF_CUT. */
int brief_text(struct buf *to, struct str text, size_t chars, struct err *e) MUST_USE;

/* Appends the schema without titles that repeat a name, without empty defaults, examples, comments
 * and definitions that nothing refers to. Recurses as deep as the document. */
int brief_schema(struct buf *to, const struct json_val *schema, struct err *e) MUST_USE;

/* Whether two names have the same letters and digits, as "create_issue" and "Create issue". */
bool brief_is_same(struct str a, struct str b);

/* Arguments are always an object, but not every server says so of its schema. Appends it with
 * "type":"object", which changes nothing about objects. ERR_INVALID: no object is valid. */
int brief_object(struct buf *to, const struct json_val *schema, struct err *e) MUST_USE;
