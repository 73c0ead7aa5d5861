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
	REST_MS = 10 * 1000, /* how long timers are waited for when the code has ended */
	STUCK_US = 250 * 1000, /* how long code may go on that can't be interrupted */
	COLLECT_BYTES = 1 << 20, /* that a run adds before the first collection */
	FULL_BYTES = 64 << 10, /* with less the heap is full */
	PROCESS_BYTES = 96 << 20, /* what the process needs beside the heap */
};

static volatile sig_atomic_t cpu_spent;
static size_t heap_begun; /* what a run begins with */

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

bool run_is_over(struct guest *g)
{
	return is_over(g->rt, g);
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

	JS_SetMemoryLimit(g->rt, heap_begun + heap);
	JS_SetMaxStackSize(g->rt, guest_own_int(g->ctx, frame, "stack"));
	g->output_left = guest_own_int(g->ctx, frame, "output");
	g->calls_left = guest_own_int(g->ctx, frame, "calls");
	limit(RLIMIT_AS, heap_begun + heap + PROCESS_BYTES);
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

static JSValue compile(JSContext *ctx, struct str code, const char *name, int flags)
{
	return JS_Eval(ctx, code.p, code.n, name,
		       flags | JS_EVAL_FLAG_COMPILE_ONLY | JS_EVAL_FLAG_BACKTRACE_BARRIER);
}

/* What js/forms.js tries: undefined, or the error of a text that does not parse. */
static JSValue try_form(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	struct guest *g = guest_of(ctx);
	struct form *form = g->form;
	struct str code;
	int type;

	if (!form)
		return JS_ThrowTypeError(ctx, "nothing is parsed");
	code.p = JS_ToCStringLen(ctx, &code.n, argv[0]);
	if (!code.p)
		return JS_EXCEPTION;
	JS_FreeValue(ctx, form->compiled);
	form->is_module = JS_ToBool(ctx, argv[1]);
	type = form->is_module ? JS_EVAL_TYPE_MODULE : JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC;
	form->compiled = compile(ctx, code, form->name, type);
	/* What it imports may have been in another form. */
	g->form = form;
	JS_FreeCString(ctx, code.p);
	if (!JS_IsException(form->compiled))
		return JS_UNDEFINED;
	form->compiled = JS_UNDEFINED;
	return g->hit == GUEST_NO_LIMIT ? JS_GetException(ctx) : JS_EXCEPTION;
}

/* Finds the form of a source by a function of js/forms.js, and returns what that gives. */
static JSValue find_form(struct guest *g, struct form *ret, const char *function,
			 JSValueConst source)
{
	JSContext *ctx = g->ctx;
	JSValue of[2] = { source, JS_NewCFunction(ctx, try_form, "compile", 2) }, made;

	g->form = ret;
	made = library_call(g, function, 2, of);
	g->form = NULL;
	JS_FreeValue(ctx, of[1]);
	return made;
}

JSValue source_module(JSContext *ctx, const char *name, JSValueConst source, JSModuleDef **ret)
{
	struct form form = { .name = name, .compiled = JS_UNDEFINED }, *outer = guest_of(ctx)->form;
	JSValue text = find_form(guest_of(ctx), &form, "module", source);

	guest_of(ctx)->form = outer;
	if (!JS_IsException(text))
		*ret = JS_VALUE_GET_PTR(form.compiled);
	/* The context keeps it. */
	JS_FreeValue(ctx, form.compiled);
	return text;
}

/* As a script, or else in another form: g->place tells then where places of it are. */
static JSValue parse(struct guest *g, struct str code, bool *ret_module)
{
	JSContext *ctx = g->ctx;
	struct form form = { .name = SCRIPT_NAME, .compiled = JS_UNDEFINED };
	JSValue script, place;
	size_t blank = strspn(code.p, " \t\r\n");

	*ret_module = false;
	/* A block of Markdown would parse: as a template, and what follows it. */
	if (strncmp(code.p + blank, "```", 3) != 0) {
		script = compile(ctx, code, SCRIPT_NAME, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC);
		if (!JS_IsException(script) || g->hit != GUEST_NO_LIMIT)
			return script;
		JS_FreeValue(ctx, JS_GetException(ctx));
	}
	place = find_form(g, &form, "forms", g->source);
	if (JS_IsException(place))
		return place;
	g->place = place;
	*ret_module = form.is_module;
	return form.compiled;
}

/* Waits for a promise, which it takes, and returns its result. */
JSValue run_awaited(struct guest *g, JSValue v)
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
	JSValue v = parse(g, code, &is_module), inner;

	if (JS_IsException(v))
		return v;
	g->parsed = true;
	g->waits = source_waits(code);
	if (is_module)
		def = JS_VALUE_GET_PTR(v);
	v = run_awaited(g, JS_EvalFunction(ctx, v));
	if (JS_IsException(v))
		return v;
	inner = is_module ? value_of_module(ctx, def) : guest_own(ctx, v, "value");
	JS_FreeValue(ctx, v);
	inner = run_awaited(g, inner);
	if (JS_IsFunction(ctx, inner)) {
		v = JS_Call(ctx, inner, JS_UNDEFINED, 0, NULL);
		JS_FreeValue(ctx, inner);
		inner = run_awaited(g, v);
	}
	return inner;
}

