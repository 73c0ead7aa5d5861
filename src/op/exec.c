#include "op/exec.h"

#include <stdio.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/id.h"
#include "call/once.h"
#include "hub/core/output.h"
#include "op/exec_output.h"

enum {
	ENV_MAX = 256,
	CWD_MAX = 4095,
	EXEC_ID_BYTES = 64,
	OUTPUT_DEFAULT = 1 << 20,
	OUTPUT_LEAST = 1024,
	/* Bytes of each stream in an answer that is stored for a key, however much is escaped. */
	OUTPUT_STORED = 64 << 10,
	COLUMNS = 80,
	ROWS = 24,
};

/* ---- the tables ---------------------------------------------------------------------------- */

#define T struct exec_tty
static const struct field tty_fields[] = {
	FIELD(T, cols, .max = EXEC_SIDE_MAX, .doc = "Number of columns; 80 if absent or 0."),
	FIELD(T, rows, .max = EXEC_SIDE_MAX, .doc = "Number of rows; 24 if absent or 0."),
	FIELD(T, term, .max = EXEC_TERM_MAX,
	      .doc = "Value of the variable TERM; xterm-256color if absent or empty."),
};
#undef T
static const struct field_table tty_table = FIELD_TABLE(struct exec_tty, tty_fields);

static const char *const user_names[] = { "sandbox", "user", "root" };

