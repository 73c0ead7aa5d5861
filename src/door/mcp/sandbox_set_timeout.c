#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/sandbox.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "seconds", .max = SANDBOX_TIMEOUT_MAX, .doc = "0: no end." },
};

static int timeout_text(const void *result, struct buf *to, struct err *e)
{
	const struct sandbox_timeout *r = result;

	if (r->seconds == 0)
		return buf_addf(to, e, "Sandbox %.*s has no time to live", STR_ARG(r->sandbox));
	return buf_addf(to, e, "Sandbox %.*s ends in %u s", STR_ARG(r->sandbox), r->seconds);
}

const struct tool sandbox_set_timeout_tool = {
	.op = &sandbox_set_timeout_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_set_timeout",
	.title = "Set a time to live",
	.doc = "Sets how long a sandbox lives from now on.",
	.text = timeout_text,
};
