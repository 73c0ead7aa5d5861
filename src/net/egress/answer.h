#pragma once
/*
 * HTTP/1 answers (RFC 9112) of hosts that are bound to secrets, read as strictly as requests: what
 * is looked at for secrets is what the client gets. Pure functions over bytes that strangers wrote.
 */
#include "net/egress/request.h"

struct swaps;

/* Borrows from the bytes. */
struct answer {
	size_t n; /* bytes of the head */
	int status;
	struct str line; /* without its end */
	struct str fields; /* all lines, each with its end */
	struct body body;
	bool until_end; /* the body ends with the connection */
	bool last; /* the server ends the connection after it */
	bool coded; /* it has a Content-Encoding, so nobody can look into it */
};

/* bodiless: the request was HEAD. The rest is as in request_read(). */
enum request_state answer_read(struct str bytes, size_t *scanned, bool bodiless, struct answer *ret,
			       const char **ret_why);

/* How the body follows. */
enum answer_frame {
	ANSWER_NO_BODY, /* the length that is named, if any, is of what would be there */
	ANSWER_LENGTH,
	ANSWER_CHUNKED,
	ANSWER_UNTIL_END,
};

/* The head for the client, with all texts of swaps replaced. close: nothing follows it. */
int answer_write(const struct answer *a, const struct swaps *swaps, enum answer_frame frame,
		 uint64_t length, bool close, struct buf *out, struct err *e) MUST_USE;
