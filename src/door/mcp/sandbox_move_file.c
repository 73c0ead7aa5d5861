#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "The file or directory." },
	{ "to", .doc = "Its new path." },
};

const struct tool sandbox_move_file_tool = {
	.op = &files_move_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_move_file",
	.title = "Move a file",
	.doc = "Moves or renames a file or directory; replaces a file.",
	.says = "Moved {path} to {to} in sandbox {sandbox}",
};
