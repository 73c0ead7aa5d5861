#pragma once
/*
 * One request to a server over an open connection, and its answer: the far side of a reverse proxy.
 * The server is hostile. Its answer must satisfy http/client/answer.h. It must keep making progress
 * until its head has come and the queued bytes are taken. The connection ends with the answer, so
 * nothing after it is read.
 *
 * The writer of the request includes "Connection: close". On the loop; no callback comes from
 * inside a call of this header.
 */
#include <uv.h>

#include "base/buf.h"
#include "http/client/answer.h"

struct http_hop;

enum { HTTP_HOP_QUEUE = 256 << 10 }; /* bytes that may be queued */

struct http_hop_events {
	/* The head of the final answer, borrowed for the call; answers with status 1xx are
	 * dropped. */
	void (*on_head)(void *owner, const struct http_answer *a);
	void (*on_bytes)(void *owner, struct str bytes); /* a piece of its body */
	void (*on_sent)(void *owner); /* at most half of the queue is left */
	/* Called once; h is freed. NULL: the answer was complete; else ERR_PORT, or ERR_LIMIT. */
	void (*on_end)(void *owner, const struct err *e);
};

struct http_hop_options {
	int fd; /* a non-blocking socket; taken, also on failure */
	bool no_body; /* the answer has no body, as that to HEAD */
	unsigned silence_ms;
};

struct http_hop *http_hop_new(uv_loop_t *loop, const struct http_hop_options *o,
			      const struct http_hop_events *events, void *owner,
			      struct err *e) MUST_USE;

/* Copies the bytes into the queue. If the server takes nothing more, they are dropped, since it may
 * still answer. A sender of more must check http_hop_waiting() first: the queue holds
 * HTTP_HOP_QUEUE bytes and a piece of 64 KiB. */
void http_hop_send(struct http_hop *h, struct str bytes);
size_t http_hop_waiting(const struct http_hop *h);

/* Stops reading the answer, so that the server has to wait; or resumes. */
void http_hop_hold(struct http_hop *h, bool hold);

/* No callback comes after it. */
void http_hop_close(struct http_hop *h);
