#pragma once
/*
 * A program that speaks MCP on its standard input and output, started by a client: from an argument
 * vector, never through a shell; in a session and process group of its own; with only its three
 * standard descriptors, no blocked or ignored signals, and a chosen environment.
 *
 * One message per line. Its standard error is read as long as it lives, so it never blocks on that.
 * Input for it is queued; writing never blocks.
 *
 * It ends by the end of its input, then SIGTERM, then SIGKILL; both go to its whole group, and what
 * is left of the group when the program itself has ended gets SIGKILL too. No process but ours is
 * waited for, and no signal handler is needed.
 */
#include <uv.h>

#include "base/mem.h"
#include "rpc/sniff.h"

struct mcp_child;

struct mcp_child_options {
	const char *const *argv; /* argv[0] is searched in our PATH if it has no slash */
	/* NULL: PATH, HOME, LANG and other variables of ours that are no secrets */
	const char *const *env;
	const char *const
		*env_more; /* added to these, replacing variables with the same name; may be NULL */
	const char *cwd; /* NULL: ours */
	bool tethered; /* its group ends with us, also where we are killed (tether.h) */
	size_t line_max;
	unsigned stop_ms;
};

struct mcp_child_events {
	void (*on_line)(void *owner, struct str line); /* never empty; borrowed */
	/* A line longer than line_max, or one that there was no memory for. */
	void (*on_long)(void *owner, const struct rpc_sniff *sniff, const struct err *e);
	void (*on_stderr)(void *owner, struct str bytes); /* borrowed */
	/* Called once: it has ended, has closed its output, or reads no more input. Everything that
	 * it said before has been delivered. It must still be closed. */
	void (*on_end)(void *owner, const struct err *e);
};

/* Returns when the program was executed. ERR_COMMAND_NOT_FOUND, ERR_COMMAND_NOT_RUN, … */
struct mcp_child *mcp_child_start(uv_loop_t *loop, const struct mcp_child_options *o,
				  const struct mcp_child_events *ev, void *owner,
				  struct err *e) MUST_USE;

/* text has no line breaks. answer: it answers a request of the program. At most 4 MiB of answers
 * are queued while the program does not read; beyond that it is ended. */
void mcp_child_send(struct mcp_child *c, struct str text, bool answer);

/* Sends SIGKILL to its group, at once. */
void mcp_child_kill(struct mcp_child *c);

/* Its wait status; -1 while it runs, or if somebody else took the status. */
int mcp_child_status(const struct mcp_child *c);

/* Ends it, with stop_ms for each step instead of the option's; what is queued is still written. The
 * only later callback is on_closed, when it is freed. */
void mcp_child_close(struct mcp_child *c, unsigned stop_ms, void (*on_closed)(void *owner),
		     void *owner);
