#pragma once
/* Descriptors for the loop. */
#include "base/err.h"

/* Makes *fd non-blocking without an effect on other holders of it, such as a shell: if it can be
 * reopened (terminals, pipes), *fd becomes a new descriptor and the old one is closed. */
int loop_fd_unblock(int *fd, struct err *e) MUST_USE;
