#include "door/mcp/tools.h"

#include "hub/core/report.h"
#include "door/mcp/common.h"
#include "op/exec.h"

/* The answer holds each stream twice, the second time with escapes escaped; with this much of
 * nothing but control characters it still fits into one message of the protocol. */
enum { OUTPUT_MAX = 2 * 1024 * 1024 };

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct exec_answer *a = result;

	if (a->has_job)
		return buf_addf(to, e, "Runs in the background as %.*s", STR_ARG(a->report.exec));
	return report_text(&a->report, to, e);
}

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "command", .doc = "Shell line to run; with args, the name of the program to run." },
	{ "args", .doc = "Runs command as a program with just these arguments, without a shell; [] "
			 "for none." },
	{ "timeout_seconds", .min = 1, .max = EXEC_TIMEOUT_MAX,
	  .doc = "Kill it and all its descendants after this long: 30 if absent, in the background "
		 "only if given." },
	{ "background", .doc = "Return at once with an id in exec, for sandbox_exec_output: for "
			       "servers and long jobs." },
	{ "max_output_bytes", .max = OUTPUT_MAX,
	  .doc = "How much of stdout and of stderr to return; of more, the head and the tail." },
	{ "exec_id", .in = OP_HIDDEN },
	{ "stdin_open", .in = OP_HIDDEN },
	{ "tty", .in = OP_HIDDEN },
	{ "keep_bytes", .in = OP_HIDDEN },
};

const struct tool sandbox_exec_tool = {
	.op = &sandbox_exec_op,
	.name = "sandbox_exec",
	.title = "Run a command",
	.doc = "Runs a command in a sandbox and returns its exit code and output as JSON. A "
	       "command that fails or times out is a result, not an error. Many may run at once in "
	       "one sandbox; what one leaves in the background goes on.",
	.members = OP_MEMBERS(members),
	.output = &report_table,
	.task = MCP_TASK_OPTIONAL,
	.text = text_of,
};
