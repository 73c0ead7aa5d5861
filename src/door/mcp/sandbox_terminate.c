#include <inttypes.h>

#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/sandbox.h"

static const struct op_member members[] = { TOOL_SANDBOX, { "discard", .in = OP_HIDDEN } };

static int left_out_note(const void *result, struct buf *to, struct err *e)
{
	const struct sandbox_ended *r = result;

	if (!r->has_left_out)
		return 0;
	return buf_addf(to, e,
			"The workspace's revision lacks files with credentials, which are deleted "
			"(%" PRIu32 "): %.*s",
			r->left_out, STR_ARG(r->left_out_names));
}

const struct tool sandbox_terminate_tool = {
	.op = &sandbox_terminate_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_terminate",
	.title = "Terminate a sandbox",
	.doc = "Ends a sandbox: its processes are killed, its files deleted.",
	.says = "Terminated sandbox {sandbox}",
	.note = left_out_note,
};
