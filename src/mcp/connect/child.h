#pragma once
/*
 * A program that speaks MCP on its standard input and output, as a client starts it: by an argument
 * vector, never through a shell; in a session, and so a process group, of its own; with no
 * descriptors but its standard three, no signals blocked or ignored, and an environment that is
 * said.
 *
 * One message a line. Its standard error is read as long as it lives, so that it never waits for
 * us. What it is told is queued; writing never blocks.
 *
 * It ends by the end of its input, then SIGTERM, then SIGKILL; both go to its whole group, and what
 * the group has left when the program itself is gone gets SIGKILL too. No process but ours is ever
 * waited for, and no signal handler is needed.
 */
#include <uv.h>

#include "base/mem.h"
#include "rpc/sniff.h"

struct mcp_child;

struct mcp_child_options {
	const char *const *argv; /* argv[0] by our PATH, where it has no slash */
	const char *const *env; /* NULL: PATH, HOME, LANG and others of ours that are no secrets */
	const char *const
		*env_more; /* beside those, and in place of one with that name; may be NULL */
	const char *cwd; /* NULL: ours */
	size_t line_max;
	unsigned stop_ms;
};

struct mcp_child_events {
	void (*on_line)(void *owner, struct str line); /* never empty; borrowed */
	/* A line that is longer than line_max, or that there was no memory for. */
	void (*on_long)(void *owner, const struct rpc_sniff *sniff, const struct err *e);
	void (*on_stderr)(void *owner, struct str bytes); /* borrowed */
	/* Once: it has ended, has closed its output, or takes no more input. What it said before
	 * has come before. It is still to be closed. */
	void (*on_end)(void *owner, const struct err *e);
};

/* Returns when the program is executed. ERR_COMMAND_NOT_FOUND, ERR_COMMAND_NOT_RUN, … */
struct mcp_child *mcp_child_start(uv_loop_t *loop, const struct mcp_child_options *o,
				  const struct mcp_child_events *ev, void *owner,
				  struct err *e) MUST_USE;

/* text without line breaks. answer: to what the program has asked, of which only so much waits for
 * it as it may ask before it reads: 4 MiB; over that it has ended. */
void mcp_child_send(struct mcp_child *c, struct str text, bool answer);

/* SIGKILL to its group, now. */
void mcp_child_kill(struct mcp_child *c);

/* Its wait status; -1 while it runs, or where somebody else has it. */
int mcp_child_status(const struct mcp_child *c);

/* Ends it, with stop_ms for each step in place of the option's; what is queued is still told. No
 * event comes after it but on_closed, later, when it is gone. */
void mcp_child_close(struct mcp_child *c, unsigned stop_ms, void (*on_closed)(void *owner),
		     void *owner);