#define Q struct exec_request
static const struct field request_fields[] = {
	OP_SANDBOX_ROW(Q),
	FIELD(Q, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Shell command line; with args, the program to run."),
	FIELD(Q, args, .max = EXEC_ARGS_MAX - 1, .has = FIELD_HAS(Q, has_args),
	      .doc = "Arguments: runs command as a program with exactly these, without a shell."),
	FIELD(Q, cwd, .flags = FIELD_PATH, .min = 1, .max = CWD_MAX,
	      .doc = "Working directory. Default: the sandbox's."),
	FIELD(Q, env, .max = ENV_MAX,
	      .doc = "Environment variables, which override the sandbox's."),
	SECRETS_ROW(Q),
	FIELD_NAMED_ENUM(
		Q, how.user, "user", user_names, .def = DEFAULT_ENUM(EXEC_AS_SANDBOX),
		.doc = "User to run as. sandbox: as the sandbox was created; user: uid 1000; "
		       "root: uid 0, only in a sandbox created with root."),
	FIELD(Q, timeout_seconds,
	      .doc = "Seconds until it is killed with all its descendants, at most 86400. 0: "
		     "30 seconds, or no limit in the background."),
	FIELD_NAMED(Q, input, "stdin", .flags = FIELD_NUL_OK | FIELD_BYTES,
		    .doc = "Text for standard input. Default: empty."),
	FIELD_NAMED(Q, input_base64, "stdin_base64", .has = FIELD_HAS(Q, has_base64),
		    .doc = "Instead of stdin: any bytes, in base64."),
	FIELD(Q, max_output_bytes, .min = OUTPUT_LEAST, .max = EXEC_OUTPUT_MAX,
	      .def = DEFAULT_INT(OUTPUT_DEFAULT),
	      .doc = "Bytes of stdout and of stderr to keep, each; of longer output, the head "
		     "and the tail."),
	FIELD(Q, background, .def = DEFAULT_BOOL(false),
	      .doc = "Return as soon as it runs; it goes on until it ends by itself or with "
		     "the sandbox."),
	FIELD(Q, exec_id, .min = 1, .max = EXEC_ID_BYTES,
	      .doc = "With background: id of the exec, by the rules of a sandbox id; absent: "
		     "one is generated."),
	FIELD(Q, stdin_open, .def = DEFAULT_BOOL(false),
	      .doc = "With background: keep standard input open for …/execs/{exec}/stdin."),
	FIELD_OBJECT(Q, tty, tty_table, .has = FIELD_HAS(Q, has_tty),
		     .doc = "With background: run it on a terminal. All its output is stdout, and "
			    "its input stays open."),
	FIELD(Q, keep_bytes, .min = JOB_OUTPUT_LEAST, .max = (int64_t)JOB_OUTPUT_MAX,
	      .def = DEFAULT_INT(JOB_OUTPUT_DEFAULT),
	      .doc = "Bytes of output to keep on disk for execs.output; of longer output, the "
		     "newest."),
};
#undef Q
static const struct field_table request_table = FIELD_TABLE(struct exec_request, request_fields);

static const char *const stream_names[] = { "none", "stdout", "stderr" };

#define E struct exec_event
static const struct field event_fields[] = {
	FIELD(E, is_end, .flags = FIELD_REQUIRED, .doc = "This is the last event."),
	FIELD_ENUM(E, stream, stream_names, .doc = "Stream that the output came from."),
	FIELD(E, bytes, .flags = FIELD_BYTES, .doc = "Output."),
	FIELD(E, exit_code,
	      .doc = "At the end: the exit code; 124 after a timeout, -1 if it never ran."),
	FIELD(E, exec_time_ms, .doc = "At the end: how long it ran, in milliseconds."),
	FIELD(E, timed_out, .doc = "Its timeout ended it."),
	FIELD(E, error, .doc = "What went wrong, if it did not end normally."),
	FIELD(E, dimension, .doc = "Limit that it exceeded."),
};
#undef E
const struct field_table exec_event_table = FIELD_TABLE(struct exec_event, event_fields);

static const struct field answer_fields[] = {
	FIELD_OBJECT(struct exec_answer, report, report_table, .flags = FIELD_REQUIRED,
		     .doc = "How it ended, and what it printed."),
	FIELD_OBJECT(struct exec_answer, job, job_view_table,
		     .has = FIELD_HAS(struct exec_answer, has_job),
		     .doc = "State of an exec in the background."),
};
const struct field_table exec_answer_table = FIELD_TABLE(struct exec_answer, answer_fields);

/* ---- the request --------------------------------------------------------------------------- */

int exec_decode_input(struct str *bytes, struct str *base64, bool *has_base64, const char *name,
		      struct arena *a, struct err *e)
{
	if (!*has_base64)
		return 0;
	if (bytes->p)
		return err_set(e, ERR_INVALID, "%s and %s_base64: give one of them, not both", name,
			       name);
	*bytes = *base64;
	*base64 = STR_NONE;
	*has_base64 = false;
	return base64_replace(bytes, a, e) < 0 ? err_wrap(e, "%s_base64", name) : 0;
}

static int exec_command(const void *request, struct arena *a, struct str *ret, struct err *e)
{
	const struct exec_request *q = request;

	*ret = q->command;
	return q->has_args ? op_join_command(q->command, &q->args, a, ret, e) : 0;
}

static int exec_normalize(void *request, struct arena *a, struct err *e)
{
	struct exec_request *q = request;

	if (exec_decode_input(&q->input, &q->input_base64, &q->has_base64, "stdin", a, e) < 0)
		return -1;
	if (q->input.n == 0)
		q->input = STR_NONE;
	if (q->has_tty) {
		q->tty.cols = q->tty.cols ? q->tty.cols : COLUMNS;
		q->tty.rows = q->tty.rows ? q->tty.rows : ROWS;
		q->tty.term = q->tty.term.n ? q->tty.term : STR_LIT("xterm-256color");
	}
	if (!q->command.n && (!q->has_tty || q->has_args))
		return err_set(e, ERR_INVALID, "command is missing");
	if (!q->command.n)
		q->command = STR_LIT("exec \"$0\" -i"); /* bash, or sh where there is none */
	if (!q->timeout_seconds && !q->background)
		q->timeout_seconds = EXEC_TIMEOUT_DEFAULT;
	if (op_check_env(&q->env, e) < 0)
		return -1;
	return secret_refs_normalize(&q->secrets, &q->env, a, e);
}

/* Options that only mean something in the background are refused, not ignored. */
static int exec_check(struct call *c, const struct exec_request *q, struct err *e)
{
	struct call_about *about = call_about(c);

	if (q->timeout_seconds > EXEC_TIMEOUT_MAX) {
		about->has_requested_s = about->has_max_timeout_s = true;
		about->requested_s = q->timeout_seconds;
		about->max_timeout_s = EXEC_TIMEOUT_MAX;
		return err_set(e, ERR_INVALID, "a command can be given %d seconds, not %u",
			       EXEC_TIMEOUT_MAX, q->timeout_seconds);
	}
	if (q->background || call_streams(c) || !(q->exec_id.n || q->stdin_open || q->has_tty))
		return 0;
	return err_set(e, ERR_INVALID, "%s is for the background",
		       q->has_tty      ? "tty"
		       : q->stdin_open ? "stdin_open"
				       : "exec_id");
}

/* The front of a text as far as there is room. */
static void exec_add_front(struct buf *b, struct str text)
{
	size_t room = b->max - b->n;
	struct err e;

	if (buf_add(b, text.p, text.n < room ? text.n : room, &e) < 0)
		b->max = b->n;
}

/* As one would type it; in the call's arena, and cut where it is long. */
static struct str exec_line(struct call *c, const struct exec_request *q)
{
	autobuf struct buf b = BUF_INIT(JOB_COMMAND_MAX + 1);
	struct err e;
	char *text;

	exec_add_front(&b, q->command);
	for (size_t i = 0; q->has_args && i < q->args.n && b.n < b.max; i++) {
		exec_add_front(&b, STR_LIT(" "));
		exec_add_front(&b, q->args.p[i]);
	}
	text = arena_dup(call_arena(c), buf_str(&b), &e);
	return text ? (struct str){ text, b.n } : q->command;
}

/* The program to start. */
struct exec_plan {
	struct call *call;
	const struct exec_request *request;
	struct str id;
	bool again; /* a request of the same key was cut off with an earlier hub */
	const struct exec_secret *secrets; /* granted to it, until it has started */
	size_t n_secrets;
	/* Instead of ending the call (exec_for()); NULL: it is its own. */
	exec_done_fn on_done;
	void *data;
};

static void exec_fail(const struct exec_plan *p, const struct err *err)
{
	if (p->on_done)
		p->on_done(p->data, NULL, err);
	else
		call_fail(p->call, err);
}

/* Fills the spec but for its events. The terminal is in the arena. */
static int exec_fill_spec(const struct exec_plan *p, struct job_spec *ret, struct err *e)
{
	const struct exec_request *q = p->request;
	struct call *c = p->call;
	struct arena *a = call_arena(c);
	struct str *words = arena_array(a, q->args.n + 1, sizeof(*words), e);
	struct env_var *env = words ? arena_array(a, q->env.n, sizeof(*env), e) : NULL;
	struct exec_terminal *tty = env ? arena_alloc(a, sizeof(*tty), e) : NULL;
	uint64_t waits_ms = call_timeout_ms(c), ms = q->timeout_seconds * 1000ull;

	if (!tty)
		return -1;
	if (!q->background && waits_ms > 0 && waits_ms < ms)
		ms = waits_ms;
	words[0] = q->command;
	for (size_t i = 0; i < q->args.n; i++)
		words[i + 1] = q->args.p[i];
	for (size_t i = 0; i < q->env.n; i++)
		env[i] = (struct env_var){ q->env.p[i].key, q->env.p[i].value };
	*tty = (struct exec_terminal){ q->tty.cols, q->tty.rows, q->tty.term };
	*ret = (struct job_spec){
		.id = p->id,
		.command = exec_line(c, q),
		.background = q->background,
		.keep = call_streams(c) ? 0 : q->keep_bytes,
		.exec = {
			.argv = q->has_args ? words : NULL,
			.n_argv = q->has_args ? q->args.n + 1 : 0,
			.shell = q->has_args ? STR_NONE : q->command,
			.env = env,
			.n_env = q->env.n,
			.secrets = p->secrets,
			.n_secrets = p->n_secrets,
			.cwd = q->cwd,
			.how = q->how,
			.timeout_ms = ms,
			.stdin_open = q->input.n > 0 || q->stdin_open,
			.terminal = q->has_tty ? tty : NULL,
		},
	};
	return 0;
}

/* ---- in the background --------------------------------------------------------------------- */

static struct job *exec_detach(const struct exec_plan *p, struct err *e)
{
	const struct exec_request *q = p->request;
	struct hub_sandbox *l = call_hub_sandbox(p->call, q->sandbox, e);
	struct job_spec spec;
	struct job *j;

	if (!l || exec_fill_spec(p, &spec, e) < 0)
		return NULL;
	j = job_start(l, &spec, e);
	if (!j)
		return NULL;
	/* The queue is empty, so all of it is taken. */
	if (exec_write(job_exec(j), q->input.p, q->input.n, e) < 0) {
		job_forget(j);
		return NULL;
	}
	if (spec.exec.stdin_open && !q->stdin_open && !q->has_tty)
		exec_close_stdin(job_exec(j));
	return j;
}

static void exec_answer_job(struct call *c, struct job *j)
{
	struct exec_answer a = { .has_job = true };

	job_view(j, &a.job);
	a.report.exec = a.job.exec_id;
	call_answer(c, &a);
}

static void exec_run_detached(const struct exec_plan *p)
{
	struct err e = ERR_INIT;
	struct job *j = exec_detach(p, &e);

	if (j)
		exec_answer_job(p->call, j);
	else
		call_fail(p->call, &e);
}

/* ---- to its end ---------------------------------------------------------------------------- */

/* Its memory is the call's, but for what is kept of output. */
struct exec_run {
	struct call *call;
	const struct exec_request *request;
	struct str id;
	struct exec *exec; /* NULL before it started, and after its end */
	struct output out, err;
	/* Where in the job's output the head of out or of err is full: the rest of that stream is
	 * left out from there on, if any is. */
	uint64_t out_full, err_full;
	struct str input; /* what is left of it */
	uint64_t begun_ms;
	/* Bytes that came of both streams, and where in them begins what redaction holds back. */
	uint64_t came, held_at[2];
	bool held;
	struct err refused; /* there is no room for a stream */
	const struct exec_plan *plan;
};

static void exec_feed(void *arg)
{
	enum { CHUNK = 256 << 10 };
	struct exec_run *r = arg;
	struct err e;

	while (r->input.n > 0) {
		size_t n = r->input.n < CHUNK ? r->input.n : CHUNK;

		if (exec_write(r->exec, r->input.p, n, &e) < 0) {
			exec_on_drain(r->exec, exec_feed, r);
			return;
		}
		r->input.p += n;
		r->input.n -= n;
	}
	exec_close_stdin(r->exec);
}

static void exec_hold_output(struct exec_run *r, bool held)
{
	r->held = held;
	if (!r->exec)
		return;
	exec_hold(r->exec, EXEC_STDOUT, held);
	exec_hold(r->exec, EXEC_STDERR, held);
}

static void exec_on_room(void *data)
{
	exec_hold_output(data, false);
}

/* Where the head is full: behind what was replaced not before that. */
static void exec_keep(struct exec_run *r, enum exec_stream stream, struct str said, bool replaced)
{
	struct output *o = stream == EXEC_STDOUT ? &r->out : &r->err;
	uint64_t head = o->head.max;

	if (o->total <= head && o->total + said.n > head)
		*(stream == EXEC_STDOUT ? &r->out_full : &r->err_full) =
			r->held_at[stream == EXEC_STDERR] + (replaced ? 0 : head - o->total);
	output_add(o, said.p, said.n);
}

static void exec_pass(struct exec_run *r, enum exec_stream stream, struct str bytes,
		      enum redact_flush flush)
{
	enum call_stream s = stream == EXEC_STDOUT ? CALL_STDOUT : CALL_STDERR;
	uint64_t was = call_redact_replaced(r->call, s);
	struct str said = call_redact_piece(r->call, s, bytes, flush);

	if (said.n == 0)
		return;
	if (call_streams(r->call))
		call_send_redacted(r->call,
				   &(struct exec_event){ .stream = stream, .bytes = said });
	else
		exec_keep(r, stream, said, call_redact_replaced(r->call, s) != was);
	if (call_streams(r->call) && !r->held && call_full(r->call))
		exec_hold_output(r, true);
}

static void exec_flush(struct exec_run *r, enum redact_flush flush)
{
	exec_pass(r, EXEC_STDOUT, STR_NONE, flush);
	exec_pass(r, EXEC_STDERR, STR_NONE, flush);
}

static void exec_on_quiet(void *data)
{
	exec_flush(data, REDACT_QUIET);
}

static void exec_on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct exec_run *r = arg;
	enum call_stream s = stream == EXEC_STDOUT ? CALL_STDOUT : CALL_STDERR;
	uint64_t *at = &r->held_at[stream == EXEC_STDERR];
	size_t held = call_redact_held(r->call, s);

	if (held == 0)
		*at = r->came;
	exec_pass(r, stream, (struct str){ p, n }, REDACT_MORE);
	r->came += n;
	held = call_redact_held(r->call, s);
	if (held <= n)
		*at = r->came - held;
	if (held > 0 && call_streams(r->call))
		call_on_quiet(r->call, r->request->has_tty ? QUIET_TTY_MS : QUIET_MS, exec_on_quiet,
			      r);
}

