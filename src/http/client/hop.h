#pragma once
/*
 * One request to a server over a connection that is there already, and its answer: the far side of
 * a reverse proxy. The server is hostile: what it says is held to http/client/answer.h, it has to
 * go on within a time until its head is there and what waits for it is taken, and what it says
 * behind its answer is heard by nobody, since the connection ends with it.
 *
 * Whoever writes the request has it say "Connection: close". On the loop; a callback never comes
 * from inside of a call of this header.
 */
#include <uv.h>

#include "base/buf.h"
#include "http/client/answer.h"

struct http_hop;

enum { HTTP_HOP_QUEUE = 256 << 10 }; /* that may wait to be sent */

struct http_hop_events {
	/* Of the final answer, borrowed for the call; others, of 1xx, are dropped. */
	void (*on_head)(void *owner, const struct http_answer *a);
	void (*on_bytes)(void *owner, struct str bytes); /* of its body */
	void (*on_sent)(void *owner); /* no more than half of the queue waits */
	/* Once, and h is gone: NULL where the answer was whole; else ERR_PORT, or ERR_LIMIT. */
	void (*on_end)(void *owner, const struct err *e);
};

struct http_hop_options {
	int fd; /* a socket that does not block; taken, also on failure */
	bool no_body; /* the answer has none: to HEAD */
	unsigned silence_ms;
};

struct http_hop *http_hop_new(uv_loop_t *loop, const struct http_hop_options *o,
			      const struct http_hop_events *events, void *owner,
			      struct err *e) MUST_USE;

/* Copied. Of a server that takes nothing more it is dropped, since that may have answered. Who has
 * more to send looks at http_hop_waiting() before: the queue holds that many, and a piece of 64
 * KiB. */
void http_hop_send(struct http_hop *h, struct str bytes);
size_t http_hop_waiting(const struct http_hop *h);

/* Hears no more of the answer, so that the server has to wait; or goes on. */
void http_hop_hold(struct http_hop *h, bool hold);

/* No callback comes after it. */
void http_hop_close(struct http_hop *h);
