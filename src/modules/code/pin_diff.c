#include <stdlib.h>

#include "base/buf.h"
#include "json/document/pointer.h"
#include "json/document/utf8.h"
#include "modules/code/clean.h"
#include "modules/code/pin_internal.h"

enum {
	BEFORE = 60, /* bytes that are shown before the first difference */
	TEXT_MAX = 4 * JSON_BYTES_MAX,
};

struct differ {
	struct arena *arena;
	struct pin_diff *ret;
	struct err *e;
};

/* The shown text of a value: a string itself, else its canonical JSON. */
static int text_of(struct buf *b, struct str key, const struct json_val *v, struct err *e)
{
	struct json_writer w = json_writer(b);
	struct str s = json_str(v);

	if (json_type(v) == JSON_STR)
		return buf_add(b, s.p, s.n, e);
	pin_write(&w, key, v);
	return json_write_done(&w, e);
}

static int pin_diff_show(struct differ *d, struct str text, size_t from, struct str *ret)
{
	autobuf struct buf b = BUF_INIT(PIN_VALUE_CHARS * 4 + 8);

	if (from > 0 && buf_add(&b, "…", sizeof("…") - 1, d->e) < 0)
		return -1;
	text = (struct str){ text.p + from, text.n - from };
	if (clean_text(&b, text, CLEAN_REVEAL, PIN_VALUE_CHARS, d->e) < 0)
		return -1;
	ret->p = arena_dup(d->arena, buf_str(&b), d->e);
	ret->n = b.n;
	return ret->p ? 0 : -1;
}

/* Long values that begin alike are shown from a little before they differ. */
static size_t shown_from(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n, i = 0;

	while (i < n && a.p[i] == b.p[i])
		i++;
	if (i <= 2 * BEFORE)
		return 0;
	i -= BEFORE;
	while (i > 0 && ((unsigned char)a.p[i] & 0xc0) == 0x80)
		i--;
	return i;
}

static int pin_diff_add(struct differ *d, const struct json_place *at, const struct json_val *old,
			const struct json_val *now)
{
	autobuf struct buf a = BUF_INIT(TEXT_MAX), b = BUF_INIT(TEXT_MAX), where = BUF_INIT(4096);
	struct json_pointer p = JSON_POINTER_INIT;
	struct pin_change *c = &d->ret->changes[d->ret->n];
	size_t from;

	if (d->ret->n == PIN_CHANGES_MAX) {
		d->ret->more = true;
		return 0;
	}
	json_pointer_place(&p, at);
	if (clean_text(&where, (struct str){ p.text, p.n }, CLEAN_REVEAL, PIN_VALUE_CHARS, d->e) <
		    0 ||
	    (old && text_of(&a, at->key, old, d->e) < 0) ||
	    (now && text_of(&b, at->key, now, d->e) < 0))
		return -1;
	from = old && now ? shown_from(buf_str(&a), buf_str(&b)) : 0;
	c->where = (struct str){ arena_dup(d->arena, buf_str(&where), d->e), where.n };
	if (!c->where.p || (old && pin_diff_show(d, buf_str(&a), from, &c->old) < 0) ||
	    (now && pin_diff_show(d, buf_str(&b), from, &c->now) < 0))
		return -1;
	d->ret->n++;
	return 0;
}

static int same(struct differ *d, struct str key, const struct json_val *old,
		const struct json_val *now)
{
	autobuf struct buf a = BUF_INIT(TEXT_MAX), b = BUF_INIT(TEXT_MAX);
	struct json_writer v = json_writer(&a), w = json_writer(&b);

	if (json_type(old) == JSON_STR && json_type(now) == JSON_STR)
		return str_eq(json_str(old), json_str(now));
	pin_write(&v, key, old);
	pin_write(&w, key, now);
	if (json_write_done(&v, d->e) < 0 || json_write_done(&w, d->e) < 0)
		return -1;
	return str_eq(buf_str(&a), buf_str(&b));
}

static int differ(struct differ *d, const struct json_place *at, const struct json_val *old,
		  const struct json_val *now);

static int differ_objects(struct differ *d, const struct json_place *at, const struct json_val *old,
			  const struct json_val *now)
{
	struct err e, f;
	autofree struct pin_member *a = pin_sorted(old, &e), *b = pin_sorted(now, &f);
	size_t an = json_len(old), bn = json_len(now);

	if (e.code || f.code) {
		*d->e = e.code ? e : f;
		return -1;
	}
	for (size_t i = 0, k = 0; i < an || k < bn;) {
		int c = i == an ? 1 : k == bn ? -1 : str_cmp(a[i].key, b[k].key);
		struct json_place in = { at, c <= 0 ? a[i].key : b[k].key, 0 };

		if (differ(d, &in, c <= 0 ? a[i].val : NULL, c >= 0 ? b[k].val : NULL) < 0)
			return -1;
		i += c <= 0;
		k += c >= 0;
	}
	return 0;
}

static int differ_arrays(struct differ *d, const struct json_place *at, const struct json_val *old,
			 const struct json_val *now)
{
	struct json_iter a = json_iter(old), b = json_iter(now);

	while (json_next(&a) && json_next(&b)) {
		struct json_place in = { at, STR_NONE, a.index };

		if (differ(d, &in, a.val, b.val) < 0)
			return -1;
	}
	return 0;
}

static bool has_scalars(const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		if (json_type(it.val) >= JSON_ARRAY)
			return false;
	}
	return true;
}

/* Objects are compared member by member; arrays that have objects, and as many, element by element;
 * all else is one value. */
static int differ(struct differ *d, const struct json_place *at, const struct json_val *old,
		  const struct json_val *now)
{
	enum json_type type = json_type(old);
	int eq;

	if (d->ret->more)
		return 0;
	if (old && now && type == json_type(now)) {
		if (type == JSON_OBJECT)
			return differ_objects(d, at, old, now);
		if (type == JSON_ARRAY && json_len(old) == json_len(now) &&
		    !(has_scalars(old) && has_scalars(now)))
			return differ_arrays(d, at, old, now);
	}
	eq = old && now ? same(d, at->key, old, now) : 0;
	return eq != 0 ? (eq < 0 ? -1 : 0) : pin_diff_add(d, at, old, now);
}

int pin_diff(const struct json_val *old, const struct json_val *now, struct arena *a,
	     struct pin_diff *ret, struct err *e)
{
	const struct json_val *was[PIN_MEMBERS], *is[PIN_MEMBERS];
	struct differ d = { a, ret, e };

	*ret = (struct pin_diff){ arena_array(a, PIN_CHANGES_MAX, sizeof(*ret->changes), e), 0,
				  false };
	if (!ret->changes)
		return -1;
	json_get_all(old, pin_members, PIN_MEMBERS, was);
	json_get_all(now, pin_members, PIN_MEMBERS, is);
	for (size_t i = 0; i < PIN_MEMBERS; i++) {
		struct json_place root = { NULL, STR_NONE, 0 };
		struct json_place at = { &root, pin_members[i], 0 };

		if ((was[i] || is[i]) && differ(&d, &at, was[i], is[i]) < 0)
			return -1;
	}
	return 0;
}
