#pragma once
/*
 * A command in a sandbox of the hub, over a WebSocket (docs/rest.md): what we read is its standard input, what it
 * prints comes as it goes.
 *
 * One that is begun here: a reader of ours that is slow holds it, and it holds whoever writes to us; when we go, by
 * whatever signal, the hub sees it and ends the command. One that we are attached to: it runs on. The hub tells then whether it has
 * a terminal and reads. On a terminal the keys of `leave` go away; else Ctrl-C sends it SIGINT, and Ctrl-\\ goes away.
 */
#include "cli/link/link.h"

struct exec_session_spec {
	const char *path; /* of the route */
	struct str open; /* the first message; none of one that is attached to */
	bool input; /* standard input is handed on */
	bool tty; /* our terminal becomes that of the command; of one that is attached to the hub knows */
	const struct detach *leave; /* it is attached to, and left by these; NULL: begun here */
};

/* Until its end: the exit status, 0 where we went away before, or -1. Once in a program. */
int exec_session(struct hub_link *l, const struct exec_session_spec *spec, struct err *e) MUST_USE;
