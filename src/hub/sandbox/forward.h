#pragma once
/*
 * Connections to the ports of sandboxes, and ports of sandboxes on this machine's loopback: a port
 * of 127.0.0.1 for a port inside, and a connection to the one is one to the other, byte by byte.
 * Whoever can reach 127.0.0.1 can use it; no token is asked for. That is for programs that speak
 * something else than HTTP, or want no token; pages belong behind a preview, which has a name of
 * its own.
 *
 * A forwarded port ends with its sandbox, with what runs of it (stopped, cold), or with the hub;
 * what is restored has none. While the sandbox is paused, open connections wait and new ones are
 * closed. Each keeps it busy.
 */
#include "hub/sandbox/life.h"

enum {
	FORWARDS_MAX = 16, /* ports of one sandbox */
	FORWARDS_ALL_MAX = 1024, /* of all */
	FORWARD_CONNECTIONS_MAX = 64, /* at once, of one sandbox */
	FORWARD_ALL_MAX = 1024, /* of all */
};

/* From 127.0.0.1:host_port, or with 0 from a port that is free, to guest_port. *ret_port is it;
 * where guest_port is forwarded already, that one's. ERR_CONFLICT: host_port is taken, or
 * guest_port has another; ERR_LIMIT: too many; or as life_sandbox(). */
int forward_start(struct life *l, uint16_t guest_port, uint16_t host_port, uint16_t *ret_port,
		  struct err *e) MUST_USE;

/* Ends it, and its connections; with 0 all of them. ERR_INVALID: guest_port is not forwarded. */
int forward_stop(struct life *l, uint16_t guest_port, struct err *e) MUST_USE;

/* A connection to a port of it, by whatever way: it counts among those above and keeps the sandbox
 * busy. The owner's, from take to give. on_end: what ran of the sandbox has ended; it is given back
 * already. */
struct life_port {
	struct life_port *next, *prev;
	struct life *life; /* NULL: it is not taken */
	void (*on_end)(void *arg);
	void *arg;
};
int life_port_take(struct life *l, struct life_port *port, struct err *e) MUST_USE;
void life_port_give(struct life_port *port); /* nothing if it is not taken */

struct forward_info {
	uint16_t host_port, guest_port;
	uint32_t connections; /* that are open */
	uint64_t connections_total;
};
/* Up to FORWARDS_MAX, in the order in which they were made. */
size_t forward_list(const struct life *l, struct forward_info ret[FORWARDS_MAX]);
