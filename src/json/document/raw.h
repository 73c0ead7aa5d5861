#pragma once
/* The bytes from which the values of a JSON text were parsed, for callers that pass them on
 * unchanged. The text must be valid, that is, json_parse() accepted it. */
#include "json/document/json.h"

struct json_raw {
	struct str rest; /* private */
	bool object;
};

/* Iterates over a text that is an object or array; over any other text there is nothing. */
struct json_raw json_raw(struct str text);

/* The next member or element, in the order of json_iter(); false at the end. */
bool json_raw_next(struct json_raw *r, struct str *ret_val);

/* The text of a member of the object v, which was parsed from text; STR_NONE: it is absent. */
struct str json_raw_member(struct str text, const struct json_val *v, const char *key);

/* The index after the string whose first byte (after the quote) is at i; s.n if it has no end.
 * Works on any text. */
size_t json_string_end(struct str s, size_t i);
