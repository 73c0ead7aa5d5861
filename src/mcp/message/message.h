#pragma once
/* Names of MCP that the headers of both roles share. */

/* What a client can do. */
enum {
	MCP_CAN_ROOTS = 1 << 0,
	MCP_CAN_SAMPLING = 1 << 1,
	MCP_CAN_FORM = 1 << 2, /* elicitation by form */
	MCP_CAN_URL = 1 << 3, /* elicitation by URL */
	MCP_CAN_TASKS = 1 << 4, /* results may come as tasks; they are followed to their end */
	MCP_CAN_SAMPLING_TOOLS = 1 << 5,
};

/* The lists that a server can tell changes of. */
enum mcp_list { MCP_TOOLS = 1 << 0, MCP_RESOURCES = 1 << 1, MCP_PROMPTS = 1 << 2 };

struct mcp_extension {
	const char *name; /* "com.example/thing" */
	const char *settings; /* JSON object */
};

enum mcp_out_kind { MCP_OUT_RESPONSE, MCP_OUT_NOTIFICATION, MCP_OUT_REQUEST };

enum mcp_era {
	/* no message, or it contradicts itself or its head: a session of any road answers */
	MCP_BROKEN,
	MCP_LEGACY,
	MCP_MODERN,
};

/* RFC 5424's, mildest first. */
enum mcp_level {
	MCP_DEBUG,
	MCP_INFO,
	MCP_NOTICE,
	MCP_WARNING,
	MCP_ERROR,
	MCP_CRITICAL,
	MCP_ALERT,
	MCP_EMERGENCY,
};

/* What a server can ask its client. */
enum mcp_ask_kind {
	MCP_ASK_FORM, /* elicitation/create, mode form */
	MCP_ASK_URL, /* the same, mode url */
	MCP_ASK_SAMPLING, /* sampling/createMessage */
	MCP_ASK_ROOTS, /* roots/list */
};

/* May a call of the tool become a task (mcp_call_to_task())? Where it must, a client that has no
 * tasks is told so in place of a call. */
enum mcp_tasking { MCP_TASK_NEVER, MCP_TASK_OPTIONAL, MCP_TASK_REQUIRED };
