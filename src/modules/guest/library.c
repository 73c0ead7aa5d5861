/*
 * What programs find beside the language: js/ has it, as scripts that the build has compiled. Each
 * is a function that takes one object, `host`: functions of here, and what the scripts before it
 * have put there. The parent of all runs loads them, so a run begins with them.
 */
#include <time.h>

#include "modules/guest/internal.h"

/* An object of each kind: its class is known then, whatever code does to prototypes. */
static const struct {
	const char *code, *kind;
} samples[] = {
	{ "({})", "Object" },
	{ "[]", "Array" },
	{ "new Error()", "Error" },
	{ "new Map()", "Map" },
	{ "new Set()", "Set" },
	{ "new WeakMap()", "WeakMap" },
	{ "new WeakSet()", "WeakSet" },
	{ "new Date()", "Date" },
	{ "/x/", "RegExp" },
	{ "Promise.resolve()", "Promise" },
	{ "new ArrayBuffer(0)", "ArrayBuffer" },
	{ "new DataView(new ArrayBuffer(1))", "DataView" },
	{ "Object(1)", "Boxed" },
	{ "Object('')", "Boxed" },
	{ "Object(true)", "Boxed" },
	{ "Object(1n)", "Boxed" },
	{ "Object(Symbol())", "Boxed" },
	{ "(function* () {})()", "Generator" },
	{ "(function () { return arguments })()", "Arguments" },
	{ "(function () { 'use strict'; return arguments })()", "Arguments" },
};

static int learn_kinds(struct guest *g)
{
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		JSValue v = JS_Eval(g->ctx, samples[i].code, strlen(samples[i].code), "kinds.js",
				    0);
		JSClassID class = JS_GetClassID(v);

		if (JS_IsException(v))
			return -1;
		if (class < GUEST_CLASSES)
			g->kinds[class] = samples[i].kind;
		JS_FreeValue(g->ctx, v);
	}
	for (JSClassID class = g->bytes_first; class <= g->bytes_last && class < GUEST_CLASSES;
	     class ++)
		g->kinds[class] = "TypedArray";
	return 0;
}

const char *guest_kind(JSContext *ctx, JSValueConst v)
{
	JSClassID class = JS_GetClassID(v);
	const char *kind = class < GUEST_CLASSES ? guest_of(ctx)->kinds[class] : NULL;

	if (!JS_IsObject(v))
		return NULL;
	return JS_IsFunction(ctx, v) ? "Function" : kind ? kind : "Object";
}

/* ---- functions of the host ------------------------------------------------------------------ */

static JSValue host_kind(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *kind = guest_kind(ctx, argv[0]);

	return kind ? JS_NewString(ctx, kind) : JS_UNDEFINED;
}

static JSValue host_now(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return JS_NewFloat64(ctx, guest_now_ms(guest_of(ctx)));
}

static JSValue host_settled(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return call_settled(ctx, argv[0]);
}

static JSValue host_promise(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	static const char *const states[] = { "pending", "fulfilled", "rejected" };
	JSValue pair = JS_NewArray(ctx);

	JS_DefinePropertyValueUint32(ctx, pair, 0,
				     JS_NewString(ctx, states[JS_PromiseState(ctx, argv[0])]),
				     JS_PROP_C_W_E);
	JS_DefinePropertyValueUint32(ctx, pair, 1, JS_PromiseResult(ctx, argv[0]), JS_PROP_C_W_E);
	return pair;
}

static JSValue run_job(JSContext *ctx, int argc, JSValueConst *argv)
{
	return JS_Call(ctx, argv[0], JS_UNDEFINED, 0, NULL);
}

static JSValue host_enqueue(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return JS_EnqueueJob(ctx, run_job, 1, argv) < 0 ? JS_EXCEPTION : JS_UNDEFINED;
}

static JSValue host_failed(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return JS_DupValue(ctx, guest_of(ctx)->failed);
}

/* From a half-open range of [0, 1): the engine's own is seeded once for all runs. */
static JSValue host_math_random(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	uint64_t *x = &guest_of(ctx)->random;

	*x ^= *x >> 12;
	*x ^= *x << 25;
	*x ^= *x >> 27;
	return JS_NewFloat64(ctx, (double)(*x * 0x2545f4914f6cdd1dULL >> 11) * 0x1p-53);
}

