/*
 * Calls of host functions. A call is a frame with the indexes of its module and function. It
 * returns at once, a promise that also has the members of the result: to look at one waits for the
 * answer. So calls run at once, and code that awaits nothing sees results. Calls of a source that
 * awaits nothing at all return with the answer: it may count on their order.
 */
#include <math.h>
#include <poll.h>

#include "modules/guest/internal.h"

struct guest_pending {
	enum { CALL_QUEUED, CALL_SENT, CALL_DONE } state;
	uint32_t module, function;
	JSValue arguments; /* JSON; until it is sent */
	JSValue promise, resolve; /* JS_UNDEFINED: the caller waits for the result */
	JSValue result; /* of a caller that waits */
};

static void call_send(struct guest *g)
{
	while (g->next < g->n_pending && g->sent < CODE_TOGETHER_MAX) {
		struct guest_pending *p = &g->pending[g->next];
		struct buf frame = guest_frame("call");
		size_t n;
		const char *json = JS_ToCStringLen(g->ctx, &n, p->arguments);

		if (!json)
			guest_exit(CODE_EXIT_MEMORY);
		guest_put_int(&frame, "id", g->next);
		guest_put_int(&frame, "module", p->module);
		guest_put_int(&frame, "function", p->function);
		guest_put_json(&frame, "arguments", (struct str){ json, n });
		guest_send(&frame);
		JS_FreeCString(g->ctx, json);
		JS_FreeValue(g->ctx, p->arguments);
		p->arguments = JS_UNDEFINED;
		p->state = CALL_SENT;
		g->next++;
		g->sent++;
	}
}

/* The members of a result. */
static const char *const members[] = { "ok", "data", "text", "error", "content" };

/* ---- answers ------------------------------------------------------------------------------- */

/* The promise gets the members of the result as its own: its getters are not asked any more. */
static void promise_fill(JSContext *ctx, JSValueConst promise, JSValueConst result)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		JSValue v = guest_own(ctx, result, members[i]);

		JS_DefinePropertyValueStr(ctx, promise, members[i], v, JS_PROP_CONFIGURABLE);
	}
}

/* What the last call that failed said, for the error of a program that did not look. */
static void call_note_failure(struct guest *g, const struct guest_pending *p, JSValueConst result)
{
	enum { SHOWN_MAX = 300 };
	JSValue why = guest_own(g->ctx, result, "error");
	const char *text = JS_IsString(why) ? JS_ToCString(g->ctx, why) : NULL;
	char note[2 * SHOWN_MAX];

	if (text) {
		snprintf(note, sizeof(note), "%.*s had failed: %.*s", CODE_NAME_MAX,
			 modules_function(g, p->module, p->function), SHOWN_MAX, text);
		JS_FreeValue(g->ctx, g->failed);
		g->failed = JS_NewString(g->ctx, note);
	}
	JS_FreeCString(g->ctx, text);
	JS_FreeValue(g->ctx, why);
}

static void call_answered(struct guest *g, JSValue frame)
{
	JSContext *ctx = g->ctx;
	uint64_t id = guest_own_int(ctx, frame, "id");
	JSValue why = guest_own(ctx, frame, "error"), answer = guest_own(ctx, frame, "result");
	struct guest_pending *p;
	JSValue result, called;

	if (id >= g->n_pending || g->pending[id].state != CALL_SENT)
		guest_exit(CODE_EXIT_WIRE);
	result = JS_IsString(why) ? result_failed(ctx, JS_DupValue(ctx, why))
				  : result_of(ctx, answer);
	JS_FreeValue(ctx, why);
	JS_FreeValue(ctx, answer);
	JS_FreeValue(ctx, frame);
	/* No memory for the answer of a call that was made: what it did is not known. */
	if (JS_IsException(result))
		guest_exit(CODE_EXIT_MEMORY);
	p = &g->pending[id];
	p->state = CALL_DONE;
	g->sent--;
	call_note_failure(g, p, result);
	if (JS_IsObject(p->promise)) {
		promise_fill(ctx, p->promise, result);
		called = JS_Call(ctx, p->resolve, JS_UNDEFINED, 1, &result);
		JS_FreeValue(ctx, called);
		JS_FreeValue(ctx, p->promise);
		JS_FreeValue(ctx, p->resolve);
		JS_FreeValue(ctx, result);
		p->promise = p->resolve = JS_UNDEFINED;
	} else {
		p->result = result;
	}
	call_send(g);
}

