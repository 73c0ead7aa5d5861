/*
 * Repeated keys. Objects are mostly small: up to SMALL keys are compared pair by pair; larger ones
 * are sorted, so that no choice of keys makes it quadratic.
 */
#include <stdio.h>
#include <stdlib.h>

#include "json/json.h"
#include "json/utf8.h"

enum { SMALL = 12 };

/* Where the walk stands, from the inside out. */
struct place {
	const struct place *up; /* NULL at the root */
	struct str key; /* in an object, else STR_NONE */
	size_t index; /* in an array */
};

struct pointer {
	char text[JSON_POINTER_MAX + 1];
	size_t n;
	bool full;
};

static void put(struct pointer *p, struct str s)
{
	struct str fits = utf8_cut(s, JSON_POINTER_MAX - p->n);

	if (p->full)
		return;
	if (fits.n > 0)
		memcpy(p->text + p->n, fits.p, fits.n);
	p->n += fits.n;
	p->full = fits.n < s.n;
	p->text[p->n] = '\0';
}

/* A key as a reference token of RFC 6901. */
static void put_key(struct pointer *p, struct str key)
{
	size_t from = 0;

	put(p, STR_LIT("/"));
	for (size_t i = 0; i < key.n; i++) {
		if (key.p[i] != '~' && key.p[i] != '/')
			continue;
		put(p, (struct str){ key.p + from, i - from });
		put(p, key.p[i] == '~' ? STR_LIT("~0") : STR_LIT("~1"));
		from = i + 1;
	}
	put(p, (struct str){ key.p + from, key.n - from });
}

static void put_place(struct pointer *p, const struct place *at)
{
	char index[24];

	if (!at->up)
		return;
	put_place(p, at->up);
	if (at->key.p) {
		put_key(p, at->key);
		return;
	}
	snprintf(index, sizeof(index), "/%zu", at->index);
	put(p, str_of(index));
}

static int repeated(const struct place *at, struct str key, struct err *e)
{
	struct pointer p = { .n = 0 };

	put_place(&p, at);
	put_key(&p, key);
	return err_set(e, ERR_INVALID, "the key %s%s stands twice", p.text, p.full ? "…" : "");
}

static int compare(const void *a, const void *b)
{
	const struct str *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return x->n ? memcmp(x->p, y->p, x->n) : 0;
}

static int check_small(const struct json_val *v, const struct place *at, struct err *e)
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

static int check_large(const struct json_val *v, const struct place *at, struct err *e)
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

static int check(const struct json_val *v, const struct place *at, struct err *e)
{
	struct json_iter it = json_iter(v);

	if (it.object && (it.left <= SMALL ? check_small(v, at, e) : check_large(v, at, e)) < 0)
		return -1;
	while (json_next(&it)) {
		struct place below = { .up = at, .key = it.key, .index = it.index };

		if (json_len(it.val) > 0 && check(it.val, &below, e) < 0)
			return -1;
	}
	return 0;
}

int json_check_keys(const struct json_val *v, struct err *e)
{
	const struct place root = { .up = NULL };

	return check(v, &root, e);
}
