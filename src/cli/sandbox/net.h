#pragma once
/* What a sandbox of the hub may reach (net.c). */
#include "cli/link/link.h"

/* Has it reach these hosts, too, as `holt net allow` does. */
int net_allow(struct hub_link *l, const char *name, const char *const *hosts, size_t n,
	      struct err *e) MUST_USE;