/* Which limit it ran into, if that was its end. */
static void exec_tell_limit(const struct exec_result *result, struct exec_event *end)
{
	if (result->end == EXEC_TIMED_OUT) {
		end->timed_out = true;
		end->error = STR_LIT("the command was killed at its timeout");
		end->dimension = STR_LIT("wall");
	} else if (result->exit_code == 0) {
		return;
	} else if (result->hit_memory) {
		end->error = STR_LIT("a process was killed for the sandbox's memory limit");
		end->dimension = STR_LIT("memory");
	} else if (result->hit_pids) {
		end->error = STR_LIT("the sandbox's limit of processes was reached");
		end->dimension = STR_LIT("pids");
	} else if (result->hit_disk) {
		end->error = STR_LIT("the sandbox's disk is full");
		end->dimension = STR_LIT("disk");
	}
}

void exec_end_event(const struct exec_result *result, const struct err *err, struct exec_event *ret)
{
	*ret = (struct exec_event){ .is_end = true, .exit_code = -1 };
	if (result) {
		ret->exit_code = result->exit_code;
		ret->exec_time_ms = (double)result->wall_us / 1000;
		exec_tell_limit(result, ret);
	} else {
		ret->failed = err->code;
		ret->error = str_of(err->msg);
	}
}

static void exec_answer_report(struct exec_run *r, const struct exec_result *result)
{
	struct exec_answer a = { .has_job = false };
	struct err e = ERR_INIT;

	call_about(r->call)->has_exit_code = true;
	call_about(r->call)->exit_code = result->exit_code;
	if (report_init(&a.report, result, &r->out, &r->err, &e) == 0) {
		/* Its id, and where what is left out can be read. */
		a.report.exec = r->id;
		a.report.has_next = a.report.has_out_elided || a.report.has_err_elided;
		if (a.report.has_out_elided)
			a.report.next_offset = r->out_full;
		if (a.report.has_err_elided &&
		    (!a.report.has_out_elided || r->err_full < r->out_full))
			a.report.next_offset = r->err_full;
		if (r->plan->on_done)
			r->plan->on_done(r->plan->data, &a.report, NULL);
		else
			call_answer(r->call, &a);
	} else {
		call_say_done(r->call, &report_table,
			      &(struct report){ .exec = r->id,
						.has_exit_code = true,
						.exit_code = result->exit_code },
			      &e);
		exec_fail(r->plan, &e);
	}
	report_fini(&a.report);
}

