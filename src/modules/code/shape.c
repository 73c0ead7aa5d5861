#include "modules/code/shape.h"

#include <stdint.h>
#include <string.h>

enum {
	LOOKUPS_MAX = 4 << 20, /* members that are looked at to find what references lead to */
	POINTER_STEPS = 16,
};

/* The keywords that are read. */
enum {
	K_REF,
	K_TYPE,
	K_CONST,
	K_ENUM,
	K_PROPERTIES,
	K_REQUIRED,
	K_ADDITIONAL,
	K_UNEVALUATED,
	K_PATTERNS,
	K_ITEMS,
	K_PREFIX,
	K_MORE_ITEMS,
	K_MIN_ITEMS,
	K_MAX_ITEMS,
	K_ALL,
	K_ANY,
	K_ONE,
	K_NULLABLE,
	K_DYNAMIC,
	K_RECURSIVE,
	K_COUNT
};

static const struct str keywords[K_COUNT] = {
	[K_REF] = STR_LIT("$ref"),
	[K_TYPE] = STR_LIT("type"),
	[K_CONST] = STR_LIT("const"),
	[K_ENUM] = STR_LIT("enum"),
	[K_PROPERTIES] = STR_LIT("properties"),
	[K_REQUIRED] = STR_LIT("required"),
	[K_ADDITIONAL] = STR_LIT("additionalProperties"),
	[K_UNEVALUATED] = STR_LIT("unevaluatedProperties"),
	[K_PATTERNS] = STR_LIT("patternProperties"),
	[K_ITEMS] = STR_LIT("items"),
	[K_PREFIX] = STR_LIT("prefixItems"),
	[K_MORE_ITEMS] = STR_LIT("additionalItems"),
	[K_MIN_ITEMS] = STR_LIT("minItems"),
	[K_MAX_ITEMS] = STR_LIT("maxItems"),
	[K_ALL] = STR_LIT("allOf"),
	[K_ANY] = STR_LIT("anyOf"),
	[K_ONE] = STR_LIT("oneOf"),
	[K_NULLABLE] = STR_LIT("nullable"),
	[K_DYNAMIC] = STR_LIT("$dynamicRef"),
	[K_RECURSIVE] = STR_LIT("$recursiveRef"),
};

struct reader {
	const struct json_val *root;
	struct arena *arena;
	struct shapes *ret;
	size_t nodes, lookups;
	struct err err; /* the first; nodes are then `any` */
};

static struct shape any = { .kind = SHAPE_ANY };

static struct shape *node(struct reader *r, enum shape_kind kind)
{
	struct shape *s;

	if (r->err.code || r->nodes == SHAPE_NODES)
		return &any;
	s = arena_alloc(r->arena, sizeof(*s), &r->err);
	if (!s)
		return &any;
	r->nodes++;
	s->kind = kind;
	return s;
}

static void *array(struct reader *r, size_t n, size_t size)
{
	return r->err.code ? NULL : arena_array(r->arena, n, size, &r->err);
}

/* ---- unions and intersections --------------------------------------------------------------- */

/* Parts as they come in. */
struct parts {
	struct shape *p[SHAPE_PARTS + SHAPE_LITERALS];
	size_t n;
	bool any; /* one may be anything, or there are too many */
};

static bool is_plain(enum shape_kind kind)
{
	return kind >= SHAPE_NULL && kind <= SHAPE_STRING;
}

static void union_add(struct parts *u, struct shape *s)
{
	if (s->kind == SHAPE_UNION) {
		for (size_t i = 0; i < s->parts_n; i++)
			union_add(u, s->parts[i]);
		return;
	}
	for (size_t i = 0; i < u->n && is_plain(s->kind); i++) {
		if (u->p[i]->kind == s->kind)
			return;
	}
	if (s->kind == SHAPE_ANY || u->n == SHAPE_PARTS + SHAPE_LITERALS)
		u->any = true;
	else if (s->kind != SHAPE_NEVER)
		u->p[u->n++] = s;
}

