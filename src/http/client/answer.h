#pragma once
/*
 * The answer of a server that nobody trusts (RFC 9112): its head, and its body in chunks. Pure
 * functions over bytes; whatever is not plainly right is ERR_PORT. What two readers could take for
 * two things is not right: lengths that are repeated or stand beside an encoding, folded lines,
 * line feeds alone, control characters.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

enum {
	HTTP_ANSWER_FIELDS = 100,
	HTTP_ANSWER_HEAD_MAX = 32 << 10,
};

struct http_answer {
	int status; /* 100 to 599 */
	bool has_length, chunked; /* neither: the body ends with the connection */
	unsigned long long length;
	struct http_answer_field {
		struct str name, value; /* trimmed */
	} fields[HTTP_ANSWER_FIELDS];
	size_t n_fields;
};

/* head: with the empty line at its end, which is its first; borrowed by *ret. */
int http_answer_parse(struct str head, struct http_answer *ret, struct err *e) MUST_USE;

/* The value of a field, in any case; STR_NONE if it is absent. Of several the first. */
struct str http_answer_field(const struct http_answer *a, const char *name);

/* Zero at the start of a body. */
struct http_chunks {
	int state;
	unsigned digits;
	unsigned long long left;
	size_t extra; /* bytes that are no data: extensions and trailers */
};

/* Takes what is at the front of *in. 1: *ret is the next piece of the body, which is empty when
 * more has to come; 0: the end of it is taken. */
int http_chunks_next(struct http_chunks *c, struct str *in, struct str *ret,
		     struct err *e) MUST_USE;
