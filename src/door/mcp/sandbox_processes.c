/* sandbox_processes and sandbox_signal. */
#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/process.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "limit", .def = DEFAULT_INT(64), .doc = "Processes at most." },
};

const struct tool sandbox_processes_tool = {
	.op = &process_list_op,
	.members = OP_MEMBERS(members),
	.name = "sandbox_processes",
	.title = "List processes",
	.doc = "Lists the processes of a sandbox.",
};

static const struct op_member signal_members[] = {
	TOOL_SANDBOX,
	{ "pid", .doc = "From sandbox_processes." },
	{ "signal", .doc = "15 asks it to end, 9 kills it." },
};

const struct tool sandbox_signal_tool = {
	.op = &process_signal_op,
	.members = OP_MEMBERS(signal_members),
	.name = "sandbox_signal",
	.title = "Signal a process",
	.doc = "Sends a signal to one process of a sandbox.",
	.says = "Sent signal {signal} to process {pid}",
};
