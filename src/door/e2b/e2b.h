#pragma once
/*
 * The wire of E2B's SDKs (docs/compat.md): the control plane, envd and the code interpreter on one
 * port. What a request asks for is one or several operations (op/ops.h), each of which takes the
 * stages of every call; nothing here reaches a sandbox in another way. Clients of mitos run code by
 * the same interpreters.
 *
 * The control plane knows principals by their tokens, in X-API-KEY. Whoever makes or connects to a
 * sandbox there is given a token for it alone, which the other two want.
 */
#include "call/call.h"
#include "config/config.h"
#include "http/server/server.h"

struct e2b;
struct expose;

struct e2b_options {
	uv_loop_t *loop;
	struct ops *ops; /* borrowed until it is closed */
	struct expose *expose; /* likewise: what shows ports */
	struct config *config; /* whose compat.templates are the names of templates */
	struct str secret; /* of which tokens are made, of at most 64 bytes; copied */
	/* As http_options.identify. */
	const void *(*identify)(void *owner, struct str token, bool local);
	void *owner;
	/* The rows for clients of mitos are served, too: who asks there without a token, or NULL.
	 * mitos_only: nothing else is. */
	const void *(*of_mitos)(void *owner, struct http_request *q);
	bool mitos_only;
};
struct e2b *e2b_new(const struct e2b_options *o, struct err *e) MUST_USE;
/* The operator's file was read again. */
void e2b_configure(struct e2b *x, struct config *c);
/* The server goes down: what waits for nothing but news ends. */
void e2b_drain(struct e2b *x);
/* The door is closed: no request is in flight. */
void e2b_close(struct e2b *x, void (*on_closed)(void *arg), void *arg);
void e2b_free(struct e2b *x); /* instead, where nothing was asked; NULL-safe */

/* Borrowed from x. */
struct http_routes e2b_routes(const struct e2b *x);

/* The names below which PORT-ID is a host name, for http_options.hosts. */
#define E2B_NAMES "*.localhost"