static struct shape *with_parts(struct reader *r, enum shape_kind kind, const struct parts *u)
{
	struct shape *s = node(r, kind);

	if (s->kind != kind)
		return s;
	s->parts = array(r, u->n, sizeof(struct shape *));
	if (!s->parts)
		return &any;
	s->parts_n = u->n;
	memcpy(s->parts, u->p, u->n * sizeof(struct shape *));
	return s;
}

static struct shape *union_end(struct reader *r, const struct parts *u)
{
	if (u->any)
		return &any;
	if (u->n < 2)
		return u->n ? u->p[0] : node(r, SHAPE_NEVER);
	return with_parts(r, SHAPE_UNION, u);
}

static void both_add(struct parts *u, struct shape *s)
{
	if (s->kind != SHAPE_ANY && u->n < SHAPE_PARTS)
		u->p[u->n++] = s;
}

static struct shape *both_end(struct reader *r, const struct parts *u)
{
	for (size_t i = 0; i < u->n; i++) {
		if (u->p[i]->kind == SHAPE_NEVER)
			return u->p[i];
	}
	if (u->n < 2)
		return u->n ? u->p[0] : &any;
	return with_parts(r, SHAPE_BOTH, u);
}

/* ---- values --------------------------------------------------------------------------------- */

static struct shape *read_value(struct reader *r, const struct json_val *v, unsigned depth);

static struct shape *object_value(struct reader *r, const struct json_val *v, unsigned depth)
{
	struct json_iter it = json_iter(v);
	struct shape *s = node(r, SHAPE_OBJECT);

	if (s->kind != SHAPE_OBJECT || json_len(v) > SHAPE_MEMBERS)
		return &any;
	s->members = array(r, json_len(v), sizeof(*s->members));
	while (s->members && json_next(&it)) {
		if (it.key.n > SHAPE_TEXT)
			return &any;
		s->members[s->members_n++] = (struct shape_member){
			.name = it.key, .type = read_value(r, it.val, depth + 1)
		};
	}
	return s;
}

static struct shape *read_value(struct reader *r, const struct json_val *v, unsigned depth)
{
	struct json_iter it = json_iter(v);
	struct parts u = { .n = 0 };
	struct shape *s;

	if (depth > SHAPE_DEPTH)
		return &any;
	switch (json_type(v)) {
	case JSON_NULL:
		return node(r, SHAPE_NULL);
	case JSON_STR:
		if (json_str(v).n > SHAPE_TEXT)
			return node(r, SHAPE_STRING);
		break;
	case JSON_OBJECT:
		return object_value(r, v, depth);
	case JSON_ARRAY:
		while (json_next(&it) && u.n < SHAPE_PARTS)
			u.p[u.n++] = read_value(r, it.val, depth + 1);
		s = json_len(v) > SHAPE_PARTS ? &any : with_parts(r, SHAPE_TUPLE, &u);
		if (s->kind == SHAPE_TUPLE)
			s->needed = s->parts_n;
		return s;
	default:
		break;
	}
	s = node(r, SHAPE_LITERAL);
	if (s->kind == SHAPE_LITERAL)
		s->literal = v;
	return s;
}

static enum shape_kind kind_of_value(const struct json_val *v)
{
	static const enum shape_kind kinds[] = {
		[JSON_NULL] = SHAPE_NULL,   [JSON_BOOL] = SHAPE_BOOL,  [JSON_INT] = SHAPE_INT,
		[JSON_REAL] = SHAPE_NUMBER, [JSON_STR] = SHAPE_STRING, [JSON_ARRAY] = SHAPE_ANY,
		[JSON_OBJECT] = SHAPE_ANY,
	};

	return kinds[json_type(v)];
}

