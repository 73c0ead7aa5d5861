#pragma once
/* Descriptors for the loop. */
#include "base/err.h"

/* Makes *fd non-blocking without changing it for who else has it, a shell for one: where it can be
 * opened anew (terminals, pipes), *fd becomes a descriptor of its own and the old one is closed. */
int loop_fd_unblock(int *fd, struct err *e) MUST_USE;
