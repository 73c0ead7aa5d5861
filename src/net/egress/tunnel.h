#pragma once
/*
 * A way through an HTTP proxy (RFC 9110, section 9.3.6): CONNECT is sent, and the head of the
 * answer read to its last byte and no further. A state machine over a socket that does not block.
 */
#include <stdint.h>

#include "base/buf.h"
#include "base/secret.h"

struct tunnel {
	struct buf out, in; /* to the proxy, wiped; the head of its answer */
};

/* auth: the Base64 of "user:password"; may be NULL. host is a name. */
int tunnel_init(struct tunnel *t, const char *host, uint16_t port, const struct secret *auth,
		struct err *e) MUST_USE;
void tunnel_fini(struct tunnel *t);

/* READ, WRITE: when the socket is ready for that. OPEN: the other end is the host's. */
enum tunnel_state { TUNNEL_READ, TUNNEL_WRITE, TUNNEL_OPEN, TUNNEL_REFUSED };
enum tunnel_state tunnel_run(struct tunnel *t, int fd);