static bool is_kind(JSContext *ctx, JSValueConst frame, const char *kind)
{
	JSValue v = guest_own(ctx, frame, "kind");
	const char *text = JS_ToCString(ctx, v);
	bool is = text && strcmp(text, kind) == 0;

	JS_FreeCString(ctx, text);
	JS_FreeValue(ctx, v);
	return is;
}

JSValue call_read(struct guest *g, const char *kind)
{
	for (;;) {
		JSValue frame = guest_read(g);

		if (JS_IsException(frame))
			guest_exit(CODE_EXIT_MEMORY);
		if (is_kind(g->ctx, frame, kind))
			return frame;
		if (!is_kind(g->ctx, frame, "result"))
			guest_exit(CODE_EXIT_WIRE);
		call_answered(g, frame);
	}
}

static void call_wait(struct guest *g, uint32_t id)
{
	while (g->pending[id].state != CALL_DONE)
		call_answered(g, call_read(g, "result"));
}

bool call_finish(struct guest *g)
{
	call_send(g);
	while (g->sent > 0)
		call_answered(g, call_read(g, "result"));
	return g->hit == GUEST_NO_LIMIT;
}

/* Milliseconds until a timer is due; -1: none waits. all: also those that nobody waits for. */
static int timers_due(struct guest *g, bool all)
{
	JSValue flag = JS_NewBool(g->ctx, all), due = library_call(g, "due", 1, &flag);
	int32_t ms = -1;

	if (!JS_IsException(due))
		JS_ToInt32(g->ctx, &ms, due);
	JS_FreeValue(g->ctx, due);
	return ms;
}

int call_step(struct guest *g, bool all, double until_ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	JSContext *ran;
	JSValue fired;
	int jobs = JS_ExecutePendingJob(g->rt, &ran), due;

	if (jobs != 0)
		return jobs;
	due = timers_due(g, all || g->sent > 0);
	if (JS_HasException(g->ctx))
		return -1;
	if (due >= 0 && guest_now_ms(g) + due > until_ms)
		due = -1;
	if (due < 0 && g->sent == 0)
		return 0;
	/* Also where no call is under way: a hub that has gone is seen. */
	if (due != 0 && poll(&in, 1, due) < 0) {
		if (run_is_over(g))
			guest_over(g->ctx, GUEST_CPU);
		return run_is_over(g) ? -1 : 1;
	}
	if (in.revents) {
		call_answered(g, call_read(g, "result"));
		return 1;
	}
	fired = library_call(g, "fire", 0, NULL);
	JS_FreeValue(g->ctx, fired);
	return JS_IsException(fired) ? -1 : 1;
}

bool call_settle(struct guest *g, JSValueConst promise)
{
	int did = 1;

	while (JS_PromiseState(g->ctx, promise) == JS_PROMISE_PENDING && did > 0)
		did = call_step(g, true, INFINITY);
	if (did == 0 && JS_PromiseState(g->ctx, promise) == JS_PROMISE_PENDING)
		JS_ThrowTypeError(g->ctx, "a promise is awaited that nothing can settle");
	if (JS_PromiseState(g->ctx, promise) == JS_PROMISE_PENDING)
		return false;
	if (JS_PromiseState(g->ctx, promise) == JS_PROMISE_REJECTED)
		run_handled(g, promise);
	return true;
}

