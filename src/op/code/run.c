/*
 * code.execute. A run has a process of holt-js until its end, and ends once: with what the process
 * says, with the process, at its wall-clock limit, or cancelled.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "call/profile.h"
#include "op/code/internal.h"
#include "op/ops.h"

enum {
	CPU_MS_DEFAULT = 5000,
	CPU_MS_MAX = 60 * 1000,
	WALL_MS_DEFAULT = 30 * 1000,
	WALL_MS_MAX = 600 * 1000,
	HEAP_MB_DEFAULT = 64,
	HEAP_MB_MAX = 512,
	STACK_KB_DEFAULT = 1024,
	STACK_KB_MAX = 4096,
	OUTPUT_KB_DEFAULT = 256,
	OUTPUT_KB_MAX = 4096,
	CALLS_DEFAULT = 1000,
	CALLS_MAX = 100000,
	TICK_MS = 20, /* how exactly the wall-clock limit is kept */
	LINE_COST = 16, /* as holt-js counts */
};

#define Q struct code_request
static const struct field request_fields[] = {
	FIELD(Q, code, .flags = FIELD_REQUIRED, .min = 1, .max = CODE_SOURCE_MAX,
	      .doc = "JavaScript or TypeScript: a script, whose value is what it returns or that "
		     "of its last statement, or an ES module, whose value is its default export. "
		     "Both may await."),
	FIELD(Q, cpu_ms, .min = 10, .max = CPU_MS_MAX, .def = DEFAULT_INT(CPU_MS_DEFAULT),
	      .has = FIELD_HAS(Q, has_cpu_ms), .doc = "CPU time limit in milliseconds."),
	FIELD(Q, wall_ms, .min = 10, .max = WALL_MS_MAX, .def = DEFAULT_INT(WALL_MS_DEFAULT),
	      .has = FIELD_HAS(Q, has_wall_ms),
	      .doc = "Time limit in milliseconds, without the time in which a person is asked."),
	FIELD(Q, heap_mb, .min = 1, .max = HEAP_MB_MAX, .def = DEFAULT_INT(HEAP_MB_DEFAULT),
	      .has = FIELD_HAS(Q, has_heap_mb), .doc = "MiB of memory for its values."),
	FIELD(Q, stack_kb, .min = 64, .max = STACK_KB_MAX, .def = DEFAULT_INT(STACK_KB_DEFAULT),
	      .doc = "KiB of stack."),
	FIELD(Q, output_kb, .min = 1, .max = OUTPUT_KB_MAX, .def = DEFAULT_INT(OUTPUT_KB_DEFAULT),
	      .has = FIELD_HAS(Q, has_output_kb),
	      .doc = "KiB that it may print and return as its value."),
	FIELD(Q, max_calls, .max = CALLS_MAX, .def = DEFAULT_INT(CALLS_DEFAULT),
	      .has = FIELD_HAS(Q, has_max_calls),
	      .doc = "Number of calls of module functions that it may make."),
	PROFILES_ROW(Q),
	FIELD(Q, check,
	      .doc = "Only parse it as an ES module: it does not run, and the value is an "
		     "array of the names that it exports by name."),
};
#undef Q
static const struct field_table request_table = FIELD_TABLE(struct code_request, request_fields);

static const struct field line_fields[] = {
	FIELD_ENUM(struct code_line, level, code_level_names, .flags = FIELD_REQUIRED,
		   .doc = "Console method that printed it."),
	FIELD(struct code_line, text, .flags = FIELD_REQUIRED, .doc = "The printed text."),
};
static const struct field_table line_table = FIELD_TABLE(struct code_line, line_fields);

#define E struct code_error
static const struct field error_fields[] = {
	FIELD(E, name, .flags = FIELD_REQUIRED, .doc = "Name of the error, such as SyntaxError."),
	FIELD(E, message, .flags = FIELD_REQUIRED, .doc = "Message of the error."),
	FIELD(E, line, .has = FIELD_HAS(E, has_place), .doc = "Line in the code, from 1."),
	FIELD(E, column, .has = FIELD_HAS(E, has_place), .doc = "Column in the line, from 1."),
	FIELD(E, stack, .doc = "Call stack, one function per line."),
	FIELD_ENUM(E, limit, code_limit_names, .has = FIELD_HAS(E, has_limit),
		   .doc = "Limit that ended it."),
};
#undef E
static const struct field_table error_table = FIELD_TABLE(struct code_error, error_fields);

#define A struct code_answer
static const struct field answer_fields[] = {
	FIELD(A, ok, .flags = FIELD_REQUIRED, .doc = "False: the code failed, and error says why."),
	FIELD(A, value, .doc = "The value, as JSON; absent if there is none."),
	FIELD_OBJECTS(A, console, line_table, .flags = FIELD_REQUIRED,
		      .doc = "Console output, in order."),
	FIELD_OBJECT(A, error, error_table, .has = FIELD_HAS(A, has_error),
		     .doc = "Why it failed."),
	FIELD(A, calls, .flags = FIELD_REQUIRED,
	      .doc = "Number of module functions that it called."),
	FIELD(A, duration_ms, .flags = FIELD_REQUIRED, .doc = "How long it took, in milliseconds."),
};
#undef A
const struct field_table code_answer_table = FIELD_TABLE(struct code_answer, answer_fields);

