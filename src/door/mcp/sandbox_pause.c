/* sandbox_pause and sandbox_resume. */
#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/sandbox.h"

static const struct op_member members[] = { TOOL_SANDBOX };

const struct tool sandbox_pause_tool = {
	.op = &sandbox_pause_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_pause",
	.title = "Pause a sandbox",
	.doc = "Stops all that runs in a sandbox until sandbox_resume.",
	.says = "Sandbox {sandbox} is {state}",
};

static int lacks_note(const void *result, struct buf *to, struct err *e)
{
	const struct sandbox_state *r = result;

	if (r->cause.n && buf_addf(to, e, "It was lost: %.*s%s", STR_ARG(r->cause),
				   r->volumes_gone.n ? "\n" : "") < 0)
		return -1;
	if (r->volumes_gone.n &&
	    buf_addf(to, e,
		     "The host does not have these volumes any more, and it has started "
		     "without them:") < 0)
		return -1;
	for (size_t i = 0; i < r->volumes_gone.n; i++) {
		if (buf_addf(to, e, " %.*s", STR_ARG(r->volumes_gone.p[i])) < 0)
			return -1;
	}
	return 0;
}

const struct tool sandbox_resume_tool = {
	.op = &sandbox_resume_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_resume",
	.title = "Resume a sandbox",
	.doc = "Lets a paused sandbox continue where it was stopped.",
	.says = "Sandbox {sandbox} is {state}",
	.note = lacks_note,
};
