/*
 * A run. Code that is a script has the value of its last statement, and may await; code with import
 * or export is a module, and has the value of its default export. The parser decides which it is. A
 * function as the value is called, a promise awaited.
 */
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "modules/guest/internal.h"

#define SCRIPT_NAME "code.js"

enum {
	REJECTED_MAX = 256,
	STUCK_US = 250 * 1000, /* how long code may go on that can't be interrupted */
	PROCESS_BYTES = 96 << 20, /* what the process needs beside the heap */
};

static volatile sig_atomic_t cpu_spent;

/* ---- limits -------------------------------------------------------------------------------- */

static void on_cpu(int signal)
{
	static const struct itimerval stuck = { .it_value = { .tv_usec = STUCK_US } };

	if (cpu_spent)
		guest_exit(CODE_EXIT_CPU);
	cpu_spent = 1;
	setitimer(ITIMER_PROF, &stuck, NULL);
}

static int is_over(JSRuntime *rt, void *opaque)
{
	struct guest *g = opaque;

	if (cpu_spent && g->hit == GUEST_NO_LIMIT)
		g->hit = GUEST_CPU;
	return cpu_spent;
}

static void limit(int what, uint64_t to)
{
	struct rlimit r = { to, to };

	setrlimit((__rlimit_resource_t)what, &r);
}

static void limits_begin(struct guest *g, JSValueConst frame)
{
	uint64_t cpu_ms = guest_own_int(g->ctx, frame, "cpu_ms");
	uint64_t heap = guest_own_int(g->ctx, frame, "heap");
	struct itimerval cpu = { .it_value = { .tv_sec = (time_t)(cpu_ms / 1000),
					       .tv_usec = (suseconds_t)(cpu_ms % 1000 * 1000) } };

	JS_SetMemoryLimit(g->rt, heap);
	JS_SetMaxStackSize(g->rt, guest_own_int(g->ctx, frame, "stack"));
	g->output_left = guest_own_int(g->ctx, frame, "output");
	g->calls_left = guest_own_int(g->ctx, frame, "calls");
	limit(RLIMIT_AS, heap + PROCESS_BYTES);
	limit(RLIMIT_CPU, cpu_ms / 1000 + 2);
	limit(RLIMIT_CORE, 0);
	signal(SIGPROF, on_cpu);
	setitimer(ITIMER_PROF, &cpu, NULL);
	JS_SetInterruptHandler(g->rt, is_over, g);
}

/* ---- promises that nothing handles --------------------------------------------------------- */

void run_handled(struct guest *g, JSValueConst promise)
{
	size_t i = 0;

	while (i < g->n_rejected && JS_VALUE_GET_PTR(g->rejected[i]) != JS_VALUE_GET_PTR(promise))
		i++;
	if (i == g->n_rejected)
		return;
	JS_FreeValue(g->ctx, g->rejected[i]);
	g->rejected[i] = g->rejected[--g->n_rejected];
}

static void on_rejected(JSContext *ctx, JSValueConst promise, JSValueConst reason, JS_BOOL handled,
			void *opaque)
{
	struct guest *g = opaque;

	if (handled)
		run_handled(g, promise);
	else if (g->n_rejected < REJECTED_MAX)
		g->rejected[g->n_rejected++] = JS_DupValue(ctx, promise);
}

/* ---- the code ------------------------------------------------------------------------------ */

static JSValue compile(JSContext *ctx, struct str code, int flags)
{
	return JS_Eval(ctx, code.p, code.n, SCRIPT_NAME,
		       flags | JS_EVAL_FLAG_COMPILE_ONLY | JS_EVAL_FLAG_BACKTRACE_BARRIER);
}

static uint64_t place_of(JSContext *ctx, JSValueConst error)
{
	return guest_own_int(ctx, error, "lineNumber") << 32 |
	       (guest_own_int(ctx, error, "columnNumber") & UINT32_MAX);
}

/* As a script, or where that does not parse as a module. The error is that of the try that came
 * further. */
static JSValue parse(JSContext *ctx, struct str code, bool *ret_module)
{
	JSValue script = compile(ctx, code, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC), module;
	JSValue of_script, of_module;

	*ret_module = false;
	if (!JS_IsException(script))
		return script;
	of_script = JS_GetException(ctx);
	module = compile(ctx, code, JS_EVAL_TYPE_MODULE);
	if (!JS_IsException(module)) {
		JS_FreeValue(ctx, of_script);
		*ret_module = true;
		return module;
	}
	of_module = JS_GetException(ctx);
	if (place_of(ctx, of_module) >= place_of(ctx, of_script) ||
	    JS_DetectModule(code.p, code.n)) {
		JS_FreeValue(ctx, of_script);
		return JS_Throw(ctx, of_module);
	}
	JS_FreeValue(ctx, of_module);
	return JS_Throw(ctx, of_script);
}

