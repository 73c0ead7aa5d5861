#include "base/base64.h"
#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/files.h"

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct file_content *r = result;

	if (r->encoding == FILE_BASE64)
		return base64_encode(to, r->content, e);
	return buf_add(to, r->content.p, r->content.n, e);
}

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "path", .doc = "Path of a regular file inside; relative ones start at the sandbox's "
			 "working directory." },
};

const struct tool sandbox_read_file_tool = {
	.op = &files_read_op,
	.name = "sandbox_read_file",
	.title = "Read a file",
	.doc = "Reads a file of a sandbox, whole or a range of bytes.",
	.members = OP_MEMBERS(members),
	.text = text_of,
};
