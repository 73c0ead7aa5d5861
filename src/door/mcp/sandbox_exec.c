#include "door/mcp/tools.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "hub/sandbox/job.h"
#include "hub/core/output.h"
#include "hub/core/report.h"
#include "door/mcp/common.h"

/* The answer holds each stream twice, the second time with escapes escaped; with this much of
 * nothing but control characters it still fits into one message of the protocol. */
enum { OUTPUT_MAX = 2 * 1024 * 1024, OUTPUT_DEFAULT = 1024 * 1024, OUTPUT_LEAST = 1024 };
enum { TIMEOUT_MAX = 86400, TIMEOUT_DEFAULT = 30 };

struct exec_params {
	struct str sandbox, command;
	bool has_args;
	struct field_strs args;
	bool background, has_timeout;
	uint32_t timeout_seconds;
	struct field_map env;
	struct str cwd;
	bool has_input, has_input_base64;
	struct str input, input_base64;
	uint32_t max_output_bytes;
};

static const struct field exec_fields[] = {
	SANDBOX_ROW(struct exec_params),
	FIELD(struct exec_params, command, .flags = FIELD_REQUIRED, .min = 1, .max = EXEC_BYTES_MAX,
	      .doc = "Shell line to run; with args, the name of the program to run."),
	FIELD(struct exec_params, args, .max = EXEC_ARGS_MAX - 1,
	      .has = FIELD_HAS(struct exec_params, has_args),
	      .doc = "Runs command as a program with just these arguments, without a shell; [] for none."),
	FIELD(struct exec_params, timeout_seconds, .min = 1, .max = TIMEOUT_MAX,
	      .def = DEFAULT_INT(TIMEOUT_DEFAULT),
	      .has = FIELD_HAS(struct exec_params, has_timeout),
	      .doc = "Kill it and all its descendants after this long; in the background only if given."),
	FIELD(struct exec_params, background, .def = DEFAULT_BOOL(false),
	      .doc = "Return at once with an id in exec, for sandbox_exec_output: for servers and long jobs."),
	FIELD(struct exec_params, env, .max = TOOL_ENV_MAX,
	      .doc = "Environment variables, over those of the sandbox."),
	FIELD(struct exec_params, cwd, .min = 1, .max = TOOL_PATH_MAX,
	      .doc = "Directory to start in; the sandbox's if absent."),
	FIELD_NAMED(struct exec_params, input, "stdin", .flags = FIELD_NUL_OK,
		    .has = FIELD_HAS(struct exec_params, has_input),
		    .doc = "Text for its standard input, which is empty if absent."),
	FIELD_NAMED(struct exec_params, input_base64, "stdin_base64",
		    .has = FIELD_HAS(struct exec_params, has_input_base64),
		    .doc = "Instead of stdin: any bytes, in base64."),
	FIELD(struct exec_params, max_output_bytes, .min = OUTPUT_LEAST, .max = OUTPUT_MAX,
	      .def = DEFAULT_INT(OUTPUT_DEFAULT),
	      .doc = "How much of stdout and of stderr to return; of more, the head and the tail."),
};
static const struct field_table exec_input = FIELD_TABLE(struct exec_params, exec_fields);

/* One run; outlives the call's arena by nothing, but is freed by itself since its buffers are. */
struct exec_run {
	struct call *call;
	struct exec *exec; /* NULL before it started */
	struct output out, err;
	struct str input; /* what is left of it */
	uint64_t begun_ms;
	uint32_t timeout_seconds;
};

static void run_free(struct exec_run *r)
{
	if (!r)
		return;
	output_fini(&r->out);
	output_fini(&r->err);
	free(r);
}
AUTO_DEFINE(run_free, struct exec_run)

/* Writes as much of the input as the engine takes; on_drain calls again for the rest. */
static void feed(void *arg)
{
	enum { CHUNK = 256 * 1024 };
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

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct exec_run *r = arg;

	output_add(stream == EXEC_STDOUT ? &r->out : &r->err, p, n);
}

