#pragma once
/*
 * An MCP tool, as a const row: how clients see an operation (op/op.h). Its arguments are the
 * operation's request, its structured content is the result, and its hints follow from the effect.
 */
#include "mcp/server/server.h"
#include "op/project.h"

/* The version of the tools' contract on the wire: raised whenever a name, a required argument or
 * a meaning changes in a way that clients must see. */
#define TOOL_SCHEMA_VERSION "1.0.0"

struct tool {
	const struct op *op;
	/* Another operation with the same request. A call in which the member other_if is true is
	 * that operation; the hints are made from it. */
	const struct op *other;
	const char *other_if;
	const char *name, *title;
	const char *doc; /* for the model that chooses a tool */
	/* How the arguments differ from the operation's request. */
	struct op_members members;
	/* What is shown of the operation's result; NULL: all of it. */
	const struct field_table *output;
	/* Whether a call may outlive its request. */
	enum mcp_tasking task;
	/* The text content: "{name}" stands for a member of the request or, if there is none, of
	 * the result; or text() writes it. If both are NULL, the text is the structured content. */
	const char *says;
	int (*text)(const void *result, struct buf *to, struct err *e);
};
