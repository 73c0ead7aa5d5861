#pragma once
/*
 * The client's side of HTTP+SSE, the transport of 2024-11-05: one GET for all messages of the
 * server, whose first event names the URL to post to. That must have the same origin. The
 * connection is the session: it can't be resumed.
 */
#include <uv.h>

#include "mcp/client/client.h"
#include "mcp/connect/exchange.h"

struct mcp_events;

struct mcp_events_options {
	struct mcp_exchange_base *base; /* borrowed */
	const char *url; /* borrowed */
	struct mcp_client *client; /* borrowed */
	void (*on_open)(void *owner); /* messages can be sent */
	/* Called once: it could not be opened, or has ended; it must still be closed. status: that
	 * of HTTP, 0: none. */
	void (*on_lost)(void *owner, int status, const struct err *e);
	void *owner;
};

struct mcp_events *mcp_events_new(uv_loop_t *loop, const struct mcp_events_options *o,
				  struct err *e) MUST_USE;

/* As in struct mcp_client_transport. */
void mcp_events_send(struct mcp_events *v, const struct mcp_client_out *m);
void mcp_events_let_go(struct mcp_events *v, struct mcp_pending *p);

/* The client gets no more messages. on_closed comes later, when v is freed. */
void mcp_events_close(struct mcp_events *v, void (*on_closed)(void *owner), void *owner);
