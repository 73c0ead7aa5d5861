#pragma once
/*
 * Shared by the files of Streamable HTTP:
 *
 *	http.c		requests, by method and headers
 *	http_head.c	those headers
 *	http_session.c	legacy sessions, from initialize to their end
 *	http_flow.c	flows: what is sent for one POST, over however many connections
 *	http_store.c	events that a client may come back for
 *
 * A flow is the "stream" of the specification: what goes to a client for one POST, or for none (the
 * GET streams of its session, of which the first has number 0). It outlives connections, so it is
 * distinct from struct http_stream. Its states:
 *
 *	ASKED	the request waits; nothing was sent. An answer ends it, all else opens a stream.
 *	OPEN	on a stream
 *	AWAY	no connection. Legacy: the client may return, and events are stored.
 *
 * and beside them `done`: nothing more will come. A flow that is done is freed once it is AWAY and
 * nothing of it is stored.
 */
#include "base/spare.h"
#include "mcp/message/profile.h"
#include "mcp/transport/http.h"
#include "mcp/transport/ids.h"
#include "mcp/transport/wire.h"

/* Values are trimmed, and borrowed as long as the request; STR_NONE: absent. */
struct mcp_head {
	struct http_request *q;
	struct str session, version, method, name, last;
	/* only one field each: readers of the first and of the last would see different requests */
	bool repeated;
	struct str accept; /* the first field */
	unsigned accepts; /* number of fields; several count as one */
};

enum { MCP_TAKES_JSON = 1, MCP_TAKES_EVENTS = 2 };

enum mcp_flow_state { MCP_FLOW_ASKED, MCP_FLOW_OPEN, MCP_FLOW_AWAY };

/* A stored event. */
struct mcp_stored {
	struct mcp_flow *flow;
	struct mcp_stored *older, *newer; /* in the session */
	struct mcp_stored *next; /* in the flow */
	uint64_t number; /* its number in the flow, from 1 */
	size_t n;
	char text[];
};

struct mcp_flow {
	struct mcp_http *http;
	struct mcp_http_session *session; /* NULL: a modern POST */
	struct mcp_session *core; /* the core session of a modern POST */
	struct mcp_flow *prev, *next; /* in the session, or among all modern ones */
	enum mcp_flow_state state;
	bool done;
	bool listens; /* it is a GET stream */
	bool primed; /* the client has an id to return with */
	bool held; /* a function still uses it: not to be freed */
	bool lost; /* could not be connected: cancelled at the next tick */
	bool waited; /* was ASKED at the last tick */
	unsigned number; /* its number in the session */
	uint64_t events; /* number of events */
	uint64_t done_ms;
	struct http_request *q; /* while ASKED */
	struct mcp_wire wire; /* while OPEN */
	struct mcp_stored *first, *last; /* stored events */
	struct mcp_stored *unsent; /* OPEN: the first stored event that waits for room */
};

struct mcp_http_session {
	struct mcp_id_entry entry; /* first: the two are cast */
	struct mcp_http *http;
	struct mcp_session *core;
	struct mcp_http_session *older, *newer; /* by last use */
	uint64_t used_ms;
	struct mcp_flow *flows; /* newest first */
	unsigned flows_made, listeners, asked;
	bool listened; /* a client has ever opened a GET stream */
	struct mcp_stored *oldest, *newest;
	unsigned stored_n;
	size_t stored_bytes;
};

struct mcp_http {
	struct mcp_server *server;
	struct mcp_http_options o; /* with defaults filled in */
	struct http_route route;
	struct mcp_wires wires;
	uv_timer_t prime; /* asked requests that must not wait for long without a stream */
	struct spare spare_flow;
	struct buf frame; /* the event being written */
	struct mcp_ids ids;
	struct mcp_http_session *oldest, *newest;
	struct mcp_flow *posts; /* modern ones */
	unsigned posts_n;
	size_t stored_bytes;
	bool draining;
	void (*on_closed)(void *arg);
	void *arg;
};

/* --- http_head.c --- */

void mcp_head_read(struct http_request *q, struct mcp_head *ret);
/* MCP_TAKES_…: the types that the client accepts. */
unsigned mcp_head_takes(const struct mcp_head *head);

/* --- http_session.c --- */

/* NULL if q was answered instead. */
struct mcp_http_session *mcp_http_session_new(struct mcp_http *h, struct http_request *q);
struct mcp_http_session *mcp_http_session_find(struct mcp_http *h, struct str id, const void *who);
void mcp_http_session_use(struct mcp_http_session *s);
/* Cancels what runs, and ends its streams. Must not be called inside a callback of the core. */
void mcp_http_session_end(struct mcp_http_session *s);
/* True from 2025-11-25 on: event streams begin with an id, and a handler may disconnect the
 * client. */
bool mcp_http_session_polls(const struct mcp_http_session *s);
/* Ends sessions that were unused for too long, and drops events that were stored long enough. */
void mcp_http_sessions_tick(struct mcp_http *h);

/* --- http_flow.c --- */

extern const struct mcp_transport mcp_http_transport;

/* The flow of a POST; s: NULL for a modern one. NULL if q was answered instead. */
struct mcp_flow *mcp_flow_new(struct mcp_http *h, struct mcp_http_session *s,
			      struct http_request *q);
/* The request was taken and is not answered yet: a client that could return gets its stream. */
void mcp_flow_prime(struct mcp_flow *f);
/* A tick: opens a stream for a waiting request, so that it can be kept alive, and cancels a lost
 * one. True if the list that f is in, or was in, has changed. */
bool mcp_flow_tick(struct mcp_flow *f);
/* Frees f if it is done, away and nothing is stored. */
void mcp_flow_settle(struct mcp_flow *f);
/* Ends it in any state; an unanswered q gets 404. A modern flow ends its core session too; the
 * calls of a legacy one are not affected. */
void mcp_flow_free(struct mcp_flow *f);
/* Answers a GET with everything after event `seen`, and what comes later. */
void mcp_flow_connect(struct mcp_flow *f, struct http_request *q, uint64_t seen);
void mcp_flow_disconnect(struct mcp_flow *f);
/* Makes another GET stream; if there are too many, the oldest ends. NULL without memory. */
struct mcp_flow *mcp_flow_listen(struct mcp_http_session *s);
/* Finds the flow of the session that an event id names; *ret_seen is the event's number. */
struct mcp_flow *mcp_flow_by_event(struct mcp_http_session *s, struct str id, uint64_t *ret_seen);

/* --- http_store.c --- */

/* NULL if it can't be stored. May drop older events, of this session or another. */
struct mcp_stored *mcp_store_add(struct mcp_flow *f, struct str text);
/* Drops what the client has seen: events up to number n. */
void mcp_store_drop(struct mcp_flow *f, uint64_t n);
