#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/exec_output.h"

enum { OUTPUT_LEAST = 1024, OUTPUT_MAX = 1024 * 1024, OUTPUT_DEFAULT = 16 * 1024 };

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "exec", .doc = "Id from sandbox_exec." },
	{ "offset", .max = INT64_MAX, .doc = "A next_offset; 0 for the beginning." },
	{ "wait_seconds", .doc = "Time to wait for its end." },
	{ "wait_for", .doc = "Or for this text." },
	{ "wait_pattern", .doc = "Or for a line that this regex matches." },
	{ "max_bytes", .min = OUTPUT_LEAST, .max = OUTPUT_MAX, .def = DEFAULT_INT(OUTPUT_DEFAULT),
	  .doc = "Output limit." },
	{ "kill", .doc = "Kill it first." },
	{ "stream", .in = OP_HIDDEN },
	{ "follow", .in = OP_HIDDEN },
};

#define O struct exec_output
static const struct field output_fields[] = {
	FIELD(O, exec, .flags = FIELD_REQUIRED, .doc = "Id of the exec."),
	FIELD_ENUM(O, state, job_state_names, .flags = FIELD_REQUIRED, .doc = "State of the exec."),
	FIELD(O, exit_code, .has = FIELD_HAS(O, has_exit_code),
	      .doc = "Exit code, once it has ended; 128 plus a signal's number, 124 after a "
		     "timeout."),
	FIELD_NAMED(O, out, "stdout", .flags = FIELD_REQUIRED | FIELD_NUL_OK,
		    .doc = "Output on stdout since the offset."),
	FIELD_NAMED(O, err, "stderr", .flags = FIELD_REQUIRED | FIELD_NUL_OK,
		    .doc = "Output on stderr since the offset."),
	FIELD(O, next_offset, .flags = FIELD_REQUIRED, .doc = "Offset to continue from."),
	FIELD_NAMED(O, dropped_bytes, "lost_bytes", .flags = FIELD_REQUIRED,
		    .doc = "Bytes since the offset that are no longer kept."),
	FIELD(O, found, .flags = FIELD_REQUIRED,
	      .doc = "The text or pattern that was waited for was found."),
};
#undef O
static const struct field_table output_table = FIELD_TABLE(struct exec_output, output_fields);

const struct tool sandbox_exec_output_tool = {
	.op = &exec_output_op,
	.other = &exec_kill_op,
	.other_if = "kill",
	.name = "sandbox_exec_output",
	.title = "Output of a command",
	.doc = "Returns what a command printed from an offset, and how it ended; can wait for "
	       "its end, a text or a pattern, and can kill it.",
	.members = OP_MEMBERS(members),
	.output = &output_table,
};
