#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "The file or directory." },
	{ "recursive", .doc = "Also a non-empty directory." },
};

const struct tool sandbox_remove_file_tool = {
	.op = &files_remove_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_remove_file",
	.title = "Remove a file",
	.doc = "Removes a file or directory for good.",
	.says = "Removed {path} from sandbox {sandbox}",
};
