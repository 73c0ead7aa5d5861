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

const struct tool sandbox_resume_tool = {
	.op = &sandbox_resume_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_resume",
	.title = "Resume a sandbox",
	.doc = "Lets a paused sandbox continue where it was stopped.",
	.says = "Sandbox {sandbox} is {state}",
};
