#pragma once
/*
 * The answer of an untrusted server (RFC 9112): its head, and its body in chunks. Pure functions
 * over bytes; anything not plainly valid is ERR_PORT. So is what two readers could understand
 * differently: repeated lengths, lengths beside an encoding, folded lines, bare line feeds, control
 * characters.
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

/* head: up to and including its first empty line; borrowed by *ret. */
int http_answer_parse(struct str head, struct http_answer *ret, struct err *e) MUST_USE;

/* The value of a field, case ignored; STR_NONE if it is absent; of several, the first. */
struct str http_answer_field(const struct http_answer *a, const char *name);

/* Zero it at the start of a body. */
struct http_chunks {
	int state;
	unsigned digits;
	unsigned long long left;
	size_t extra; /* bytes of extensions and trailers so far */
};

/* Consumes *in from the front. 1: *ret is the next piece of the body, empty if more must come
 * first; 0: the body has ended. */
int http_chunks_next(struct http_chunks *c, struct str *in, struct str *ret,
		     struct err *e) MUST_USE;
