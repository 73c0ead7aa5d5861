#pragma once
/*
 * HTTP/1 requests (RFC 9112), read so strictly that no server can find other ones in the same
 * bytes: one host, one length, lines that end in CR LF. Pure functions over bytes that strangers
 * wrote.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/wire/rule.h"

struct swaps;

enum request_state { REQUEST_MORE, REQUEST_DONE, REQUEST_BAD };

enum request_form {
	REQUEST_ORIGIN, /* /path?query, or * */
	REQUEST_ABSOLUTE, /* http://host[:port]/path?query */
	REQUEST_CONNECT, /* host:port */
};

/* The part of a body that has not come yet. */
struct body {
	enum { BODY_NONE, BODY_LENGTH, BODY_CHUNKED } kind;
	/* chunk extensions and trailers are passed over; else they are malformed */
	bool lenient;
	int state; /* private */
	unsigned passed; /* private: bytes of them */
	uint64_t left;
};

/* Borrows from the bytes. */
struct request {
	size_t n; /* bytes of the head */
	enum request_form form;
	struct str method;
	struct str target; /* in origin form; of CONNECT as it came */
	struct str path; /* without the query */
	struct str fields; /* all lines, each with its end */
	struct str
		host; /* of the target if it has one, else the field's; as it came, without port */
	uint16_t port; /* the same; 0: none */
	bool old; /* HTTP/1.0 */
	bool overrides; /* a field may name another method or path */
	bool websocket; /* it asks for this upgrade and no other */
	struct body body;
	bool has_other_body; /* whose length request_write() says */
	size_t other_n;
};

/* *scanned is 0 at the beginning of a head, and is kept between calls with more bytes of it. Why it
 * is bad is a text that is borrowed for ever. */
enum request_state request_read(struct str bytes, size_t *scanned, struct request *ret,
				const char **ret_why);

/* Its head in origin form, without fields that are for a proxy. Upgrade goes unless it is to be
 * kept; `close` asks the server to close the connection. swaps: texts that are replaced in values
 * of fields, also within the Base64 of Authorization; then the server is asked for a plain and
 * whole answer too. The buffer must have room for all of it, so that it does not move. NULL:
 * none. */
int request_write(const struct request *r, bool upgrade, bool close, const struct swaps *swaps,
		  struct buf *out, struct err *e) MUST_USE;

/* How many of the bytes belong to the body; fewer than all if it has ended (*ret_end), or -1: it is
 * malformed. */
ssize_t body_take(struct body *b, struct str bytes, bool *ret_end);

/* The same up to the end of the next data in it, which *ret_data is; empty: there is none yet. */
ssize_t body_piece(struct body *b, struct str bytes, struct str *ret_data, bool *ret_end);

/* Appends the data of a body that is all there: 1, and *ret_n bytes of it; 0: there is more to
 * come; -1: it is malformed, or out has no room. until_end: it ends with the bytes. */
int body_whole(struct body b, bool until_end, struct str bytes, struct buf *out, size_t *ret_n);

/* The status of a response's head; *ret_n is its length. 0: there is more to come, -1: it is
 * none. */
int response_status(struct str bytes, size_t *ret_n);

/* The same head, but that it says that the connection ends with this answer. */
int response_write_close(struct str head, struct buf *out, struct err *e) MUST_USE;
