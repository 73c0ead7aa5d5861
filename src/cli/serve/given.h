#pragma once
/* Sockets that a service manager opened and handed down, as sd_listen_fds(3) has it. */
#include "base/err.h"

enum { GIVEN_FIRST = 3, GIVEN_MAX = 16 };

/* How many there are, from descriptor GIVEN_FIRST on; 0: none. Once, and before any other process
 * is started: they are closed for those, and what names them is taken out of the environment. */
int given_sockets(struct err *e) MUST_USE;
