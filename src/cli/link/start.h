#pragma once
/*
 * Starts a hub on demand: `holt serve` with only its socket, in the background. It ends after ten
 * minutes without sandboxes and connections. Its messages go to the file hub.log in the data
 * folder.
 */
#include <limits.h>

#include "base/err.h"

/* Whether somebody takes connections there. */
bool hub_serves(const char *socket);

/* Returns when a hub accepts connections at the socket of home_socket(), at once if one does
 * already. If several processes call it at the same time, one starts the hub. ERR_TRANSPORT: none
 * can be started. */
int hub_start(const char *socket, struct err *e) MUST_USE;