/* A client that gave a key will ask again for the result. */
static bool exec_is_unwanted(const struct exec_run *r)
{
	return call_cancelled(r->call) && !once_kept(r->call);
}

/* By what init says of a program that it could not start. */
static bool exec_never_ran(const struct err *err)
{
	return err->code == ERR_PIDS_FULL || err->code == ERR_COMMAND_NOT_FOUND ||
	       err->code == ERR_COMMAND_NOT_RUN || err->code == ERR_TOO_LARGE;
}

/* Where it is a part of another operation, that knows what else it has done. */
static void exec_fail_unrun(const struct exec_plan *p, const struct err *err)
{
	call_about(p->call)->exec_id = STR_NONE;
	if (!p->on_done)
		call_undo(p->call);
	exec_fail(p, err);
}

static void exec_on_exit(void *arg, const struct exec_result *result, const struct err *err)
{
	struct exec_run *r = arg;
	struct output out, kept;
	struct exec_event end;
	struct err e;

	r->exec = NULL;
	if (r->refused.code == ERR_NONE)
		exec_flush(r, REDACT_END);
	/* r goes with its call. The flush may have moved what it holds. */
	out = r->out;
	kept = r->err;
	if (call_streams(r->call) && r->refused.code == ERR_NONE && !exec_is_unwanted(r)) {
		exec_end_event(result, err, &end);
		call_send(r->call, &end);
	}
	if (r->refused.code != ERR_NONE) {
		exec_fail(r->plan, &r->refused);
	} else if (err && exec_never_ran(err)) {
		exec_fail_unrun(r->plan, err);
	} else if (err) {
		exec_fail(r->plan, err);
	} else if (exec_is_unwanted(r)) {
		err_set(&e, ERR_CANCELLED, "the exec was cancelled and its command killed");
		exec_fail(r->plan, &e);
	} else {
		exec_answer_report(r, result);
	}
	output_fini(&out);
	output_fini(&kept);
}

