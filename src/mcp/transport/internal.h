#pragma once
/*
 * The inside of Streamable HTTP; not to be included elsewhere.
 *
 * 	http.c	requests: what a method and its headers ask for
 * 	http_head.c	those headers
 * 	http_session.c	legacy sessions, from initialize to their end
 * 	http_flow.c	flows: what is sent for one POST, over however many connections
 * 	http_store.c	the events that a client may come back for
 *
 * A flow is the "stream" of the specification: what goes to a client for one POST, or for none (the
 * GET streams of its session, of which the first has number 0). It outlives connections, so it is
 * told apart from the door's http_stream. Its states, and what may come next:
 *
 * 	ASKED	the request waits; nothing was sent. An answer ends it, all else opens a stream.
 * 	OPEN	on a stream
 * 	AWAY	no connection. Legacy: the client may come back, what is sent is stored.
 *
 * and beside them `done`: nothing more will come. A flow that is done is freed when it is AWAY and
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
	/* one of these: who reads the first and who reads the last would read two different
	 * requests */
	bool repeated;
	struct str accept; /* the first */
	unsigned accepts; /* fields; several mean the same as one */
};

enum { MCP_TAKES_JSON = 1, MCP_TAKES_EVENTS = 2 };

enum mcp_flow_state { MCP_FLOW_ASKED, MCP_FLOW_OPEN, MCP_FLOW_AWAY };

/* An event that a client may come back for. */
struct mcp_stored {
	struct mcp_flow *flow;
	struct mcp_stored *older, *newer; /* of the session */
	struct mcp_stored *next; /* of the flow */
	uint64_t number; /* in the flow, from 1 */
	size_t n;
	char text[];
};

struct mcp_flow {
	struct mcp_http *http;
	struct mcp_http_session *session; /* NULL: a modern POST */
	struct mcp_session *core; /* of a modern POST: its own */
	struct mcp_flow *prev, *next; /* of the session, or of all modern ones */
	enum mcp_flow_state state;
	bool done;
	bool listens; /* a GET stream */
	bool primed; /* the client has an id to come back with */
	bool held; /* a function will look at it again: not to be freed */
	bool lost; /* could not be connected: cancelled at the next tick */
	bool waited; /* was ASKED at the last tick */
	unsigned number; /* in the session */
	uint64_t events; /* sent */
	uint64_t done_ms;
	struct http_request *q; /* ASKED */
	struct mcp_wire wire; /* OPEN */
	struct mcp_stored *first, *last; /* stored */
	struct mcp_stored *unsent; /* OPEN: the first of them that waits for room */
};

struct mcp_http_session {
	struct mcp_id_entry entry; /* first: found by it */
	struct mcp_http *http;
	struct mcp_session *core;
	struct mcp_http_session *older, *newer; /* by last use */
	uint64_t used_ms;
	struct mcp_flow *flows; /* newest first */
	unsigned flows_made, listeners;
	bool listened; /* ever */
	struct mcp_stored *oldest, *newest;
	unsigned stored_n;
	size_t stored_bytes;
};

struct mcp_http {
	struct mcp_server *server;
	struct mcp_http_options o; /* with the defaults filled in */
	struct http_route route;
	struct mcp_wires wires;
	struct spare spare_flow;
	struct buf frame; /* the event being written */
	struct mcp_ids ids;
	struct mcp_http_session *oldest, *newest;
	struct mcp_flow *posts; /* modern */
	unsigned posts_n;
	size_t stored_bytes;
	bool draining;
	void (*on_closed)(void *arg);
	void *arg;
};

/* --- http_head.c --- */

void mcp_head_read(struct http_request *q, struct mcp_head *ret);
/* MCP_TAKES_…: what the client accepts. */
unsigned mcp_head_takes(const struct mcp_head *head);

/* --- http_session.c --- */

/* NULL with q answered. */
struct mcp_http_session *mcp_http_session_new(struct mcp_http *h, struct http_request *q);
struct mcp_http_session *mcp_http_session_find(struct mcp_http *h, struct str id, const void *who);
void mcp_http_session_use(struct mcp_http_session *s);
/* Cancels what runs, and ends its streams. Not from inside a callback of the core. */
void mcp_http_session_end(struct mcp_http_session *s);
/* True from 2025-11-25 on: event streams begin with an id, and a handler may close them. */
bool mcp_http_session_polls(const struct mcp_http_session *s);
/* Ends what was unused for too long, and drops what was stored for long enough. */
void mcp_http_sessions_tick(struct mcp_http *h);

/* --- http_flow.c --- */

extern const struct mcp_transport mcp_http_transport;

/* The flow of a POST; s: NULL for a modern one. NULL with q answered. */
struct mcp_flow *mcp_flow_new(struct mcp_http *h, struct mcp_http_session *s,
			      struct http_request *q);
/* The request was taken and is not answered: a client that could come back gets its stream. */
void mcp_flow_prime(struct mcp_flow *f);
/* A period has passed: opens a stream for a request that waits, so that it can be kept alive, and
 * cancels what is lost. True where the list that f is in, or was, has changed. */
bool mcp_flow_tick(struct mcp_flow *f);
/* f is gone if it is done, away and nothing is stored. */
void mcp_flow_settle(struct mcp_flow *f);
/* Whatever it is in the middle of; q is answered by 404, if there is one. A modern one takes its
 * core session with it, the calls of a legacy one know nothing of it. */
void mcp_flow_free(struct mcp_flow *f);
/* Answers a GET: all that was sent after event `seen`, and then what comes. */
void mcp_flow_connect(struct mcp_flow *f, struct http_request *q, uint64_t seen);
void mcp_flow_disconnect(struct mcp_flow *f);
/* A new GET stream beside those that are open; with too many the oldest ends. NULL without
 * memory. */
struct mcp_flow *mcp_flow_listen(struct mcp_http_session *s);
/* Whether an id names one of the session's flows; *ret_seen is the event's number. */
struct mcp_flow *mcp_flow_by_event(struct mcp_http_session *s, struct str id, uint64_t *ret_seen);

/* --- http_store.c --- */

/* NULL where it can't be kept. May drop older events of the session. */
struct mcp_stored *mcp_store_add(struct mcp_flow *f, struct str text);
/* Drops what the client has seen: up to event number n. */
void mcp_store_drop(struct mcp_flow *f, uint64_t n);