static struct shape *read_enum(struct reader *r, const struct json_val *v, unsigned depth)
{
	struct json_iter it = json_iter(v);
	bool few = json_len(v) <= SHAPE_LITERALS;
	struct parts u = { .n = 0 };

	if (json_type(v) != JSON_ARRAY)
		return &any;
	while (json_next(&it) && !u.any) {
		enum shape_kind kind = kind_of_value(it.val);
		bool seen = false;

		for (size_t i = 0; i < u.n && !few; i++)
			seen = seen || u.p[i]->kind == kind;
		if (!seen)
			union_add(&u, few ? read_value(r, it.val, depth + 1) : node(r, kind));
	}
	return union_end(r, &u);
}

/* ---- objects and arrays --------------------------------------------------------------------- */

static struct shape *read_schema(struct reader *r, const struct json_val *v, unsigned depth);

static bool has_string(const struct json_val *list, struct str s)
{
	struct json_iter it = json_iter(list);

	while (json_next(&it)) {
		if (json_type(it.val) == JSON_STR && str_eq(json_str(it.val), s))
			return true;
	}
	return false;
}

static bool says_type(const struct json_val *v)
{
	return json_type(v) == JSON_OBJECT || (json_type(v) == JSON_BOOL && json_bool(v));
}

/* The type of members that are not listed: NULL where the schema has nothing of them. */
static struct shape *read_rest(struct reader *r, const struct json_val *const *k, bool lists,
			       unsigned depth)
{
	const struct json_val *more = k[K_ADDITIONAL] ? k[K_ADDITIONAL] : k[K_UNEVALUATED];
	struct json_iter it = json_iter(k[K_PATTERNS]);
	struct parts u = { .n = 0 };

	while (json_type(k[K_PATTERNS]) == JSON_OBJECT && json_next(&it) && it.index < SHAPE_PARTS)
		union_add(&u, read_schema(r, it.val, depth + 1));
	if (says_type(more))
		union_add(&u, read_schema(r, more, depth + 1));
	if (u.n || u.any)
		return union_end(r, &u);
	return lists || more ? NULL : &any;
}

/* A member that is required and not listed may be anything. */
static void add_required(struct shape *s, const struct json_val *const *k)
{
	struct json_iter it = json_iter(k[K_REQUIRED]);

	while (json_next(&it) && s->members_n < SHAPE_MEMBERS) {
		struct str name = json_str(it.val);

		if (json_type(it.val) != JSON_STR || name.n > SHAPE_TEXT)
			continue;
		for (size_t i = 0; i < s->members_n && name.p; i++) {
			if (str_eq(s->members[i].name, name))
				name = STR_NONE;
		}
		if (name.p)
			s->members[s->members_n++] = (struct shape_member){ .name = name,
									    .type = &any };
	}
}

static struct shape *read_object(struct reader *r, const struct json_val *const *k, unsigned depth)
{
	const struct json_val *list = k[K_PROPERTIES];
	struct json_iter it = json_iter(list);
	size_t listed = json_type(list) == JSON_OBJECT ? json_len(list) : 0;
	size_t required = json_type(k[K_REQUIRED]) == JSON_ARRAY ? json_len(k[K_REQUIRED]) : 0;
	size_t room = listed + required < SHAPE_MEMBERS ? listed + required : SHAPE_MEMBERS;
	struct shape *s = node(r, SHAPE_OBJECT);

	if (s->kind != SHAPE_OBJECT)
		return s;
	s->members = array(r, room, sizeof(*s->members));
	while (s->members && listed && json_next(&it)) {
		if (s->members_n == SHAPE_MEMBERS || it.key.n > SHAPE_TEXT) {
			s->more = true;
			if (s->members_n == SHAPE_MEMBERS)
				break;
			continue;
		}
		s->members[s->members_n++] = (struct shape_member){
			.name = it.key,
			.type = read_schema(r, it.val, depth + 1),
			.schema = it.val,
			.optional = !has_string(k[K_REQUIRED], it.key),
		};
	}
	if (s->members && required && listed <= SHAPE_MEMBERS && required <= SHAPE_MEMBERS)
		add_required(s, k);
	s->rest = s->more ? &any : read_rest(r, k, s->members_n > 0, depth);
	return s;
}