/* Waits for a promise, which it takes, and returns its result. */
static JSValue awaited(struct guest *g, JSValue v)
{
	JSContext *ctx = g->ctx;
	JSValue result = JS_EXCEPTION;

	if (!JS_IsObject(v) || (int)JS_PromiseState(ctx, v) < 0)
		return v;
	if (call_settle(g, v)) {
		result = JS_PromiseResult(ctx, v);
		if (JS_PromiseState(ctx, v) == JS_PROMISE_REJECTED)
			result = JS_Throw(ctx, result);
	}
	JS_FreeValue(ctx, v);
	return result;
}

static JSValue value_of_module(JSContext *ctx, JSModuleDef *def)
{
	JSValue space = JS_GetModuleNamespace(ctx, def), v;

	if (JS_IsException(space))
		return space;
	v = JS_GetPropertyStr(ctx, space, "default");
	JS_FreeValue(ctx, space);
	return v;
}

static JSValue run_code(struct guest *g, struct str code)
{
	JSContext *ctx = g->ctx;
	JSModuleDef *def = NULL;
	bool is_module;
	JSValue v = parse(ctx, code, &is_module), inner;

	if (JS_IsException(v))
		return v;
	if (is_module)
		def = JS_VALUE_GET_PTR(v);
	v = awaited(g, JS_EvalFunction(ctx, v));
	if (JS_IsException(v))
		return v;
	inner = is_module ? value_of_module(ctx, def) : guest_own(ctx, v, "value");
	JS_FreeValue(ctx, v);
	inner = awaited(g, inner);
	if (JS_IsFunction(ctx, inner)) {
		v = JS_Call(ctx, inner, JS_UNDEFINED, 0, NULL);
		JS_FreeValue(ctx, inner);
		inner = awaited(g, v);
	}
	return inner;
}

/* Nothing of it runs. */
static JSValue check_code(struct guest *g, struct str code)
{
	JSValue v;

	modules_pretend(g);
	v = compile(g->ctx, code, JS_EVAL_TYPE_MODULE);
	if (JS_IsException(v))
		return v;
	JS_FreeValue(g->ctx, v);
	return modules_exports(g->ctx, code);
}

/* Runs what is left when the value is there: jobs, and calls that nobody waits for. */
static bool run_rest(struct guest *g)
{
	JSContext *ran;
	int jobs;

	do {
		while ((jobs = JS_ExecutePendingJob(g->rt, &ran)) > 0)
			;
		if (jobs < 0 || !call_finish(g))
			return false;
	} while (JS_IsJobPending(g->rt));
	if (g->n_rejected == 0)
		return true;
	JS_Throw(g->ctx, JS_PromiseResult(g->ctx, g->rejected[0]));
	return false;
}

/* ---- its end ------------------------------------------------------------------------------- */

static void put_text(struct buf *to, JSContext *ctx, const char *key, JSValue v)
{
	enum { TEXT_MAX = 16 << 10 };
	size_t n;
	const char *text = JS_IsUndefined(v) ? NULL : JS_ToCStringLen(ctx, &n, v);

	if (text) {
		while (n > TEXT_MAX || (n > 0 && text[n - 1] == '\n'))
			n--;
		guest_put(to, key, (struct str){ text, n });
	}
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, v);
	if (JS_HasException(ctx))
		JS_FreeValue(ctx, JS_GetException(ctx));
}

/* The first place in the code that a stack names, as in "at f (code.js:3:5)". */
static void put_place(struct buf *to, JSContext *ctx, JSValueConst error)
{
	uint64_t line = guest_own_int(ctx, error, "lineNumber");
	uint64_t column = guest_own_int(ctx, error, "columnNumber");
	JSValue stack = guest_own(ctx, error, "stack");
	const char *text = JS_IsString(stack) ? JS_ToCString(ctx, stack) : NULL;
	const char *at = text ? strstr(text, SCRIPT_NAME ":") : NULL;
	unsigned of_line, of_column;

	if (at && sscanf(at + strlen(SCRIPT_NAME), ":%u:%u", &of_line, &of_column) == 2) {
		line = of_line;
		column = of_column;
	}
	if (line > 0 && line <= UINT32_MAX && column <= UINT32_MAX) {
		guest_put_int(to, "line", line);
		guest_put_int(to, "column", column);
	}
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, stack);
}

