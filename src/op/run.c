#include "op/run.h"

#include "base/id.h"
#include "base/log.h"
#include "hub/sandbox/snapshots.h"
#include "op/budget.h"
#include "op/run_env.h"
#include "op/template.h"

enum {
	FILES_MAX = 64,
	FILE_MAX = 1 << 20,
	PATH_MAX_BYTES = 4095,
	OUTPUT_LEAST = 1024,
	OUTPUT_DEFAULT = 64 << 10,
	TTL_DEFAULT = 86400,
	TTL_MAX = 30 * 86400,
	NAME_MAX_BYTES = 64,
	ENV_MAX = 256,
};

static const struct field file_fields[] = {
	FIELD(struct run_file, path, .flags = FIELD_REQUIRED | FIELD_PATH, .min = 1,
	      .max = PATH_MAX_BYTES,
	      .doc = "Path in the sandbox, below its working directory, /work, /workspace or "
		     "/tmp."),
	FIELD(struct run_file, content, .flags = FIELD_REQUIRED | FIELD_NUL_OK,
	      .doc = "Content of the file, at most 1 MiB."),
};
static const struct field_table file_table = FIELD_TABLE(struct run_file, file_fields);

static const struct field state_fields[] = {
	FIELD_ENUM(struct run_state, retention, hub_sandbox_retention_names,
		   .flags = FIELD_REQUIRED, .doc = "What happens to the sandbox at the end."),
};
static const struct field_table state_table = FIELD_TABLE(struct run_state, state_fields);

#define Q struct run_request
static const struct field request_fields[] = {
	FIELD(Q, language, .max = NAME_MAX_BYTES, .doc = "Language of the files; has no effect."),
	FIELD(Q, image, .min = 1, .max = NAME_MAX_BYTES, .def = DEFAULT_STR("host"),
	      .doc = "Template that the sandbox is made from."),
	FIELD_OBJECTS(Q, files, file_table, .max = FILES_MAX,
		      .doc = "Files to write before the command starts, together at most 4 MiB."),
	FIELD(Q, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_ARGS_MAX, .item_min = 1,
	      .doc = "Program and arguments, run without a shell."),
	FIELD(Q, env, .max = ENV_MAX, .doc = "Environment variables of the command."),
	SECRETS_ROW(Q),
	FIELD_OBJECT(Q, network, network_contract_table,
		     .doc = "What the sandbox may reach. Default: nothing."),
	FIELD_OBJECT(Q, state, state_table, .flags = FIELD_REQUIRED,
		     .doc = "What is kept of the sandbox."),
	FIELD(Q, working_dir, .flags = FIELD_PATH, .min = 1, .max = PATH_MAX_BYTES,
	      .doc = "Directory in which the command starts."),
	FIELD_NAMED(Q, input, "stdin", .flags = FIELD_NUL_OK, .doc = "Text for standard input."),
	FIELD(Q, timeout_seconds, .min = 1, .max = EXEC_TIMEOUT_MAX,
	      .def = DEFAULT_INT(EXEC_TIMEOUT_DEFAULT),
	      .doc = "Seconds until the command is killed."),
	FIELD(Q, max_output_bytes, .min = OUTPUT_LEAST, .max = EXEC_OUTPUT_MAX,
	      .def = DEFAULT_INT(OUTPUT_DEFAULT),
	      .doc = "Bytes of stdout and of stderr to return, each."),
	FIELD(Q, ttl_seconds, .min = 1, .max = TTL_MAX, .def = DEFAULT_INT(TTL_DEFAULT),
	      .doc = "Seconds that the sandbox or snapshot is kept after the command."),
};
#undef Q
static const struct field_table request_table = FIELD_TABLE(struct run_request, request_fields);

static const struct field cleanup_fields[] = {
	FIELD(struct run_cleanup, code, .flags = FIELD_REQUIRED, .doc = "Code of the failure."),
	FIELD(struct run_cleanup, cause, .flags = FIELD_REQUIRED, .doc = "Cause of the failure."),
	FIELD(struct run_cleanup, remediation, .flags = FIELD_REQUIRED,
	      .doc = "What to do about it."),
	FIELD(struct run_cleanup, retryable, .flags = FIELD_REQUIRED,
	      .doc = "It can help to end the sandbox again."),
};
static const struct field_table cleanup_table = FIELD_TABLE(struct run_cleanup, cleanup_fields);

