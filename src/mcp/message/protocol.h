#pragma once
/* The methods, error codes and reserved names of MCP, for both roles. */
#include "mcp/message/message.h"
#include "mcp/message/profile.h"
#include "rpc/rpc.h"

/* Error codes of MCP besides those of JSON-RPC. */
enum {
	MCP_HEADER_MISMATCH = -32020,
	MCP_MISSING_CAPABILITY = -32021,
	MCP_UNSUPPORTED_VERSION = -32022,
	MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only */
	MCP_URL_REQUIRED = -32042, /* legacy only */
};

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CLIENT "io.modelcontextprotocol/clientInfo"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_LEVEL "io.modelcontextprotocol/logLevel"
#define MCP_META_SERVER "io.modelcontextprotocol/serverInfo"
#define MCP_META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
#define MCP_META_TASK "io.modelcontextprotocol/related-task"
#define MCP_EXTENSION_TASKS "io.modelcontextprotocol/tasks"

enum { MCP_LEVELS = 8, MCP_LEVEL_NONE = MCP_LEVELS };

/* Requests to a server, in the order of the table. */
enum mcp_method_id {
	MCP_METHOD_TOOLS_CALL,
	MCP_METHOD_TOOLS_LIST,
	MCP_METHOD_RESOURCES_READ,
	MCP_METHOD_RESOURCES_LIST,
	MCP_METHOD_TEMPLATES_LIST,
	MCP_METHOD_PROMPTS_GET,
	MCP_METHOD_PROMPTS_LIST,
	MCP_METHOD_COMPLETE,
	MCP_METHOD_DISCOVER,
	MCP_METHOD_LISTEN,
	MCP_METHOD_SUBSCRIBE,
	MCP_METHOD_UNSUBSCRIBE,
	MCP_METHOD_SET_LEVEL,
	MCP_METHOD_PING,
	MCP_METHOD_INITIALIZE,
	MCP_METHOD_TASKS_GET,
	MCP_METHOD_TASKS_UPDATE,
	MCP_METHOD_TASKS_CANCEL,
	MCP_METHOD_TASKS_RESULT,
	MCP_METHOD_TASKS_LIST,
	MCP_METHODS,
};

struct mcp_method {
	enum mcp_method_id id;
	const char *name;
	/* the revisions that have it; NULL: from the oldest, to the newest */
	const char *first, *last;
	const char *named; /* the member of params that Mcp-Name repeats; NULL: none */
};

/* NULL if there is no such method. */
const struct mcp_method *mcp_method_find(struct str name);
/* Row i of the table, for documents; NULL after the last. */
const struct mcp_method *mcp_method_at(size_t i);
/* p NULL: before initialize, when any legacy revision is possible. */
bool mcp_method_in(const struct mcp_method *m, const struct mcp_profile *p);

int mcp_level_find(struct str name); /* -1: none */
const char *mcp_level_name(enum mcp_level level);

/* Returns -1 with -32603, limit_exceeded: "WHAT of at most MAX", or just WHAT if MAX is 0. */
int mcp_over_limit(struct rpc_fault *f, const char *what, unsigned max);
/* Returns -1 with -32602: "X takes Y, not Z". */
int mcp_takes(const char *what, const char *type, const struct json_val *v, struct rpc_fault *f);
