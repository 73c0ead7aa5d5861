#pragma once
/*
 * How names are reached, as the hub has said in its hello: which name servers know them, whether
 * they may have private addresses, and whether the network's own proxy has to be asked.
 */
#include <uv.h>

#include "base/secret.h"
#include "net/egress/resolve.h"
#include "net/wire/wire.h"

struct ways;

/* rest: what follows the message; certificates in it are not looked at. The caller wipes it. */
struct ways *ways_new(uv_loop_t *loop, const struct nw_hello *m, struct str rest,
		      struct err *e) MUST_USE;

/* The resolver of a name: that of the longest suffix, else that of all. */
struct resolver *ways_resolver(const struct ways *w, const char *host);
bool ways_are_private(const struct ways *w, const char *host);

/* The proxy that a name is reached through; NULL: it is dialled. */
struct ways_proxy {
	char host[NET_HOST_MAX]; /* a name or an address */
	uint16_t port;
	struct secret *auth; /* of Proxy-Authorization: Basic; NULL: none */
};
const struct ways_proxy *ways_proxy(const struct ways *w, const char *host);
