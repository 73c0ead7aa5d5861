#pragma once
/* Between the files of the hub. */
#include "hub/road/hub.h"

struct hub {
	uv_loop_t *loop;
	struct box *box;
	struct store *store; /* NULL: none */
	struct lives *lives;
	struct previews *previews; /* owned, NULL: there are none */
	char *images; /* path of their store; NULL: none */
	const struct tool *const *tools;
	size_t n_tools;

	unsigned calls, max_calls; /* that work */
	unsigned waiting, max_waiting; /* the others: call_waits() */
	size_t output, max_output; /* bytes reserved by calls */

	struct mcp_server *mcp;
	struct mcp_tool *mcp_tools; /* one for each of tools, with the schemas printed */
	const struct mcp_tool **mcp_list;
	struct mcp_roots *mcp_roots; /* as they were listed last; NULL: never */

	bool closing;
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* mcp_call.c: makes a call of a tools/call. */
void hub_mcp_call(void *hub, struct mcp_call *mc);

/* mcp_files.c: the files of sandboxes as resources. */
const struct mcp_resource *const *hub_mcp_roots(void *hub, struct mcp_session *s, size_t *ret_n);
const struct mcp_template *const *hub_mcp_templates(void *hub, struct mcp_session *s,
						    size_t *ret_n);
void hub_mcp_read(void *hub, struct mcp_call *mc);
void hub_mcp_complete(void *hub, struct mcp_call *mc);
void hub_mcp_roots_free(struct hub *hub);

/* mcp.c */
int hub_mcp_init(struct hub *hub, struct err *e) MUST_USE;
void hub_mcp_fini(struct hub *hub);
