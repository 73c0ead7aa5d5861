/*
 * JSON, as the hub and servers send it. Integers beyond 2^53 become BigInts, so that none is
 * rounded on its way to the next call; texts without one are left to the engine.
 */
#include <stdlib.h>

#include "modules/guest/internal.h"

enum {
	PARSE_DEPTH = 1000,
	SAFE_DIGITS = 16, /* 2^53 has so many */
};

struct parser {
	JSContext *ctx;
	const char *p, *end;
	unsigned depth;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Behind a string that begins at p. */
static const char *string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

/* Whether the number at p is an integer that a double can't hold; *ret_end: behind it. */
static bool is_large(const char *p, const char *end, const char **ret_end)
{
	const char *digits = p + (*p == '-');
	const char *q = digits;
	uint64_t n = 0;

	while (q < end && is_digit(*q))
		n = n * 10 + (uint64_t)(*q++ - '0');
	*ret_end = q;
	if (q < end && (*q == '.' || *q == 'e' || *q == 'E')) {
		while (q < end && (is_digit(*q) || strchr(".eE+-", *q)))
			q++;
		*ret_end = q;
		return false;
	}
	return q - digits > SAFE_DIGITS || (q - digits == SAFE_DIGITS && n > (uint64_t)1 << 53);
}

static bool has_large(const char *p, const char *end)
{
	while (p < end) {
		if (*p == '"')
			p = string_end(p, end);
		else if (!is_digit(*p))
			p++;
		else if (is_large(p, end, &p))
			return true;
	}
	return false;
}

static void skip_blank(struct parser *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
		r->p++;
}

/* A string, number or word: the engine reads it. */
static JSValue parse_piece(struct parser *r, const char *end)
{
	size_t n = (size_t)(end - r->p);
	char *copy = malloc(n + 1);
	JSValue v;

	if (!copy)
		return JS_ThrowOutOfMemory(r->ctx);
	memcpy(copy, r->p, n);
	copy[n] = '\0';
	v = JS_ParseJSON(r->ctx, copy, n, "text");
	free(copy);
	r->p = end;
	return v;
}

static JSValue parse_number(struct parser *r)
{
	const char *from = r->p, *end;
	char digits[64];
	size_t n;

	if (!is_large(from, r->end, &end))
		return parse_piece(r, end);
	n = (size_t)(end - from);
	if (n + 1 >= sizeof(digits)) /* no identifier has so many */
		return parse_piece(r, end);
	snprintf(digits, sizeof(digits), "%.*sn", (int)n, from);
	r->p = end;
	return JS_Eval(r->ctx, digits, n + 1, "integer", JS_EVAL_TYPE_GLOBAL);
}

static JSValue parse_value(struct parser *r);

/* The rest of an object or array: is the next sign `sign`? Takes it. */
static bool take(struct parser *r, char sign)
{
	skip_blank(r);
	if (r->p >= r->end || *r->p != sign)
		return false;
	r->p++;
	return true;
}

static JSValue parse_members(struct parser *r, bool is_object)
{
	JSContext *ctx = r->ctx;
	JSValue made = is_object ? JS_NewObject(ctx) : JS_NewArray(ctx);
	char close = is_object ? '}' : ']';
	bool ok = !JS_IsException(made);

	r->p++;
	if (ok && take(r, close))
		return made;
	for (uint32_t i = 0; ok; i++) {
		JSAtom key = JS_ATOM_NULL;
		JSValue v;

		if (is_object) {
			skip_blank(r);
			v = r->p < r->end && *r->p == '"'
				  ? parse_piece(r, string_end(r->p, r->end))
				  : JS_ThrowSyntaxError(ctx, "a name is missing");
			key = JS_IsException(v) ? JS_ATOM_NULL : JS_ValueToAtom(ctx, v);
			JS_FreeValue(ctx, v);
			ok = key != JS_ATOM_NULL && take(r, ':');
		}
		v = ok ? parse_value(r) : JS_EXCEPTION;
		ok = ok && !JS_IsException(v) &&
		     (is_object
			      ? JS_DefinePropertyValue(ctx, made, key, v, JS_PROP_C_W_E)
			      : JS_DefinePropertyValueUint32(ctx, made, i, v, JS_PROP_C_W_E)) >= 0;
		JS_FreeAtom(ctx, key);
		if (ok && take(r, close))
			return made;
		ok = ok && take(r, ',');
	}
	JS_FreeValue(ctx, made);
	return JS_HasException(ctx) ? JS_EXCEPTION : JS_ThrowSyntaxError(ctx, "it is no JSON");
}

static JSValue parse_value(struct parser *r)
{
	const char *end;
	JSValue v;

	skip_blank(r);
	if (r->p >= r->end || r->depth >= PARSE_DEPTH)
		return JS_ThrowSyntaxError(r->ctx, "it is no JSON, or is nested too deep");
	if (*r->p == '{' || *r->p == '[') {
		r->depth++;
		v = parse_members(r, *r->p == '{');
		r->depth--;
		return v;
	}
	if (*r->p == '"')
		return parse_piece(r, string_end(r->p, r->end));
	if (*r->p == '-' || is_digit(*r->p))
		return parse_number(r);
	for (end = r->p; end < r->end && *end >= 'a' && *end <= 'z';)
		end++;
	return parse_piece(r, end);
}

JSValue guest_parse(JSContext *ctx, const char *p, size_t n)
{
	struct parser r = { .ctx = ctx, .p = p, .end = p + n };
	JSValue v;

	if (!has_large(p, p + n))
		return JS_ParseJSON(ctx, p, n, "text");
	v = parse_value(&r);
	skip_blank(&r);
	if (JS_IsException(v) || r.p == r.end)
		return v;
	JS_FreeValue(ctx, v);
	return JS_ThrowSyntaxError(ctx, "something stands behind the JSON");
}
