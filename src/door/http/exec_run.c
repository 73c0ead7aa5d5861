#include "door/http/exec_run.h"

#include "hub/sandbox/job.h"
#include "hub/core/output.h"
#include "hub/core/report.h"

/* A run; its memory is the call's, but for what is kept of output. */
struct exec_run {
	struct call *call;
	const struct exec_wish *wish;
	const struct exec_voice *voice; /* NULL: it is collected */
	struct exec *exec; /* NULL before it started, and after its end */
	struct output out, err;
	struct str input; /* what is left of it */
	uint32_t timeout_s;
	bool held;
	struct err
		refused; /* there is no room for a stream, or nothing more is wanted of the client */
};

/* ---- what goes in -------------------------------------------------------------------------- */

static void feed(void *arg)
{
	enum { CHUNK = 256 << 10 };
	struct exec_run *r = arg;
	struct err e;

	while (r->input.n > 0) {
		size_t n = r->input.n < CHUNK ? r->input.n : CHUNK;

		if (exec_write(r->exec, r->input.p, n, &e) < 0) {
			exec_on_drain(r->exec, feed, r);
			return;
		}
		r->input.p += n;
		r->input.n -= n;
	}
	exec_close_stdin(r->exec);
}

/* ---- what comes out ------------------------------------------------------------------------ */

static void hold(struct exec_run *r, bool held)
{
	r->held = held;
	if (!r->exec)
		return;
	exec_hold(r->exec, EXEC_STDOUT, held);
	exec_hold(r->exec, EXEC_STDERR, held);
}

static void on_room(void *data)
{
	hold(data, false);
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct exec_run *r = arg;

	if (!r->voice) {
		output_add(stream == EXEC_STDOUT ? &r->out : &r->err, p, n);
		return;
	}
	r->voice->chunk(r->call, stream, (struct str){ p, n });
	if (!r->held && ask_stream_full(r->call))
		hold(r, true);
}

static void fail_timeout(struct exec_run *r)
{
	struct call_about *about = call_about(r->call);
	struct err e;

	about->dimension = STR_LIT("wall");
	about->has_timeout_s = true;
	about->timeout_s = r->timeout_s;
	err_set(&e, ERR_TIMEOUT, "the command was killed after %u s", r->timeout_s);
	call_fail(r->call, &e);
}

static void end_collected(struct exec_run *r, const struct exec_result *result)
{
	struct report report;
	struct err e = ERR_INIT;

	if (result->end == EXEC_TIMED_OUT)
		fail_timeout(r);
	else if (report_init(&report, result, &r->out, &r->err, &e) < 0)
		call_fail(r->call, &e);
	else
		call_answer(r->call, &report);
	if (result->end != EXEC_TIMED_OUT)
		report_fini(&report);
}

