/*
 * The programs that run in a sandbox, and signals to them: /v1/sandboxes/{id}/processes and …/signal, and the same as
 * Processes and Signal over Connect, whose members have names of its own.
 */
#include "door/connect/connect.h"
#include "op/processes.h"

#include <signal.h>

/* ---- what is answered ---------------------------------------------------------------------- */

#define VIEW_ROWS(parent_, cpu_, bytes_, age_)                                                     \
	FIELD(struct process_view, pid, .flags = FIELD_REQUIRED,                                   \
	      .doc = "Its number inside of the sandbox."),                                         \
		FIELD_NAMED(struct process_view, parent, parent_, .flags = FIELD_REQUIRED,         \
			    .doc = "The number of the one that started it; 1: nobody who still "   \
				   "runs, or the sandbox's first process."),                       \
		FIELD(struct process_view, state, .flags = FIELD_REQUIRED,                         \
		      .doc = "A letter as in proc(5): R runs, S and D wait, T was stopped, Z has " \
			     "ended and its parent does not know."),                               \
		FIELD_NAMED(struct process_view, cpu_ms, cpu_, .flags = FIELD_REQUIRED,            \
			    .doc = "Processor time that it had, in milliseconds."),                \
		FIELD_NAMED(struct process_view, memory_bytes, bytes_, .flags = FIELD_REQUIRED,    \
			    .doc = "Bytes of memory that it has."),                                \
		FIELD_NAMED(struct process_view, age_ms, age_, .flags = FIELD_REQUIRED,            \
			    .doc = "How long it has been there, in milliseconds."),                \
		FIELD(struct process_view, command, .flags = FIELD_REQUIRED,                       \
		      .doc = "Its words, as it tells them, at most 255 bytes; or its name in "     \
			     "brackets. Bytes that are not UTF-8 are shown as U+FFFD.")

#define LIST_ROWS(table_)                                                                          \
	FIELD_OBJECTS(struct processes_view, processes, table_, .flags = FIELD_REQUIRED,           \
		      .doc = "By number."),                                                        \
		FIELD(struct processes_view, truncated, .flags = FIELD_REQUIRED,                   \
		      .doc = "There are more than these 512.")

static const struct field view_fields[] = { VIEW_ROWS("parent", "cpu_ms", "memory_bytes",
						      "age_ms") };
static const struct field_table view_table = FIELD_TABLE(struct process_view, view_fields);
static const struct field list_fields[] = { LIST_ROWS(view_table) };
static const struct field_table list_table = FIELD_TABLE(struct processes_view, list_fields);

static const struct field connect_view_fields[] = { VIEW_ROWS("parentPid", "cpuMs", "memoryBytes",
							      "ageMs") };
static const struct field_table connect_view_table = FIELD_TABLE(struct process_view,
								 connect_view_fields);
static const struct field connect_list_fields[] = { LIST_ROWS(connect_view_table) };
static const struct field_table connect_list_table = FIELD_TABLE(struct processes_view,
								 connect_list_fields);

static void run_list(struct call *c, struct str id)
{
	struct err e = ERR_INIT;
	struct sandbox *sb = ask_sandbox(c, id, &e);

	if (sb)
		processes_answer(c, sb);
	else
		call_fail(c, &e);
}

/* ---- signals ------------------------------------------------------------------------------- */

struct signal_body {
	uint32_t pid, signal;
};
static const struct field signal_fields[] = {
	FIELD(struct signal_body, pid, .flags = FIELD_REQUIRED, .min = 2, .max = INT32_MAX,
	      .doc = "The process, by its number inside of the sandbox."),
	FIELD(struct signal_body, signal, .min = 1, .max = PROCESS_SIGNAL_MAX,
	      .def = DEFAULT_INT(SIGTERM),
	      .doc = "The number of the signal, as in signal(7): 15 asks it to end, 9 ends it."),
};
static const struct field_table signal_table = FIELD_TABLE(struct signal_body, signal_fields);

static void run_signal(struct call *c, struct str id, const struct signal_body *p,
		       process_cb on_done)
{
	struct err e = ERR_INIT;
	struct sandbox *sb = ask_sandbox(c, id, &e);

	if (sb)
		process_signal_start(sb, p->pid, (int)p->signal, on_done, c);
	else
		call_fail(c, &e);
}

