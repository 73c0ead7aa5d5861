#pragma once
/*
 * Servers in sandboxes, over HTTP: a reverse proxy to a port. Its routes are those of
 *
 *	ANY /v1/sandboxes/{id}/expose/{port}[/…]
 *
 * which want the hub's token. See expose_head.h for what goes over, and docs/rest.md.
 */
#include "call/call.h"
#include "http/server/server.h"
#include "hub/core/preview.h"

struct expose;

struct expose_options {
	uv_loop_t *loop;
	struct ops *ops;
	/* Whether the text is a token of this hub, which no server in a sandbox gets. */
	bool (*is_token)(void *owner, struct str text);
	void *owner;
};

/* What o points to is borrowed until expose_free(). */
struct expose *expose_new(const struct expose_options *o, struct err *e) MUST_USE;
/* Ends what is open by links that this owner made. */
void expose_end_of(struct expose *x, struct str owner);
/* The server goes down: what is open ends. */
void expose_drain(struct expose *x);
void expose_free(struct expose *x); /* NULL-safe; no request is in flight */
struct http_routes expose_routes(const struct expose *x);

/* A request for a port that its caller may reach, as through a preview; its route streams. right
 * NULL: it is refused with e. at_hub: it was sent to the hub's own name, so its Authorization and
 * cookies stay here. */
void expose_public(struct expose *x, struct http_request *q, const struct preview_right *right,
		   bool at_hub, const struct err *e);

/* The routes of a door for previews alone, whose hosts are preview_names(). */
struct http_routes expose_previews(struct expose *x);
