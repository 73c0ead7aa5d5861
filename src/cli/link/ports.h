#pragma once
/* Ports of a sandbox on this machine's loopback, as verbs are told of them: [HOST:]PORT, numbers. */
#include "cli/link/link.h"

struct port_words {
	uint16_t host; /* 0: any */
	uint16_t guest;
};

/* ERR_INVALID where it is none. */
int ports_read(const char *text, struct port_words *ret, struct err *e) MUST_USE;

/* Has the hub forward it; *ret is its answer, the caller's, and may be NULL. */
int ports_forward(struct hub_link *l, const char *sandbox, const struct port_words *p,
		  struct json_doc **ret, struct err *e) MUST_USE;