/* ---- REST ---------------------------------------------------------------------------------- */

struct list_params {
	struct id_path path;
};
static const struct field list_parts[] = { API_ID_PATH(struct list_params) };
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_parts);

static void run_rest_list(struct call *c, const void *params)
{
	run_list(c, ((const struct list_params *)params)->path.id);
}

struct signal_params {
	struct id_path path;
	struct signal_body body;
};
static const struct field signal_parts[] = {
	API_ID_PATH(struct signal_params),
	FIELD_OBJECT(struct signal_params, body, signal_table, .flags = FIELD_REQUIRED,
		     .doc = "Which process, and which signal."),
};
static const struct field_table signal_input = FIELD_TABLE(struct signal_params, signal_parts);

static void run_rest_signal(struct call *c, const void *params)
{
	const struct signal_params *p = params;

	run_signal(c, p->path.id, &p->body, api_done);
}

/* ---- Connect ------------------------------------------------------------------------------- */

struct connect_list_params {
	struct connect_header header;
	struct api_nothing body;
};
static const struct field connect_list_parts[] = {
	CONNECT_HEADER(struct connect_list_params),
	CONNECT_BODY(struct connect_list_params, connect_empty_table, "Nothing."),
};
static const struct field_table connect_list_input = FIELD_TABLE(struct connect_list_params,
								 connect_list_parts);

static void run_connect_list(struct call *c, const void *params)
{
	run_list(c, ((const struct connect_list_params *)params)->header.sandbox);
}

struct connect_signal_params {
	struct connect_header header;
	struct signal_body body;
};
static const struct field connect_signal_parts[] = {
	CONNECT_HEADER(struct connect_signal_params),
	CONNECT_BODY(struct connect_signal_params, signal_table, "Which process and signal."),
};
static const struct field_table connect_signal_input = FIELD_TABLE(struct connect_signal_params,
								   connect_signal_parts);

static void run_connect_signal(struct call *c, const void *params)
{
	const struct connect_signal_params *p = params;

	run_signal(c, p->header.sandbox, &p->body, connect_done);
}

/* ---- the rows ------------------------------------------------------------------------------ */

#define LIST_DOC "What runs in a sandbox, but its first process."
#define SIGNAL_DOC "Sends a signal to a process of a sandbox."

static const struct api_route rows[] = {
	{ .id = "sandboxes.processes",
	  .op = &(const struct op){ .action = "process.list",
				    .doc = LIST_DOC,
				    .effect = OP_READ,
				    .request = &list_input,
				    .target = OP_TARGET(struct list_params, path.id),
				    .result = &list_table,
				    .run = run_rest_list },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/processes",
	  .errors = API_MAY_SANDBOX },
	{ .id = "sandboxes.signal",
	  .op = &(const struct op){ .action = "process.signal",
				    .doc = SIGNAL_DOC,
				    .effect = OP_EXECUTE,
				    .request = &signal_input,
				    .target = OP_TARGET(struct signal_params, path.id),
				    .result = &api_status_table,
				    .run = run_rest_signal },
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/signal",
	  .errors = API_MAY_SANDBOX | API_MAY(FORBIDDEN) },
	{ .id = "Processes",
	  .op = &(const struct op){ .action = "process.list",
				    .doc = LIST_DOC,
				    .effect = OP_READ,
				    .request = &connect_list_input,
				    .target = OP_TARGET(struct connect_list_params, header.sandbox),
				    .result = &connect_list_table,
				    .run = run_connect_list },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Processes",
	  .errors = API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "Signal",
	  .op = &(const struct op){ .action = "process.signal",
				    .doc = SIGNAL_DOC,
				    .effect = OP_EXECUTE,
				    .request = &connect_signal_input,
				    .target = OP_TARGET(struct connect_signal_params,
							header.sandbox),
				    .result = &connect_empty_table,
				    .run = run_connect_signal },
	  .kind = API_CONNECT,
	  .method = HTTP_POST,
	  .path = CONNECT_PATH "Signal",
	  .errors = API_MAY_SANDBOX | API_MAY(FORBIDDEN) | API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_processes = API_RESOURCE(rows);
