#pragma once
/*
 * A value's place in its document, as a JSON pointer (RFC 6901). A walk keeps its place as a chain
 * on the stack; it is written out only when it has to be named.
 */
#include "json/document/json.h"

/* One step of the walk; `up` leads outwards. */
struct json_place {
	const struct json_place *up; /* NULL at the root, whose own key and index are ignored */
	struct str key; /* STR_NONE in an array */
	size_t index; /* used in an array */
};

/* A text that is cut, between characters, at JSON_POINTER_MAX bytes. */
struct json_pointer {
	char text[JSON_POINTER_MAX + 4]; /* NUL-terminated; ends in "…" if it was cut */
	size_t n;
	bool full;
};

#define JSON_POINTER_INIT ((struct json_pointer){ .n = 0 })

/* Whether a step of a pointer, up to the next slash, is this key. */
bool json_pointer_is(struct str step, struct str key);

void json_pointer_key(struct json_pointer *p, struct str key);
void json_pointer_index(struct json_pointer *p, size_t index);
void json_pointer_place(struct json_pointer *p, const struct json_place *at);
