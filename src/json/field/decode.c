/*
 * Decodes JSON into a struct, by its rows. Every refusal names the field, what it takes and what
 * came, so that a model can correct itself from the message alone.
 */
#include <stdio.h>

#include "json/field/internal.h"
#include "json/document/near.h"
#include "json/document/pointer.h"
#include "json/document/utf8.h"

/* The decoder's place in the document, innermost first. */
struct place {
	const struct place *up;
	struct str name; /* STR_NONE for an element */
	size_t index;
};

struct decoder {
	struct arena *arena;
	struct json_pointer *where; /* of a refusal; NULL: its message has the whole path */
	bool part; /* what is required may be missing */
	struct err *e;
};

enum { PATH_MAX_ = 96, TAKES_MAX = 96, KEY_SHOWN = 40 };

/* "files[2].path" */
static void put_place(char path[PATH_MAX_], const struct place *at)
{
	size_t n;

	if (!at) {
		path[0] = '\0';
		return;
	}
	put_place(path, at->up);
	n = strlen(path);
	if (at->name.p)
		snprintf(path + n, PATH_MAX_ - n, "%s%.*s", n ? "." : "",
			 STR_ARG(utf8_cut(at->name, KEY_SHOWN)));
	else
		snprintf(path + n, PATH_MAX_ - n, "[%zu]", at->index);
}

static void put_pointer(struct json_pointer *p, const struct place *at)
{
	if (!at)
		return;
	put_pointer(p, at->up);
	if (at->name.p)
		json_pointer_key(p, at->name);
	else
		json_pointer_index(p, at->index);
}

/* The place of what is refused, for the message. */
static void refuse_at(struct decoder *d, const struct place *at, char path[PATH_MAX_])
{
	const struct place last = at ? (struct place){ .name = at->name, .index = at->index }
				     : (struct place){ .index = 0 };

	if (d->where)
		put_pointer(d->where, at);
	put_place(path, d->where && at ? &last : at);
}

static_assert(ERR_POINTER_MAX >= sizeof((struct json_pointer){ .n = 0 }.text), "it fits");

/* The error is about this place, or about its member of this name. */
static int point(struct decoder *d, const struct place *at, struct str member)
{
	struct json_pointer p = JSON_POINTER_INIT;

	put_pointer(&p, at);
	if (member.p)
		json_pointer_key(&p, member);
	return err_point(d->e, "%s", p.text);
}

static void put_range(char *text, size_t room, const struct field_bounds *b, const char *unit)
{
	long long min = b->min, max = b->max;

	if (b->has_min && b->has_max && min == max)
		snprintf(text, room, " of exactly %lld%s", max, unit);
	else if (b->has_min && b->has_max && (min != 0 || !*unit))
		snprintf(text, room, *unit ? " of %lld to %lld%s" : " from %lld to %lld%s", min,
			 max, unit);
	else if (b->has_max)
		snprintf(text, room, " of at most %lld%s", max, unit);
	else if (b->has_min && (min != 0 || !*unit))
		snprintf(text, room, " of at least %lld%s", min, unit);
}

static void put_choice(char *text, size_t room, const struct field *f)
{
	size_t n = (size_t)snprintf(text, room, "one of");

	for (size_t i = 0; i < f->names_n && n < room; i++)
		n += (size_t)snprintf(text + n, room - n, "%s \"%s\"", i ? "," : "", f->names[i]);
}

