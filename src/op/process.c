#include "op/process.h"

#include <signal.h>

#include "box/host/box.h"
#include "call/call.h"

/* ---- process.list -------------------------------------------------------------------------- */

struct list_request {
	struct str sandbox;
	uint32_t limit;
};
static const struct field request_fields[] = {
	OP_SANDBOX_ROW(struct list_request),
	FIELD(struct list_request, limit, .min = 1, .max = PROCESS_LIST_MAX,
	      .def = DEFAULT_INT(PROCESS_LIST_MAX),
	      .doc = "Maximum number of processes to return."),
};
static const struct field_table list_request = FIELD_TABLE(struct list_request, request_fields);

static const struct field view_fields[] = { PROCESS_ROWS("parent", "cpu_ms", "memory_bytes",
							 "age_ms") };
static const struct field_table view_table = FIELD_TABLE(struct process_view, view_fields);
static const struct field list_fields[] = { PROCESSES_ROWS(view_table) };
static const struct field_table list_table = FIELD_TABLE(struct processes_view, list_fields);

static void process_on_list(void *arg, const struct process *p, size_t n, bool truncated,
			    const struct err *err)
{
	struct call *c = arg;
	size_t limit = ((const struct list_request *)call_request(c))->limit;
	size_t shown = n < limit ? n : limit;
	struct err e = ERR_INIT;
	struct process_view *views = err ? NULL
					 : arena_array(call_arena(c), shown, sizeof(*views), &e);
	const struct processes_view list = { { views, shown }, truncated || shown < n };

	if (!views) {
		call_fail(c, err ? err : &e);
		return;
	}
	for (size_t i = 0; i < shown; i++)
		views[i] = (struct process_view){ p[i].pid,    p[i].parent, { &p[i].state, 1 },
						  p[i].cpu_ms, p[i].bytes,  p[i].age_ms,
						  p[i].command };
	call_answer(c, &list);
}

static void process_list_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, ((const struct list_request *)request)->sandbox, &e);

	if (sb)
		process_list_start(sb, process_on_list, c);
	else
		call_fail(c, &e);
}

const struct op process_list_op = {
	.action = "process.list",
	.doc = "Lists the processes that run in a sandbox, without its init.",
	.effect = OP_READ,
	.request = &list_request,
	.target = OP_TARGET(struct list_request, sandbox),
	.result = &list_table,
	.run = process_list_run,
};

/* ---- process.signal ------------------------------------------------------------------------ */

struct signal_request {
	struct str sandbox;
	uint32_t pid, signal;
};
static const struct field signal_fields[] = {
	OP_SANDBOX_ROW(struct signal_request),
	FIELD(struct signal_request, pid, .flags = FIELD_REQUIRED, .min = 2, .max = INT32_MAX,
	      .doc = "Process id inside the sandbox."),
	FIELD(struct signal_request, signal, .min = 1, .max = PROCESS_SIGNAL_MAX,
	      .def = DEFAULT_INT(SIGTERM),
	      .doc = "Signal number, as in signal(7): 15 asks it to end, 9 kills it."),
};
static const struct field_table signal_request = FIELD_TABLE(struct signal_request, signal_fields);

static const struct field signalled_fields[] = {
	FIELD(struct process_signalled, sandbox, .flags = FIELD_REQUIRED,
	      .doc = "Id of the sandbox."),
	FIELD(struct process_signalled, pid, .flags = FIELD_REQUIRED,
	      .doc = "Process that got the signal."),
	FIELD(struct process_signalled, signal, .flags = FIELD_REQUIRED,
	      .doc = "Signal that was sent."),
};
static const struct field_table signalled_table = FIELD_TABLE(struct process_signalled,
							      signalled_fields);

static void process_on_signalled(void *arg, const struct err *err)
{
	struct call *c = arg;
	const struct signal_request *q = call_request(c);

	if (err)
		call_fail(c, err);
	else
		call_answer(c, &(struct process_signalled){ q->sandbox, q->pid, q->signal,
							    STR_LIT("ok") });
}

static void process_signal_run(struct call *c, const void *request)
{
	const struct signal_request *q = request;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, q->sandbox, &e);

	if (sb)
		process_signal_start(sb, q->pid, (int)q->signal, process_on_signalled, c);
	else
		call_fail(c, &e);
}

const struct op process_signal_op = {
	.action = "process.signal",
	.doc = "Sends a signal to a process of a sandbox.",
	.effect = OP_EXECUTE,
	.request = &signal_request,
	.target = OP_TARGET(struct signal_request, sandbox),
	.result = &signalled_table,
	.run = process_signal_run,
};