/* Nothing of it runs. */
static JSValue check_code(struct guest *g)
{
	JSValue source, names;
	JSModuleDef *def;

	modules_pretend(g);
	source = source_module(g->ctx, SCRIPT_NAME, g->source, &def);
	if (JS_IsException(source))
		return source;
	names = library_call(g, "exports", 1, &source);
	JS_FreeValue(g->ctx, source);
	return names;
}

/*
 * Runs what is left when the value is there: jobs, and calls that nobody waits for. Timers are
 * waited for where the code has no value to tell, as in a program that ends with setTimeout(), but
 * not for long: a timeout that lost its race is one, too.
 */
static bool run_rest(struct guest *g, bool has_value)
{
	double until = has_value ? -INFINITY : guest_now_ms(g) + REST_MS;
	int did;

	while ((did = call_step(g, false, until)) > 0)
		;
	if (did < 0 || !call_finish(g))
		return false;
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

static void set(JSContext *ctx, JSValueConst to, const char *name, JSValue v)
{
	JS_DefinePropertyValueStr(ctx, to, name, v, JS_PROP_C_W_E);
}

static JSValue error_name(JSContext *ctx, JSValueConst error)
{
	JSValue name = JS_GetPropertyStr(ctx, error, "name");

	return JS_IsString(name) ? name : JS_NewString(ctx, "Error");
}

/* QuickJS says of two limits that they were reached in words of its own, or throws null where it
 * has no memory for them. */
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

/* The first place in the code that a stack names, as in "at f (code.js:3:5)"; where it did not
 * parse, what the parser says. */
static void set_place(struct guest *g, JSValueConst to, JSValueConst error)
{
	JSContext *ctx = g->ctx;
	uint64_t line = guest_own_int(ctx, error, "lineNumber");
	uint64_t column = guest_own_int(ctx, error, "columnNumber");
	JSValue stack = guest_own(ctx, error, "stack");
	const char *text = JS_IsString(stack) ? JS_ToCString(ctx, stack) : NULL;
	const char *at = text && g->parsed ? strstr(text, SCRIPT_NAME ":") : NULL;
	unsigned of_line, of_column;

	if (at && sscanf(at + strlen(SCRIPT_NAME), ":%u:%u", &of_line, &of_column) == 2) {
		line = of_line;
		column = of_column;
	}
	if (line > 0 && line <= UINT32_MAX && column <= UINT32_MAX) {
		set(ctx, to, "line", JS_NewInt64(ctx, (int64_t)line));
		set(ctx, to, "column", JS_NewInt64(ctx, (int64_t)column));
	}
	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, stack);
}

/* {name, message, stack, line, column} of an error, as js/explain.js tells it. */
static JSValue explained(struct guest *g, JSValueConst error)
{
	JSContext *ctx = g->ctx;
	JSValue said = JS_NewObjectProto(ctx, JS_NULL), of[3], better;

	set(ctx, said, "name", error_name(ctx, error));
	set(ctx, said, "message", guest_own(ctx, error, "message"));
	set(ctx, said, "stack", g->parsed ? guest_own(ctx, error, "stack") : JS_UNDEFINED);
	set(ctx, said, "cause", guest_own(ctx, error, "cause"));
	set(ctx, said, "errors", guest_own(ctx, error, "errors"));
	set_place(g, said, error);
	if (g->hit != GUEST_NO_LIMIT || limit_said(ctx, error) != GUEST_NO_LIMIT)
		return said;
	of[0] = said;
	of[1] = g->source;
	of[2] = g->place;
	better = library_call(g, "explain", 3, of);
	if (JS_IsObject(better)) {
		JS_FreeValue(ctx, said);
		return better;
	}
	JS_FreeValue(ctx, JS_GetException(ctx));
	return said;
}

