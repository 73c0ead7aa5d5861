#pragma once
/* Between the files of the hub. */
#include "hub/hub.h"

struct hub {
	uv_loop_t *loop;
	struct box *box;
	struct store *store; /* NULL: none */
	struct lives *lives;
	char *images; /* path of their store; NULL: none */
	const struct tool *const *tools;
	size_t n_tools;

	unsigned calls, max_calls;
	size_t output, max_output; /* bytes reserved by calls */

	struct mcp_server *mcp;
	struct mcp_tool *mcp_tools; /* one for each of tools, with the schemas printed */
	const struct mcp_tool **mcp_list;

	bool closing;
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* The MCP side: hub/mcp.c. */
int hub_mcp_init(struct hub *hub, struct err *e) MUST_USE;
void hub_mcp_fini(struct hub *hub);
