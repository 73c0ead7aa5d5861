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
 * detaches.
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
};

/* Runs until the end. Returns the exit status, 0 if the user detached, or -1. Once per process. */
int exec_session(struct hub_link *l, const struct exec_session_spec *spec, struct err *e) MUST_USE;