JSValue call_settled(JSContext *ctx, JSValueConst v)
{
	struct guest *g = guest_of(ctx);
	JSValue of;
	uint32_t id = UINT32_MAX;

	if (!JS_IsObject(v) || (int)JS_PromiseState(ctx, v) < 0)
		return JS_DupValue(ctx, v);
	of = guest_own(ctx, v, "call");
	if (JS_IsNumber(of))
		JS_ToUint32(ctx, &id, of);
	JS_FreeValue(ctx, of);
	if (id >= g->n_pending)
		return JS_DupValue(ctx, v);
	call_wait(g, id);
	return JS_PromiseState(ctx, v) == JS_PROMISE_FULFILLED ? JS_PromiseResult(ctx, v)
							       : JS_DupValue(ctx, v);
}

/* ---- functions ----------------------------------------------------------------------------- */

static int call_grow(struct guest *g)
{
	uint32_t room = g->room_pending ? 2 * g->room_pending : 64;
	struct guest_pending *grown;

	if (g->n_pending < g->room_pending)
		return 0;
	grown = realloc(g->pending, room * sizeof(*grown));
	if (!grown)
		return -1;
	g->pending = grown;
	g->room_pending = room;
	return 0;
}

/* What a call returns that is not waited for. */
static JSValue call_promise(struct guest *g, struct guest_pending *p, uint32_t id)
{
	JSContext *ctx = g->ctx;
	JSValue functions[2], promise = JS_NewPromiseCapability(ctx, functions);

	if (JS_IsException(promise))
		return promise;
	JS_FreeValue(ctx, functions[1]);
	JS_SetPrototype(ctx, promise, g->result_proto);
	JS_DefinePropertyValueStr(ctx, promise, "call", JS_NewInt64(ctx, id), 0);
	p->promise = JS_DupValue(ctx, promise);
	p->resolve = functions[0];
	return promise;
}

/* How deep a text of JSON is nested. */
static unsigned json_depth(const char *p, size_t n)
{
	unsigned depth = 0, most = 0;
	bool in_string = false;

	for (size_t i = 0; i < n; i++) {
		if (in_string && p[i] == '\\')
			i++;
		else if (p[i] == '"')
			in_string = !in_string;
		else if (in_string)
			continue;
		else if (p[i] == '}' || p[i] == ']')
			depth--;
		else if ((p[i] == '{' || p[i] == '[') && ++depth > most)
			most = depth;
	}
	return most;
}

static JSValue refuse_arguments(struct guest *g, JSValueConst module, uint32_t function)
{
	uint32_t of = 0;
	const char *name;

	JS_ToUint32(g->ctx, &of, module);
	name = modules_function(g, of, function);
	return JS_ThrowTypeError(g->ctx, "%.100s takes one object, with the arguments by name",
				 name);
}