#define A struct run_answer
static const struct field answer_fields[] = {
	FIELD(A, sandbox_id, .flags = FIELD_REQUIRED, .doc = "Id of the sandbox."),
	FIELD(A, exit_code, .flags = FIELD_REQUIRED,
	      .doc = "Exit code of the command; 124 after its timeout, 128 plus the number of "
		     "a signal that ended it."),
	FIELD_NAMED(A, out, "stdout", .flags = FIELD_REQUIRED,
		    .doc = "Standard output; of long output, the beginning and the end."),
	FIELD_NAMED(A, err, "stderr", .flags = FIELD_REQUIRED,
		    .doc = "Standard error output; of long output, the beginning and the end."),
	FIELD(A, timed_out, .flags = FIELD_REQUIRED, .doc = "Its timeout ended it."),
	FIELD_ENUM(A, failure, err_failure_names, .has = FIELD_HAS(A, has_failure),
		   .doc = "timeout or guest_failed: the command failed; cleanup_failed: it did "
			  "not, but see cleanup. Absent: no failure."),
	FIELD(A, audit_id, .flags = FIELD_REQUIRED, .doc = "Id of the audit record of this call."),
	FIELD_ENUM(A, retention, hub_sandbox_retention_names, .flags = FIELD_REQUIRED,
		   .doc = "The retention that was asked for."),
	FIELD(A, duration_ms, .flags = FIELD_REQUIRED,
	      .doc = "How long the command ran, in milliseconds."),
	FIELD(A, stdout_truncated_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Bytes left out of stdout."),
	FIELD(A, stderr_truncated_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Bytes left out of stderr."),
	FIELD(A, isolation, .flags = FIELD_REQUIRED,
	      .doc = "Isolation of the sandbox from the host."),
	FIELD(A, snapshot_id, .doc = "With retention snapshot: id of the snapshot."),
	FIELD_OBJECT(A, cleanup, cleanup_table, .has = FIELD_HAS(A, has_cleanup),
		     .doc = "Why the sandbox was not kept or ended as asked for."),
	FIELD(A, receipt,
	      .doc = "The audit record, as a line of JSON that holt audit verify reads."),
};
#undef A
static const struct field_table answer_table = FIELD_TABLE(struct run_answer, answer_fields);
const struct field_table run_told_table = {
	.rows = answer_fields,
	.n = ARRAY_LEN(answer_fields) - 1, /* the last is the receipt */
	.size = sizeof(struct run_answer),
};

/* ---- the request --------------------------------------------------------------------------- */

static bool path_climbs(struct str path)
{
	for (size_t i = 0; i + 1 < path.n; i++) {
		if ((i == 0 || path.p[i - 1] == '/') && path.p[i] == '.' && path.p[i + 1] == '.' &&
		    (i + 2 == path.n || path.p[i + 2] == '/'))
			return true;
	}
	return false;
}

static bool path_is_fit(struct str path)
{
	return path.p[0] != '/' || str_starts(path, "/work/") || str_starts(path, "/tmp/") ||
	       str_starts(path, "/workspace/");
}

static int check_files(const struct run_request *q, struct err *e)
{
	size_t all = 0;

	for (size_t i = 0; i < q->files.n; i++) {
		const struct run_file *f = &q->files.p[i];

		if (path_climbs(f->path) || !path_is_fit(f->path)) {
			err_set(e, ERR_INVALID,
				"path: below the working directory, /work, /workspace or /tmp, "
				"without \"..\"");
			return err_point(e, "/files/%zu/path", i);
		}
		all += f->content.n;
		if (f->content.n > FILE_MAX || all > RUN_FILES_BYTES_MAX) {
			err_set(e, ERR_INVALID, "content: at most %d bytes, and %d of all files",
				FILE_MAX, RUN_FILES_BYTES_MAX);
			return err_point(e, "/files/%zu/content", i);
		}
	}
	return 0;
}

static struct str run_base(struct call *c, const void *request)
{
	return template_cwd(c, ((const struct run_request *)request)->image);
}

static int run_complete(struct call *c, void *request, struct err *e)
{
	return run_env_check(c, &((struct run_request *)request)->env, e);
}

static int run_command(const void *request, struct arena *a, struct str *ret, struct err *e)
{
	return op_join_command(STR_NONE, &((const struct run_request *)request)->command, a, ret,
			       e);
}

static int run_normalize(void *request, struct arena *a, struct err *e)
{
	struct run_request *q = request;

	if (check_files(q, e) < 0)
		return -1;
	if (op_check_env(&q->env, e) < 0)
		return err_point(e, "/env");
	if (secret_refs_normalize(&q->secrets, &q->env, a, e) < 0)
		return err_point(e, "/secrets");
	return network_normalize(&q->network, a, e) < 0 ? err_point(e, "/network") : 0;
}

/* ---- its way ------------------------------------------------------------------------------- */

/* Its memory is the call's. */
struct running {
	struct call *call;
	const struct run_request *request;
	struct hub_sandbox *l; /* busy, so it stays */
	int64_t until;
	struct str network;
	size_t written;
	struct run_answer answer;
	struct err failed; /* instead of the answer, once the sandbox is cleaned up */
};

static void run_tell_cleanup(struct running *r, const struct err *err)
{
	const struct err_info *i = err_info(err->code);
	struct err e;
	char *cause = arena_dup(call_arena(r->call), str_of(err->msg), &e);

	r->answer.has_cleanup = true;
	r->answer.cleanup = (struct run_cleanup){
		.code = str_of(i->name),
		.cause = str_of(cause ? cause : "the sandbox could not be cleaned up"),
		.remediation = str_of(i->remediation),
		.retryable = i->retryable,
	};
	if (!r->answer.has_failure)
		r->answer.failure = FAILURE_CLEANUP;
	r->answer.has_failure = true;
}

static void run_end(struct running *r, const struct err *cleanup)
{
	hub_sandbox_busy(r->l, -1);
	if (cleanup)
		log_warn("run: could not clean up: %s", cleanup->msg);
	if (r->failed.code != ERR_NONE) {
		call_fail(r->call, &r->failed);
		return;
	}
	if (cleanup)
		run_tell_cleanup(r, cleanup);
	call_answer(r->call, &r->answer);
}

static void on_cleaned(void *arg, struct hub_sandbox *l, const struct err *err)
{
	run_end(arg, err);
}

static void on_snapshot(void *arg, const struct snapshot *s, const struct err *err)
{
	struct running *r = arg;
	struct snapshot_info i;
	struct err e;
	char *id;

	if (err) {
		run_end(r, err); /* it goes on until its time is over: its files are not lost */
		return;
	}
	snapshot_info(s, &i);
	id = arena_dup(call_arena(r->call), i.id, &e);
	r->answer.snapshot_id = str_of(id ? id : "");
	hub_sandbox_terminate_start(r->l, on_cleaned, r);
}

/* A run that failed keeps nothing. */
static void run_clean(struct running *r)
{
	enum hub_sandbox_retention how = r->request->state.retention;
	uint64_t ms = r->request->ttl_seconds * 1000;

	call_on_cancel(r->call, NULL, NULL);
	if (r->failed.code != ERR_NONE || how == RETAIN_DESTROY)
		hub_sandbox_terminate_start(r->l, on_cleaned, r);
	else if (how == RETAIN_SNAPSHOT)
		snapshot_take_start(r->l, &(struct snapshot_spec){ .ttl_ms = ms }, on_snapshot, r);
	else
		hub_sandbox_stop_start(r->l, how == RETAIN_COLD, ms, on_cleaned, r);
}

static void run_failed(struct running *r, const struct err *err)
{
	r->failed = *err;
	run_clean(r);
}

/* The report goes when this returns. */
static void on_exec(void *data, const struct report *p, const struct err *err)
{
	struct running *r = data;
	struct arena *a = call_arena(r->call);
	struct err e = ERR_INIT;
	char *out = p ? arena_dup(a, p->out, &e) : NULL;
	char *text = out ? arena_dup(a, p->err, &e) : NULL;

	if (!text) {
		run_failed(r, err ? err : &e);
		return;
	}
	r->answer.out = (struct str){ out, p->out.n };
	r->answer.err = (struct str){ text, p->err.n };
	r->answer.exit_code = p->exit_code;
	r->answer.timed_out = p->timed_out;
	r->answer.duration_ms = (uint64_t)p->wall_ms;
	r->answer.has_failure = p->timed_out || p->exit_code != 0;
	r->answer.failure = p->timed_out ? FAILURE_TIMEOUT : FAILURE_GUEST;
	r->answer.stdout_truncated_bytes = p->out_elided;
	r->answer.stderr_truncated_bytes = p->err_elided;
	run_clean(r);
}

static void run_exec(struct running *r)
{
	const struct run_request *q = r->request;
	struct err e = ERR_INIT;
	struct exec_request *x = arena_alloc(call_arena(r->call), sizeof(*x), &e);

	if (!x) {
		run_failed(r, &e);
		return;
	}
	*x = (struct exec_request){
		.sandbox = r->answer.sandbox_id,
		.command = q->command.p[0],
		.has_args = true,
		.args = { q->command.p + 1, q->command.n - 1 },
		.env = q->env,
		.secrets = q->secrets,
		.cwd = q->working_dir,
		.input = q->input,
		.timeout_seconds = q->timeout_seconds,
		.max_output_bytes = q->max_output_bytes,
		.keep_bytes = JOB_OUTPUT_LEAST,
	};
	exec_for(r->call, x, on_exec, r);
}

static void run_write(struct running *r);

static void on_written(void *arg, const struct err *err)
{
	struct running *r = arg;

	if (err) {
		run_failed(r, err);
		return;
	}
	r->written++;
	run_write(r);
}

static void run_write(struct running *r)
{
	const struct file_write_opts opts = { .make_parents = true };
	struct err e = ERR_INIT;
	struct sandbox *sb;

	if (call_cancelled(r->call)) {
		err_set(&e, ERR_CANCELLED, "run was cancelled");
		run_failed(r, &e);
		return;
	}
	if (r->written == r->request->files.n) {
		run_exec(r);
		return;
	}
	sb = hub_sandbox_sandbox(r->l, &e);
	if (sb)
		file_write_start(sb, r->request->files.p[r->written].path,
				 r->request->files.p[r->written].content, &opts, on_written, r);
	else
		run_failed(r, &e);
}

static void on_made(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct running *r = arg;
	struct err e = ERR_INIT;

	if (err) {
		call_fail(r->call, err);
		return;
	}
	r->l = l;
	hub_sandbox_busy(l, 1);
	if (budget_apply(l, r->until, &e) < 0)
		run_failed(r, &e);
	else
		run_write(r);
}

/* Refusals that need no sandbox. */
static int run_admit(struct running *r, struct err *e)
{
	const struct run_request *q = r->request;
	struct call *c = r->call;

	if (q->network.allow.n && network_text(c, &q->network, &r->network, e) < 0)
		return -1;
	if (secret_check(c, &q->secrets, e) < 0)
		return err_point(e, "/secrets");
	if (q->state.retention != RETAIN_DESTROY && snapshots_check(call_sandboxes(c), e) < 0)
		return err_point(e, "/state/retention");
	return budget_admit(c, 1, STR_NONE, &r->until, e);
}

static void run_run(struct call *c, const void *request)
{
	const struct run_request *q = request;
	struct err e = ERR_INIT;
	struct running *r = arena_alloc(call_arena(c), sizeof(*r), &e);
	struct box_stats stats;
	char made[ID_MAX], *id;

	id_make(made, "run");
	id = r ? arena_dup(call_arena(c), str_of(made), &e) : NULL;
	box_stats(call_box(c), &stats);
	if (id)
		*r = (struct running){ .call = c,
				       .request = q,
				       .failed = ERR_INIT,
				       .answer = { .sandbox_id = str_of(id),
						   .audit_id = str_of(call_audit_id(c)),
						   .isolation = str_of(stats.tier),
						   .retention = q->state.retention } };
	if (!id || run_admit(r, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	hub_sandbox_create_start(
		call_sandboxes(c),
		&(struct hub_sandbox_spec){
			.box = { .template = q->image,
				 .ttl_ms = (q->timeout_seconds + q->ttl_seconds) * 1000 },
			.id = r->answer.sandbox_id,
			.network = r->network,
			.by_operator = call_is_operator(c),
			.owner = call_owner(c),
		},
		on_made, r);
}

const struct op run_op = {
	.action = "contract.run",
	.doc = "Creates a sandbox, writes files into it, runs a command, and keeps or "
	       "ends the sandbox as asked for.",
	.effect = OP_EXECUTE,
	.flags = OP_LIFECYCLE | OP_COMMANDS,
	.request = &request_table,
	.result = &answer_table,
	.receipt = OP_RECEIPT(struct run_answer, receipt),
	.normalize = run_normalize,
	.base = run_base,
	.complete = run_complete,
	.command = run_command,
	.run = run_run,
};
