#pragma once
/* Names of MCP that the headers of both roles share. */

/* Capabilities of a client. */
enum {
	MCP_CAN_ROOTS = 1 << 0,
	MCP_CAN_SAMPLING = 1 << 1,
	MCP_CAN_FORM = 1 << 2, /* elicitation by form */
	MCP_CAN_URL = 1 << 3, /* elicitation by URL */
	MCP_CAN_TASKS = 1 << 4, /* results may come as tasks, which are followed to their end */
	MCP_CAN_SAMPLING_TOOLS = 1 << 5,
};

/* The lists whose changes a server can report. */
enum mcp_list { MCP_TOOLS = 1 << 0, MCP_RESOURCES = 1 << 1, MCP_PROMPTS = 1 << 2 };

struct mcp_extension {
	const char *name; /* "com.example/thing" */
	const char *settings; /* JSON object */
};

enum mcp_out_kind { MCP_OUT_RESPONSE, MCP_OUT_NOTIFICATION, MCP_OUT_REQUEST };

enum mcp_era {
	/* not a message, or it contradicts itself or its head: any session answers it with the
	 * fault */
	MCP_BROKEN,
	MCP_LEGACY,
	MCP_MODERN,
};

/* Levels of RFC 5424, mildest first. */
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

/* Questions of a server to its client. */
enum mcp_ask_kind {
	MCP_ASK_FORM, /* elicitation/create, mode form */
	MCP_ASK_URL, /* the same, mode url */
	MCP_ASK_SAMPLING, /* sampling/createMessage */
	MCP_ASK_ROOTS, /* roots/list */
};

/* Whether a call of the tool may become a task (mcp_call_to_task()). If it must, a client without
 * tasks gets an error instead of a call. */
enum mcp_tasking { MCP_TASK_NEVER, MCP_TASK_OPTIONAL, MCP_TASK_REQUIRED };