static JSValue host_call(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv,
			 int function, JSValue *module)
{
	struct guest *g = guest_of(ctx);
	JSValue arguments, promise, result;
	uint32_t id = g->n_pending, of;
	struct guest_pending *p;
	const char *json;
	size_t n = 0;
	bool later;

	if (g->hit != GUEST_NO_LIMIT || g->calls_left == 0)
		return guest_over(ctx, GUEST_CALLS);
	if (argc > 0 && !JS_IsUndefined(argv[0]) &&
	    (!JS_IsObject(argv[0]) || JS_IsFunction(ctx, argv[0]) || JS_IsArray(ctx, argv[0])))
		return refuse_arguments(g, *module, (uint32_t)function);
	arguments = argc > 0 && JS_IsObject(argv[0]) ? guest_json(ctx, argv[0], false)
						     : JS_NewString(ctx, "{}");
	if (JS_IsException(arguments))
		return arguments;
	json = JS_ToCStringLen(ctx, &n, arguments);
	/* toJSON() may have made anything of it. */
	if (json && json[0] != '{')
		JS_ThrowTypeError(ctx, "the arguments are no object");
	else if (json && n > CODE_ARGUMENTS_MAX)
		JS_ThrowTypeError(ctx, "the arguments are longer than 1 MiB");
	else if (json && json_depth(json, n) > CODE_ARGUMENTS_DEPTH)
		JS_ThrowTypeError(ctx, "the arguments are nested more than %d deep",
				  CODE_ARGUMENTS_DEPTH);
	JS_FreeCString(ctx, json);
	if (JS_HasException(ctx) || !json || call_grow(g) < 0 ||
	    JS_ToUint32(ctx, &of, *module) < 0) {
		JS_FreeValue(ctx, arguments);
		return JS_HasException(ctx) ? JS_EXCEPTION : JS_ThrowOutOfMemory(ctx);
	}
	/* Functions that ran meanwhile, such as toJSON(), may have called others. */
	id = g->n_pending;
	p = &g->pending[id];
	*p = (struct guest_pending){ .module = of,
				     .function = (uint32_t)function,
				     .arguments = arguments,
				     .promise = JS_UNDEFINED,
				     .resolve = JS_UNDEFINED,
				     .result = JS_UNDEFINED };
	later = g->parallel || modules_caller_waits(ctx);
	if (later) {
		promise = call_promise(g, p, id);
		if (JS_IsException(promise)) {
			JS_FreeValue(ctx, arguments);
			return promise;
		}
	}
	g->n_pending++;
	g->calls_left--;
	call_send(g);
	if (later)
		return promise;
	call_wait(g, id);
	result = g->pending[id].result;
	g->pending[id].result = JS_UNDEFINED;
	return result;
}

JSValue call_function(JSContext *ctx, uint32_t module, uint32_t function, const char *name)
{
	JSValue of = JS_NewInt64(ctx, module);
	JSValue f = JS_NewCFunctionData(ctx, host_call, 1, (int)function, 1, &of);

	if (!JS_IsException(f))
		JS_DefinePropertyValueStr(ctx, f, "name", JS_NewString(ctx, name),
					  JS_PROP_CONFIGURABLE);
	return f;
}

/* ---- parallel() ---------------------------------------------------------------------------- */

/* A member of a result that has not come. */
static JSValue call_member(JSContext *ctx, JSValueConst self, int magic)
{
	struct guest *g = guest_of(ctx);
	JSValue of = guest_own(ctx, self, "call");
	struct guest_pending *p;
	uint32_t id = UINT32_MAX;

	if (JS_IsNumber(of))
		JS_ToUint32(ctx, &id, of);
	JS_FreeValue(ctx, of);
	p = id < g->n_pending ? &g->pending[id] : NULL;
	if (!p || !JS_IsObject(p->promise) ||
	    JS_VALUE_GET_PTR(p->promise) != JS_VALUE_GET_PTR(self))
		return JS_UNDEFINED;
	call_wait(g, id);
	return guest_own(ctx, self, members[magic]);
}

static JSValue call_to_json(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return call_settled(ctx, self);
}

static const JSCFunctionListEntry member_getters[] = {
	JS_CGETSET_MAGIC_DEF("ok", call_member, NULL, 0),
	JS_CGETSET_MAGIC_DEF("data", call_member, NULL, 1),
	JS_CGETSET_MAGIC_DEF("text", call_member, NULL, 2),
	JS_CGETSET_MAGIC_DEF("error", call_member, NULL, 3),
	JS_CGETSET_MAGIC_DEF("content", call_member, NULL, 4),
	JS_CFUNC_DEF("toJSON", 0, call_to_json),
};

/* Begins one: a function without arguments, or an array of a function and its argument. */
static JSValue parallel_begin(JSContext *ctx, JSValueConst item)
{
	JSValue function, argument, r;

	if (JS_IsFunction(ctx, item))
		return JS_Call(ctx, item, JS_UNDEFINED, 0, NULL);
	if (!JS_IsArray(ctx, item))
		return JS_DupValue(ctx, item);
	function = JS_GetPropertyUint32(ctx, item, 0);
	argument = JS_GetPropertyUint32(ctx, item, 1);
	r = JS_Call(ctx, function, JS_UNDEFINED, 1, &argument);
	JS_FreeValue(ctx, function);
	JS_FreeValue(ctx, argument);
	return r;
}