/* "an integer from 1 to 600000" */
static void put_takes(char text[TAKES_MAX], const struct field *f)
{
	static const struct {
		const char *noun, *unit;
	} kinds[] = {
		[FIELD_IS_BOOL] = { "true or false", NULL },
		[FIELD_IS_INT32] = { "an integer", "" },
		[FIELD_IS_INT64] = { "an integer", "" },
		[FIELD_IS_UINT32] = { "an integer", "" },
		[FIELD_IS_UINT64] = { "an integer", "" },
		[FIELD_IS_REAL] = { "a number", "" },
		[FIELD_IS_STR] = { "a string", " characters" },
		[FIELD_IS_STRS] = { "an array", " strings" },
		[FIELD_IS_MAP] = { "an object", " strings" },
		[FIELD_IS_ENUM] = { "", NULL },
		[FIELD_IS_OBJECT] = { "an object", NULL },
		[FIELD_IS_OBJECTS] = { "an array", " objects" },
		[FIELD_IS_DICT] = { "an object", " members" },
		[FIELD_IS_JSON] = { "an object", NULL },
	};
	struct field_bounds b = field_bounds(f);
	size_t n;

	if (f->kind == FIELD_IS_ENUM) {
		put_choice(text, TAKES_MAX, f);
		return;
	}
	if (f->flags & FIELD_SWITCH) {
		snprintf(text, TAKES_MAX, "an object, true or false");
		return;
	}
	n = (size_t)snprintf(text, TAKES_MAX, "%s", kinds[f->kind].noun);
	if (kinds[f->kind].unit)
		put_range(text + n, TAKES_MAX - n, &b, kinds[f->kind].unit);
	n = strlen(text);
	if (f->kind >= FIELD_IS_STRS && kinds[f->kind].unit && !b.has_max && b.min == 0)
		snprintf(text + n, TAKES_MAX - n, " of%s", kinds[f->kind].unit);
}

static int decode_refuse(struct decoder *d, const struct place *at, const struct field *f,
			 const char *got)
{
	char path[PATH_MAX_], takes[TAKES_MAX];

	refuse_at(d, at, path);
	put_takes(takes, f);
	err_set(d->e, ERR_INVALID, "%s takes %s, not %s", path, takes, got);
	return point(d, at, STR_NONE);
}

static int refuse_type(struct decoder *d, const struct place *at, const struct field *f,
		       const struct json_val *v)
{
	return decode_refuse(d, at, f, json_type_name(json_type(v)));
}

static int refuse_count(struct decoder *d, const struct place *at, const struct field *f, size_t n)
{
	char got[24];

	snprintf(got, sizeof(got), "%zu", n);
	return decode_refuse(d, at, f, got);
}

static bool count_fits(const struct field_bounds *b, size_t n)
{
	return (int64_t)n >= b->min && (!b->has_max || (int64_t)n <= b->max);
}

static int decode_uint64(struct decoder *d, const struct place *at, const struct field *f,
			 const struct json_val *v, uint64_t *ret)
{
	struct field_bounds b = field_bounds(f);
	uint64_t u;
	char got[32];

	if (!json_uint64(v, &u))
		return decode_refuse(d, at, f,
				     json_type(v) == JSON_INT ? "a negative one"
							      : json_type_name(json_type(v)));
	if (u < (uint64_t)b.min || (b.has_max && u > (uint64_t)b.max)) {
		snprintf(got, sizeof(got), "%llu", (unsigned long long)u);
		return decode_refuse(d, at, f, got);
	}
	*ret = u;
	return 0;
}

static int decode_int64(struct decoder *d, const struct place *at, const struct field *f,
			const struct json_val *v, int64_t *ret)
{
	struct field_bounds b = field_bounds(f);
	int64_t i;
	char got[32];

	if (!json_int64(v, &i))
		return decode_refuse(d, at, f,
				     json_type(v) == JSON_INT ? "a larger one"
							      : json_type_name(json_type(v)));
	if ((b.has_min && i < b.min) || (b.has_max && i > b.max)) {
		snprintf(got, sizeof(got), "%lld", (long long)i);
		return decode_refuse(d, at, f, got);
	}
	*ret = i;
	return 0;
}

static int decode_real(struct decoder *d, const struct place *at, const struct field *f,
		       const struct json_val *v, double *ret)
{
	struct field_bounds b = field_bounds(f);
	double r = json_real(v);
	char got[32];

	if (json_type(v) != JSON_INT && json_type(v) != JSON_REAL)
		return refuse_type(d, at, f, v);
	if ((b.has_min && r < (double)b.min) || (b.has_max && r > (double)b.max)) {
		snprintf(got, sizeof(got), "%g", r);
		return decode_refuse(d, at, f, got);
	}
	*ret = r;
	return 0;
}

