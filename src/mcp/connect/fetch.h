#pragma once
/*
 * The client's side of Streamable HTTP, in both eras: each message is a POST, and its answer is
 * JSON or events.
 *
 * Legacy: every request names the session that initialize opened; the session is ended at the end.
 * A stream for messages that belong to no request is opened after notifications/initialized, and
 * nothing else is sent until the server has accepted that. A stream that breaks is resumed after
 * its last event, also that of a POST, so no call is ever made twice. If the server has forgotten
 * the session, the sender is told, and what was refused because of that is sent again in the next
 * session.
 *
 * Modern: a request that is no longer wanted is cancelled by closing its connection.
 */
#include <uv.h>

#include "mcp/client/client.h" /* struct mcp_client_out */
#include "mcp/connect/exchange.h"

struct mcp_fetch;

/* Events for the sender of the messages. request: the one given to mcp_fetch_send(); NULL: for a
 * message that is no request, or for none. Each callback may let go of any request, and close the
 * transport. */
struct mcp_fetch_events {
	/* A message came. Returns true if the request is done; it is forgotten here. */
	bool (*message)(void *owner, void *request, struct str text);
	/* The request has failed; it is forgotten here. sent: the server may have acted on it. */
	void (*failed)(void *owner, void *request, bool sent, const struct err *e);
	/* The server has forgotten the session (HTTP 404, or an equivalent 400): initialize must be
	 * sent again. Not called with `relays`. request was not accepted, and is forgotten here;
	 * may be NULL. */
	void (*session_lost)(void *owner, void *request);
	/* The server forgets every session at once. Not called with `relays`. */
	void (*lost)(void *owner, const struct err *e);
	/* A message has left. Look at it later, since this may be called inside any of these
	 * functions. May be NULL. */
	void (*settled)(void *owner);
};

struct mcp_fetch_options {
	struct mcp_exchange_base *base; /* borrowed */
	const char *url; /* borrowed */
	const struct mcp_fetch_events *ev;
	void *owner;
	/* The messages come from another program, which may send nothing between the answer to
	 * initialize and notifications/initialized, or may never send that. What a forgotten
	 * session did not accept, request or not, is kept here and sent again once, in the session
	 * that the next initialize opens. Until then everything else is held too. */
	bool relays;
	unsigned stop_ms; /* for the end of the session */
};

struct mcp_fetch *mcp_fetch_new(uv_loop_t *loop, const struct mcp_fetch_options *o,
				struct err *e) MUST_USE;

/* As in struct mcp_client_transport, with request instead of m->pending. False if it is dropped:
 * too many messages that are no requests, or no memory. */
bool mcp_fetch_send(struct mcp_fetch *f, const struct mcp_client_out *m, void *request);
void mcp_fetch_let_go(struct mcp_fetch *f, void *request);
/* Messages in flight or held. */
unsigned mcp_fetch_under_way(const struct mcp_fetch *f);
/* No new session could be opened: what is held fails, later. */
void mcp_fetch_fail_held(struct mcp_fetch *f, const struct err *e);

/* HTTP status of the last answer to a request; 0: none. */
int mcp_fetch_status(const struct mcp_fetch *f);

/* The client gets no more messages. on_closed comes later, when f is freed. */
void mcp_fetch_close(struct mcp_fetch *f, void (*on_closed)(void *owner), void *owner);