static void tell_failure(struct guest *g)
{
	static const char *const limits[] = { NULL, "cpu", "heap", "stack", "output", "calls" };
	struct buf frame = guest_frame("failed");
	JSContext *ctx = g->ctx;
	JSValue error, said;
	JSMemoryUsage used;

	JS_ComputeMemoryUsage(g->rt, &used);
	/* So that the error can be told. */
	JS_SetMemoryLimit(g->rt, (size_t)-1);
	error = JS_GetException(ctx);
	if (g->hit == GUEST_NO_LIMIT)
		g->hit = limit_said(ctx, error);
	if (JS_IsNull(error) && used.malloc_size + FULL_BYTES > used.malloc_limit) {
		JS_ThrowOutOfMemory(ctx);
		error = JS_GetException(ctx);
		g->hit = GUEST_HEAP;
	}
	if (JS_IsError(ctx, error)) {
		said = explained(g, error);
		put_text(&frame, ctx, "name", guest_own(ctx, said, "name"));
		put_text(&frame, ctx, "message", guest_own(ctx, said, "message"));
		put_text(&frame, ctx, "stack", guest_own(ctx, said, "stack"));
		if (guest_own_int(ctx, said, "line") > 0) {
			guest_put_int(&frame, "line", guest_own_int(ctx, said, "line"));
			guest_put_int(&frame, "column", guest_own_int(ctx, said, "column"));
		}
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
	JSValue json;
	struct buf frame;
	const char *text;
	size_t n = 0;

	g->telling = true;
	json = guest_json(ctx, v, true);
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

/* The value of a program that ends with setTimeout() is a timer, which tells nothing. */
static JSValue without_timer(struct guest *g, JSValue v)
{
	JSValue is = JS_IsObject(v) ? library_call(g, "isTimer", 1, &v) : JS_FALSE;

	if (JS_VALUE_GET_TAG(is) == JS_TAG_BOOL && JS_ToBool(g->ctx, is)) {
		JS_FreeValue(g->ctx, v);
		return JS_UNDEFINED;
	}
	return v;
}

/* ---- the worker ---------------------------------------------------------------------------- */

static struct guest guest;

void guest_begin(void)
{
	static JSValue rejected[REJECTED_MAX];
	struct guest *g = &guest;
	JSMemoryUsage used;

	g->in = BUF_INIT(CODE_FRAME_MAX + 1);
	g->rejected = rejected;
	g->source = JS_UNDEFINED;
	g->rt = JS_NewRuntime();
	g->ctx = g->rt ? JS_NewContext(g->rt) : NULL;
	if (!g->ctx)
		guest_exit(CODE_EXIT_START);
	JS_SetContextOpaque(g->ctx, g);
	JS_SetHostPromiseRejectionTracker(g->rt, on_rejected, g);
	value_init(g);
	if (library_init(g) < 0 || call_init(g) < 0 || modules_init(g) < 0)
		guest_exit(CODE_EXIT_START);
	g->place = guest_own(g->ctx, g->host, "same");
	/* A collection writes to all objects, and so takes pages away from what processes share:
	 * short runs do without one. */
	JS_RunGC(g->rt);
	JS_ComputeMemoryUsage(g->rt, &used);
	heap_begun = (size_t)used.malloc_size;
	JS_SetGCThreshold(g->rt, heap_begun + COLLECT_BYTES);
}

void guest_run(void)
{
	struct guest *g = &guest;
	JSValue frame, v;
	struct str code;

	frame = call_read(g, "run");
	g->source = guest_own(g->ctx, frame, "code");
	code.p = JS_ToCStringLen(g->ctx, &code.n, g->source);
	if (!code.p)
		guest_exit(CODE_EXIT_WIRE);
	library_begin(g);
	limits_begin(g, frame);
	v = guest_own_int(g->ctx, frame, "check") ? check_code(g)
						  : without_timer(g, run_code(g, code));
	if (JS_IsException(v) || !run_rest(g, !JS_IsUndefined(v)) || !tell_value(g, v))
		tell_failure(g);
	guest_exit(0);
}
