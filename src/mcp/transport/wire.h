#pragma once
/*
 * Event streams of the HTTP door (HTML standard, "Server-sent events", 9.2), for the two transports
 * that send messages on them, and the one timer that keeps all streams of a transport alive: a
 * stream on which nothing was sent for a period gets a comment, so that nothing between here and
 * the client takes it for dead, and a client that is gone is noticed.
 */
#include <uv.h>

#include "base/buf.h"
#include "http/server/server.h"

struct mcp_wire;

struct mcp_wires {
	uv_timer_t timer;
	struct mcp_wire *first;
	unsigned n;
	void (*on_tick)(void *owner); /* each period; may be NULL */
	void (*on_closed)(void *owner);
	void *owner;
};

struct mcp_wire_events {
	/* Later: the stream is gone, as of the door's stream. Not after mcp_wire_end(). */
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

/* Starts the timer, which alone does not keep the loop running. */
void mcp_wires_init(struct mcp_wires *set, uv_loop_t *loop, unsigned period_ms,
		    void (*on_tick)(void *owner), void *owner);
/* From here on a tick comes every ms. */
void mcp_wires_hurry(struct mcp_wires *set, unsigned ms);
/* No wire is open. on_closed comes later. */
void mcp_wires_close(struct mcp_wires *set, void (*on_closed)(void *owner));

/* Answers q with a stream; -1, and q still to be answered, where there are too many. headers: up to
 * MCP_WIRE_HEADERS beside those of every stream. */
int mcp_wire_open(struct mcp_wire *w, struct mcp_wires *set, struct http_request *q,
		  const struct http_header *headers, size_t n, const struct mcp_wire_events *events,
		  void *owner, struct err *e) MUST_USE;
/* The bytes are whole events. */
void mcp_wire_write(struct mcp_wire *w, struct str events);
/* Bytes that the client has not taken. */
size_t mcp_wire_waiting(const struct mcp_wire *w);
/* Ends the stream after what waits; no callback comes. Does nothing where it is not open. */
void mcp_wire_end(struct mcp_wire *w);

/* Answers with a JSON-RPC error that has no id: clients look for one in the body of a failure. */
void mcp_wire_refuse(struct http_request *q, int status, const char *why);

/* Appends one event. id and retry_ms (0: none) may be absent; data is one JSON text or a URI: a
 * line break in it, which can only stand between tokens, becomes a space. */
int mcp_event_write(struct buf *b, const char *event, const char *id, unsigned retry_ms,
		    struct str data, struct err *e) MUST_USE;
