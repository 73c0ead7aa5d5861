#pragma once
/*
 * What was approved of a server, as digests: any change to what a tool says of itself, or to the
 * server's instructions, is another digest. Members of objects in another order, other white space
 * and escapes, and other forms of a number (1, 1.0, 1e0) are the same; so are the strings of
 * `required`, `enum` and `type` in another order, since these are sets. All else in an array keeps
 * its order.
 */
#include "base/arena.h"
#include "base/sha256.h"
#include "json/document/json.h"

struct buf;

enum {
	PIN_CHANGES_MAX = 64,
	PIN_VALUE_CHARS = 300, /* of each value of a change */
};

/* Appends the canonical text of a tool: its name, title, description, inputSchema, outputSchema,
 * annotations and icons, in that order; absent ones are left out. O(n log n). */
int pin_canonical(struct buf *to, const struct json_val *tool, struct err *e) MUST_USE;

/* The digest of that text, in hex. ERR_INVALID: no object, or without a name. */
int pin_tool(const struct json_val *tool, char ret[SHA256_HEX], struct err *e) MUST_USE;

/* That of a server's instructions; STR_NONE: it has none, which is not the same as "". */
int pin_instructions(struct str text, char ret[SHA256_HEX], struct err *e) MUST_USE;

struct pin_change {
	struct str where; /* JSON pointer from the tool: "/inputSchema/properties/x/type" */
	/* What stood there, and what stands there now: text for a person, on one line. A string is
	 * itself, any other value is JSON. Nothing in it is hidden (CLEAN_REVEAL). Of long values
	 * it is where they differ. STR_NONE: there is none. */
	struct str old, now;
};

struct pin_diff {
	struct pin_change *changes; /* of the arena */
	size_t n;
	bool more; /* there are more than PIN_CHANGES_MAX */
};

/* The differences of two definitions of a tool, as pin_tool() sees them: none exactly if the
 * digests are the same. */
int pin_diff(const struct json_val *old, const struct json_val *now, struct arena *a,
	     struct pin_diff *ret, struct err *e) MUST_USE;
