#include "door/mcp/tools.h"

#include "door/mcp/common.h"
#include "hub/core/report.h"
#include "op/exec.h"

/* The most that a model reads unless it asks for more; sandbox_exec_output has the rest. With this
 * much of nothing but control characters, which are escaped twice, it still fits into one message
 * of the protocol. */
enum { OUTPUT_DEFAULT = 16 << 10, OUTPUT_MAX = 2 << 20 };

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct exec_answer *a = result;

	if (a->has_job)
		return buf_addf(to, e, "{\"exec\":\"%.*s\",\"state\":\"%s\"}",
				STR_ARG(a->job.exec_id), job_state_names[a->job.state]);
	return report_text(&a->report, to, e);
}

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "command", .doc = "Shell command; with args, a program." },
	{ "args", .doc = "Its arguments, without a shell." },
	{ "cwd", .doc = "Working directory." },
	{ "env", .doc = "Overrides the sandbox's." },
	{ "timeout_seconds", .min = 1, .max = EXEC_TIMEOUT_MAX,
	  .doc = "Then it is killed; 30 if absent, no limit in the background." },
	{ "stdin", .doc = "Standard input." },
	{ "stdin_base64", .doc = "stdin as base64." },
	{ "background", .doc = "Return at once with an id for sandbox_exec_output." },
	{ "max_output_bytes", .max = OUTPUT_MAX, .def = DEFAULT_INT(OUTPUT_DEFAULT),
	  .doc = "Per stream." },
	{ "secrets", .in = OP_HIDDEN },
	{ "user", .in = OP_HIDDEN },
	{ "exec_id", .in = OP_HIDDEN },
	{ "stdin_open", .in = OP_HIDDEN },
	{ "tty", .in = OP_HIDDEN },
	{ "keep_bytes", .in = OP_HIDDEN },
};

#define R struct report
static const struct field facts_fields[] = {
	FIELD(R, exec, .flags = FIELD_REQUIRED, .doc = "Id of the exec."),
	FIELD(R, signal, .has = FIELD_HAS(R, has_signal), .doc = "The signal that ended it."),
	FIELD(R, timed_out, .doc = "Its timeout ended it."),
	FIELD(R, hit_memory, .doc = "It reached the sandbox's memory limit."),
	FIELD(R, hit_pids, .doc = "It reached the sandbox's process limit."),
	FIELD(R, hit_disk, .doc = "The sandbox's disk was full when it ended."),
	FIELD_NAMED(R, out_base64, "stdout_base64", .flags = FIELD_BYTES,
		    .doc = "The bytes of stdout, if they are not UTF-8."),
	FIELD_NAMED(R, err_base64, "stderr_base64", .flags = FIELD_BYTES,
		    .doc = "The bytes of stderr, if they are not UTF-8."),
	FIELD(R, wall_ms, .doc = "How long it ran, in milliseconds."),
	FIELD(R, cpu_ms, .doc = "Processor time of it and its children, in milliseconds."),
	FIELD(R, peak_memory_bytes,
	      .doc = "The largest resident size of one of its processes, in bytes."),
};
#undef R
static const struct field_table facts = FIELD_TABLE(struct report, facts_fields);

const struct tool sandbox_exec_tool = {
	.op = &sandbox_exec_op,
	.name = "sandbox_exec",
	.title = "Run a command",
	.doc = "Runs a command in a sandbox. Returns JSON: exit_code, stdout, stderr. Failing and "
	       "timing out are no errors. Long output is cut in the middle; sandbox_exec_output "
	       "has the rest by exec and next_offset.",
	.members = OP_MEMBERS(members),
	.task = MCP_TASK_OPTIONAL,
	.text = text_of,
	.facts = &facts,
};
