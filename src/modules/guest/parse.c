/*
 * JSON, as the hub and servers send it. Integers beyond 2^53, up to 64 bits, become BigInts, so
 * that none is rounded on its way to the next call; texts without one are left to the engine.
 */
#include <stdlib.h>

#include "modules/guest/internal.h"

enum {
	PARSE_DEPTH = 1000,
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

/* Whether the number at p is an integer of 64 bits that no double holds. *ret_end: behind it. */
static bool is_large(const char *p, const char *end, const char **ret_end)
{
	const char *digits = p + (*p == '-'), *q = digits;
	uint64_t n = 0, most = *p == '-' ? (uint64_t)1 << 63 : UINT64_MAX;
	bool fits = true;

	for (; q < end && is_digit(*q); q++) {
		uint64_t digit = (uint64_t)(*q - '0');

		fits = fits && n <= (most - digit) / 10;
		n = n * 10 + digit;
	}
	if (q < end && (*q == '.' || *q == 'e' || *q == 'E')) {
		fits = false;
		while (q < end && (is_digit(*q) || strchr(".eE+-", *q)))
			q++;
	}
	*ret_end = q;
	return fits && n > (uint64_t)1 << 53;
}

static bool has_large(const char *p, const char *end)
{
	while (p < end) {
		if (*p == '"')
			p = string_end(p, end);
		else if (*p != '-' && !is_digit(*p))
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
	uint64_t n;

	if (!is_large(from, r->end, &end))
		return parse_piece(r, end);
	r->p = end;
	n = strtoull(from + (*from == '-'), NULL, 10);
	return *from == '-' ? JS_NewBigInt64(r->ctx, (int64_t)(0 - n)) : JS_NewBigUint64(r->ctx, n);
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
