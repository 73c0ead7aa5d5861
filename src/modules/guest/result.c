/*
 * What MCP's tools/call answered, as code sees it: {ok, data, text, error}. data is the structured
 * content; else the text, parsed where it is a JSON object or array; else an image or another blob,
 * as a Uint8Array with a member mimeType. Where there is more than text, content has all of it.
 */
#include "modules/guest/internal.h"

#include "base/base64.h"

static JSValue blob_of(JSContext *ctx, JSValueConst item, const char *member)
{
	JSValue text = guest_own(ctx, item, member), type = guest_own(ctx, item, "mimeType");
	autobuf struct buf bytes = BUF_INIT(CODE_FRAME_MAX);
	/* It looks at three arguments, however few it is told. */
	JSValue of[3] = { JS_UNDEFINED, JS_UNDEFINED, JS_UNDEFINED }, blob = JS_UNDEFINED;
	struct err e;
	size_t n;
	const char *p = JS_ToCStringLen(ctx, &n, text);

	if (p && base64_decode(&bytes, (struct str){ p, n }, &e) == 0) {
		of[0] = JS_NewArrayBufferCopy(ctx, (const uint8_t *)(bytes.p ? bytes.p : ""),
					      bytes.n);
		blob = JS_NewTypedArray(ctx, 1, of, JS_TYPED_ARRAY_UINT8);
		JS_FreeValue(ctx, of[0]);
		if (JS_IsString(type))
			JS_DefinePropertyValueStr(ctx, blob, "mimeType", JS_DupValue(ctx, type),
						  JS_PROP_C_W_E);
	}
	JS_FreeCString(ctx, p);
	JS_FreeValue(ctx, text);
	JS_FreeValue(ctx, type);
	return blob;
}

struct reading {
	struct buf text; /* of all items, with an end of line between two */
	JSValue all; /* items */
	uint32_t n, others; /* others: no texts */
	JSValue blob; /* the first */
};

static void read_text(JSContext *ctx, struct reading *r, JSValueConst text)
{
	size_t n;
	const char *p = JS_ToCStringLen(ctx, &n, text);
	struct err e;

	if (p &&
	    ((r->text.p && buf_add(&r->text, "\n", 1, &e) < 0) || buf_add(&r->text, p, n, &e) < 0))
		guest_exit(CODE_EXIT_MEMORY);
	JS_FreeCString(ctx, p);
}

static void read_item(JSContext *ctx, struct reading *r, JSValueConst item)
{
	JSValue text = guest_own(ctx, item, "text"), of = guest_own(ctx, item, "resource");
	JSValue data = guest_own(ctx, item, "data"), shown = JS_UNDEFINED;

	if (JS_IsObject(of)) {
		JSValue blob = guest_own(ctx, of, "blob");

		JS_FreeValue(ctx, text);
		text = guest_own(ctx, of, "text");
		if (JS_IsString(blob))
			shown = blob_of(ctx, of, "blob");
		JS_FreeValue(ctx, blob);
	} else if (JS_IsString(data)) {
		shown = blob_of(ctx, item, "data");
	}
	if (JS_IsObject(shown) && JS_IsUndefined(r->blob))
		r->blob = JS_DupValue(ctx, shown);
	if (JS_IsString(text)) {
		read_text(ctx, r, text);
		shown = JS_DupValue(ctx, text);
	} else {
		r->others++;
		if (JS_IsUndefined(shown))
			shown = JS_DupValue(ctx, item);
	}
	JS_DefinePropertyValueUint32(ctx, r->all, r->n++, shown, JS_PROP_C_W_E);
	JS_FreeValue(ctx, text);
	JS_FreeValue(ctx, of);
	JS_FreeValue(ctx, data);
}

static JSValue data_of(JSContext *ctx, struct reading *r)
{
	JSValue parsed;

	if (r->text.p && (r->text.p[0] == '{' || r->text.p[0] == '[')) {
		parsed = guest_parse(ctx, r->text.p, r->text.n);
		if (!JS_IsException(parsed))
			return parsed;
		JS_FreeValue(ctx, JS_GetException(ctx));
	}
	if (r->others == 1 && r->n == 1 && JS_IsObject(r->blob))
		return JS_DupValue(ctx, r->blob);
	if (r->others)
		return JS_DupValue(ctx, r->all);
	return JS_NewStringLen(ctx, r->text.p ? r->text.p : "", r->text.n);
}

static void set(JSContext *ctx, JSValueConst to, const char *name, JSValue v)
{
	JS_DefinePropertyValueStr(ctx, to, name, v, JS_PROP_C_W_E);
}

JSValue result_failed(JSContext *ctx, JSValue text)
{
	JSValue result = JS_NewObject(ctx);

	set(ctx, result, "ok", JS_FALSE);
	set(ctx, result, "text", JS_DupValue(ctx, text));
	set(ctx, result, "error", text);
	return JS_HasException(ctx) ? JS_EXCEPTION : result;
}

JSValue result_of(JSContext *ctx, JSValueConst answer)
{
	JSValue content = guest_own(ctx, answer, "content"), length;
	JSValue structured = guest_own(ctx, answer, "structuredContent");
	JSValue failed = guest_own(ctx, answer, "isError"), result, text;
	struct reading r = { .text = BUF_INIT(CODE_FRAME_MAX),
			     .all = JS_NewArray(ctx),
			     .blob = JS_UNDEFINED };
	uint32_t n = 0;

	length = guest_own(ctx, content, "length");
	if (JS_IsNumber(length))
		JS_ToUint32(ctx, &n, length);
	for (uint32_t i = 0; i < n; i++) {
		JSValue item = JS_GetPropertyUint32(ctx, content, i);

		read_item(ctx, &r, item);
		JS_FreeValue(ctx, item);
	}
	text = JS_NewStringLen(ctx, r.text.p ? r.text.p : "", r.text.n);
	if (JS_ToBool(ctx, failed)) {
		if (r.text.n == 0) {
			JS_FreeValue(ctx, text);
			text = JS_NewString(ctx, "the tool has failed, and did not say why");
		}
		result = result_failed(ctx, text);
	} else {
		result = JS_NewObject(ctx);
		set(ctx, result, "ok", JS_TRUE);
		set(ctx, result, "data",
		    JS_IsObject(structured) ? JS_DupValue(ctx, structured) : data_of(ctx, &r));
		set(ctx, result, "text", text);
	}
	if (r.others)
		set(ctx, result, "content", JS_DupValue(ctx, r.all));
	JS_FreeValue(ctx, r.all);
	JS_FreeValue(ctx, r.blob);
	JS_FreeValue(ctx, content);
	JS_FreeValue(ctx, structured);
	JS_FreeValue(ctx, failed);
	buf_fini(&r.text);
	return JS_HasException(ctx) ? JS_EXCEPTION : result;
}
