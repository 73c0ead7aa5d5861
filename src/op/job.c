#include "op/job.h"

#include <signal.h>

#include "call/call.h"
#include "op/exec.h"

#define V struct job_view
#define WITH_RESULT .has = FIELD_HAS(V, has_result)
static const struct field view_fields[] = {
	FIELD(V, exec_id, .flags = FIELD_REQUIRED, .doc = "Id of the exec, unique in its sandbox."),
	FIELD(V, sandbox, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(V, command, .flags = FIELD_REQUIRED, .doc = "The command, cut to 512 bytes."),
	FIELD_ENUM(V, state, job_state_names, .flags = FIELD_REQUIRED,
		   .doc = "running; exited, signaled or timed_out: ended with a result; failed: it "
			  "never ran; lost: it ended with its sandbox, or when the server was "
			  "killed."),
	FIELD(V, background, .flags = FIELD_REQUIRED,
	      .doc = "It outlives the request that started it."),
	FIELD(V, tty, .flags = FIELD_REQUIRED,
	      .doc = "It was started on a terminal. Not known for an exec that an earlier "
		     "server started."),
	FIELD(V, stdin_open, .flags = FIELD_REQUIRED, .doc = "Its standard input is open."),
	FIELD(V, started_at, .flags = FIELD_REQUIRED, .doc = "When it was started, RFC 3339."),
	FIELD(V, ended_at, .doc = "When it ended, RFC 3339."),
	FIELD(V, exit_code, WITH_RESULT,
	      .doc = "Exit code of the command; 128 plus the signal's number if a signal "
		     "ended it."),
	FIELD(V, signal, .has = FIELD_HAS(V, has_signal), .doc = "The signal that ended it."),
	FIELD(V, exec_time_ms, WITH_RESULT, .doc = "How long it ran, in milliseconds."),
	FIELD(V, hit_memory, WITH_RESULT,
	      .doc = "One of its processes was killed because of the sandbox's memory limit."),
	FIELD(V, hit_pids, WITH_RESULT,
	      .doc = "It could not start a process because of the sandbox's process limit."),
	FIELD(V, first_offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset of the oldest byte of output that is kept."),
	FIELD(V, next_offset, .flags = FIELD_REQUIRED,
	      .doc = "Offset after the newest byte of output: how many bytes were printed."),
	FIELD(V, stdout_bytes, .flags = FIELD_REQUIRED, .doc = "Bytes printed on stdout."),
	FIELD(V, stderr_bytes, .flags = FIELD_REQUIRED, .doc = "Bytes printed on stderr."),
	FIELD(V, error, .doc = "For failed or lost: what happened."),
	FIELD(V, output_error, .doc = "Why less output is kept than was asked for."),
};
#undef WITH_RESULT
#undef V
const struct field_table job_view_table = FIELD_TABLE(struct job_view, view_fields);

void job_view(const struct job *j, struct job_view *ret)
{
	struct job_info i;

	job_info(j, &i);
	*ret = (struct job_view){
		.exec_id = i.id,
		.sandbox = i.sandbox,
		.command = i.command,
		.state = i.state,
		.background = i.background,
		.tty = i.terminal,
		.stdin_open = i.reads,
		.has_result = i.has_result,
		.exit_code = i.result.exit_code,
		.has_signal = i.has_result && i.result.signal != 0,
		.signal = i.result.signal,
		.exec_time_ms = (double)i.result.wall_us / 1000,
		.hit_memory = i.result.hit_memory,
		.hit_pids = i.result.hit_pids,
		.first_offset = i.output.first,
		.next_offset = i.output.end,
		.stdout_bytes = i.output.came[0],
		.stderr_bytes = i.output.came[1],
		.error = i.why ? str_of(i.why->msg) : STR_NONE,
		.output_error = i.output.trouble ? str_of(i.output.trouble->msg) : STR_NONE,
	};
	when_text(ret->started, i.started_ms);
	ret->started_at = str_of(ret->started);
	if (i.ended_ms) {
		when_text(ret->ended, i.ended_ms);
		ret->ended_at = str_of(ret->ended);
	}
}

/* ---- which one ----------------------------------------------------------------------------- */

static const struct field name_fields[] = { OP_JOB_ROWS(struct job_name) };
static const struct field_table name_table = FIELD_TABLE(struct job_name, name_fields);

struct job *call_job(struct call *c, struct str sandbox, struct str exec, struct err *e)
{
	struct hub_sandbox *l = call_hub_sandbox(c, sandbox, e);

	return l ? job_find(l, exec, e) : NULL;
}

static void job_say_ended(struct str exec, struct err *e)
{
	err_set(e, ERR_CONFLICT, "exec %.*s has ended", STR_ARG(exec));
}

/* The same for one that runs in a sandbox that runs: a failure else. */
static struct job *call_running_job(struct call *c, struct str sandbox, struct str exec,
				    struct err *e)
{
	struct job *j = call_job(c, sandbox, exec, e);

	if (!j || !hub_sandbox_sandbox(call_hub_sandbox(c, sandbox, e), e))
		return NULL;
	if (job_exec(j))
		return j;
	job_say_ended(exec, e);
	return NULL;
}

struct job_done {
	struct str status;
};
static const struct field done_fields[] = {
	FIELD(struct job_done, status, .flags = FIELD_REQUIRED, .doc = "Always ok."),
};
static const struct field_table done_table = FIELD_TABLE(struct job_done, done_fields);

static void job_answer_done(struct call *c, const struct err *err)
{
	static const struct job_done ok = { STR_LIT("ok") };

	if (err)
		call_fail(c, err);
	else
		call_answer(c, &ok);
}

/* ---- exec.list and exec.get ---------------------------------------------------------------- */

enum { LIST_MAX = 1024 };

struct job_views {
	struct {
		struct job_view *p;
		size_t n;
	} execs;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct job_views, execs, job_view_table, .flags = FIELD_REQUIRED,
		      .doc = "The newest first."),
};
static const struct field_table list_table = FIELD_TABLE(struct job_views, list_fields);

static void job_list_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, ((const struct op_sandbox *)request)->sandbox,
						 &e);
	struct job **jobs = arena_array(call_arena(c), LIST_MAX, sizeof(struct job *), &e);
	size_t n = l && jobs ? job_list(l, jobs, LIST_MAX) : 0;
	struct job_view *views = l && jobs ? arena_array(call_arena(c), n, sizeof(*views), &e)
					   : NULL;

	if (!views) {
		call_fail(c, &e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		job_view(jobs[i], &views[i]);
	call_answer(c, &(struct job_views){ { views, n } });
}

const struct op exec_list_op = {
	.action = "exec.list",
	.doc = "Lists the execs of a sandbox, the newest first: those that run, and "
	       "those that ended recently.",
	.effect = OP_READ,
	.flags = OP_NO_WAKE,
	.request = &op_sandbox_table,
	.target = OP_TARGET(struct op_sandbox, sandbox),
	.result = &list_table,
	.run = job_list_run,
};

static void job_get_run(struct call *c, const void *request)
{
	const struct job_name *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_job(c, q->sandbox, q->exec, &e);
	struct job_view view;

	if (!j) {
		call_fail(c, &e);
		return;
	}
	job_view(j, &view);
	call_answer(c, &view);
}

const struct op exec_get_op = {
	.action = "exec.get",
	.doc = "Returns one exec: whether it runs, how it ended, how much it has printed.",
	.effect = OP_READ,
	.flags = OP_NO_WAKE,
	.request = &name_table,
	.target = OP_TARGET(struct job_name, sandbox),
	.result = &job_view_table,
	.run = job_get_run,
};

/* ---- exec.stdin ---------------------------------------------------------------------------- */

enum { STDIN_MAX = 1 << 20, STDIN_BASE64_MAX = 2 << 20 };

struct stdin_request {
	struct str sandbox, exec;
	struct str data, data_base64; /* normalized, only the first, as bytes */
	bool has_base64, close;
};
static const struct field stdin_fields[] = {
	OP_JOB_ROWS(struct stdin_request),
	FIELD(struct stdin_request, data, .flags = FIELD_NUL_OK | FIELD_BYTES, .max = STDIN_MAX,
	      .doc = "Text to send."),
	FIELD(struct stdin_request, data_base64, .max = STDIN_BASE64_MAX,
	      .has = FIELD_HAS(struct stdin_request, has_base64),
	      .doc = "Instead of data: any bytes, in base64."),
	FIELD(struct stdin_request, close, .doc = "Close standard input after this data."),
};
static const struct field_table stdin_table = FIELD_TABLE(struct stdin_request, stdin_fields);

static int job_stdin_normalize(void *request, struct arena *a, struct err *e)
{
	struct stdin_request *q = request;

	return exec_decode_input(&q->data, &q->data_base64, &q->has_base64, "data", a, e);
}

static int job_send(struct exec *x, const struct stdin_request *q, struct err *e)
{
	if (!exec_reads(x))
		return err_set(e, ERR_CONFLICT, "its standard input is closed");
	if (exec_write(x, q->data.p, q->data.n, e) < 0)
		return -1;
	if (q->close)
		exec_close_stdin(x);
	return 0;
}

static void job_stdin_run(struct call *c, const void *request)
{
	const struct stdin_request *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_running_job(c, q->sandbox, q->exec, &e);

	job_answer_done(c, j && job_send(job_exec(j), q, &e) == 0 ? NULL : &e);
}

const struct op exec_stdin_op = {
	.action = "exec.stdin",
	.doc = "Sends input to an exec that was started with stdin_open.",
	.effect = OP_EXECUTE,
	.flags = OP_COMMANDS,
	.request = &stdin_table,
	.target = OP_TARGET(struct stdin_request, sandbox),
	.result = &done_table,
	.normalize = job_stdin_normalize,
	.run = job_stdin_run,
};

/* ---- exec.signal --------------------------------------------------------------------------- */

struct signal_request {
	struct str sandbox, exec;
	uint32_t signal;
};
static const struct field signal_fields[] = {
	OP_JOB_ROWS(struct signal_request),
	FIELD(struct signal_request, signal, .min = 1, .max = PROCESS_SIGNAL_MAX,
	      .def = DEFAULT_INT(SIGTERM),
	      .doc = "Signal number, as in signal(7): 15 asks it to end, 9 kills it."),
};
static const struct field_table signal_table = FIELD_TABLE(struct signal_request, signal_fields);

static void job_on_signalled(void *arg, const struct err *err)
{
	struct call *c = arg;
	const struct signal_request *q = call_request(c);
	struct err e;

	if (err && err->code == ERR_PROCESS_NOT_FOUND) {
		job_say_ended(q->exec, &e);
		err = &e;
	}
	job_answer_done(c, err);
}

static void job_signal_run(struct call *c, const void *request)
{
	const struct signal_request *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_running_job(c, q->sandbox, q->exec, &e);

	if (j)
		exec_signal_start(job_exec(j), (int)q->signal, job_on_signalled, c);
	else
		call_fail(c, &e);
}

const struct op exec_signal_op = {
	.action = "exec.signal",
	.doc = "Sends a signal to an exec's program and its process group, and returns when it "
	       "was delivered.",
	.effect = OP_EXECUTE,
	.request = &signal_table,
	.target = OP_TARGET(struct signal_request, sandbox),
	.result = &done_table,
	.run = job_signal_run,
};

/* ---- exec.resize --------------------------------------------------------------------------- */

struct resize_request {
	struct str sandbox, exec;
	uint32_t cols, rows;
};
static const struct field resize_fields[] = {
	OP_JOB_ROWS(struct resize_request),
	FIELD(struct resize_request, cols, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_SIDE_MAX,
	      .doc = "Number of columns."),
	FIELD(struct resize_request, rows, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_SIDE_MAX,
	      .doc = "Number of rows."),
};
static const struct field_table resize_table = FIELD_TABLE(struct resize_request, resize_fields);

static void job_resize_run(struct call *c, const void *request)
{
	const struct resize_request *q = request;
	struct err e = ERR_INIT;
	struct job *j = call_running_job(c, q->sandbox, q->exec, &e);

	job_answer_done(c, j && exec_resize(job_exec(j), q->cols, q->rows, &e) == 0 ? NULL : &e);
}

const struct op exec_resize_op = {
	.action = "exec.resize",
	.doc = "Changes the size of an exec's terminal.",
	.effect = OP_WRITE,
	.request = &resize_table,
	.target = OP_TARGET(struct resize_request, sandbox),
	.result = &done_table,
	.run = job_resize_run,
};

/* ---- exec.delete --------------------------------------------------------------------------- */

struct job_ending {
	struct call *call;
	struct job *job;
	struct spool_cursor *cursor;
};

static void job_let_go(struct job_ending *x)
{
	spool_cursor_close(take_ptr(x->cursor));
	job_unref(take_ptr(x->job));
}

/* Nothing of its output is wanted, only to know when there is no more. */
static void job_await_end(void *arg)
{
	static const struct job_done done = { STR_LIT("deleted") };
	struct job_ending *x = arg;
	struct spool_piece ignored;
	enum spool_step step;

	do {
		step = spool_cursor_next(x->cursor, 0, SPOOL_BLOCK, &ignored);
	} while (step == SPOOL_LOST);
	if (step != SPOOL_END)
		return;
	job_let_go(x);
	call_answer(x->call, &done);
}

static void job_on_cancel(void *data)
{
	struct job_ending *x = data;
	struct err e;

	job_let_go(x);
	err_set(&e, ERR_CANCELLED, "the client is gone");
	call_fail(x->call, &e);
}

static int job_end(struct call *c, const struct job_name *q, struct job_ending *x, struct err *e)
{
	struct job *j = call_job(c, q->sandbox, q->exec, e);

	/* A program of a paused sandbox can't be ended. */
	if (!j || (job_exec(j) && !call_running_job(c, q->sandbox, q->exec, e)))
		return -1;
	x->cursor = spool_cursor_new(job_output(j), 0, job_await_end, x, e);
	if (!x->cursor)
		return -1;
	x->call = c;
	x->job = job_ref(j);
	job_forget(j);
	return 0;
}

static void job_delete_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct job_ending *x = arena_alloc(call_arena(c), sizeof(*x), &e);

	if (!x || job_end(c, request, x, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, job_on_cancel, x);
	job_await_end(x);
}

const struct op exec_delete_op = {
	.action = "exec.delete",
	.doc = "Kills an exec with all that it started, and deletes it and its output.",
	.effect = OP_DESTROY,
	.request = &name_table,
	.target = OP_TARGET(struct job_name, sandbox),
	.result = &done_table,
	.run = job_delete_run,
};