static struct shape *read_tuple(struct reader *r, const struct json_val *const *k,
				const struct json_val *list, const struct json_val *more,
				unsigned depth)
{
	struct json_iter it = json_iter(list);
	struct parts u = { .n = 0 };
	int64_t least;
	struct shape *s;

	while (json_next(&it) && u.n < SHAPE_PARTS)
		u.p[u.n++] = read_schema(r, it.val, depth + 1);
	s = with_parts(r, SHAPE_TUPLE, &u);
	if (s->kind != SHAPE_TUPLE)
		return s;
	s->needed = s->parts_n;
	if (json_int64(k[K_MIN_ITEMS], &least) && least >= 0 && (size_t)least < s->parts_n)
		s->needed = (size_t)least;
	if (json_len(list) > SHAPE_PARTS)
		s->rest = &any;
	else if (says_type(more))
		s->rest = read_schema(r, more, depth + 1);
	return s;
}

static struct shape *read_array(struct reader *r, const struct json_val *const *k, unsigned depth)
{
	bool closed = json_type(k[K_ITEMS]) == JSON_BOOL && !json_bool(k[K_ITEMS]);
	struct shape *s;

	if (json_type(k[K_PREFIX]) == JSON_ARRAY)
		return read_tuple(r, k, k[K_PREFIX], k[K_ITEMS], depth);
	if (json_type(k[K_ITEMS]) == JSON_ARRAY)
		return read_tuple(r, k, k[K_ITEMS], k[K_MORE_ITEMS], depth);
	if (closed)
		return node(r, SHAPE_TUPLE);
	s = node(r, SHAPE_ARRAY);
	if (s->kind == SHAPE_ARRAY)
		s->rest = k[K_ITEMS] ? read_schema(r, k[K_ITEMS], depth + 1) : &any;
	return s;
}

/* ---- references ----------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	     : c >= 'a' && c <= 'f' ? c - 'a' + 10
	     : c >= 'A' && c <= 'F' ? c - 'A' + 10
				    : -1;
}

/* One step of a pointer, with the escapes of a fragment (%24) and of pointers (~1) undone. */
static struct str step_of(struct str step, char ret[SHAPE_TEXT])
{
	size_t n = 0;

	for (size_t i = 0; i < step.n && n < SHAPE_TEXT; i++) {
		char c = step.p[i];

		if (c == '%' && i + 2 < step.n && hex_digit(step.p[i + 1]) >= 0 &&
		    hex_digit(step.p[i + 2]) >= 0) {
			c = (char)(hex_digit(step.p[i + 1]) << 4 | hex_digit(step.p[i + 2]));
			i += 2;
		} else if (c == '~' && i + 1 < step.n) {
			c = step.p[++i] == '1' ? '/' : '~';
		}
		ret[n++] = c;
	}
	return (struct str){ ret, n };
}

static const struct json_val *element(const struct json_val *list, struct str step)
{
	struct json_iter it = json_iter(list);
	size_t index = 0;

	if (!step.n || step.n > 4)
		return NULL;
	for (size_t i = 0; i < step.n; i++) {
		if (step.p[i] < '0' || step.p[i] > '9')
			return NULL;
		index = index * 10 + (size_t)(step.p[i] - '0');
	}
	while (json_next(&it)) {
		if (it.index == index)
			return it.val;
	}
	return NULL;
}

