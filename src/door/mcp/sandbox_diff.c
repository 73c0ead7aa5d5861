#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/ops.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "limit", .max = 5000, .def = DEFAULT_INT(200) },
};

const struct tool sandbox_diff_tool = {
	.op = &sandbox_diff_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_diff",
	.title = "What has changed",
	.doc = "Lists the paths that a sandbox has added, changed and removed against its "
	       "template.",
};
