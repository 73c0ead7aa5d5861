#pragma once
/*
 * A client's side of Streamable HTTP, in both eras: each message is a POST, and its answer JSON or
 * events.
 *
 * Legacy: the session that initialize opened is named by each request and ended at the end; a
 * stream for what belongs to no request is opened after notifications/initialized, and until that
 * has been taken nothing else is sent. A stream that breaks off is taken up again behind its last
 * event, a POST's as well, so that no call is ever made twice. A session that the server has
 * forgotten is told to the sender; what it had refused in it is sent again in the next.
 *
 * Modern: a request that is not wanted any more is cancelled by closing its connection.
 */
#include <uv.h>

#include "mcp/client/client.h" /* struct mcp_client_out */
#include "mcp/connect/exchange.h"

struct mcp_fetch;

/* What the sender of the messages hears. request: what it gave to mcp_fetch_send(); NULL: of a
 * message that is no request, or of none. Each may let go of any request, and close the
 * transport. */
struct mcp_fetch_events {
	/* A message came. True where the request needs no more, and is forgotten here. */
	bool (*message)(void *owner, void *request, struct str text);
	/* The request has no answer, and gets none; it is forgotten here. */
	void (*failed)(void *owner, void *request, const struct err *e);
	/* The server has forgotten the session (HTTP 404, or a 400 that means it): initialize is to
	 * be sent again. Not with `relays`: request was not taken, and is forgotten here; may be
	 * NULL. */
	void (*session_lost)(void *owner, void *request);
	/* The server forgets every session at once. Not with `relays`. */
	void (*lost)(void *owner, const struct err *e);
	/* A message is under way no more; to be looked at later, since it may be in any of these
	 * functions. May be NULL. */
	void (*settled)(void *owner);
};

struct mcp_fetch_options {
	struct mcp_exchange_base *base; /* borrowed */
	const char *url; /* borrowed */
	const struct mcp_fetch_events *ev;
	void *owner;
	/* The messages are of somebody else, who may say nothing between the answer to initialize
	 * and notifications/initialized, or never say that. What a forgotten session did not take,
	 * request or not, is kept here and sent again once, in the session that the next initialize
	 * opens; until then all else that is sent is held too. */
	bool relays;
	unsigned stop_ms; /* for the end of the session */
};

struct mcp_fetch *mcp_fetch_new(uv_loop_t *loop, const struct mcp_fetch_options *o,
				struct err *e) MUST_USE;

/* As of struct mcp_client_transport, with the request in place of m->pending. False where it is
 * dropped: too many that are no requests, or no memory. */
bool mcp_fetch_send(struct mcp_fetch *f, const struct mcp_client_out *m, void *request);
void mcp_fetch_let_go(struct mcp_fetch *f, void *request);
/* Messages that are under way or held. */
unsigned mcp_fetch_under_way(const struct mcp_fetch *f);
/* No new session could be opened: what is held fails, later. */
void mcp_fetch_fail_held(struct mcp_fetch *f, const struct err *e);

/* HTTP's status of the last answer to a request; 0 where there was none. */
int mcp_fetch_status(const struct mcp_fetch *f);

/* The client hears nothing more. on_closed comes later, when f is gone. */
void mcp_fetch_close(struct mcp_fetch *f, void (*on_closed)(void *owner), void *owner);
