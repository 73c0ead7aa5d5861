/*
 * Execs that are found again by their id: those in the background, which POST /v1/exec starts, and what those of requests
 * have left behind. What they print is read in job_output.c.
 */
#include "door/rest/jobs.h"

#include <signal.h>

#include "door/rest/exec_end.h"
#include "base/base64.h"

enum { LIST_MAX = 1024, STDIN_MAX = 1 << 20, STDIN_BODY_MAX = 2 << 20 };

static void answer_view(struct call *c, const struct job *j, const struct field_table *by)
{
	struct job_view view;

	job_view(j, &view);
	ask_answer_by(c, by, &view);
}

/* ---- which one ----------------------------------------------------------------------------- */

static const struct field path_fields[] = {
	FIELD(struct job_path, id, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,
	      .doc = "Id of the sandbox."),
	FIELD(struct job_path, exec, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,
	      .doc = "Id of the exec."),
};
const struct field_table job_path_table = FIELD_TABLE(struct job_path, path_fields);

struct job *ask_job(struct call *c, const struct job_path *p, struct err *e)
{
	struct life *l = call_life(c, p->id, e);

	return l ? job_find(l, p->exec, e) : NULL;
}

struct job *ask_running_job(struct call *c, const struct job_path *p, struct err *e)
{
	struct life *l = call_life(c, p->id, e);
	struct job *j = l ? job_find(l, p->exec, e) : NULL;

	if (!j || !life_sandbox(l, e))
		return NULL;
	if (job_exec(j))
		return j;
	err_set(e, ERR_CONFLICT, "exec %.*s has ended", STR_ARG(p->exec));
	return NULL;
}

/* ---- list and look ------------------------------------------------------------------------- */

struct list_params {
	struct id_path path;
};
static const struct field list_parts[] = { API_ID_PATH(struct list_params) };
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_parts);