/* got NULL: the string has U+0000. */
static int refuse_str(struct decoder *d, const struct place *at, const struct field_bounds *b,
		      const char *got)
{
	char path[PATH_MAX_], range[TAKES_MAX] = "";

	refuse_at(d, at, path);
	put_range(range, sizeof(range), b, " characters");
	err_set(d->e, ERR_INVALID, "%s takes a string%s%s%s", path, range,
		got ? ", not " : " without U+0000", got ? got : "");
	return point(d, at, STR_NONE);
}

/* A string of the field or of one of its elements; b: the bounds for it. */
static int decode_str(struct decoder *d, const struct place *at, unsigned flags,
		      const struct field_bounds *b, const struct json_val *v, struct str *ret)
{
	bool bounded = b->min > 0 || b->has_max;
	struct str s = json_str(v);
	char got[24];

	if (json_type(v) != JSON_STR)
		return refuse_str(d, at, b, json_type_name(json_type(v)));
	if (bounded && !count_fits(b, utf8_count(s))) {
		snprintf(got, sizeof(got), "%zu", utf8_count(s));
		return refuse_str(d, at, b, got);
	}
	if (!(flags & FIELD_NUL_OK) && memchr(s.p, '\0', s.n))
		return refuse_str(d, at, b, NULL);
	*ret = s;
	return 0;
}

static int decode_strs(struct decoder *d, const struct place *at, const struct field *f,
		       const struct json_val *v, struct field_strs *ret)
{
	struct field_bounds b = field_bounds(f), item = field_item_bounds(f);
	struct json_iter it = json_iter(v);
	struct str *p;

	if (json_type(v) != JSON_ARRAY)
		return refuse_type(d, at, f, v);
	if (!count_fits(&b, json_len(v)))
		return refuse_count(d, at, f, json_len(v));
	p = arena_array(d->arena, json_len(v), sizeof(*p), d->e);
	if (!p)
		return -1;
	while (json_next(&it)) {
		struct place elem = { .up = at, .index = it.index };

		if (decode_str(d, &elem, f->flags, &item, it.val, &p[it.index]) < 0)
			return -1;
	}
	*ret = (struct field_strs){ p, json_len(v) };
	return 0;
}

static int decode_map(struct decoder *d, const struct place *at, const struct field *f,
		      const struct json_val *v, struct field_map *ret)
{
	struct field_bounds b = field_bounds(f), item = field_item_bounds(f);
	struct json_iter it = json_iter(v);
	struct field_pair *p;

	if (json_type(v) != JSON_OBJECT)
		return refuse_type(d, at, f, v);
	if (!count_fits(&b, json_len(v)))
		return refuse_count(d, at, f, json_len(v));
	p = arena_array(d->arena, json_len(v), sizeof(*p), d->e);
	if (!p)
		return -1;
	while (json_next(&it)) {
		struct place member = { .up = at, .name = it.key };

		if (!(f->flags & FIELD_NUL_OK) && memchr(it.key.p, '\0', it.key.n))
			return decode_refuse(d, at, f, "a name with U+0000");
		p[it.index].key = it.key;
		if (decode_str(d, &member, f->flags, &item, it.val, &p[it.index].value) < 0)
			return -1;
	}
	*ret = (struct field_map){ p, json_len(v) };
	return 0;
}

static int decode_enum(struct decoder *d, const struct place *at, const struct field *f,
		       const struct json_val *v, void *ret)
{
	struct str s = json_str(v);
	char got[KEY_SHOWN + 8];

	if (json_type(v) != JSON_STR)
		return refuse_type(d, at, f, v);
	for (unsigned i = 0; i < f->names_n; i++) {
		if (str_is(s, f->names[i])) {
			memcpy(ret, &i, sizeof(i));
			return 0;
		}
	}
	snprintf(got, sizeof(got), "\"%.*s\"", STR_ARG(utf8_cut(s, KEY_SHOWN)));
	return decode_refuse(d, at, f, got);
}