/* ---- its end ------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
	struct code_run *r = h->data;

	calls_sweep(&r->calls);
	free(r->lines);
	free(r);
}

void run_end(struct code_run *r)
{
	struct code_answer *a = &r->answer;

	if (r->worker || r->ending || r->calls.n > 0)
		return;
	call_on_cancel(r->call, NULL, NULL);
	a->calls = r->calls.made;
	a->console.p = r->lines;
	a->console.n = r->n_lines;
	a->duration_ms = clock_ms() - r->began_ms;
	uv_close((uv_handle_t *)&r->timer, on_closed);
	if (r->failed.code != ERR_NONE)
		call_fail(r->call, &r->failed);
	else
		call_answer(r->call, a);
}

/* The process is let go; again: for the next run. The run ends with the last of its calls. */
static void run_over(struct code_run *r, bool again)
{
	if (r->worker)
		worker_leave(take_ptr(r->worker), again && r->calls.n == 0);
	uv_timer_stop(&r->timer);
	r->ending = true;
	calls_cancel(&r->calls);
	r->ending = false;
	run_end(r);
}

static void run_limit(struct code_run *r, enum code_limit limit, const char *message)
{
	r->answer.has_error = true;
	r->answer.error = (struct code_error){ .name = STR_LIT("Error"),
					       .message = str_of(message),
					       .has_limit = true,
					       .limit = limit };
	run_over(r, false);
}

void run_failed(struct code_run *r, const struct err *e)
{
	r->failed = *e;
	run_over(r, false);
}

static void run_on_cancel(void *data)
{
	struct err e = ERR_INIT;

	err_set(&e, ERR_CANCELLED, "the run was cancelled");
	run_failed(data, &e);
}

static void run_on_tick(uv_timer_t *t)
{
	struct code_run *r = t->data;
	uint64_t now = clock_ms();

	calls_sweep(&r->calls);
	if (!calls_ask_person(&r->calls))
		r->wall_ms += now - r->ticked_ms;
	r->ticked_ms = now;
	if (r->wall_ms >= r->q->wall_ms)
		run_limit(r, CODE_LIMIT_WALL, "it took longer than it may");
}

/* ---- frames -------------------------------------------------------------------------------- */

static int run_copy(struct code_run *r, struct str *s, struct err *e)
{
	char *copy = s->p ? arena_dup(call_arena(r->call), *s, e) : NULL;

	if (s->p && !copy)
		return -1;
	s->p = copy;
	return 0;
}

/* holt-js counts, too: one that was taken over does not. */
static int run_take_output(struct code_run *r, size_t n, struct err *e)
{
	if (n + LINE_COST > r->output_left)
		return err_set(e, ERR_GUEST, "the JavaScript process told more than it may");
	r->output_left -= n + LINE_COST;
	return 0;
}

static int run_print(struct code_run *r, const struct code_frame *f, struct err *e)
{
	struct code_line line = { f->level, f->text };

	if (run_take_output(r, f->text.n, e) < 0 || run_copy(r, &line.text, e) < 0)
		return -1;
	if (r->n_lines == r->room_lines) {
		size_t room = r->room_lines ? 2 * r->room_lines : 16;
		struct code_line *grown = realloc(r->lines, room * sizeof(*grown));

		if (!grown)
			return err_set(e, ERR_LIMIT, "out of memory");
		r->lines = grown;
		r->room_lines = room;
	}
	r->lines[r->n_lines++] = line;
	return 0;
}

static int run_done(struct code_run *r, const struct code_frame *f, struct err *e)
{
	r->answer.value = f->json;
	if (run_take_output(r, f->json.n / 2, e) < 0 || run_copy(r, &r->answer.value, e) < 0)
		return -1;
	r->answer.ok = true;
	run_over(r, f->again);
	return 0;
}

static int run_threw(struct code_run *r, const struct code_frame *f, struct err *e)
{
	struct code_error *x = &r->answer.error;

	*x = (struct code_error){
		.name = f->name,
		.message = f->message,
		.stack = f->stack,
		.line = f->line,
		.column = f->column,
		.has_place = f->line > 0,
		.has_limit = f->has_limit,
		.limit = f->limit,
	};
	if (run_copy(r, &x->name, e) < 0 || run_copy(r, &x->message, e) < 0 ||
	    run_copy(r, &x->stack, e) < 0)
		return -1;
	r->answer.has_error = true;
	run_over(r, f->again && !f->has_limit);
	return 0;
}

