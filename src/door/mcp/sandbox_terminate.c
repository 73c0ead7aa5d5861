#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/sandbox.h"

static const struct op_member members[] = { TOOL_SANDBOX, { "discard", .in = OP_HIDDEN } };

const struct tool sandbox_terminate_tool = {
	.op = &sandbox_terminate_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_terminate",
	.title = "Terminate a sandbox",
	.doc = "Ends a sandbox: its processes are killed, its files deleted.",
	.says = "Terminated sandbox {sandbox}",
};