static void answer(struct exec_run *r, const struct exec_result *result)
{
	struct report report;
	struct err e = ERR_INIT;

	if (report_init(&report, result, &r->out, &r->err, &e) == 0)
		call_answer(r->call, &report);
	else
		call_fail(r->call, &e);
	report_fini(&report);
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	AUTO(run_free) struct exec_run *r = arg;
	struct err e = ERR_INIT;

	if (err) {
		call_fail(r->call, err);
	} else if (call_cancelled(r->call)) {
		err_set(&e, ERR_CANCELLED, "sandbox_exec was cancelled and its command killed");
		call_fail(r->call, &e);
	} else {
		answer(r, result);
	}
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

static void on_cancel(void *data)
{
	struct exec_run *r = data;

	exec_kill(r->exec);
}

static void on_tick(void *data)
{
	struct exec_run *r = data;
	double seconds = (double)(clock_ms() - r->begun_ms) / 1000;
	char text[96];

	snprintf(text, sizeof(text), "running for %.0f s, %llu bytes of output", seconds,
		 (unsigned long long)(r->out.total + r->err.total));
	call_progress(r->call, seconds, r->timeout_seconds, text);
}

/* The words of a program without a shell; none when command is a shell line. */
static int words(struct call *c, const struct exec_params *p, struct exec_spec *spec, struct err *e)
{
	struct str *argv;

	if (!p->has_args) {
		spec->shell = p->command;
		return 0;
	}
	argv = arena_array(call_arena(c), p->args.n + 1, sizeof(*argv), e);
	if (!argv)
		return -1;
	argv[0] = p->command;
	for (size_t i = 0; i < p->args.n; i++)
		argv[i + 1] = p->args.p[i];
	spec->argv = argv;
	spec->n_argv = p->args.n + 1;
	return 0;
}

static int check(const struct exec_params *p, struct err *e)
{
	if (p->has_input && p->has_input_base64)
		return err_set(e, ERR_INVALID,
			       "stdin and stdin_base64: give one of them, not both");
	return 0;
}

static int start(struct call *c, const struct exec_params *p, struct err *e)
{
	AUTO(run_free) struct exec_run *r = calloc(1, sizeof(*r));
	bool binary = p->has_input_base64;
	struct life *l = call_life(c, p->sandbox, e);
	struct job_spec spec = {
		.command = p->command,
		.exec = { .n_env = p->env.n,
			  .cwd = p->cwd,
			  .timeout_ms = p->timeout_seconds * 1000ull,
			  .stdin_open = p->has_input || binary },
		.events = &events,
		.arg = r,
	};
	struct job *j;

	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory");
	r->call = c;
	r->begun_ms = clock_ms();
	r->timeout_seconds = p->timeout_seconds;
	output_init(&r->out, p->max_output_bytes);
	output_init(&r->err, p->max_output_bytes);
	if (!l || words(c, p, &spec.exec, e) < 0 ||
	    call_reserve(c, 2 * (size_t)p->max_output_bytes, e) < 0 ||
	    tool_env(c, &p->env, &spec.exec.env, e) < 0 ||
	    tool_bytes(c, "stdin_base64", binary ? p->input_base64 : p->input,
		       binary ? ENCODING_BASE64 : ENCODING_UTF8, &r->input, e) < 0)
		return -1;
	j = job_start(l, &spec, e);
	if (!j)
		return -1;
	r->exec = job_exec(j);
	call_on_cancel(c, on_cancel, r);
	call_on_tick(c, on_tick, r);
	if (spec.exec.stdin_open)
		feed(r);
	take_ptr(r);
	return 0;
}

/* ---- in the background ---------------------------------------------------------------------- */

/* All of the input at once: one piece is taken whatever its size. */
static int feed_all(struct exec *x, struct str input, struct err *e)
{
	if (exec_write(x, input.p, input.n, e) < 0)
		return -1;
	exec_close_stdin(x);
	return 0;
}

static int start_background(struct call *c, const struct exec_params *p, struct job **ret,
			    struct err *e)
{
	struct life *l = call_life(c, p->sandbox, e);
	bool binary = p->has_input_base64;
	struct job_spec spec = {
		.command = p->command,
		.background = true,
		.exec = { .n_env = p->env.n,
			  .cwd = p->cwd,
			  .timeout_ms = p->has_timeout ? p->timeout_seconds * 1000ull : 0,
			  .stdin_open = p->has_input || binary },
	};
	struct str input;

	if (!l || words(c, p, &spec.exec, e) < 0 || tool_env(c, &p->env, &spec.exec.env, e) < 0 ||
	    tool_bytes(c, "stdin_base64", binary ? p->input_base64 : p->input,
		       binary ? ENCODING_BASE64 : ENCODING_UTF8, &input, e) < 0)
		return -1;
	*ret = job_start(l, &spec, e);
	if (!*ret)
		return -1;
	return spec.exec.stdin_open ? feed_all(job_exec(*ret), input, e) : 0;
}

static void run_background(struct call *c, const struct exec_params *p)
{
	struct report report = { .has_exit_code = false };
	struct err e = ERR_INIT;
	struct job_info i;
	struct job *j;

	if (start_background(c, p, &j, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	job_info(j, &i);
	report.exec = i.id;
	call_answer(c, &report);
}

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct report *r = result;

	if (!r->has_exit_code)
		return buf_addf(to, e, "Runs in the background as %.*s", STR_ARG(r->exec));
	return report_text(r, to, e);
}

static void run(struct call *c, const void *params)
{
	const struct exec_params *p = params;
	struct err e = ERR_INIT;

	if (p->background && check(p, &e) == 0) {
		run_background(c, p);
		return;
	}
	if (e.code || check(p, &e) < 0 || !call_sandbox(c, p->sandbox, &e) || start(c, p, &e) < 0)
		call_fail(c, &e);
}

const struct tool sandbox_exec_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.exec",
			.effect = OP_EXECUTE,
			.request = &exec_input,
			.target = OP_TARGET(struct exec_params, sandbox),
			.result = &report_table,
			.run = run,
		},
	.name = "sandbox_exec",
	.title = "Run a command",
	.doc = "Runs a command in a sandbox and returns its exit code and output as JSON. A command "
	       "that fails or times out is a result, not an error. Many may run at once in one "
	       "sandbox; what one leaves in the background goes on.",
	.task = MCP_TASK_OPTIONAL,
	.text = text_of,
};
