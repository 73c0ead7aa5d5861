#pragma once
/*
 * A program that was started in a process group of its own: signals to all of the group, and how
 * the program ended. Never a number of another's: whoever else in this process waits for children,
 * or has their ends ignored (SIGCHLD), may have freed it. So both go by a pidfd.
 */
#include <sys/types.h>

#include "base/err.h"

struct mcp_group {
	pid_t pid; /* 0: none */
	int pidfd;
};

#define MCP_GROUP_INIT ((struct mcp_group){ .pidfd = -1 })

/* g->pid was just started. -1 where it can't be watched, or has gone already. */
int mcp_group_open(struct mcp_group *g, struct err *e) MUST_USE;
void mcp_group_kill(const struct mcp_group *g, int number);
/* It has ended, or soon will: its wait status; -1 where somebody else has it. */
int mcp_group_wait(const struct mcp_group *g);
