/*
 * Repeated keys. Most objects are small: up to SMALL keys are compared pairwise, if their hash bits
 * allow that they are equal. Larger objects are sorted, so no choice of keys takes quadratic time.
 */
#include <stdlib.h>
#include <yyjson.h>

#include "json/document/pointer.h"

enum { SMALL = 12 };

static int repeated(const struct json_place *at, struct str key, struct err *e)
{
	struct json_pointer p = JSON_POINTER_INIT;

	json_pointer_place(&p, at);
	json_pointer_key(&p, key);
	return err_set(e, ERR_INVALID, "the key %s stands twice", p.text);
}

static int compare(const void *a, const void *b)
{
	const struct str *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->n ? memcmp(x->p, y->p, x->n) : 0;
}

static struct str text_of(yyjson_val *key)
{
	return (struct str){ unsafe_yyjson_get_str(key), unsafe_yyjson_get_len(key) };
}

/* One of 64 bits. Equal keys have the same bit, and most different keys another one. */
static uint64_t keys_mark(struct str key)
{
	unsigned first = (unsigned char)key.p[0]; /* every key is followed by a NUL */
	unsigned last = (unsigned char)key.p[key.n ? key.n - 1 : 0];

	return 1ull << ((first + 5 * last + 11 * (unsigned)key.n) % 64);
}

static bool stands_before(yyjson_val *first, yyjson_val *key)
{
	for (; first != key; first = unsafe_yyjson_get_next(first + 1)) {
		if (str_eq(text_of(first), text_of(key)))
			return true;
	}
	return false;
}

static bool is_nested(yyjson_val *v)
{
	return unsafe_yyjson_is_ctn(v) && unsafe_yyjson_get_len(v) > 0;
}

/* *ret_nested: v contains objects or arrays that must be checked too. */
static int check_small(yyjson_val *v, const struct json_place *at, bool *ret_nested, struct err *e)
{
	yyjson_val *first = unsafe_yyjson_get_first(v), *key = first;
	uint64_t seen = 0;

	*ret_nested = false;
	for (size_t n = unsafe_yyjson_get_len(v); n > 0; n--) {
		uint64_t bit = keys_mark(text_of(key));

		if ((seen & bit) && stands_before(first, key))
			return repeated(at, text_of(key), e);
		seen |= bit;
		*ret_nested |= is_nested(key + 1);
		key = unsafe_yyjson_get_next(key + 1);
	}
	return 0;
}

static int check_large(yyjson_val *v, const struct json_place *at, struct err *e)
{
	size_t n = unsafe_yyjson_get_len(v);
	autofree struct str *keys = calloc(n, sizeof(*keys));
	yyjson_val *key = unsafe_yyjson_get_first(v);

	if (!keys)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < n; i++, key = unsafe_yyjson_get_next(key + 1))
		keys[i] = text_of(key);
	qsort(keys, n, sizeof(*keys), compare);
	for (size_t i = 1; i < n; i++) {
		if (str_eq(keys[i - 1], keys[i]))
			return repeated(at, keys[i], e);
	}
	return 0;
}

/* v: a non-empty object or array. */
static int check(yyjson_val *v, const struct json_place *at, struct err *e)
{
	bool object = unsafe_yyjson_is_obj(v);
	size_t n = unsafe_yyjson_get_len(v);
	yyjson_val *next = unsafe_yyjson_get_first(v);
	bool nested = true;

	if (object && (n <= SMALL ? check_small(v, at, &nested, e) : check_large(v, at, e)) < 0)
		return -1;
	for (size_t i = 0; nested && i < n; i++) {
		yyjson_val *key = next, *val = object ? key + 1 : key;
		struct json_place below = { .up = at, .index = i };

		next = unsafe_yyjson_get_next(val);
		if (!is_nested(val))
			continue;
		if (object)
			below.key = text_of(key);
		if (check(val, &below, e) < 0)
			return -1;
	}
	return 0;
}

int json_check_keys(const struct json_val *v, struct err *e)
{
	const struct json_place root = { .up = NULL };

	return json_len(v) > 0 ? check((yyjson_val *)(uintptr_t)v, &root, e) : 0;
}
