#include "modules/guest/internal.h"

#include "base/base64.h"

JSValue guest_own(JSContext *ctx, JSValueConst of, const char *name)
{
	JSPropertyDescriptor d;
	JSAtom atom;
	int has;

	if (!JS_IsObject(of))
		return JS_UNDEFINED;
	atom = JS_NewAtom(ctx, name);
	has = JS_GetOwnProperty(ctx, &d, of, atom);
	JS_FreeAtom(ctx, atom);
	if (has <= 0) {
		if (has < 0)
			JS_FreeValue(ctx, JS_GetException(ctx));
		return JS_UNDEFINED;
	}
	JS_FreeValue(ctx, d.getter);
	JS_FreeValue(ctx, d.setter);
	return d.value;
}

uint64_t guest_own_int(JSContext *ctx, JSValueConst of, const char *name)
{
	JSValue v = guest_own(ctx, of, name);
	int64_t i = 0;

	if (JS_IsNumber(v))
		JS_ToInt64(ctx, &i, v);
	JS_FreeValue(ctx, v);
	return i < 0 ? 0 : (uint64_t)i;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static JSValue json_bytes(JSContext *ctx, const uint8_t *p, size_t n)
{
	autobuf struct buf text = BUF_INIT(CODE_FRAME_MAX);
	struct err e;

	if (base64_encode(&text, (struct str){ (const char *)p, n }, &e) < 0)
		return JS_ThrowRangeError(ctx, "%s", e.msg);
	return JS_NewStringLen(ctx, text.p ? text.p : "", text.n);
}

/* Stands for what JSON has no form for. Bytes become base64, a Map an object, a Set an array. */
static JSValue json_replace(JSContext *ctx, JSValueConst holder, int argc, JSValueConst *argv)
{
	struct guest *g = guest_of(ctx);
	JSValueConst v = argv[1];
	const char *kind = guest_kind(ctx, v);
	JSValue of[2];
	uint8_t *p;
	size_t n;

	if (!kind || strcmp(kind, "Object") == 0 || strcmp(kind, "Array") == 0)
		return JS_DupValue(ctx, v);
	if (strcmp(kind, "TypedArray") == 0 || strcmp(kind, "ArrayBuffer") == 0)
		return guest_bytes(ctx, v, &p, &n) < 0 ? JS_EXCEPTION : json_bytes(ctx, p, n);
	if (strcmp(kind, "Promise") == 0)
		return g->telling ? run_awaited(g, JS_DupValue(ctx, v))
				  : JS_ThrowTypeError(
					    ctx, "the arguments hold a promise: await it first");
	if (strcmp(kind, "Map") != 0 && strcmp(kind, "Set") != 0 && strcmp(kind, "RegExp") != 0 &&
	    strcmp(kind, "DataView") != 0 && strcmp(kind, "Error") != 0)
		return JS_DupValue(ctx, v);
	of[0] = JS_DupValue(ctx, v);
	of[1] = JS_NewString(ctx, kind);
	v = library_call(g, "plain", 2, of);
	JS_FreeValue(ctx, of[0]);
	JS_FreeValue(ctx, of[1]);
	return v;
}

/* ---- integers beyond 2^53 ------------------------------------------------------------------ */

/* How JSON.stringify() writes one, until value_integers() has found it. */
static const char *mark_of(struct guest *g)
{
	static char mark[sizeof("@integer 0123456789abcdef ")];
	uint64_t random;

	if (!*mark) {
		guest_random(&random, sizeof(random));
		snprintf(mark, sizeof(mark), "@integer %016llx ", (unsigned long long)random);
	}
	return mark;
}

JSValue value_integer(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *digits = JS_ToCString(ctx, argv[0]);
	autobuf struct buf text = BUF_INIT(CODE_FRAME_MAX);
	struct err e;
	JSValue made;

	if (!digits)
		return JS_EXCEPTION;
	made = buf_addf(&text, &e, "%s%s", mark_of(guest_of(ctx)), digits) < 0
		     ? JS_ThrowOutOfMemory(ctx)
		     : JS_NewStringLen(ctx, text.p, text.n);
	JS_FreeCString(ctx, digits);
	return made;
}

/* The text with its marks taken out; quoted: the digits stay strings. */
static JSValue integers_of(JSContext *ctx, JSValue text, bool quoted)
{
	const char *mark = mark_of(guest_of(ctx)), *p, *at, *end;
	autobuf struct buf out = BUF_INIT((size_t)1 << 30);
	size_t n = 0, size = strlen(mark);
	bool failed = false;
	struct err e;

	p = JS_IsString(text) ? JS_ToCStringLen(ctx, &n, text) : NULL;
	at = p ? memmem(p, n, mark, size) : NULL;
	if (!at) {
		JS_FreeCString(ctx, p);
		return text;
	}
	JS_FreeValue(ctx, text);
	text = JS_UNDEFINED;
	end = p;
	for (end = p; at && !failed; at = memmem(at, n - (size_t)(at - p), mark, size)) {
		const char *digits = at + size, *behind = digits + strspn(digits, "-0123456789");
		bool alone = at > p && at[-1] == '"' && *behind == '"';

		failed = buf_add(&out, end, (size_t)(at - end) - (alone && !quoted), &e) < 0 ||
			 buf_add(&out, digits, (size_t)(behind - digits), &e) < 0;
		end = at = behind + (alone && !quoted);
	}
	text = failed || buf_add(&out, end, n - (size_t)(end - p), &e) < 0
		     ? JS_ThrowOutOfMemory(ctx)
		     : JS_NewStringLen(ctx, out.p, out.n);
	JS_FreeCString(ctx, p);
	return text;
}

JSValue value_integers(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return integers_of(ctx, JS_DupValue(ctx, argv[0]), false);
}

static JSClassID class_of(JSContext *ctx, JSTypedArrayEnum type)
{
	JSValue of[3] = { JS_NewInt32(ctx, 0), JS_UNDEFINED, JS_UNDEFINED };
	JSValue none = JS_NewTypedArray(ctx, 1, of, type);
	JSClassID class = 0;

	if (JS_IsObject(none))
		JS_GetAnyOpaque(none, &class);
	JS_FreeValue(ctx, none);
	return class;
}

void value_init(struct guest *g)
{
	g->bytes_first = class_of(g->ctx, JS_TYPED_ARRAY_UINT8C);
	g->bytes_last = class_of(g->ctx, JS_TYPED_ARRAY_FLOAT64);
}

JSValue guest_json(JSContext *ctx, JSValueConst value, bool quoted)
{
	JSValue replace = JS_NewCFunction(ctx, json_replace, "", 2);
	JSValue text;

	if (JS_IsException(replace))
		return replace;
	text = JS_JSONStringify(ctx, value, replace, JS_UNDEFINED);
	JS_FreeValue(ctx, replace);
	return integers_of(ctx, text, quoted);
}

/* ---- text ---------------------------------------------------------------------------------- */

const char *guest_text(JSContext *ctx, JSValueConst v, size_t *ret_n)
{
	JSValue shown = library_call(guest_of(ctx), "inspect", 1, &v);
	const char *text = JS_IsString(v)     ? JS_ToCStringLen(ctx, ret_n, v)
			 : JS_IsString(shown) ? JS_ToCStringLen(ctx, ret_n, shown)
					      : NULL;

	JS_FreeValue(ctx, shown);
	if (JS_HasException(ctx))
		JS_FreeValue(ctx, JS_GetException(ctx));
	return text;
}

JSValue guest_over(JSContext *ctx, enum guest_limit hit)
{
	struct guest *g = guest_of(ctx);
	JSValue error;

	if (g->hit == GUEST_NO_LIMIT)
		g->hit = hit;
	JS_ThrowInternalError(ctx, "a limit was reached");
	error = JS_GetException(ctx);
	JS_SetUncatchableError(ctx, error, 1);
	return JS_Throw(ctx, error);
}
