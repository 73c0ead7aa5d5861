#pragma once
/* Between forward.c, which has the ports, and relay.c, which has their connections. */
#include <uv.h>

#include "hub/sandbox/forward.h"
#include "hub/sandbox/internal.h"

struct relay;

struct forward {
	struct forward *next;
	struct life *life; /* as long as it listens */
	uint16_t guest_port, host_port;
	uv_tcp_t listener;
	struct relay *relays; /* open ones */
	uint32_t n_relays;
	uint64_t relays_total;
};

/* Ends all that its life has, and all other connections to its ports. */
void forwards_end(struct life *l);

/* A client waits at the listener: it is accepted, and ended at once where there is no room. */
void relay_start(struct forward *f);
void relays_end(struct forward *f);
