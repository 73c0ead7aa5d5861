#pragma once
/*
 * `holt mcp --server URL`: the tools for sandboxes over the REST of another server, which may be
 * a hub of ours on another host or a sandbox-server of mitos. Sandboxes, files and output are
 * there; this process has only the client's session and the token.
 *
 * Tools have their names and input schemas from the rows of door/mcp, so they are ours whatever the
 * server says. Its answers are untrusted: each is bounded in bytes, values, depth and time, decoded
 * by tables of ours or shown as the JSON that it is, and the token is taken out of all that leaves.
 */
#include "cli/common/option.h"
#include "cli/link/credentials.h"
#include "cli/link/server.h"

struct remote_options {
	const char *server; /* NULL: none, and the rest is not said either */
	struct token_options token;
	struct tls_options tls;
	bool workspaces; /* the tools for workspaces, too */
};

/* The rows of a struct S with a member m, a struct remote_options. */
#define REMOTE_ROWS(S, m)                                                                          \
	OPTION(S, m.server, OPTION_TEXT, "server", .arg = "URL", .env = "MITOS_BASE_URL",          \
	       .doc = "Use the sandboxes of another server, through its REST API."),               \
		TOKEN_ROWS(S, m.token),                                                            \
		OPTION(S, m.workspaces, OPTION_FLAG, "enable-workspace-tools",                     \
		       .doc = "With --server: also serve the tools for workspaces."),              \
		TLS_ROWS(S, m.tls)

/* Serves standard input and output until their end. Gives the exit status. */
int remote_run(const struct remote_options *o);
