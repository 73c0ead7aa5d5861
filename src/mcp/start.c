/* Requests that a handler answers: tools/call, resources/read, prompts/get, completion/complete. */
#include "base/log.h"
#include "json/near.h"
#include "json/utf8.h"
#include "mcp/core.h"

enum { NAME_SHOWN = 64 };

/* --- tools --- */

static void run_tool(struct mcp_call *c)
{
	const struct mcp_server_options *o = &c->server->o;

	if (c->tool->run)
		c->tool->run(c);
	else
		o->handler->call(o->owner, c);
}

static const struct mcp_tool *find_tool(struct mcp_session *s, struct str name,
					const struct mcp_tool **ret_near)
{
	const struct mcp_tool *const *tools;
	unsigned best = near_enough(name) + 1;
	size_t n = 0;

	*ret_near = NULL;
	tools = mcp_tools_of(s, &n);
	for (size_t i = 0; i < n; i++) {
		if (str_is(name, tools[i]->name))
			return tools[i];
	}
	for (size_t i = 0; i < n; i++) {
		unsigned distance = near_distance(name, str_of(tools[i]->name));

		if (distance < best) {
			best = distance;
			*ret_near = tools[i];
		}
	}
	return NULL;
}

static const struct mcp_tool *read_tool(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *name = json_get(q->m->params, "name");
	const struct mcp_tool *near, *tool;

	if (json_type(name) != JSON_STR) {
		mcp_takes("name", "a string", name, f);
		return NULL;
	}
	tool = find_tool(q->s, json_str(name), &near);
	if (!tool)
		rpc_fault_set(f, RPC_INVALID_PARAMS, "unknown tool \"%.*s\"%s%s%s",
			      STR_ARG(utf8_cut(json_str(name), NAME_SHOWN)),
			      near ? "; did you mean \"" : "", near ? near->name : "",
			      near ? "\"?" : "");
	else if (!tool->prepared)
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "tool %s was not prepared", tool->name);
	return tool && tool->prepared ? tool : NULL;
}

int mcp_tools_call(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *args = json_get(q->m->params, "arguments");
	const struct mcp_tool *tool;
	struct mcp_call *c;

	if (args && json_type(args) != JSON_OBJECT)
		return mcp_takes("arguments", "an object", args, f);
	tool = read_tool(q, f);
	if (!tool || mcp_header_check_params(q->in->head, tool, args, f) < 0)
		return -1;
	c = mcp_call_begin(q, MCP_CALL_TOOL, f);
	if (!c)
		return -1;
	c->tool = tool;
	c->args = args;
	c->run = run_tool;
	log_debug("mcp: tools/call %s", tool->name);
	return mcp_call_go(c, f);
}
