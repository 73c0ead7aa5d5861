#include "door/mcp/tools.h"
#include "op/ops.h"
#include "op/run.h"

const struct tool run_tool = {
	.op = &run_op,
	.output = &run_told_table,
	.both = true,
	.name = "run",
	.title = "Run a command in a sandbox of its own",
	.doc = "Makes a sandbox, writes the files, runs the command, then ends or keeps the "
	       "sandbox as state.retention says.",
};