/* "#/$defs/Node" in this document; NULL: it leads elsewhere or to nothing. */
static const struct json_val *shape_find(struct reader *r, struct str ref, struct str *ret_word)
{
	const struct json_val *at = r->root;
	struct str id = json_str(json_get(r->root, "$id"));

	if (id.n && ref.n > id.n && str_eq((struct str){ ref.p, id.n }, id))
		ref = (struct str){ ref.p + id.n, ref.n - id.n };
	if (!ref.n || ref.p[0] != '#')
		return NULL;
	*ret_word = STR_LIT("Self");
	ref = (struct str){ ref.p + 1, ref.n - 1 };
	for (unsigned i = 0; ref.n && at; i++) {
		const char *end = memchr(ref.p + 1, '/', ref.n - 1);
		struct str step = { ref.p + 1, end ? (size_t)(end - ref.p - 1) : ref.n - 1 };
		char text[SHAPE_TEXT];

		if (ref.p[0] != '/' || i == POINTER_STEPS || step.n >= SHAPE_TEXT ||
		    r->lookups + json_len(at) > LOOKUPS_MAX)
			return NULL;
		r->lookups += json_len(at);
		*ret_word = step;
		ref = (struct str){ step.p + step.n, ref.n - step.n - 1 };
		step = step_of(step, text);
		at = json_type(at) == JSON_ARRAY ? element(at, step) : json_get_str(at, step);
	}
	return at;
}

static struct shape *read_ref(struct reader *r, const struct json_val *v)
{
	struct shapes *all = r->ret;
	struct str ref = json_str(v);
	struct shape_def *d = NULL;
	struct shape *s;

	for (size_t i = 0; i < all->defs_n && !d; i++) {
		if (str_eq(all->defs[i].ref, ref))
			d = &all->defs[i];
	}
	if (!d) {
		if (json_type(v) != JSON_STR || all->defs_n == SHAPE_DEFS)
			return &any;
		d = &all->defs[all->defs_n++];
		d->ref = ref;
		d->schema = shape_find(r, ref, &d->word);
	}
	if (!d->schema)
		return &any;
	s = node(r, SHAPE_REF);
	if (s->kind == SHAPE_REF)
		s->def = d;
	return s;
}

/* ---- schemas -------------------------------------------------------------------------------- */