static const struct exec_events events = { .on_output = exec_on_output, .on_exit = exec_on_exit };

static void exec_on_cancel(void *data)
{
	struct exec_run *r = data;

	if (r->exec && exec_is_unwanted(r))
		exec_kill(r->exec);
}

static void exec_on_tick(void *data)
{
	struct exec_run *r = data;
	double seconds = (double)(clock_ms() - r->begun_ms) / 1000;
	char text[96];

	snprintf(text, sizeof(text), "running for %.0f s, %llu bytes of output", seconds,
		 (unsigned long long)r->came);
	call_progress(r->call, seconds, r->request->timeout_seconds, text);
}

/* ---- what its client says ------------------------------------------------------------------- */

/* From where on the client has to wait: with a message more there is still room in what an exec
 * keeps. */
enum { INPUT_HIGH = 512 << 10 };

static void exec_on_taken(void *arg)
{
	struct exec_run *r = arg;

	call_hold(r->call, false);
}

int exec_obey(struct exec *x, const struct exec_word *w, struct err *e)
{
	if (w->kind == EXEC_WORD_RESIZE)
		return exec_resize(x, w->cols, w->rows, e);
	if (w->signal < 1 || w->signal > PROCESS_SIGNAL_MAX)
		return err_set(e, ERR_INVALID, "signal: a number from 1 to %d", PROCESS_SIGNAL_MAX);
	exec_signal(x, w->signal);
	return 0;
}