static int decode_object(struct decoder *d, const struct place *at, const struct field_table *t,
			 const struct json_val *v, void *ret);

/* An object for which a boolean may stand. */
static int decode_switch(struct decoder *d, const struct place *at, const struct field *f,
			 const struct json_val *v, void *to)
{
	if (json_type(v) == JSON_OBJECT)
		return decode_object(d, at, f->table, v, to);
	if (json_type(v) != JSON_BOOL)
		return refuse_type(d, at, f, v);
	field_defaults(f->table, to);
	*(bool *)to = !json_bool(v);
	return 0;
}

/* Room for the elements of v, which the struct then has; NULL with *d->e. */
static char *decode_elements(struct decoder *d, const struct place *at, const struct field *f,
			     const struct json_val *v, enum json_type type, void *base)
{
	struct field_bounds b = field_bounds(f);
	size_t n = json_len(v);
	char *p = NULL;

	if (json_type(v) != type)
		refuse_type(d, at, f, v);
	else if (!count_fits(&b, n))
		refuse_count(d, at, f, n);
	else
		p = arena_array(d->arena, n, f->elem, d->e);
	if (!p)
		return NULL;
	memcpy(field_at(f, base), &p, sizeof(p));
	memcpy((char *)base + f->count_at, &n, sizeof(n));
	return p;
}

static int decode_objects(struct decoder *d, const struct place *at, const struct field *f,
			  const struct json_val *v, void *base)
{
	struct json_iter it = json_iter(v);
	char *p = decode_elements(d, at, f, v, JSON_ARRAY, base);

	if (!p)
		return -1;
	while (json_next(&it)) {
		struct place elem = { .up = at, .index = it.index };

		if (decode_object(d, &elem, f->table, it.val, p + it.index * f->elem) < 0)
			return -1;
	}
	return 0;
}

static int decode_value(struct decoder *d, const struct place *at, const struct field *f,
			const struct json_val *v, void *base);

/* An element of a dictionary, with its name. */
static int decode_named(struct decoder *d, const struct place *at, const struct field *f,
			const struct json_iter *it, char *to)
{
	struct place member = { .up = at, .name = it->key };
	struct field_bounds name = field_item_bounds(f);

	if (decode_str(d, &member, 0, &name, it->name, (struct str *)(void *)to) < 0)
		return -1;
	if (f->table->bare)
		return decode_value(d, &member, &f->table->rows[0], it->val, to);
	if (decode_object(d, &member, f->table, it->val, to) < 0)
		return -1;
	*(struct str *)(void *)to = it->key;
	return 0;
}

static int decode_dict(struct decoder *d, const struct place *at, const struct field *f,
		       const struct json_val *v, void *base)
{
	struct json_iter it = json_iter(v);
	char *p = decode_elements(d, at, f, v, JSON_OBJECT, base);

	if (!p)
		return -1;
	while (json_next(&it)) {
		if (decode_named(d, at, f, &it, p + it.index * f->elem) < 0)
			return -1;
	}
	return 0;
}

static int decode_json(struct decoder *d, const struct place *at, const struct field *f,
		       const struct json_val *v, struct field_json *to)
{
	autobuf struct buf b = BUF_INIT(f->max ? (size_t)f->max : JSON_BYTES_MAX);
	struct json_writer w = json_writer(&b);
	char path[PATH_MAX_];

	if (json_type(v) != JSON_OBJECT)
		return refuse_type(d, at, f, v);
	json_write_val(&w, v);
	if (json_write_done(&w, d->e) < 0) {
		refuse_at(d, at, path);
		return err_wrap(d->e, "%s", path);
	}
	to->text = (struct str){ arena_dup(d->arena, buf_str(&b), d->e), b.n };
	return to->text.p ? 0 : -1;
}