static struct shape *read_type(struct reader *r, struct str name, const struct json_val *const *k,
			       unsigned depth)
{
	static const struct {
		const char *name;
		enum shape_kind kind;
	} plain[] = {
		{ "string", SHAPE_STRING }, { "integer", SHAPE_INT }, { "number", SHAPE_NUMBER },
		{ "boolean", SHAPE_BOOL },  { "null", SHAPE_NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		if (str_is(name, plain[i].name))
			return node(r, plain[i].kind);
	}
	if (str_is(name, "object"))
		return read_object(r, k, depth);
	return str_is(name, "array") ? read_array(r, k, depth) : &any;
}

static struct shape *read_base(struct reader *r, const struct json_val *const *k, unsigned depth)
{
	struct json_iter it = json_iter(k[K_TYPE]);
	struct parts u = { .n = 0 };

	if (k[K_CONST])
		return read_value(r, k[K_CONST], depth);
	if (k[K_ENUM])
		return read_enum(r, k[K_ENUM], depth);
	if (json_type(k[K_TYPE]) == JSON_STR)
		return read_type(r, json_str(k[K_TYPE]), k, depth);
	if (json_type(k[K_TYPE]) == JSON_ARRAY) {
		while (json_next(&it) && it.index < 16)
			union_add(&u, read_type(r, json_str(it.val), k, depth));
		return json_len(k[K_TYPE]) > 16 ? &any : union_end(r, &u);
	}
	if (k[K_PROPERTIES] || k[K_PATTERNS] || k[K_ADDITIONAL])
		return read_object(r, k, depth);
	return k[K_ITEMS] || k[K_PREFIX] ? read_array(r, k, depth) : &any;
}

static struct shape *read_choice(struct reader *r, const struct json_val *list, unsigned depth)
{
	struct json_iter it = json_iter(list);
	struct parts u = { .n = 0 };

	if (json_type(list) != JSON_ARRAY || json_len(list) > SHAPE_PARTS || !json_len(list))
		return &any;
	while (json_next(&it) && !u.any)
		union_add(&u, read_schema(r, it.val, depth + 1));
	return union_end(r, &u);
}

static struct shape *read_schema(struct reader *r, const struct json_val *v, unsigned depth)
{
	const struct json_val *k[K_COUNT];
	struct json_iter it;
	struct parts u = { .n = 0 }, nullable = { .n = 0 };

	if (json_type(v) == JSON_BOOL)
		return json_bool(v) ? &any : node(r, SHAPE_NEVER);
	if (json_type(v) != JSON_OBJECT || depth > SHAPE_DEPTH)
		return &any;
	json_get_all(v, keywords, K_COUNT, k);
	if (k[K_REF] || k[K_DYNAMIC] || k[K_RECURSIVE])
		both_add(&u, read_ref(r, k[K_REF]	? k[K_REF]
					 : k[K_DYNAMIC] ? k[K_DYNAMIC]
							: k[K_RECURSIVE]));
	both_add(&u, read_base(r, k, depth));
	it = json_iter(k[K_ALL]);
	while (json_type(k[K_ALL]) == JSON_ARRAY && json_next(&it) && it.index < SHAPE_PARTS)
		both_add(&u, read_schema(r, it.val, depth + 1));
	both_add(&u, read_choice(r, k[K_ANY], depth));
	both_add(&u, read_choice(r, k[K_ONE], depth));
	if (!json_bool(k[K_NULLABLE]))
		return both_end(r, &u);
	union_add(&nullable, both_end(r, &u));
	union_add(&nullable, node(r, SHAPE_NULL));
	return union_end(r, &nullable);
}

/* ---- circles -------------------------------------------------------------------------------- */

enum { UNSEEN, OPEN, DONE };

/* A definition that is itself, without an object or array between, says nothing: the reference that
 * closes the circle becomes `any`. */
static void cut_circles(struct shape *s)
{
	bool list = s->kind == SHAPE_UNION || s->kind == SHAPE_BOTH,
	     any_of = s->kind == SHAPE_UNION;

	for (size_t i = 0; list && i < s->parts_n; i++) {
		cut_circles(s->parts[i]);
		if (any_of && s->parts[i]->kind == SHAPE_ANY)
			s->kind = SHAPE_ANY;
	}
	if (s->kind != SHAPE_REF || s->def->state == DONE)
		return;
	if (s->def->state == OPEN) {
		s->kind = SHAPE_ANY;
		return;
	}
	s->def->state = OPEN;
	cut_circles(s->def->type);
	s->def->state = DONE;
}

const struct shape_def *shape_def_of(const struct shape *ref)
{
	while (ref->def->type->kind == SHAPE_REF)
		ref = ref->def->type;
	return ref->def;
}

const struct shape *shape_target(const struct shape *s)
{
	return s->kind == SHAPE_REF ? shape_def_of(s)->type : s;
}

int shape_read(const struct json_val *schema, struct arena *a, struct shapes *ret, struct err *e)
{
	struct reader r = { .root = schema, .arena = a, .ret = ret };

	*ret = (struct shapes){ .root = &any };
	ret->defs = arena_array(a, SHAPE_DEFS, sizeof(*ret->defs), e);
	if (!ret->defs)
		return -1;
	ret->root = read_schema(&r, schema, 0);
	for (size_t i = 0; i < ret->defs_n; i++)
		ret->defs[i].type = read_schema(&r, ret->defs[i].schema, 0);
	for (size_t i = 0; i < ret->defs_n; i++) {
		struct shape ref = { .kind = SHAPE_REF, .def = &ret->defs[i] };

		cut_circles(&ref);
	}
	if (r.err.code)
		*e = r.err;
	return r.err.code ? -1 : 0;
}
