#pragma once
/*
 * A command in a sandbox of the hub, over a WebSocket (docs/rest.md): what we read is its standard input, what it
 * prints comes as it goes. A reader of ours that is slow holds it, and it holds whoever writes to us; when we go, by
 * whatever signal, the hub sees it and ends the command.
 */
#include "cli/hub_link.h"

struct exec_session_spec {
	const char *path; /* of the route */
	struct str open; /* the first message */
	bool input; /* standard input is handed on */
	bool tty; /* our terminal becomes that of the command */
};

/* Until its end: the exit status, or -1. Once in a program. */
int exec_session(struct hub_link *l, const struct exec_session_spec *spec, struct err *e) MUST_USE;
