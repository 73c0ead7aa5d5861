#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "Path inside; relative ones start at the sandbox's working directory." },
	{ "content", .doc = "The whole new content of the file." },
	{ "mode", .in = OP_HIDDEN },
	{ "mode_octal", .as = "mode" },
};

const struct tool sandbox_write_file_tool = {
	.op = &files_write_op,
	.name = "sandbox_write_file",
	.title = "Write a file",
	.doc = "Writes a whole file in a sandbox, new or in place of the old one. Others see the "
	       "old or the new content, never a part.",
	.members = OP_MEMBERS(members),
	.says = "Wrote {bytes} bytes to {path} in sandbox {sandbox}",
};
