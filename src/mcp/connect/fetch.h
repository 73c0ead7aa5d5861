#pragma once
/*
 * A client's side of Streamable HTTP, in both eras: each message is a POST, and its answer JSON or
 * events.
 *
 * Legacy: the session that initialize opened is named by each request and ended at the end; a stream
 * for what belongs to no request is opened after notifications/initialized, and until that has been taken
 * nothing else is sent. A stream that breaks off is taken up again behind its last event, a POST's
 * as well, so that no call is ever made twice. A session that the server has forgotten is told to the
 * client (mcp_client_session_lost()); what it had refused in it is sent again in the next.
 *
 * Modern: a request that is not wanted any more is cancelled by closing its connection.
 */
#include <uv.h>

#include "mcp/client/client.h"
#include "mcp/connect/trip.h"

struct mcp_fetch;

struct mcp_fetch_options {
	struct mcp_trip_base *base; /* borrowed */
	const char *url; /* borrowed */
	struct mcp_client *client; /* borrowed */
	unsigned stop_ms; /* for the end of the session */
};

struct mcp_fetch *mcp_fetch_new(uv_loop_t *loop, const struct mcp_fetch_options *o,
				struct err *e) MUST_USE;

/* As of struct mcp_client_transport. */
void mcp_fetch_send(struct mcp_fetch *f, const struct mcp_client_out *m);
void mcp_fetch_let_go(struct mcp_fetch *f, struct mcp_pending *p);

/* HTTP's status of the last answer to a request; 0 where there was none. */
int mcp_fetch_status(const struct mcp_fetch *f);

/* The client hears nothing more. on_closed comes later, when f is gone. */
void mcp_fetch_close(struct mcp_fetch *f, void (*on_closed)(void *owner), void *owner);