static JSValue host_typescript(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv);

static const JSCFunctionListEntry host_functions[] = {
	JS_CFUNC_DEF("write", 2, console_write),
	JS_CFUNC_DEF("kind", 1, host_kind),
	JS_CFUNC_DEF("now", 0, host_now),
	JS_CFUNC_DEF("settled", 1, host_settled),
	JS_CFUNC_DEF("promise", 1, host_promise),
	JS_CFUNC_DEF("enqueue", 1, host_enqueue),
	JS_CFUNC_DEF("encode", 1, bytes_encode),
	JS_CFUNC_DEF("decode", 2, bytes_decode),
	JS_CFUNC_DEF("random", 1, bytes_random),
	JS_CFUNC_DEF("digest", 2, bytes_digest),
	JS_CFUNC_DEF("modules", 0, modules_known),
	JS_CFUNC_DEF("failed", 0, host_failed),
	JS_CFUNC_DEF("typescript", 0, host_typescript),
	JS_CFUNC_DEF("integers", 1, value_integers),
	JS_CFUNC_DEF("integer", 1, value_integer),
};

/* ---- scripts --------------------------------------------------------------------------------- */

static JSValue load_script(struct guest *g, const struct guest_script *s)
{
	JSValue compiled = JS_ReadObject(g->ctx, s->code, s->n,
					 JS_READ_OBJ_BYTECODE | JS_READ_OBJ_ROM_DATA);
	JSValue function, made;

	if (JS_IsException(compiled))
		return compiled;
	function = JS_EvalFunction(g->ctx, compiled);
	made = JS_Call(g->ctx, function, JS_UNDEFINED, 1, &g->host);
	JS_FreeValue(g->ctx, function);
	return made;
}

/* A function that takes TypeScript and gives JavaScript. It is loaded where a program needs it. */
static JSValue host_typescript(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	struct guest *g = guest_of(ctx);

	if (guest_typescript.n == 0)
		return JS_ThrowTypeError(ctx,
					 "this build of Holt has no TypeScript: write JavaScript, "
					 "without types, interfaces and enums");
	if (!JS_IsObject(g->typescript))
		g->typescript = load_script(g, &guest_typescript);
	return JS_DupValue(ctx, g->typescript);
}

JSValue library_call(struct guest *g, const char *name, int argc, JSValueConst *argv)
{
	JSValue function = guest_own(g->ctx, g->host, name);
	JSValue made = JS_Call(g->ctx, function, JS_UNDEFINED, argc, argv);

	JS_FreeValue(g->ctx, function);
	return made;
}

double guest_now_ms(const struct guest *g)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)(t.tv_sec - g->began.tv_sec) * 1e3 +
	       (double)(t.tv_nsec - g->began.tv_nsec) / 1e6;
}

int library_init(struct guest *g)
{
	JSContext *ctx = g->ctx;
	JSValue global = JS_GetGlobalObject(ctx), math = JS_GetPropertyStr(ctx, global, "Math"),
		made;

	if (learn_kinds(g) < 0)
		return -1;
	g->host = JS_NewObjectProto(ctx, JS_NULL);
	g->failed = g->typescript = JS_UNDEFINED;
	JS_SetPropertyFunctionList(ctx, g->host, host_functions, ARRAY_LEN(host_functions));
	JS_DefinePropertyValueStr(ctx, math, "random",
				  JS_NewCFunction(ctx, host_math_random, "random", 0),
				  JS_PROP_CONFIGURABLE | JS_PROP_WRITABLE);
	JS_FreeValue(ctx, math);
	JS_FreeValue(ctx, global);
	for (const struct guest_script *s = guest_scripts; s->n; s++) {
		made = load_script(g, s);
		if (JS_IsException(made))
			return -1;
		JS_FreeValue(ctx, made);
	}
	return JS_HasException(ctx) ? -1 : 0;
}

void library_begin(struct guest *g)
{
	clock_gettime(CLOCK_MONOTONIC, &g->began);
	do
		guest_random(&g->random, sizeof(g->random));
	while (!g->random);
}
