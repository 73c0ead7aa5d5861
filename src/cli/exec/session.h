#pragma once
/*
 * A command in a sandbox of the hub, over a WebSocket (docs/rest.md): our standard input goes to
 * it, its output comes back at once.
 *
 * A command that is started here: a slow reader of our output holds the command, and the command
 * holds the writer of our input. When this process ends, the hub ends the command.
 *
 * A command that is attached to: it runs on. The hub tells whether it has a terminal and reads
 * input. On a terminal the keys of `leave` detach; without one, Ctrl-C sends SIGINT and Ctrl-\\
 * detaches. Whoever detaches gets the terminal back as it was, and who attaches again has it as the
 * program set it (screen.h).
 */
#include "cli/link/link.h"

struct exec_session_spec {
	const char *path; /* of the route */
	struct str open; /* the first message; not used when attaching */
	bool input; /* standard input is handed on */
	/* It has a terminal: with input, ours is connected to it. When attaching, the hub
	 * decides. */
	bool tty;
	/* attach, and detach with these keys; NULL: start the command */
	const struct detach *leave;
	/* Attaching to a terminal: output before this offset is not printed, but tells what was set
	 * of the terminal; then the program is made to draw all of it. */
	uint64_t seen;
	/* Lines for the person at the terminal come from this descriptor, and are shown below the
	 * program's screen (notice.h), and again at the end; 0: none. */
	int news;
	const char *again; /* how to come back, said by who detaches; may be NULL */
};

/* Runs until the end. Returns the exit status, 0 if the user detached, or -1. Once per process. */
int exec_session(struct hub_link *l, const struct exec_session_spec *spec, struct err *e) MUST_USE;
