/*
 * The hub as an MCP server: what it offers. The tools' schemas are printed from their tables; calls of them are
 * mcp_call.c's, the files of sandboxes as resources mcp_files.c's. The session's data is the principal, set
 * by who opened the transport.
 */
#include "hub/road/internal.h"

#include <stdlib.h>

static const char tool_meta[] = "{\"holt/schemaVersion\":\"" TOOL_SCHEMA_VERSION "\"}";

static const char instructions[] =
	"Sandboxes: small Linux systems without a network, made in milliseconds. sandbox_create gives "
	"an id that the other tools take. Files persist between calls until sandbox_terminate; "
	"processes that a command leaves behind go on. sandbox_fork copies files, so try risky steps "
	"in a fork. A file is the resource sandbox://ID/PATH, too. A failure has a cause and a remediation; "
	"read them before trying again.";

static const struct mcp_tool *const *list_tools(void *owner, struct mcp_session *s, size_t *ret_n)
{
	struct hub *hub = owner;

	*ret_n = hub->n_tools;
	return hub->mcp_list;
}

static struct str principal_name(void *owner, void *data)
{
	const struct principal *p = data;

	return p ? str_of(p->name) : STR_NONE;
}

static const struct mcp_handler handler = { .tools = list_tools,
					    .resources = hub_mcp_roots,
					    .templates = hub_mcp_templates,
					    .call = hub_mcp_call,
					    .read = hub_mcp_read,
					    .complete = hub_mcp_complete };

static int print_tool(const struct tool *t, struct mcp_tool *ret, struct err *e)
{
	*ret = (struct mcp_tool){
		.name = t->name,
		.title = t->title,
		.description = t->doc,
		.input_schema = field_schema_text(t->input, e),
		.output_schema = t->output ? field_schema_text(t->output, e) : NULL,
		.meta = tool_meta,
		.read_only = t->read_only,
		.destructive = t->destructive,
		.idempotent = t->idempotent,
		.open_world = t->open_world,
		.task = t->task,
		.row = t,
	};
	if (!ret->input_schema || (t->output && !ret->output_schema))
		return -1;
	return mcp_tool_prepare(ret, e);
}

int hub_mcp_init(struct hub *hub, struct err *e)
{
	hub->mcp_tools = calloc(hub->n_tools, sizeof(*hub->mcp_tools));
	hub->mcp_list = calloc(hub->n_tools, sizeof(struct mcp_tool *));
	if (!hub->mcp_tools || !hub->mcp_list)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < hub->n_tools; i++) {
		if (print_tool(hub->tools[i], &hub->mcp_tools[i], e) < 0)
			return err_wrap(e, "tool %s", hub->tools[i]->name);
		hub->mcp_list[i] = &hub->mcp_tools[i];
	}
	hub->mcp = mcp_server_new(
		&(struct mcp_server_options){
			.name = "holt",
			.title = "Holt",
			.version = HOLT_VERSION,
			.instructions = instructions,
			.meta = tool_meta,
			.handler = &handler,
			.owner = hub,
			.tasks = true,
			.principal = principal_name,
		},
		e);
	return hub->mcp ? 0 : -1;
}

void hub_mcp_fini(struct hub *hub)
{
	mcp_server_free(hub->mcp);
	for (size_t i = 0; hub->mcp_tools && i < hub->n_tools; i++) {
		mcp_tool_release(&hub->mcp_tools[i]);
		free((char *)hub->mcp_tools[i].input_schema);
		free((char *)hub->mcp_tools[i].output_schema);
	}
	free(hub->mcp_tools);
	free(hub->mcp_list);
	hub_mcp_roots_free(hub);
}
