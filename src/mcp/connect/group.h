#pragma once
/*
 * A program in a process group of its own: signals to the whole group, and the program's exit
 * status. Both use a pidfd, since a pid could be another process's: other code in this process may
 * wait for all children, or ignore their ends (SIGCHLD), which frees the pid.
 */
#include <sys/types.h>

#include "base/err.h"

struct mcp_group {
	pid_t pid; /* 0: none */
	int pidfd;
};

#define MCP_GROUP_INIT ((struct mcp_group){ .pidfd = -1 })

/* g->pid was just started. -1: it can't be watched, or has ended already. */
int mcp_group_open(struct mcp_group *g, struct err *e) MUST_USE;
void mcp_group_kill(const struct mcp_group *g, int number);
/* Waits for its end, which must be near. Its wait status; -1: somebody else took it. */
int mcp_group_wait(const struct mcp_group *g);