/* Keeps the first error. False: it ends the run. */
static bool parallel_failed(struct guest *g, JSValue *first)
{
	JSValue error;

	if (g->hit != GUEST_NO_LIMIT)
		return false;
	error = JS_GetException(g->ctx);
	if (JS_IsUninitialized(*first))
		*first = error;
	else
		JS_FreeValue(g->ctx, error);
	return true;
}

/* Takes the result of one promise. */
static bool parallel_end(struct guest *g, JSValue results, uint32_t i, JSValue *first)
{
	JSContext *ctx = g->ctx;
	JSValue promise = JS_GetPropertyUint32(ctx, results, i), v;
	bool goes_on = true;

	if (!JS_IsObject(promise) || (int)JS_PromiseState(ctx, promise) < 0) {
		JS_FreeValue(ctx, promise);
		return true;
	}
	if (!call_settle(g, promise)) {
		goes_on = parallel_failed(g, first);
	} else {
		v = JS_PromiseResult(ctx, promise);
		if (JS_PromiseState(ctx, promise) == JS_PROMISE_REJECTED) {
			JS_Throw(ctx, v);
			goes_on = parallel_failed(g, first);
		} else {
			JS_DefinePropertyValueUint32(ctx, results, i, v, JS_PROP_C_W_E);
		}
	}
	JS_FreeValue(ctx, promise);
	return goes_on;
}

static bool parallel_all(struct guest *g, JSValueConst list, uint32_t n, JSValue results,
			 JSValue *first)
{
	JSContext *ctx = g->ctx;

	for (uint32_t i = 0; i < n; i++) {
		JSValue item = JS_GetPropertyUint32(ctx, list, i);
		JSValue r = JS_IsException(item) ? item : parallel_begin(ctx, item);

		if (!JS_IsException(item))
			JS_FreeValue(ctx, item);
		if (JS_IsException(r)) {
			if (!parallel_failed(g, first))
				return false;
			r = JS_UNDEFINED;
		}
		if (JS_DefinePropertyValueUint32(ctx, results, i, r, JS_PROP_C_W_E) < 0 &&
		    !parallel_failed(g, first))
			return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!parallel_end(g, results, i, first))
			return false;
	}
	return true;
}

JSValue call_parallel(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	struct guest *g = guest_of(ctx);
	JSValue length, results, first = JS_UNINITIALIZED;
	uint32_t n = 0;
	bool goes_on;

	if (argc < 1 || JS_IsArray(ctx, argv[0]) <= 0)
		return JS_ThrowTypeError(ctx, "parallel() takes an array of functions");
	length = JS_GetPropertyStr(ctx, argv[0], "length");
	if (JS_ToUint32(ctx, &n, length) < 0)
		return JS_EXCEPTION;
	JS_FreeValue(ctx, length);
	results = JS_NewArray(ctx);
	g->parallel++;
	goes_on = parallel_all(g, argv[0], n, results, &first);
	g->parallel--;
	if (goes_on && JS_IsUninitialized(first))
		return results;
	JS_FreeValue(ctx, results);
	if (!goes_on)
		return JS_EXCEPTION;
	return JS_Throw(ctx, first);
}

int call_init(struct guest *g)
{
	JSContext *ctx = g->ctx;
	JSValue functions[2], promise = JS_NewPromiseCapability(ctx, functions), proto;

	if (JS_IsException(promise))
		return -1;
	proto = JS_GetPrototype(ctx, promise);
	g->result_proto = JS_NewObjectProto(ctx, proto);
	JS_FreeValue(ctx, proto);
	JS_SetPropertyFunctionList(ctx, g->result_proto, member_getters, ARRAY_LEN(member_getters));
	JS_FreeValue(ctx, promise);
	JS_FreeValue(ctx, functions[0]);
	JS_FreeValue(ctx, functions[1]);
	return JS_HasException(ctx) ? -1 : 0;
}