static void run_list(struct call *c, const void *params)
{
	const struct list_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);
	struct job **jobs = arena_array(call_arena(c), LIST_MAX, sizeof(struct job *), &e);
	struct job_view *views;
	size_t n = l && jobs ? job_list(l, jobs, LIST_MAX) : 0;

	views = l && jobs ? arena_array(call_arena(c), n, sizeof(*views), &e) : NULL;
	if (!views) {
		call_fail(c, &e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		job_view(jobs[i], &views[i]);
	ask_answer_array(c, views, n);
}

struct one_params {
	struct job_path path;
};
static const struct field one_parts[] = { API_JOB_PATH(struct one_params) };
static const struct field_table one_input = FIELD_TABLE(struct one_params, one_parts);

static void run_get(struct call *c, const void *params)
{
	struct err e = ERR_INIT;
	struct job *j = ask_job(c, &((const struct one_params *)params)->path, &e);

	if (j)
		answer_view(c, j, &job_view_table);
	else
		call_fail(c, &e);
}

/* ---- input --------------------------------------------------------------------------------- */

struct stdin_body {
	struct str data, data_base64;
	bool has_data, has_base64, close;
};
static const struct field stdin_fields[] = {
	FIELD(struct stdin_body, data, .flags = FIELD_NUL_OK, .max = STDIN_MAX,
	      .has = FIELD_HAS(struct stdin_body, has_data), .doc = "Text to send."),
	FIELD(struct stdin_body, data_base64, .max = STDIN_BODY_MAX,
	      .has = FIELD_HAS(struct stdin_body, has_base64),
	      .doc = "Instead of data: any bytes, in base64."),
	FIELD(struct stdin_body, close, .doc = "Its input ends behind them."),
};
static const struct field_table stdin_body = FIELD_TABLE(struct stdin_body, stdin_fields);

struct stdin_params {
	struct job_path path;
	struct stdin_body body;
};
static const struct field stdin_parts[] = {
	API_JOB_PATH(struct stdin_params),
	FIELD_OBJECT(struct stdin_params, body, stdin_body, .flags = FIELD_REQUIRED,
		     .doc = "What to send."),
};
static const struct field_table stdin_input = FIELD_TABLE(struct stdin_params, stdin_parts);

static int send_input(struct exec *x, const struct stdin_body *b, struct err *e)
{
	autobuf struct buf bytes = BUF_INIT(STDIN_BODY_MAX);
	struct str data = b->data;

	if (b->has_data && b->has_base64)
		return err_set(e, ERR_INVALID, "data and data_base64: give one of them, not both");
	if (b->has_base64 && base64_decode(&bytes, b->data_base64, e) < 0)
		return err_wrap(e, "data_base64");
	if (b->has_base64)
		data = buf_str(&bytes);
	if (!exec_reads(x))
		return err_set(e, ERR_CONFLICT, "its standard input is closed");
	if (exec_write(x, data.p, data.n, e) < 0)
		return -1;
	if (b->close)
		exec_close_stdin(x);
	return 0;
}

static void run_stdin(struct call *c, const void *params)
{
	const struct stdin_params *p = params;
	struct err e = ERR_INIT;
	struct job *j = ask_running_job(c, &p->path, &e);

	api_done(c, j && send_input(job_exec(j), &p->body, &e) == 0 ? NULL : &e);
}

/* ---- signals ------------------------------------------------------------------------------- */

struct signal_body {
	uint32_t signal;
};
static const struct field signal_fields[] = {
	FIELD(struct signal_body, signal, .min = 1, .max = PROCESS_SIGNAL_MAX,
	      .def = DEFAULT_INT(SIGTERM),
	      .doc = "The number of the signal, as in signal(7): 15 asks it to end, 9 ends it."),
};
static const struct field_table signal_body = FIELD_TABLE(struct signal_body, signal_fields);

struct signal_params {
	struct job_path path;
	struct signal_body body;
};
static const struct field signal_parts[] = {
	API_JOB_PATH(struct signal_params),
	FIELD_OBJECT(struct signal_params, body, signal_body, .flags = FIELD_REQUIRED,
		     .doc = "Which signal."),
};
static const struct field_table signal_input = FIELD_TABLE(struct signal_params, signal_parts);

static void run_signal(struct call *c, const void *params)
{
	const struct signal_params *p = params;
	struct err e = ERR_INIT;
	struct job *j = ask_running_job(c, &p->path, &e);

	if (j)
		exec_signal(job_exec(j), (int)p->body.signal);
	api_done(c, j ? NULL : &e);
}

/* ---- its terminal -------------------------------------------------------------------------- */

struct resize_params {
	struct job_path path;
	struct socket_size body;
};
static const struct field resize_parts[] = {
	API_JOB_PATH(struct resize_params),
	FIELD_OBJECT(struct resize_params, body, socket_size_table, .flags = FIELD_REQUIRED,
		     .doc = "How large."),
};
static const struct field_table resize_input = FIELD_TABLE(struct resize_params, resize_parts);

static void run_resize(struct call *c, const void *params)
{
	const struct resize_params *p = params;
	struct err e = ERR_INIT;
	struct job *j = ask_running_job(c, &p->path, &e);

	if (j && exec_resize(job_exec(j), p->body.cols, p->body.rows, &e) == 0)
		api_done(c, NULL);
	else
		api_done(c, &e);
}

/* ---- the end ------------------------------------------------------------------------------- */

struct ending {
	struct call *call;
	struct job *job;
	struct spool_cursor *cursor;
};

static void let_go(struct ending *x)
{
	spool_cursor_close(take_ptr(x->cursor));
	job_unref(take_ptr(x->job));
}

/* Nothing of its output is wanted, only to know when there is no more. */
static void look(void *arg)
{
	static const struct api_status done = { STR_LIT("deleted") };
	struct ending *x = arg;
	struct spool_piece ignored;
	enum spool_step step;

	do {
		step = spool_cursor_next(x->cursor, 0, SPOOL_BLOCK, &ignored);
	} while (step == SPOOL_LOST);
	if (step != SPOOL_END)
		return;
	let_go(x);
	call_answer(x->call, &done);
}

static void on_cancel(void *data)
{
	struct ending *x = data;
	struct err e;

	let_go(x);
	err_set(&e, ERR_CANCELLED, "the client is gone");
	call_fail(x->call, &e);
}

static int end_job(struct call *c, const struct job_path *p, struct ending *x, struct err *e)
{
	struct job *j = ask_job(c, p, e);

	/* What stands still can't be ended. */
	if (!j || (job_exec(j) && !ask_running_job(c, p, e)))
		return -1;
	x->cursor = spool_cursor_new(job_output(j), 0, look, x, e);
	if (!x->cursor)
		return -1;
	x->call = c;
	x->job = job_ref(j);
	job_forget(j);
	return 0;
}

static void run_delete(struct call *c, const void *params)
{
	struct err e = ERR_INIT;
	struct ending *x = arena_alloc(call_arena(c), sizeof(*x), &e);

	if (!x || end_job(c, &((const struct one_params *)params)->path, x, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_cancel, x);
	look(x);
}

/* ---- the rows ------------------------------------------------------------------------------ */

#define BASE "/v1/sandboxes/{id}/execs"

static const struct api_route rows[] = {
	{ .id = "execs.list",
	  .op = &(const struct
		  op){ .action = "exec.list",
		       .doc = "The execs of a sandbox, the newest first: those that run, and those that have "
			      "ended lately.",
		       .effect = OP_READ,
		       .request = &list_input,
		       .target = OP_TARGET(struct list_params, path.id),
		       .result = &job_view_table,
		       .run = run_list },
	  .method = HTTP_GET,
	  .path = BASE,
	  .shape = API_ARRAY,
	  .errors = API_MAY_SANDBOX },
	{ .id = "execs.get",
	  .op = &(const struct
		  op){ .action = "exec.get",
		       .doc = "One exec: whether it runs, how it ended, how much it has printed.",
		       .effect = OP_READ,
		       .request = &one_input,
		       .target = OP_TARGET(struct one_params, path.id),
		       .result = &job_view_table,
		       .run = run_get },
	  .method = HTTP_GET,
	  .path = BASE "/{exec}",
	  .errors = API_MAY_SANDBOX },
	{ .id = "execs.delete",
	  .op = &(const struct
		  op){ .action = "exec.delete",
		       .doc = "Kills an exec with all that it started, and forgets it and its output.",
		       .effect = OP_DESTROY,
		       .request = &one_input,
		       .target = OP_TARGET(struct one_params, path.id),
		       .result = &api_status_table,
		       .run = run_delete },
	  .method = HTTP_DELETE,
	  .path = BASE "/{exec}",
	  .errors = API_MAY_SANDBOX },
	{ .id = "execs.stdin",
	  .op =
		  &(const struct op){
			  .action = "exec.stdin",
			  .doc = "Sends input to an exec that was started with stdin_open.",
			  .effect = OP_EXECUTE,
			  .request = &stdin_input,
			  .target = OP_TARGET(struct stdin_params, path.id),
			  .result = &api_status_table,
			  .run = run_stdin },
	  .method = HTTP_POST,
	  .path = BASE "/{exec}/stdin",
	  .body_max = STDIN_BODY_MAX,
	  .errors = API_MAY_SANDBOX },
	{ .id = "execs.resize",
	  .op = &(const struct op){ .action = "exec.resize",
				    .doc = "Gives the terminal of an exec another size.",
				    .effect = OP_WRITE,
				    .request = &resize_input,
				    .target = OP_TARGET(struct resize_params, path.id),
				    .result = &api_status_table,
				    .run = run_resize },
	  .method = HTTP_POST,
	  .path = BASE "/{exec}/resize",
	  .errors = API_MAY_SANDBOX },
	{ .id = "execs.signal",
	  .op = &(const struct
		  op){ .action = "exec.signal",
		       .doc = "Sends a signal to an exec's program and what is in its process group.",
		       .effect = OP_EXECUTE,
		       .request = &signal_input,
		       .target = OP_TARGET(struct signal_params, path.id),
		       .result = &api_status_table,
		       .run = run_signal },
	  .method = HTTP_POST,
	  .path = BASE "/{exec}/signal",
	  .errors = API_MAY_SANDBOX },
};
const struct api_resource api_jobs = API_RESOURCE(rows);