static int decode_value(struct decoder *d, const struct place *at, const struct field *f,
			const struct json_val *v, void *base)
{
	struct field_bounds b = field_bounds(f);
	void *to = field_at(f, base);
	uint64_t u = 0;
	int64_t i = 0;

	switch (f->kind) {
	case FIELD_IS_BOOL:
		if (json_type(v) != JSON_BOOL)
			return refuse_type(d, at, f, v);
		*(bool *)to = json_bool(v);
		return 0;
	case FIELD_IS_INT32:
		if (decode_int64(d, at, f, v, &i) < 0)
			return -1;
		*(int32_t *)to = (int32_t)i;
		return 0;
	case FIELD_IS_INT64:
		return decode_int64(d, at, f, v, to);
	case FIELD_IS_UINT32:
		if (decode_uint64(d, at, f, v, &u) < 0)
			return -1;
		*(uint32_t *)to = (uint32_t)u;
		return 0;
	case FIELD_IS_UINT64:
		return decode_uint64(d, at, f, v, to);
	case FIELD_IS_REAL:
		return decode_real(d, at, f, v, to);
	case FIELD_IS_STR:
		return decode_str(d, at, f->flags, &b, v, to);
	case FIELD_IS_STRS:
		return decode_strs(d, at, f, v, to);
	case FIELD_IS_MAP:
		return decode_map(d, at, f, v, to);
	case FIELD_IS_ENUM:
		return decode_enum(d, at, f, v, to);
	case FIELD_IS_OBJECT:
		return f->flags & FIELD_SWITCH ? decode_switch(d, at, f, v, to)
					       : decode_object(d, at, f->table, v, to);
	case FIELD_IS_OBJECTS:
		return decode_objects(d, at, f, v, base);
	case FIELD_IS_DICT:
		return decode_dict(d, at, f, v, base);
	case FIELD_IS_JSON:
		return decode_json(d, at, f, v, to);
	}
	return err_set(d->e, ERR_BUG, "%s has no kind", f->name);
}

static void apply_defaults(const struct field_table *t, void *ret);

static void apply_default(const struct field *f, void *base)
{
	void *to = field_at(f, base);

	switch (f->kind) {
	case FIELD_IS_BOOL:
		*(bool *)to = f->def.i != 0;
		break;
	case FIELD_IS_INT32:
	case FIELD_IS_UINT32:
	case FIELD_IS_ENUM:
		memcpy(to, &(int32_t){ (int32_t)f->def.i }, sizeof(int32_t));
		break;
	case FIELD_IS_INT64:
	case FIELD_IS_UINT64:
		memcpy(to, &f->def.i, sizeof(f->def.i));
		break;
	case FIELD_IS_REAL:
		*(double *)to = f->def.is == FIELD_DEFAULT_REAL ? f->def.d : (double)f->def.i;
		break;
	case FIELD_IS_STR:
		*(struct str *)to = str_of(f->def.s);
		break;
	case FIELD_IS_OBJECT:
		apply_defaults(f->table, to);
		break;
	case FIELD_IS_STRS:
	case FIELD_IS_MAP:
	case FIELD_IS_OBJECTS:
	case FIELD_IS_DICT:
	case FIELD_IS_JSON:
		break;
	}
}

static void apply_defaults(const struct field_table *t, void *ret)
{
	for (size_t i = 0; i < t->n; i++)
		apply_default(&t->rows[i], ret);
}

static int missing(struct decoder *d, const struct place *at, const struct field *f)
{
	char path[PATH_MAX_], takes[TAKES_MAX];

	refuse_at(d, at, path);
	put_takes(takes, f);
	err_set(d->e, ERR_INVALID, "%s%s\"%s\" is missing; it takes %s", path, at ? ": " : "",
		f->name, takes);
	return point(d, at, str_of(f->name));
}

/* Names the nearest name, or all names if none is near. */
static int unknown(struct decoder *d, const struct place *at, const struct field_table *t,
		   struct str key)
{
	char path[PATH_MAX_], names[160] = "";
	struct str shown = utf8_cut(key, KEY_SHOWN);
	const char *near = NULL;
	unsigned best = 0, distance;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		const char *name = t->rows[i].name;