static int exec_on_word(void *data, const void *message, struct err *e)
{
	const struct exec_word *w = message;
	struct exec_run *r = data;

	if (!r->exec)
		return 0; /* it has ended */
	switch (w->kind) {
	case EXEC_WORD_INPUT:
		if (exec_write(r->exec, w->bytes.p, w->bytes.n, e) < 0)
			return -1;
		if (exec_waiting(r->exec) > INPUT_HIGH) {
			exec_on_drain(r->exec, exec_on_taken, r);
			call_hold(r->call, true);
		}
		return 0;
	case EXEC_WORD_INPUT_END:
		exec_close_stdin(r->exec);
		return 0;
	case EXEC_WORD_RESIZE:
	case EXEC_WORD_SIGNAL:
		return exec_obey(r->exec, w, e);
	}
	return 0;
}

/* ---- the start ----------------------------------------------------------------------------- */

/* Room for its output, and the program. It leaves the end of what it prints behind, and can be
 * found while it runs. */
static int exec_begin(struct exec_run *r, const struct exec_plan *p, struct hub_sandbox *l,
		      struct err *e)
{
	const struct exec_request *q = r->request;
	size_t most = once_kept(r->call) ? OUTPUT_STORED : q->max_output_bytes;
	size_t keep = call_streams(r->call)	 ? OUTPUT_MIN
		    : most < q->max_output_bytes ? most
						 : q->max_output_bytes;
	struct job_spec spec;
	struct job *j;

	if (call_reserve(r->call, 2 * keep, e) < 0) {
		call_about(r->call)->dimension = STR_LIT("output");
		return -1;
	}
	if (exec_fill_spec(p, &spec, e) < 0)
		return -1;
	output_init(&r->out, keep);
	output_init(&r->err, keep);
	spec.events = &events;
	spec.arg = r;
	j = job_start(l, &spec, e);
	if (!j)
		return -1;
	r->exec = job_exec(j);
	call_about(r->call)->exec_id = r->id;
	return 0;
}

