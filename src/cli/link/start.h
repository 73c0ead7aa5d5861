#pragma once
/*
 * A hub on demand: `holt serve` at the socket alone, in the background, until for ten minutes there was neither a
 * sandbox nor a connection. What it has to say goes to the file hub.log of the data folder.
 */
#include <limits.h>

#include "base/err.h"

/* Returns when a hub takes connections at the socket, which is that of home_socket(): at once if one does
 * already; of those that ask at the same time one starts it. ERR_TRANSPORT where none can be started. */
int hub_start(const char *socket, struct err *e) MUST_USE;
