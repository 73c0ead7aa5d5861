#pragma once
/*
 * Connections to ports of sandboxes, and forwards: a port of 127.0.0.1 for a port in a sandbox.
 * Bytes are passed on unchanged. Whoever can reach 127.0.0.1 can use a forward, without a token. It
 * is meant for protocols other than HTTP, and for clients without a token; web pages belong behind
 * a preview, which has its own host name.
 *
 * A forward ends with its sandbox, when that is stopped or goes cold, or with the hub; a restored
 * sandbox has none. While the sandbox is paused, open connections wait and new ones are closed.
 * Each connection keeps the sandbox busy.
 */
#include "hub/sandbox/sandbox.h"

enum {
	FORWARDS_MAX = 16, /* ports of one sandbox */
	FORWARDS_ALL_MAX = 1024, /* of all */
	FORWARD_CONNECTIONS_MAX = 64, /* at once, of one sandbox */
	FORWARD_ALL_MAX = 1024, /* of all */
};

/* Forwards 127.0.0.1:host_port, or with 0 a free port, to guest_port. *ret_port: the port; if
 * guest_port is forwarded already, its port. ERR_CONFLICT: host_port is in use, or guest_port
 * has another; ERR_LIMIT: too many; or errors of hub_sandbox_sandbox(). owner: who asks, at most
 * OWNER_MAX bytes. */
int forward_start(struct hub_sandbox *l, uint16_t guest_port, uint16_t host_port, struct str owner,
		  uint16_t *ret_port, struct err *e) MUST_USE;

/* Ends the forward of guest_port and its connections; 0: all of them. ERR_INVALID: guest_port is
 * not forwarded. */
int forward_stop(struct hub_sandbox *l, uint16_t guest_port, struct err *e) MUST_USE;

/* Ends the forwards that this owner was the last to ask for. */
void forwards_end_of(struct hub_sandboxes *all, struct str owner);

/* A connection to a port of a sandbox from any door. It counts among those above and keeps the
 * sandbox busy. The owner holds it from take to give. on_end: the sandbox has stopped running;
 * the connection is given back already. */
struct hub_sandbox_port {
	struct hub_sandbox_port *next, *prev;
	struct hub_sandbox *hs; /* NULL: it is not taken */
	void (*on_end)(void *arg);
	void *arg;
};
int hub_sandbox_port_take(struct hub_sandbox *l, struct hub_sandbox_port *port,
			  struct err *e) MUST_USE;
void hub_sandbox_port_give(struct hub_sandbox_port *port); /* nothing if it is not taken */

struct forward_info {
	uint16_t host_port, guest_port;
	uint32_t connections; /* that are open */
	uint64_t connections_total;
};
/* Up to FORWARDS_MAX, in order of creation. */
size_t forward_list(const struct hub_sandbox *l, struct forward_info ret[FORWARDS_MAX]);