		distance = near_distance(key, str_of(name));
		if (distance <= near_enough(key) && (!near || distance < best)) {
			near = name;
			best = distance;
		}
		if (n + strlen(name) + 8 < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
					      name);
	}
	refuse_at(d, at, path);
	if (d->where)
		json_pointer_key(d->where, key);
	if (near)
		err_set(d->e, ERR_INVALID, "%s%sunknown field \"%.*s\"; did you mean \"%s\"?", path,
			at ? ": " : "", STR_ARG(shown), near);
	else
		err_set(d->e, ERR_INVALID, "%s%sunknown field \"%.*s\"; known are %s", path,
			at ? ": " : "", STR_ARG(shown), n ? names : "none");
	return point(d, at, key);
}

static int decode_member(struct decoder *d, const struct place *at, const struct field_table *t,
			 const struct json_iter *it, uint64_t *seen, void *ret)
{
	struct place member = { .up = at, .name = it->key };
	const struct field *f = NULL;
	bool *has;

	for (size_t i = 0; i < t->n && !f; i++)
		f = str_is(it->key, t->rows[i].name) ? &t->rows[i] : NULL;
	if (!f)
		return t->open ? 0 : unknown(d, at, t, it->key);
	*seen |= 1ull << (f - t->rows);
	if (json_type(it->val) == JSON_NULL && (f->flags & FIELD_NULLABLE)) {
		apply_default(f, ret);
		return 0;
	}
	has = field_has(f, ret);
	if (has)
		*has = true;
	return decode_value(d, &member, f, it->val, ret);
}

static int decode_members(struct decoder *d, const struct place *at, const struct field_table *t,
			  const struct json_val *v, void *ret)
{
	struct json_iter it = json_iter(v);
	char path[PATH_MAX_];
	uint64_t seen = 0;

	if (v && json_type(v) != JSON_OBJECT) {
		refuse_at(d, at, path);
		err_set(d->e, ERR_INVALID, "%s takes an object, not %s", at ? path : "the call",
			json_type_name(json_type(v)));
		return point(d, at, STR_NONE);
	}
	while (json_next(&it)) {
		if (decode_member(d, at, t, &it, &seen, ret) < 0)
			return -1;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (seen >> i & 1)
			continue;
		if ((t->rows[i].flags & FIELD_REQUIRED) && !d->part)
			return missing(d, at, &t->rows[i]);
		apply_default(&t->rows[i], ret);
	}
	return 0;
}

static int decode_object(struct decoder *d, const struct place *at, const struct field_table *t,
			 const struct json_val *v, void *ret)
{
	memset(ret, 0, t->size);
	return decode_members(d, at, t, v, ret);
}

int field_decode(const struct field_table *t, const struct json_val *v, struct arena *a, void *ret,
		 struct err *e)
{
	struct decoder d = { .arena = a, .e = e };

	return decode_object(&d, NULL, t, v, ret);
}

int field_decode_part(const struct field_table *t, const struct json_val *v, struct arena *a,
		      void *ret, struct err *e)
{
	struct decoder d = { .arena = a, .part = true, .e = e };

	return decode_object(&d, NULL, t, v, ret);
}

int field_decode_where(const struct field_table *t, const struct json_val *v, struct arena *a,
		       void *ret, struct json_pointer *where, struct err *e)
{
	struct decoder d = { .arena = a, .where = where, .e = e };

	return decode_object(&d, NULL, t, v, ret);
}

void field_defaults(const struct field_table *t, void *ret)
{
	memset(ret, 0, t->size);
	apply_defaults(t, ret);
}

int field_decode_members(const struct field_table *t, const struct json_val *v, struct arena *a,
			 void *ret, struct err *e)
{
	struct decoder d = { .arena = a, .e = e };

	return decode_members(&d, NULL, t, v, ret);
}