static void exec_follow(const struct exec_plan *p)
{
	const struct exec_request *q = p->request;
	struct call *c = p->call;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_sandbox(c, q->sandbox, &e)
				      ? call_hub_sandbox(c, q->sandbox, &e)
				      : NULL;
	struct exec_run *r = l ? arena_alloc(call_arena(c), sizeof(*r), &e) : NULL;

	if (r)
		*r = (struct exec_run){
			.call = c,
			.request = q,
			.id = p->id,
			.input = q->input,
			.begun_ms = clock_ms(),
			.plan = p,
		};
	if (!r || exec_begin(r, p, l, &e) < 0) {
		exec_fail_unrun(p, &e);
		return;
	}
	if (call_streams(c) && call_open(c, exec_on_room, r, &r->refused) < 0)
		exec_kill(r->exec);
	call_on_cancel(c, exec_on_cancel, r);
	call_on_tick(c, exec_on_tick, r);
	call_listen(c, exec_on_word, r);
	if (r->input.n > 0)
		exec_feed(r);
}

/* The request that named it was cut off with an earlier hub. In the background it has a row from
 * before its start on, so that without one it never ran. */
static void exec_run_again(const struct exec_plan *p)
{
	struct err e = ERR_INIT;
	struct job *j = call_job(p->call, p->request->sandbox, p->id, &e);

	if (j) {
		exec_answer_job(p->call, j);
	} else if (p->request->background) {
		exec_run_detached(p);
	} else {
		err_set(&e, ERR_CONFLICT,
			"the server ended while the command of this key ran; what it has done is "
			"not known");
		call_fail(p->call, &e);
	}
}

/* The plan goes with its call. */
static void exec_granted(void *data, const struct exec_secret *secrets, size_t n,
			 const struct err *err)
{
	struct exec_plan *p = data;

	p->secrets = secrets;
	p->n_secrets = n;
	if (err)
		exec_fail_unrun(p, err);
	else if (p->again)
		exec_run_again(p);
	else if (p->request->background)
		exec_run_detached(p);
	else
		exec_follow(p);
}

static int exec_name(struct call *c, const struct exec_request *q, struct str *ret, struct err *e)
{
	char made[ID_MAX];
	char *copy;

	*ret = q->exec_id;
	if (ret->p)
		return 0;
	id_make(made, "exec");
	copy = arena_dup(call_arena(c), str_of(made), e);
	*ret = str_of(copy ? copy : "");
	return copy ? 0 : -1;
}

void exec_for(struct call *c, const struct exec_request *q, exec_done_fn on_done, void *data)
{
	struct err e = ERR_INIT;
	struct exec_plan *p = arena_alloc(call_arena(c), sizeof(*p), &e);

	if (p)
		*p = (struct exec_plan){
			.call = c, .request = q, .on_done = on_done, .data = data
		};
	if (!p || exec_name(c, q, &p->id, &e) < 0)
		on_done(data, NULL, &e);
	else
		secret_grant(c, &q->secrets, exec_granted, p);
}

static void exec_run(struct call *c, const void *request)
{
	const struct exec_request *q = request;
	struct err e = ERR_INIT;
	struct exec_plan *p = exec_check(c, q, &e) < 0 ? NULL
						       : arena_alloc(call_arena(c), sizeof(*p), &e);
	enum once once;

	if (p)
		*p = (struct exec_plan){ .call = c, .request = q };
	if (!p || exec_name(c, q, &p->id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	once = once_begin(c, &p->id);
	if (once == ONCE_OVER)
		return;
	p->again = once == ONCE_AGAIN;
	secret_grant(c, &q->secrets, exec_granted, p);
}

const struct op sandbox_exec_op = {
	.action = "sandbox.exec",
	.doc = "Runs a command in a sandbox and returns its result when it has ended; "
	       "in the background, returns its state at once.",
	.effect = OP_EXECUTE,
	.flags = OP_KEYED | OP_COMMANDS,
	.request = &request_table,
	.target = OP_TARGET(struct exec_request, sandbox),
	.result = &exec_answer_table,
	.event = &exec_event_table,
	.normalize = exec_normalize,
	.command = exec_command,
	.run = exec_run,
};
