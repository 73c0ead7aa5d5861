#pragma once
/*
 * Event streams over HTTP (HTML standard, "Server-sent events", 9.2), for the two transports that
 * send messages on them, and the one timer that keeps all streams of a transport alive: after a
 * period in which nothing was sent, a stream gets a comment, so that no intermediary takes it for
 * dead and a client that is gone is noticed.
 */
#include <uv.h>

#include "base/buf.h"
#include "http/server/server.h"
#include "mcp/server/server.h"

struct mcp_wire;

struct mcp_wires {
	uv_timer_t timer;
	struct mcp_wire *first;
	unsigned n;
	void (*on_tick)(void *owner); /* called each period; may be NULL */
	void (*on_closed)(void *owner);
	void *owner;
};

struct mcp_wire_events {
	/* Called later, when the stream has ended, as in struct http_stream_events. Not after
	 * mcp_wire_end(). */
	void (*on_closed)(void *owner, const struct err *why);
	void (*on_drained)(void *owner); /* may be NULL */
};

/* Zeroed: not open. */
struct mcp_wire {
	struct mcp_wires *set;
	struct mcp_wire *prev, *next;
	struct http_stream *stream; /* NULL: not open */
	const struct mcp_wire_events *events;
	void *owner;
	bool quiet; /* nothing was sent since the last tick */
};

enum { MCP_WIRE_HEADERS = 4 };

/* Starts the timer, which does not keep the loop alive. */
void mcp_wires_init(struct mcp_wires *set, uv_loop_t *loop, unsigned period_ms,
		    void (*on_tick)(void *owner), void *owner);
/* Sets the period of the ticks from now on. */
void mcp_wires_hurry(struct mcp_wires *set, unsigned ms);
/* No wire may be open. on_closed comes later. */
void mcp_wires_close(struct mcp_wires *set, void (*on_closed)(void *owner));

/* Answers q with a stream; -1, with q still to be answered, if there are too many. headers: up to
 * MCP_WIRE_HEADERS besides those of every stream. */
int mcp_wire_open(struct mcp_wire *w, struct mcp_wires *set, struct http_request *q,
		  const struct http_header *headers, size_t n, const struct mcp_wire_events *events,
		  void *owner, struct err *e) MUST_USE;
/* Sends bytes, which must be whole events. */
void mcp_wire_write(struct mcp_wire *w, struct str events);
void mcp_wire_give(struct mcp_wire *w, struct buf *events); /* as http_stream_give() */
/* Bytes in the queue. */
size_t mcp_wire_waiting(const struct mcp_wire *w);
/* Ends the stream after the queued bytes; no callback comes. No effect if it is not open. */
void mcp_wire_end(struct mcp_wire *w);

/* Answers with a JSON-RPC error without an id, since clients expect one in the body of a
 * failure. */
void mcp_wire_refuse(struct http_request *q, int status, const char *why);

/* Narrows the tools of a new session as ?tools= of its request says. -1: the request is refused. */
int mcp_wire_narrow(struct mcp_session *s, struct http_request *q) MUST_USE;

/* Appends one event. id and retry_ms (0: none) are optional. data is one JSON text or a URI: line
 * breaks, which are only possible between tokens, become spaces. */
int mcp_event_write(struct buf *b, const char *event, const char *id, unsigned retry_ms,
		    struct str data, struct err *e) MUST_USE;
