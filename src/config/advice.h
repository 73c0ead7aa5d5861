#pragma once
/*
 * What keeps the servers of the operator's file from working, as far as it can be known before they
 * are started, and what helps. Looks at the files of this host and the environment of this process,
 * and changes nothing. One table of checks, for config check, import, add and module.info.
 */
#include "config/config.h"

enum { CONFIG_ADVICE_MAX = 512 };

/* Calls say with each, a line that has no place in it. Returns how many. What of the hub's home is
 * meant is that of HOME. */
unsigned config_advise(const struct config_server *s, void (*say)(void *data, const char *text),
		       void *data);

/* A server that many use: what it wants, from its documentation (known.json). */
struct config_known {
	struct str about; /* where it says so */
	struct field_strs network, secrets; /* rules; variables of its environment */
};
/* By its package or URL; on the arena. 0: it is not known, 1. */
int config_known_find(const struct config_server *s, struct arena *a, struct config_known *ret,
		      struct err *e) MUST_USE;
