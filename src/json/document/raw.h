#pragma once
/* The bytes that the values of a JSON text were read from, for who passes them on as they came. The
 * text must be valid: what json_parse() took. */
#include "base/str.h"

struct json_raw {
	struct str rest; /* private */
	bool object;
};

/* Of a text that is an object or an array; has nothing for any other. */
struct json_raw json_raw(struct str text);

/* The next member or element, in the order of json_iter(); false at the end. */
bool json_raw_next(struct json_raw *r, struct str *ret_val);

/* Index behind the string whose first byte after the quote is at i; s.n where it has no end. For
 * any text. */
size_t json_string_end(struct str s, size_t i);
