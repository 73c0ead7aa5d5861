#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "The file." },
	{ "content", .doc = "Whole content." },
	{ "encoding", .doc = "base64 for what is not text." },
	{ "mode", .in = OP_HIDDEN },
	{ "mode_octal", .as = "mode", .doc = "For a new file, such as 0755; 0644 if absent." },
	{ "make_parents", .doc = "Make missing directories." },
};

const struct tool sandbox_write_file_tool = {
	.op = &files_write_op,
	.name = "sandbox_write_file",
	.title = "Write a file",
	.doc = "Writes a whole file, new or in place of the old one.",
	.members = OP_MEMBERS(members),
	.says = "Wrote {bytes} bytes to {path} in sandbox {sandbox}",
};
