#pragma once
/* Forwarded ports on this machine's loopback, as arguments give them: [HOST:]PORT, numbers. */
#include "cli/link/link.h"

struct port_words {
	uint16_t host; /* 0: any */
	uint16_t guest;
};

/* ERR_INVALID: not a port. */
int ports_read(const char *text, struct port_words *ret, struct err *e) MUST_USE;

/* Makes the hub forward the port. *ret is its answer, which the caller frees; ret may be NULL. */
int ports_forward(struct hub_link *l, const char *sandbox, const struct port_words *p,
		  struct json_doc **ret, struct err *e) MUST_USE;
