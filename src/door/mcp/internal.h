#pragma once
/* Between the files of the MCP door. */
#include "door/mcp/door.h"
#include "door/mcp/tools.h"
#include "hub/core/hub.h"
#include "hub/sandbox/sandbox.h"
#include "op/call.h"

struct gateway;

struct mcp_door {
	struct ops *ops;
	struct mcp_server *server;
	struct op_shape *shapes; /* one for each of tools */
	struct mcp_tool *tools; /* likewise, with the schemas printed */
	struct mcp_choice may, usual; /* what a client may have, and has if it asks for none */
	const struct mcp_tool **list; /* as a session was told last */
	struct gateway *gateway; /* NULL: there are no modules */
	struct mcp_roots *roots; /* as they were listed last; NULL: never */
	bool roots_changed; /* and clients were not told yet */
	struct hub_sandboxes_watch watch;
};

/* gateway.c: tools of modules. A call of one holds it until it is gone. */
extern const struct tool gateway_tool; /* the row of all of them */
enum { GATEWAY_LIST_MAX = 1000 };
int gateway_open(struct mcp_door *d, struct err *e) MUST_USE;
void gateway_free(struct gateway *w); /* NULL-safe */
size_t gateway_list(const struct gateway *w, const struct mcp_tool **to, size_t max);
void gateway_hold(void *door, const struct mcp_tool *t, bool on);
int gateway_decode(struct mcp_call *mc, void *request, struct err *e) MUST_USE;
/* Fills content and the like of *ret; what it borrows the caller frees, also on failure. */
int gateway_answer(const void *result, struct json_doc **ret_doc, char **ret_content,
		   char **ret_structured, struct mcp_result *ret, struct err *e) MUST_USE;

/* call.c: makes a call of a tools/call. */
void door_call(void *door, struct mcp_call *mc);
/* call.c: what op_start.session is for a call; all requests without a session share one. */
const void *door_session(const struct mcp_door *d, const struct mcp_call *mc);

/* files.c: the files of sandboxes as resources. */
const struct mcp_resource *const *files_roots(void *door, struct mcp_session *s, size_t *ret_n);
const struct mcp_template *const *files_templates(void *door, struct mcp_session *s, size_t *ret_n);
void files_read(void *door, struct mcp_call *mc);
void files_complete(void *door, struct mcp_call *mc);
/* Tells clients, later, that the list of resources has changed. */
void files_roots_watch(struct mcp_door *d);
void files_roots_free(struct mcp_door *d);

/* sandbox_list_files.c: a directory as models see it. */
extern const struct field_table tool_listing_table;

/* says.c: the text of an answer, by its tool's row. */
int tool_text(const struct tool *t, const void *request, const void *result, struct buf *to,
	      struct err *e) MUST_USE;
