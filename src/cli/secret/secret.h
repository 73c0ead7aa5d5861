#pragma once
/* Secrets of the hub's store, for verbs that ask for their values. */
#include "cli/link/link.h"

enum { SECRET_VALUE_MAX = 32 << 10 };

/* Stores it, or replaces it. value: with room for no copies (buf_wipe()). */
int secret_store(struct hub_link *l, const char *name, struct str value, struct err *e) MUST_USE;
