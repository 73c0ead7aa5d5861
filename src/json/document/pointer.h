#pragma once
/*
 * Where a value stands in its document, as a JSON pointer (RFC 6901). A walk keeps its place as a
 * chain on the stack, and only what has to be named is ever written out.
 */
#include "json/document/json.h"

/* One step of the walk, from the inside out. */
struct json_place {
	const struct json_place *up; /* NULL at the root, whose own key and index do not count */
	struct str key; /* in an object, else STR_NONE */
	size_t index; /* in an array */
};

/* A text that is cut, at a character, where it gets longer than JSON_POINTER_MAX. */
struct json_pointer {
	char text[JSON_POINTER_MAX + 4]; /* NUL-terminated; a cut one ends in "…" */
	size_t n;
	bool full;
};

#define JSON_POINTER_INIT ((struct json_pointer){ .n = 0 })

void json_pointer_key(struct json_pointer *p, struct str key);
void json_pointer_index(struct json_pointer *p, size_t index);
void json_pointer_place(struct json_pointer *p, const struct json_place *at);