static JSValue error_name(JSContext *ctx, JSValueConst error)
{
	JSValue name = JS_GetPropertyStr(ctx, error, "name");

	return JS_IsString(name) ? name : JS_NewString(ctx, "Error");
}

/* QuickJS says of two limits that they were reached in words of its own. */
static enum guest_limit limit_said(JSContext *ctx, JSValueConst error)
{
	JSValue message = guest_own(ctx, error, "message");
	const char *text = JS_IsString(message) ? JS_ToCString(ctx, message) : NULL;
	enum guest_limit hit = GUEST_NO_LIMIT;

	if (text && strcmp(text, "out of memory") == 0)
		hit = GUEST_HEAP;
	else if (text && strcmp(text, "stack overflow") == 0)
		hit = GUEST_STACK;
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, message);
	return hit;
}

static void tell_failure(struct guest *g)
{
	static const char *const limits[] = { NULL, "cpu", "heap", "stack", "output", "calls" };
	struct buf frame = guest_frame("failed");
	JSContext *ctx = g->ctx;
	JSValue error;

	/* So that the error can be told. */
	JS_SetMemoryLimit(g->rt, (size_t)-1);
	error = JS_GetException(ctx);
	if (g->hit == GUEST_NO_LIMIT)
		g->hit = limit_said(ctx, error);
	if (JS_IsError(ctx, error)) {
		put_text(&frame, ctx, "name", error_name(ctx, error));
		put_text(&frame, ctx, "message", guest_own(ctx, error, "message"));
		put_text(&frame, ctx, "stack", guest_own(ctx, error, "stack"));
		put_place(&frame, ctx, error);
	} else {
		size_t n;
		const char *text = guest_text(ctx, error, &n);

		guest_put(&frame, "name", STR_LIT("Error"));
		put_text(&frame, ctx, "message",
			 text ? JS_NewStringLen(ctx, text, n) : JS_UNDEFINED);
		JS_FreeCString(ctx, text);
	}
	if (g->hit != GUEST_NO_LIMIT)
		guest_put(&frame, "limit", str_of(limits[g->hit]));
	guest_put_json(&frame, "again", g->sent == 0 ? STR_LIT("true") : STR_LIT("false"));
	guest_send(&frame);
}

static bool tell_value(struct guest *g, JSValueConst v)
{
	JSContext *ctx = g->ctx;
	JSValue json = guest_json(ctx, v);
	struct buf frame;
	const char *text;
	size_t n = 0;

	if (JS_IsException(json))
		return false;
	text = JS_IsString(json) ? JS_ToCStringLen(ctx, &n, json) : NULL;
	if (n > g->output_left) {
		guest_over(ctx, GUEST_OUTPUT);
		return false;
	}
	frame = guest_frame("done");
	if (text) {
		guest_put_json(&frame, "value", (struct str){ text, n });
	}
	guest_put_json(&frame, "again", STR_LIT("true"));
	guest_send(&frame);
	return true;
}

/* ---- the worker ---------------------------------------------------------------------------- */

static void guest_begin(struct guest *g)
{
	static JSValue rejected[REJECTED_MAX];

	g->in = BUF_INIT(CODE_FRAME_MAX + 1);
	g->rejected = rejected;
	g->rt = JS_NewRuntime();
	g->ctx = g->rt ? JS_NewContext(g->rt) : NULL;
	if (!g->ctx)
		guest_exit(CODE_EXIT_START);
	JS_SetContextOpaque(g->ctx, g);
	JS_SetHostPromiseRejectionTracker(g->rt, on_rejected, g);
	value_init(g);
	if (console_init(g) < 0 || call_init(g) < 0 || modules_init(g) < 0)
		guest_exit(CODE_EXIT_START);
}

void guest_run(void)
{
	static struct guest guest;
	struct guest *g = &guest;
	JSValue frame, source, v;
	struct str code;

	guest_begin(g);
	frame = call_read(g, "run");
	source = guest_own(g->ctx, frame, "code");
	code.p = JS_ToCStringLen(g->ctx, &code.n, source);
	if (!code.p)
		guest_exit(CODE_EXIT_WIRE);
	limits_begin(g, frame);
	v = guest_own_int(g->ctx, frame, "check") ? check_code(g, code) : run_code(g, code);
	if (JS_IsException(v) || !run_rest(g) || !tell_value(g, v))
		tell_failure(g);
	guest_exit(0);
}
