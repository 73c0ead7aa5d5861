#pragma once
/*
 * Names to addresses, by c-ares in the loop: the resolvers that the operator names, or those of the
 * host, and the host's hosts file. Answers are kept as long as they may be, so that a new
 * connection does not always cost a query. What an address may be used for is not decided here.
 */
#include <uv.h>

#include "base/err.h"
#include "net/wire/wire.h"

enum { RESOLVE_MAX = 16 /* addresses of a name that are looked at */ };

struct resolver;
struct resolve; /* one that waits */

/* With n 0: those of the host. */
struct resolver *resolver_new(uv_loop_t *loop, const struct nw_resolver *servers, size_t n,
			      struct err *e) MUST_USE;

/* n 0: it does not resolve. */
typedef void resolve_fn(void *owner, const struct net_addr *addrs, size_t n);

/* on_done may be called within this, and NULL is returned then. */
struct resolve *resolve_start(struct resolver *r, const char *host, resolve_fn *on_done,
			      void *owner);

/* No callback follows. NULL-safe. */
void resolve_cancel(struct resolve *q);
