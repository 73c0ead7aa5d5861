#pragma once
/*
 * Requests that make something and carry an Idempotency-Key: asked twice, done once. What will be made
 * has its names before it is begun, so that nothing is made twice even where the hub was killed in
 * the middle of the first time.
 */
#include "door/http/ask.h"

/* The request's header of a route that makes something. */
struct once_header {
	struct str key;
};
extern const struct field_table once_header_table;
#define ONCE_HEADER(S)                                                                             \
	FIELD_OBJECT(S, header, once_header_table, .doc = "What makes the request safe to repeat.")

enum once {
	ONCE_OVER = -1, /* the call has ended: answered with what was stored, or refused */
	ONCE_NEW, /* make them */
	ONCE_AGAIN, /* the first time was cut off: see first whether those of the plan are there */
};

/* plan: the names of what is going to be made, separated by spaces; where the answer is ONCE_AGAIN it
 * is that of the first time, in the call's arena. Without a key all requests are new. The answer to
 * the call is stored, its failure lets the key go. */
enum once once_begin(struct call *c, const struct once_header *h, struct str *plan);

/* The client has said that it will ask again: what it wants is made also when it went away. */
bool once_kept(struct call *c);
