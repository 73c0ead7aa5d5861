#include "mcp/message/protocol.h"

#include <assert.h>
#include <string.h>

#include "base/err.h"

/* --- methods --- */

#define LAST_LEGACY "2025-11-25"
#define MODERN "2026-07-28"

/* Frequent methods come first, since the table is searched from the top. */
static const struct mcp_method methods[] = {
	{ MCP_METHOD_TOOLS_CALL, "tools/call", .named = "name" },
	{ MCP_METHOD_TOOLS_LIST, "tools/list" },
	{ MCP_METHOD_RESOURCES_READ, "resources/read", .named = "uri" },
	{ MCP_METHOD_RESOURCES_LIST, "resources/list" },
	{ MCP_METHOD_TEMPLATES_LIST, "resources/templates/list" },
	{ MCP_METHOD_PROMPTS_GET, "prompts/get", .named = "name" },
	{ MCP_METHOD_PROMPTS_LIST, "prompts/list" },
	{ MCP_METHOD_COMPLETE, "completion/complete" },
	{ MCP_METHOD_DISCOVER, "server/discover", .first = MODERN },
	{ MCP_METHOD_LISTEN, "subscriptions/listen", .first = MODERN },
	{ MCP_METHOD_SUBSCRIBE, "resources/subscribe", .last = LAST_LEGACY },
	{ MCP_METHOD_UNSUBSCRIBE, "resources/unsubscribe", .last = LAST_LEGACY },
	{ MCP_METHOD_SET_LEVEL, "logging/setLevel", .last = LAST_LEGACY },
	{ MCP_METHOD_PING, "ping", .last = LAST_LEGACY },
	{ MCP_METHOD_INITIALIZE, "initialize", .last = LAST_LEGACY },
	{ MCP_METHOD_TASKS_GET, "tasks/get", .first = LAST_LEGACY, .named = "taskId" },
	{ MCP_METHOD_TASKS_UPDATE, "tasks/update", .first = MODERN, .named = "taskId" },
	{ MCP_METHOD_TASKS_CANCEL, "tasks/cancel", .first = LAST_LEGACY, .named = "taskId" },
	{ MCP_METHOD_TASKS_RESULT, "tasks/result", .first = LAST_LEGACY, .last = LAST_LEGACY },
	{ MCP_METHOD_TASKS_LIST, "tasks/list", .first = LAST_LEGACY, .last = LAST_LEGACY },
};
static_assert(ARRAY_LEN(methods) == MCP_METHODS, "each method has a row");

const struct mcp_method *mcp_method_at(size_t i)
{
	return i < ARRAY_LEN(methods) ? &methods[i] : NULL;
}

const struct mcp_method *mcp_method_find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (str_is(name, methods[i].name))
			return &methods[i];
	}
	return NULL;
}

/* The names of revisions sort by date. */
bool mcp_method_in(const struct mcp_method *m, const struct mcp_profile *p)
{
	if (!p)
		return !m->first || strcmp(m->first, mcp_profile_latest()->version) <= 0;
	return (!m->first || strcmp(m->first, p->version) <= 0) &&
	       (!m->last || strcmp(m->last, p->version) >= 0);
}

/* --- levels --- */

static const char *const levels[MCP_LEVELS] = {
	[MCP_DEBUG] = "debug",	   [MCP_INFO] = "info",		  [MCP_NOTICE] = "notice",
	[MCP_WARNING] = "warning", [MCP_ERROR] = "error",	  [MCP_CRITICAL] = "critical",
	[MCP_ALERT] = "alert",	   [MCP_EMERGENCY] = "emergency",
};

int mcp_level_find(struct str name)
{
	for (int i = 0; i < MCP_LEVELS; i++) {
		if (str_is(name, levels[i]))
			return i;
	}
	return -1;
}

const char *mcp_level_name(enum mcp_level level)
{
	return levels[level];
}

/* --- faults --- */

int mcp_takes(const char *what, const char *type, const struct json_val *v, struct rpc_fault *f)
{
	return rpc_fault_set(f, RPC_INVALID_PARAMS, "%s takes %s, not %s", what, type,
			     json_type_name(json_type(v)));
}

int mcp_over_limit(struct rpc_fault *f, const char *what, unsigned max)
{
	if (max > 0)
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "%s of at most %u", what, max);
	else
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "%s", what);
	f->reason = err_info(ERR_LIMIT);
	return -1;
}
