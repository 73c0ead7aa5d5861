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

/* Stands for what JSON has no form for. */
static JSValue json_replace(JSContext *ctx, JSValueConst holder, int argc, JSValueConst *argv)
{
	JSValueConst v = argv[1];
	size_t at, n, size;
	JSClassID class;
	uint8_t *p;
	JSValue buffer;

	if (JS_IsBigInt(ctx, v))
		return JS_ToString(ctx, v);
	if (!JS_IsObject(v))
		return JS_DupValue(ctx, v);
	JS_GetAnyOpaque(v, &class);
	if (class >= guest_of(ctx)->bytes_first && class <= guest_of(ctx)->bytes_last) {
		buffer = JS_GetTypedArrayBuffer(ctx, v, &at, &n, NULL);
		if (JS_IsException(buffer))
			return buffer;
		p = JS_GetArrayBuffer(ctx, &size, buffer);
		JS_FreeValue(ctx, buffer);
		if (!p && size)
			return JS_EXCEPTION;
		return at + n <= size ? json_bytes(ctx, p + at, n) : JS_NULL;
	}
	return JS_DupValue(ctx, v);
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

JSValue guest_json(JSContext *ctx, JSValueConst value)
{
	JSValue replace = JS_NewCFunction(ctx, json_replace, "", 2);
	JSValue text;

	if (JS_IsException(replace))
		return replace;
	text = JS_JSONStringify(ctx, value, replace, JS_UNDEFINED);
	JS_FreeValue(ctx, replace);
	return text;
}

/* ---- text ---------------------------------------------------------------------------------- */

static const char *text_of_error(JSContext *ctx, JSValueConst v, size_t *ret_n)
{
	const char *said = JS_ToCString(ctx, v), *text;
	JSValue stack = guest_own(ctx, v, "stack"), both;
	const char *at = JS_IsString(stack) ? JS_ToCString(ctx, stack) : NULL;
	autobuf struct buf all = BUF_INIT(CODE_FRAME_MAX);
	struct err e;

	JS_FreeValue(ctx, stack);
	if (said && at && buf_addf(&all, &e, "%s\n%s", said, at) == 0) {
		while (all.n > 0 && all.p[all.n - 1] == '\n')
			all.n--;
		both = JS_NewStringLen(ctx, all.p, all.n);
		text = JS_ToCStringLen(ctx, ret_n, both);
		JS_FreeValue(ctx, both);
		JS_FreeCString(ctx, said);
	} else {
		text = said;
		*ret_n = said ? strlen(said) : 0;
	}
	JS_FreeCString(ctx, at);
	return text;
}

const char *guest_text(JSContext *ctx, JSValueConst v, size_t *ret_n)
{
	JSValue json = JS_UNDEFINED;
	const char *text = NULL;
	JSAtom atom;

	*ret_n = 0;
	if (JS_IsError(ctx, v)) {
		text = text_of_error(ctx, v, ret_n);
	} else if (JS_IsSymbol(v)) {
		atom = JS_ValueToAtom(ctx, v);
		json = JS_AtomToString(ctx, atom);
		JS_FreeAtom(ctx, atom);
	} else if (JS_IsObject(v) && !JS_IsFunction(ctx, v)) {
		json = guest_json(ctx, v);
	}
	if (!text && JS_IsString(json))
		text = JS_ToCStringLen(ctx, ret_n, json);
	JS_FreeValue(ctx, json);
	if (JS_HasException(ctx))
		JS_FreeValue(ctx, JS_GetException(ctx));
	if (!text)
		text = JS_ToCStringLen(ctx, ret_n, v);
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