/* Which limit it ran into, if that was its end. */
static void tell_limit(const struct exec_result *result, struct exec_end_view *end)
{
	if (result->end == EXEC_TIMED_OUT) {
		end->code = str_of(api_codes[API_EXEC_TIMEOUT].name);
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

void exec_end_of(const struct exec_result *result, const struct err *err, struct exec_end_view *ret)
{
	*ret = (struct exec_end_view){ .exit_code = -1 };
	if (result) {
		ret->exit_code = result->exit_code;
		ret->wall_ms = (double)result->wall_us / 1000;
		tell_limit(result, ret);
	} else {
		ret->code = str_of(api_codes[api_code_of(err->code)].name);
		ret->error = str_of(err->msg);
		ret->dimension = api_dimension_of(err->code);
	}
}

/* The command's own time was over, and not that of the call. */
static bool ends_well(const struct exec_run *r)
{
	uint64_t waits_ms = call_timeout_ms(r->call);

	return r->voice->timeout_is_end && (waits_ms == 0 || waits_ms > r->timeout_s * 1000ull);
}

/* The client hears of the end as a message, and again as the stream's own end if it is no good one. */
static void end_spoken(struct exec_run *r, const struct exec_result *result, const struct err *err)
{
	struct exec_end_view end;

	exec_end_of(result, err, &end);
	r->voice->end(r->call, &end);
	if (err)
		call_fail(r->call, err);
	else if (result->end == EXEC_TIMED_OUT && !ends_well(r))
		fail_timeout(r);
	else
		call_answer(r->call, NULL);
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	struct exec_run *r = arg;
	struct output out = r->out, kept = r->err;

	r->exec = NULL;
	/* r goes with its call. */
	if (r->refused.code != ERR_NONE)
		call_fail(r->call, &r->refused);
	else if (r->voice)
		end_spoken(r, result, err);
	else if (err)
		call_fail(r->call, err);
	else
		end_collected(r, result);
	output_fini(&out);
	output_fini(&kept);
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

/* ---- the start ----------------------------------------------------------------------------- */

static void on_cancel(void *data)
{
	struct exec_run *r = data;

	if (r->exec)
		exec_kill(r->exec);
}

bool exec_refuses(struct call *c, const struct exec_wish *w)
{
	struct call_about *about = call_about(c);
	struct err e;

	if (w->timeout_s <= EXEC_TIMEOUT_MAX)
		return false;
	about->sandbox = w->sandbox;
	about->has_requested_s = about->has_max_timeout_s = true;
	about->requested_s = w->timeout_s;
	about->max_timeout_s = EXEC_TIMEOUT_MAX;
	err_set(&e, ERR_INVALID, "a command can be given %d seconds, not %u", EXEC_TIMEOUT_MAX,
		w->timeout_s);
	ask_fail_as(c, API_TIMEOUT_TOO_LARGE, &e);
	return true;
}

int exec_spec_of(struct call *c, const struct exec_wish *w, struct exec_spec *ret, struct err *e)
{
	struct str *words = arena_array(call_arena(c), w->args.n + 1, sizeof(*words), e);

	if (!words)
		return -1;
	*ret = (struct exec_spec){ .env = w->env, .n_env = w->n_env, .cwd = w->cwd };
	words[0] = w->command;
	for (size_t i = 0; i < w->args.n; i++)
		words[i + 1] = w->args.p[i];
	if (w->has_args) {
		ret->argv = words;
		ret->n_argv = w->args.n + 1;
	} else {
		ret->shell = w->command;
	}
	return 0;
}

/* The front of a text as far as there is room. */
static void add_front(struct buf *b, struct str text)
{
	size_t room = b->max - b->n;
	struct err e;

	if (buf_add(b, text.p, text.n < room ? text.n : room, &e) < 0)
		b->max = b->n;
}

struct str exec_command_of(struct call *c, const struct exec_wish *w)
{
	autobuf struct buf b = BUF_INIT(JOB_COMMAND_MAX + 1);
	struct err e;
	char *text;

	add_front(&b, w->command);
	for (size_t i = 0; w->has_args && i < w->args.n && b.n < b.max; i++) {
		add_front(&b, STR_LIT(" "));
		add_front(&b, w->args.p[i]);
	}
	text = arena_dup(call_arena(c), buf_str(&b), &e);
	return text ? (struct str){ text, b.n } : w->command;
}

/* It leaves the end of what it prints behind, and can be found while it runs. */
static int start(struct exec_run *r, struct life *l, struct err *e)
{
	const struct exec_wish *w = r->wish;
	uint64_t waits_ms = call_timeout_ms(r->call), ms = r->timeout_s * 1000ull;
	struct job_spec spec = { .command = exec_command_of(r->call, w),
				 .events = &events,
				 .arg = r };
	struct job *j;

	if (exec_spec_of(r->call, w, &spec.exec, e) < 0)
		return -1;
	spec.exec.timeout_ms = waits_ms > 0 && waits_ms < ms ? waits_ms : ms;
	spec.exec.stdin_open = w->input.n > 0 || w->stdin_open;
	spec.exec.terminal = w->terminal.columns > 0 ? &w->terminal : NULL;
	j = job_start(l, &spec, e);
	r->exec = j ? job_exec(j) : NULL;
	return j ? 0 : -1;
}

static struct exec_run *run_new(struct call *c, const struct exec_wish *w, struct err *e)
{
	struct exec_run *r = arena_alloc(call_arena(c), sizeof(*r), e);

	if (r)
		*r = (struct exec_run){ .call = c,
					.wish = w,
					.input = w->input,
					.timeout_s = w->timeout_s ? w->timeout_s
								  : EXEC_TIMEOUT_DEFAULT };
	return r;
}

/* It runs: what follows is common to both ways. */
static void go_on(struct exec_run *r)
{
	call_on_cancel(r->call, on_cancel, r);
	if (r->input.n > 0)
		feed(r);
}

/* The one that runs, busy until the end of the call. */
static struct life *use_sandbox(struct call *c, struct str id, struct err *e)
{
	return ask_sandbox(c, id, e) ? call_life(c, id, e) : NULL;
}

void exec_collect(struct call *c, const struct exec_wish *w, uint32_t max_output)
{
	struct err e = ERR_INIT;
	struct life *l = use_sandbox(c, w->sandbox, &e);
	struct exec_run *r = l ? run_new(c, w, &e) : NULL;

	if (r && call_reserve(c, 2 * output_text_max(max_output), &e) < 0) {
		call_about(c)->dimension = STR_LIT("output");
		r = NULL;
	}
	if (!r) {
		call_fail(c, &e);
		return;
	}
	output_init(&r->out, max_output);
	output_init(&r->err, max_output);
	if (start(r, l, &e) < 0)
		call_fail(c, &e);
	else
		go_on(r);
}

void exec_speak(struct call *c, const struct exec_wish *w, const struct exec_voice *voice)
{
	struct err e = ERR_INIT;
	struct life *l = use_sandbox(c, w->sandbox, &e);
	struct exec_run *r = l ? run_new(c, w, &e) : NULL;

	if (!r || start(r, l, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	r->voice = voice;
	if (ask_stream_start(c, on_room, r, &r->refused) < 0)
		exec_kill(r->exec);
	go_on(r);
}

/* ---- input as it comes ----------------------------------------------------------------------- */

/* From where on the client has to wait: with a message more there is still room in what an exec keeps. */
enum { INPUT_HIGH = 512 << 10 };

struct exec_run *exec_run_start(struct call *c, const struct exec_wish *w,
				const struct exec_voice *voice, struct err *e)
{
	struct life *l = use_sandbox(c, w->sandbox, e);
	struct exec_run *r = l ? run_new(c, w, e) : NULL;

	if (!r || start(r, l, e) < 0)
		return NULL;
	r->voice = voice;
	call_on_cancel(c, on_cancel, r);
	return r;
}

struct exec *exec_run_exec(const struct exec_run *r)
{
	return r->refused.code == ERR_NONE ? r->exec : NULL;
}

static void on_taken(void *arg)
{
	struct exec_run *r = arg;

	ask_socket_hold(r->call, false);
}

void exec_run_input(struct exec_run *r, struct str bytes)
{
	struct err e;

	if (!r->exec)
		return;
	if (exec_write(r->exec, bytes.p, bytes.n, &e) < 0) {
		exec_run_refuse(r, &e);
	} else if (exec_waiting(r->exec) > INPUT_HIGH) {
		exec_on_drain(r->exec, on_taken, r);
		ask_socket_hold(r->call, true);
	}
}

void exec_run_room(struct exec_run *r)
{
	on_room(r);
}

void exec_run_refuse(struct exec_run *r, const struct err *e)
{
	if (r->refused.code != ERR_NONE)
		return;
	r->refused = *e;
	if (r->exec)
		exec_kill(r->exec);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static const struct field answer_fields[] = {
	FIELD(struct report, exit_code, .flags = FIELD_REQUIRED,
	      .doc = "Of the command; 128 and its number where a signal ended it."),
	FIELD_NAMED(struct report, out, "stdout", .flags = FIELD_REQUIRED,
		    .doc = "As text: what is not UTF-8 is replaced, see stdout_base64."),
	FIELD_NAMED(struct report, err, "stderr", .flags = FIELD_REQUIRED, .doc = "Likewise."),
	FIELD_NAMED(struct report, wall_ms, "exec_time_ms", .flags = FIELD_REQUIRED,
		    .doc = "How long it ran."),
	FIELD(struct report, signal, .has = FIELD_HAS(struct report, has_signal),
	      .doc = "The signal that ended it."),
	FIELD(struct report, hit_memory, .flags = FIELD_REQUIRED,
	      .doc = "A process of it was killed for the sandbox's memory limit."),
	FIELD(struct report, hit_pids, .flags = FIELD_REQUIRED,
	      .doc = "It could not start a process for the sandbox's limit of them."),
	FIELD(struct report, hit_disk, .flags = FIELD_REQUIRED,
	      .doc = "The sandbox's disk was full when it ended."),
	FIELD_NAMED(struct report, out_base64, "stdout_base64",
		    .doc = "The bytes of stdout, where they are not UTF-8."),
	FIELD_NAMED(struct report, err_base64, "stderr_base64",
		    .doc = "The bytes of stderr, where they are not UTF-8."),
	FIELD_NAMED(struct report, out_elided, "stdout_elided_bytes",
		    .has = FIELD_HAS(struct report, has_out_elided),
		    .doc = "How much of the middle of stdout is left out."),
	FIELD_NAMED(struct report, err_elided, "stderr_elided_bytes",
		    .has = FIELD_HAS(struct report, has_err_elided),
		    .doc = "How much of the middle of stderr is left out."),
};
const struct field_table exec_answer_table = FIELD_TABLE(struct report, answer_fields);
