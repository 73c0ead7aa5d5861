#pragma once
/*
 * A process that ends a program's group once this process has ended, however that was: nobody else
 * does so after SIGKILL. It is a copy of this one that makes nothing but system calls, and waits
 * for a pipe whose other end is here alone.
 */
#include "mcp/connect/group.h"

/* The end that is here: -1 with *e. */
int mcp_tether_new(const struct mcp_group *g, struct err *e) MUST_USE;
/* The group has ended, and so does the process. *end is -1 then, and may be so before. */
void mcp_tether_end(int *end);
