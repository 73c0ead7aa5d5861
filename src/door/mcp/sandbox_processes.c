/* sandbox_processes and sandbox_signal. */
#include "door/mcp/tools.h"

#include <signal.h>

#include "op/processes.h"
#include "door/mcp/common.h"

/* ---- what runs ----------------------------------------------------------------------------- */

static const struct field view_fields[] = {
	FIELD(struct process_view, pid, .flags = FIELD_REQUIRED, .doc = "Its number inside."),
	FIELD(struct process_view, parent, .flags = FIELD_REQUIRED, .doc = "That of its parent."),
	FIELD(struct process_view, state, .flags = FIELD_REQUIRED,
	      .doc = "R runs, S and D wait, T was stopped, Z has ended."),
	FIELD(struct process_view, cpu_ms, .flags = FIELD_REQUIRED,
	      .doc = "Processor time that it had."),
	FIELD(struct process_view, memory_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Memory that it has."),
	FIELD(struct process_view, age_ms, .flags = FIELD_REQUIRED,
	      .doc = "How long it has been there."),
	FIELD(struct process_view, command, .flags = FIELD_REQUIRED,
	      .doc = "Its words, as it tells them."),
};
static const struct field_table view_table = FIELD_TABLE(struct process_view, view_fields);

static const struct field list_fields[] = {
	FIELD_OBJECTS(struct processes_view, processes, view_table, .flags = FIELD_REQUIRED,
		      .doc = "By number, without the sandbox's first."),
	FIELD(struct processes_view, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more than these 512."),
};
static const struct field_table list_output = FIELD_TABLE(struct processes_view, list_fields);

static void run_list(struct call *c, const void *params)
{
	const struct sandbox_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);

	if (sb)
		processes_answer(c, sb);
	else
		call_fail(c, &e);
}

const struct tool sandbox_processes_tool = {
	.op =
		&(const struct op){
			.action = "process.list",
			.effect = OP_READ,
			.request = &sandbox_params_table,
			.target = OP_TARGET(struct sandbox_params, sandbox),
			.result = &list_output,
			.run = run_list,
		},
	.name = "sandbox_processes",
	.title = "List processes",
	.doc = "Lists the processes that run in a sandbox, at most 512.",
};

/* ---- signals ------------------------------------------------------------------------------- */

struct signal_params {
	struct str sandbox;
	uint32_t pid, signal;
};
static const struct field signal_fields[] = {
	SANDBOX_ROW(struct signal_params),
	FIELD(struct signal_params, pid, .flags = FIELD_REQUIRED, .min = 2, .max = INT32_MAX,
	      .doc = "As sandbox_processes has it."),
	FIELD(struct signal_params, signal, .min = 1, .max = PROCESS_SIGNAL_MAX,
	      .def = DEFAULT_INT(SIGTERM), .doc = "15 asks it to end, 9 ends it."),
};
static const struct field_table signal_input = FIELD_TABLE(struct signal_params, signal_fields);

struct signal_result {
	struct str sandbox;
	uint32_t pid, signal;
};
static const struct field signalled_fields[] = {
	FIELD(struct signal_result, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD(struct signal_result, pid, .flags = FIELD_REQUIRED, .doc = "Which got it."),
	FIELD(struct signal_result, signal, .flags = FIELD_REQUIRED, .doc = "What was sent."),
};
static const struct field_table signal_output = FIELD_TABLE(struct signal_result, signalled_fields);

static void on_signalled(void *arg, const struct err *err)
{
	const struct tool_wait *w = arg;
	const struct signal_params *p = w->params;
	const struct signal_result r = { p->sandbox, p->pid, p->signal };

	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, &r);
}

static void run_signal(struct call *c, const void *params)
{
	const struct signal_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);
	struct tool_wait *w;

	if (!sb)
		call_fail(c, &e);
	else if ((w = tool_wait(c, params)))
		process_signal_start(sb, p->pid, (int)p->signal, on_signalled, w);
}

const struct tool sandbox_signal_tool = {
	.op =
		&(const struct op){
			.action = "process.signal",
			.effect = OP_EXECUTE,
			.request = &signal_input,
			.target = OP_TARGET(struct signal_params, sandbox),
			.result = &signal_output,
			.run = run_signal,
		},
	.name = "sandbox_signal",
	.title = "Signal a process",
	.doc = "Sends a signal to one process of a sandbox.",
	.says = "Sent signal {signal} to process {pid}",
};
