/*
 * Repeated keys. Objects are mostly small: up to SMALL keys are compared pair by pair; larger ones
 * are sorted, so that no choice of keys makes it quadratic.
 */
#include <stdlib.h>

#include "json/pointer.h"

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

static int check_small(const struct json_val *v, const struct json_place *at, struct err *e)
{
	struct str keys[SMALL];
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		for (size_t i = 0; i < it.index; i++) {
			if (str_eq(keys[i], it.key))
				return repeated(at, it.key, e);
		}
		keys[it.index] = it.key;
	}
	return 0;
}

static int check_large(const struct json_val *v, const struct json_place *at, struct err *e)
{
	size_t n = json_len(v);
	autofree struct str *keys = calloc(n, sizeof(*keys));
	struct json_iter it = json_iter(v);

	if (!keys)
		return err_set(e, ERR_LIMIT, "out of memory");
	while (json_next(&it))
		keys[it.index] = it.key;
	qsort(keys, n, sizeof(*keys), compare);
	for (size_t i = 1; i < n; i++) {
		if (str_eq(keys[i - 1], keys[i]))
			return repeated(at, keys[i], e);
	}
	return 0;
}

static int check(const struct json_val *v, const struct json_place *at, struct err *e)
{
	struct json_iter it = json_iter(v);

	if (it.object && (it.left <= SMALL ? check_small(v, at, e) : check_large(v, at, e)) < 0)
		return -1;
	while (json_next(&it)) {
		struct json_place below = { .up = at, .key = it.key, .index = it.index };

		if (json_len(it.val) > 0 && check(it.val, &below, e) < 0)
			return -1;
	}
	return 0;
}

int json_check_keys(const struct json_val *v, struct err *e)
{
	const struct json_place root = { .up = NULL };

	return check(v, &root, e);
}