static void run_on_frame(void *run, const struct code_frame *f)
{
	struct code_run *r = run;
	struct err e = ERR_INIT;
	int took = -1;

	switch (f->kind) {
	case CODE_IMPORT:
		took = calls_import(r, f, &e);
		break;
	case CODE_CONSOLE:
		took = run_print(r, f, &e);
		break;
	case CODE_CALL:
		took = calls_call(r, f, &e);
		break;
	case CODE_DONE:
		took = run_done(r, f, &e);
		break;
	case CODE_FAILED:
		took = run_threw(r, f, &e);
		break;
	case CODE_KINDS:
		break;
	}
	if (took < 0)
		run_failed(r, &e);
}

/* ---- the process --------------------------------------------------------------------------- */

static void run_on_end(void *run, const struct exec_result *x, const struct err *err)
{
	struct code_run *r = run;
	struct err e = ERR_INIT;

	r->worker = NULL;
	if (err) {
		e = *err;
		if (e.code == ERR_COMMAND_NOT_FOUND || e.code == ERR_COMMAND_NOT_RUN)
			place_forget_program(r->guest.place);
		run_failed(r, &e);
	} else if (!x) {
		err_set(&e, ERR_BUG, "the JavaScript process is gone");
		run_failed(r, &e);
	} else if (x->exit_code == CODE_EXIT_CPU || x->exit_code == 128 + SIGXCPU) {
		run_limit(r, CODE_LIMIT_CPU,
			  "it used more CPU time than it may, where it could "
			  "not be interrupted");
	} else if (x->exit_code == CODE_EXIT_MEMORY || x->hit_memory) {
		run_limit(r, CODE_LIMIT_HEAP, "it used more memory than it may");
	} else {
		err_set(&e, ERR_GUEST, "the JavaScript process ended before the code did (%d)",
			x->exit_code);
		run_failed(r, &e);
	}
}

static const struct code_worker_events run_events = { run_on_frame, run_on_end };

static void run_begin(struct code_guest *g, const struct err *err)
{
	struct code_run *r = (struct code_run *)g;
	const struct code_request *q = r->q;
	const struct code_limits limits = {
		.cpu_ms = q->cpu_ms,
		.calls = q->max_calls,
		.heap = (uint64_t)q->heap_mb << 20,
		.stack = (uint64_t)q->stack_kb << 10,
		.output = (uint64_t)q->output_kb << 10,
		.check = q->check,
	};
	struct err e = ERR_INIT;

	if (err) {
		run_failed(r, err);
		return;
	}
	if (call_reserve(r->call, 3 * (size_t)limits.output, &e) == 0)
		r->worker = worker_take(g->place, g->sandbox, call_loop(r->call), &run_events, r,
					&e);
	if (!r->worker || code_say_run(worker_out(r->worker), q->code, &limits, &e) < 0) {
		run_failed(r, &e);
		return;
	}
	call_on_cancel(r->call, run_on_cancel, r);
	r->output_left = limits.output + LINE_COST;
	r->began_ms = r->ticked_ms = clock_ms();
	uv_timer_start(&r->timer, run_on_tick, TICK_MS, TICK_MS);
	worker_flush(r->worker);
}

/* From here on all limits are said, so that policy and records have them. */
static int execute_expand(struct call *c, void *request, struct err *e)
{
	struct code_request *q = request;
	struct config_profile p = { .name = STR_NONE };
	const struct config_profile_limits *l = &p.limits;
	bool any;

	if (profile_names(c, &q->profiles, e) < 0 || profile_of(c, &q->profiles, &p, &any, e) < 0)
		return -1;
#define LIMIT(m)                                                                                   \
	if (profile_limit(#m, l->has_##m, l->m, q->has_##m, &q->m, e) < 0)                         \
		return -1;                                                                         \
	q->has_##m = true;
	LIMIT(cpu_ms)
	LIMIT(wall_ms)
	LIMIT(heap_mb)
	LIMIT(output_kb)
	LIMIT(max_calls)
#undef LIMIT
	return 0;
}

static void execute_run(struct call *c, const void *request)
{
	struct code *k = call_code(c);
	struct err e = ERR_INIT;
	struct code_run *r = k ? calloc(1, sizeof(*r)) : NULL;

	if (!r) {
		err_set(&e, k ? ERR_LIMIT : ERR_UNSUPPORTED,
			k ? "out of memory" : "no code runs here");
		call_fail(c, &e);
		return;
	}
	r->guest = (struct code_guest){ .wait = { .call = c }, .then = run_begin };
	r->call = c;
	r->q = request;
	r->began_ms = clock_ms();
	uv_timer_init(call_loop(c), &r->timer);
	r->timer.data = r;
	place_enter(k, &r->guest);
}

const struct op code_execute_op = {
	.action = "code.execute",
	.doc = "Runs JavaScript in a sandbox for code of this principal.",
	.effect = OP_EXECUTE,
	.flags = OP_COMMANDS,
	.request = &request_table,
	.result = &code_answer_table,
	.expand = execute_expand,
	.run = execute_run,
};
