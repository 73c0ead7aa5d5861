/*
 * Pass 1: from JSON to nodes. One table lists every keyword, with the values it takes and the
 * member of a node that it fills. A schema's $id and anchors are read before its other keywords,
 * since the subschemas below them belong to that resource.
 */
#include <math.h>
#include <stdio.h>

#include "json/schema/internal.h"

enum { REGEX_BYTES_ALL = 4 << 20 }; /* bytes of all compiled expressions of one schema */

enum {
	IN_2020 = 1 << SCHEMA_2020_12,
	IN_07 = 1 << SCHEMA_DRAFT_07,
	IN_BOTH = IN_2020 | IN_07,
	BESIDE_REF = 1 << 7, /* also applies beside $ref in draft-07 */
};

/* The arguments of a reader: the node to fill, and the keyword's value. */
struct keyword {
	struct schema *s;
	struct schema_node *n;
	const char *name;
	const struct json_val *v;
	size_t at; /* offset of the member in the node */
	struct err *e;
};

struct row {
	const char *name;
	int (*read)(struct keyword *k);
	unsigned in;
	size_t at;
};

#define MEMBER(k, type) ((type *)((char *)(k)->n + (k)->at))

void schema_place(const struct schema_node *n, struct json_pointer *p)
{
	if (n->up)
		schema_place(n->up, p);
	if (n->keyword)
		json_pointer_key(p, str_of(n->keyword));
	if (n->key.p)
		json_pointer_key(p, n->key);
	if (n->index != SCHEMA_NO_INDEX)
		json_pointer_index(p, n->index);
}

int schema_refuse(const struct schema_node *n, const char *keyword, struct err *e)
{
	struct json_pointer p = JSON_POINTER_INIT;

	schema_place(n, &p);
	if (keyword)
		json_pointer_key(&p, str_of(keyword));
	return err_wrap(e, "schema%s%s", p.n ? " at " : "", p.text);
}

static int wants(struct keyword *k, const char *what)
{
	err_set(k->e, ERR_INVALID, "must be %s", what);
	return schema_refuse(k->n, k->name, k->e);
}

int schema_compare(struct str a, struct str b)
{
	if (a.n != b.n)
		return a.n < b.n ? -1 : 1;
	return a.n ? memcmp(a.p, b.p, a.n) : 0;
}

/* --- values that are no schemas ---------------------------------------------------------- */

static int read_any(struct keyword *k)
{
	*MEMBER(k, const struct json_val *) = k->v;
	return 0;
}

static bool is_number(const struct json_val *v)
{
	return json_type(v) == JSON_INT || json_type(v) == JSON_REAL;
}

static int read_number(struct keyword *k)
{
	return is_number(k->v) ? read_any(k) : wants(k, "a number");
}

static int read_divisor(struct keyword *k)
{
	return is_number(k->v) && json_real(k->v) > 0 ? read_any(k) : wants(k, "a number above 0");
}

static int read_count(struct keyword *k)
{
	struct schema_count *c = MEMBER(k, struct schema_count);

	if (!json_uint64(k->v, &c->n)) {
		if (json_type(k->v) != JSON_REAL || !(json_real(k->v) > 0) ||
		    json_real(k->v) != trunc(json_real(k->v)))
			return wants(k, "an integer of 0 or more");
		c->n = UINT64_MAX; /* larger than any count */
	}
	c->is = true;
	return 0;
}

static int read_bool(struct keyword *k)
{
	if (json_type(k->v) != JSON_BOOL)
		return wants(k, "true or false");
	*MEMBER(k, bool) = json_bool(k->v);
	return 0;
}

static bool are_strings(const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return false;
	}
	return json_type(v) == JSON_ARRAY;
}

static int read_strings(struct keyword *k)
{
	return are_strings(k->v) ? read_any(k) : wants(k, "an array of strings");
}

static int read_array(struct keyword *k)
{
	return json_type(k->v) == JSON_ARRAY ? read_any(k) : wants(k, "an array");
}

static int read_text(struct keyword *k)
{
	return json_type(k->v) == JSON_STR ? read_any(k) : wants(k, "a string");
}

static int read_names(struct keyword *k)
{
	struct json_iter it = json_iter(k->v);

	while (json_next(&it)) {
		if (!are_strings(it.val))
			return wants(k, "an object of arrays of strings");
	}
	return it.object ? read_any(k) : wants(k, "an object");
}

static const struct {
	const char *name;
	unsigned is;
} types[] = {
	{ "null", SCHEMA_TYPE(JSON_NULL) },
	{ "boolean", SCHEMA_TYPE(JSON_BOOL) },
	{ "integer", SCHEMA_TYPE(JSON_INT) | SCHEMA_WHOLE },
	{ "number", SCHEMA_TYPE(JSON_INT) | SCHEMA_TYPE(JSON_REAL) },
	{ "string", SCHEMA_TYPE(JSON_STR) },
	{ "array", SCHEMA_TYPE(JSON_ARRAY) },
	{ "object", SCHEMA_TYPE(JSON_OBJECT) },
};

static unsigned type_of(const struct json_val *v)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (json_type(v) == JSON_STR && str_is(json_str(v), types[i].name))
			return types[i].is;
	}
	return 0;
}

static int read_type(struct keyword *k)
{
	struct json_iter it = json_iter(k->v);

	k->n->types = type_of(k->v);
	while (!it.object && json_next(&it)) {
		if (!type_of(it.val))
			return wants(k, "the name of a type, or an array of them");
		k->n->types |= type_of(it.val);
	}
	return k->n->types ? 0 : wants(k, "the name of a type, or an array of them");
}

static struct regex *expression(struct keyword *k, struct str source)
{
	AUTO(regex_free) struct regex *r = regex_new(source, k->e);

	if (!r) {
		schema_refuse(k->n, k->name, k->e);
		return NULL;
	}
	k->s->regex_bytes += regex_footprint(r);
	if (k->s->regex_bytes > REGEX_BYTES_ALL) {
		err_set(k->e, ERR_TOO_LARGE, "regular expressions of more than %d bytes",
			REGEX_BYTES_ALL);
		schema_refuse(k->n, k->name, k->e);
		return NULL;
	}
	return take_ptr(r);
}

static int read_pattern(struct keyword *k)
{
	if (json_type(k->v) != JSON_STR)
		return wants(k, "a string");
	k->n->pattern = expression(k, json_str(k->v));
	return k->n->pattern ? 0 : -1;
}

static int read_format(struct keyword *k)
{
	if (json_type(k->v) != JSON_STR)
		return wants(k, "a string");
	if (k->s->options.formats)
		k->n->format = schema_format(json_str(k->v));
	return 0;
}

/* --- schemas ----------------------------------------------------------------------------- */

static struct schema_node *read_at(struct keyword *k, const struct json_val *v, struct str key,
				   size_t index)
{
	struct schema_node at = { .up = k->n, .keyword = k->name, .key = key, .index = index };

	return schema_read(k->s, v, &at, k->n->resource, k->e);
}

static int read_schema(struct keyword *k)
{
	struct schema_node **ret = MEMBER(k, struct schema_node *);

	*ret = read_at(k, k->v, STR_NONE, SCHEMA_NO_INDEX);
	return *ret ? 0 : -1;
}

static struct schema_list *new_list(struct keyword *k)
{
	struct schema_list *l = MEMBER(k, struct schema_list);

	l->p = arena_array(k->s->arena, json_len(k->v), sizeof(*l->p), k->e);
	return l->p ? l : NULL;
}

static int read_list(struct keyword *k)
{
	struct json_iter it = json_iter(k->v);
	struct schema_list *l;

	if (json_type(k->v) != JSON_ARRAY || json_len(k->v) == 0)
		return wants(k, "an array of schemas, not empty");
	l = new_list(k);
	if (!l)
		return -1;
	while (json_next(&it)) {
		l->p[l->n].node = read_at(k, it.val, STR_NONE, it.index);
		if (!l->p[l->n++].node)
			return -1;
	}
	return 0;
}

static int read_map(struct keyword *k)
{
	struct json_iter it = json_iter(k->v);
	struct schema_list *l;

	if (json_type(k->v) != JSON_OBJECT)
		return wants(k, "an object of schemas");
	l = new_list(k);
	if (!l)
		return -1;
	while (json_next(&it)) {
		l->p[l->n].key = it.key;
		l->p[l->n].node = read_at(k, it.val, it.key, SCHEMA_NO_INDEX);
		if (!l->p[l->n++].node)
			return -1;
	}
	return 0;
}

static int compare_children(const void *a, const void *b)
{
	const struct schema_child *x = a, *y = b;

	return schema_compare(x->key, y->key);
}

static int read_properties(struct keyword *k)
{
	struct schema_list *l = &k->n->properties;

	if (read_map(k) < 0)
		return -1;
	if (l->n > 0)
		qsort(l->p, l->n, sizeof(*l->p), compare_children);
	return 0;
}

static int read_patterns(struct keyword *k)
{
	struct schema_list *l = &k->n->patterns;

	if (read_map(k) < 0)
		return -1;
	for (size_t i = 0; i < l->n; i++) {
		l->p[i].regex = expression(k, l->p[i].key);
		if (!l->p[i].regex)
			return -1;
	}
	return 0;
}

static int read_items(struct keyword *k)
{
	if (json_type(k->v) != JSON_ARRAY)
		return read_schema(k);
	if (k->n->resource->dialect == SCHEMA_DRAFT_07) {
		k->at = offsetof(struct schema_node, prefix);
		return json_len(k->v) > 0 ? read_list(k) : 0;
	}
	return wants(k, "a schema; an array of them is prefixItems in draft 2020-12");
}

/* additionalItems has an effect only beside an array `items`. */
static int read_additional_items(struct keyword *k)
{
	if (json_type(json_get(k->n->v, "items")) != JSON_ARRAY)
		k->at = offsetof(struct schema_node, aside);
	return read_schema(k);
}

/* A member's value is a schema, or an array of names; arrays are left to assert.c. */
static int read_dependencies(struct keyword *k)
{
	struct schema_list *l = &k->n->dependent_schemas, all;
	struct json_iter it = json_iter(k->v);

	if (!it.object)
		return wants(k, "an object");
	k->n->dependencies = k->v;
	all.p = arena_array(k->s->arena, l->n + json_len(k->v), sizeof(*l->p), k->e);
	if (!all.p)
		return -1;
	all.n = l->n;
	if (l->n > 0)
		memcpy(all.p, l->p, l->n * sizeof(*l->p));
	while (json_next(&it)) {
		if (json_type(it.val) == JSON_ARRAY) {
			if (!are_strings(it.val))
				return wants(k, "an object of schemas or arrays of strings");
			continue;
		}
		all.p[all.n].key = it.key;
		all.p[all.n].node = read_at(k, it.val, it.key, SCHEMA_NO_INDEX);
		if (!all.p[all.n++].node)
			return -1;
	}
	*l = all;
	return 0;
}

/* --- the table --------------------------------------------------------------------------- */

#define ROW(name_, reader, in_, member)                                                            \
	{                                                                                          \
		.name = (name_), .read = (reader), .in = (in_),                                    \
		.at = offsetof(struct schema_node, member)                                         \
	}

static const struct row rows[] = {
	ROW("type", read_type, IN_BOTH, types),
	ROW("enum", read_array, IN_BOTH, enum_),
	ROW("const", read_any, IN_BOTH, const_),
	ROW("multipleOf", read_divisor, IN_BOTH, multiple_of),
	ROW("maximum", read_number, IN_BOTH, maximum),
	ROW("exclusiveMaximum", read_number, IN_BOTH, exclusive_maximum),
	ROW("minimum", read_number, IN_BOTH, minimum),
	ROW("exclusiveMinimum", read_number, IN_BOTH, exclusive_minimum),
	ROW("maxLength", read_count, IN_BOTH, max_length),
	ROW("minLength", read_count, IN_BOTH, min_length),
	ROW("pattern", read_pattern, IN_BOTH, pattern),
	ROW("format", read_format, IN_BOTH, format),
	ROW("maxItems", read_count, IN_BOTH, max_items),
	ROW("minItems", read_count, IN_BOTH, min_items),
	ROW("uniqueItems", read_bool, IN_BOTH, unique_items),
	ROW("maxContains", read_count, IN_2020, max_contains),
	ROW("minContains", read_count, IN_2020, min_contains),
	ROW("maxProperties", read_count, IN_BOTH, max_properties),
	ROW("minProperties", read_count, IN_BOTH, min_properties),
	ROW("required", read_strings, IN_BOTH, required),
	ROW("dependentRequired", read_names, IN_2020, dependent_required),

	ROW("$ref", read_text, IN_BOTH | BESIDE_REF, ref_text),
	ROW("$dynamicRef", read_text, IN_2020, dynamic_ref_text),
	ROW("$defs", read_map, IN_2020, definitions),
	ROW("definitions", read_map, IN_BOTH | BESIDE_REF, definitions),
	ROW("allOf", read_list, IN_BOTH, all_of),
	ROW("anyOf", read_list, IN_BOTH, any_of),
	ROW("oneOf", read_list, IN_BOTH, one_of),
	ROW("not", read_schema, IN_BOTH, not_),
	ROW("if", read_schema, IN_BOTH, if_),
	ROW("then", read_schema, IN_BOTH, then_),
	ROW("else", read_schema, IN_BOTH, else_),
	ROW("dependentSchemas", read_map, IN_2020, dependent_schemas),
	ROW("dependencies", read_dependencies, IN_BOTH, dependencies),
	ROW("properties", read_properties, IN_BOTH, properties),
	ROW("patternProperties", read_patterns, IN_BOTH, patterns),
	ROW("additionalProperties", read_schema, IN_BOTH, additional),
	ROW("propertyNames", read_schema, IN_BOTH, names),
	ROW("prefixItems", read_list, IN_2020, prefix),
	ROW("items", read_items, IN_BOTH, items),
	ROW("additionalItems", read_additional_items, IN_07, items),
	ROW("contains", read_schema, IN_BOTH, contains),
	ROW("unevaluatedItems", read_schema, IN_2020, unevaluated_items),
	ROW("unevaluatedProperties", read_schema, IN_2020, unevaluated_properties),
};

static int read_keywords(struct schema *s, struct schema_node *n, struct err *e)
{
	bool alone = n->resource->dialect == SCHEMA_DRAFT_07 && json_get(n->v, "$ref");
	unsigned in = 1u << n->resource->dialect;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct keyword k = { .s = s, .n = n, .name = r->name, .at = r->at, .e = e };

		k.v = json_get(n->v, r->name);
		if (k.v && (r->in & in) && (!alone || (r->in & BESIDE_REF)) && r->read(&k) < 0)
			return -1;
	}
	return 0;
}

/* --- what a schema is called -------------------------------------------------------------- */

static int read_dialect(struct schema_node *n, enum schema_dialect *ret, struct err *e)
{
	static const struct {
		const char *uri;
		enum schema_dialect is;
	} dialects[] = {
		{ "https://json-schema.org/draft/2020-12/schema", SCHEMA_2020_12 },
		{ "http://json-schema.org/draft-07/schema", SCHEMA_DRAFT_07 },
		{ "https://json-schema.org/draft-07/schema", SCHEMA_DRAFT_07 },
	};
	const struct json_val *v = json_get(n->v, "$schema");
	struct str uri = json_str(v);

	if (!v)
		return 0;
	if (uri.n > 0 && uri.p[uri.n - 1] == '#')
		uri.n--;
	for (size_t i = 0; i < ARRAY_LEN(dialects); i++) {
		if (str_is(uri, dialects[i].uri)) {
			*ret = dialects[i].is;
			return 0;
		}
	}
	err_set(e, json_type(v) == JSON_STR ? ERR_UNSUPPORTED : ERR_INVALID,
		"this dialect is not served: draft 2020-12 is, and draft-07");
	return schema_refuse(n, "$schema", e);
}

static int add_anchor(struct schema *s, struct schema_node *n, const char *keyword, struct str name,
		      struct err *e)
{
	struct schema_anchor *a = schema_anchor(s, n->resource, name);
	bool dynamic = strcmp(keyword, "$dynamicAnchor") == 0;

	for (size_t i = 0; i < name.n; i++) {
		char c = (char)(name.p[i] | 0x20);
		bool letter = (c >= 'a' && c <= 'z') || name.p[i] == '_';

		if (letter || (i > 0 && name.p[i] && strchr("-.0123456789:", name.p[i])))
			continue;
		name.n = 0;
	}
	if (name.n == 0) {
		err_set(e, ERR_INVALID, "must be a name");
		return schema_refuse(n, keyword, e);
	}
	if (a && a->node == n) {
		a->dynamic |= dynamic;
		return 0;
	}
	if (a) {
		err_set(e, ERR_INVALID, "another subschema has this name");
		return schema_refuse(n, keyword, e);
	}
	a = arena_alloc(s->arena, sizeof(*a), e);
	if (!a)
		return -1;
	*a = (struct schema_anchor){ s->anchors, n->resource, name, n, dynamic };
	s->anchors = a;
	return 0;
}

static struct schema_resource *add_resource(struct schema *s, struct schema_node *n,
					    enum schema_dialect dialect, struct err *e)
{
	struct schema_resource *r = arena_alloc(s->arena, sizeof(*r), e);

	if (!r)
		return NULL;
	*r = (struct schema_resource){ s->resources, STR_LIT(""), n, dialect };
	s->resources = r;
	n->resource = r;
	return r;
}

/* An $id that is not only a fragment makes a resource. */
static int read_id(struct schema *s, struct schema_node *n, struct str id, struct err *e)
{
	struct schema_resource *outer = n->resource, *r;
	struct str uri, fragment;

	if (schema_uri(s->arena, outer->uri, id, &uri, &fragment, e) < 0)
		return schema_refuse(n, "$id", e);
	if (id.n > 0 && id.p[0] != '#') {
		enum schema_dialect dialect = outer->dialect;

		for (r = s->resources; r; r = r->next) {
			if (r->root != n && str_eq(r->uri, uri)) {
				err_set(e, ERR_INVALID, "another subschema has this URI");
				return schema_refuse(n, "$id", e);
			}
		}
		if (read_dialect(n, &dialect, e) < 0)
			return -1;
		r = outer->root == n ? outer : add_resource(s, n, dialect, e);
		if (!r)
			return -1;
		r->uri = uri;
	}
	if (fragment.n > 0 && n->resource->dialect == SCHEMA_DRAFT_07)
		return add_anchor(s, n, "$id", fragment, e);
	if (fragment.n > 0) {
		err_set(e, ERR_INVALID, "must have no fragment; use $anchor");
		return schema_refuse(n, "$id", e);
	}
	return 0;
}

/* $schema, $id, $anchor, $dynamicAnchor */
static int read_identity(struct schema *s, struct schema_node *n, struct err *e)
{
	static const char *const names[] = { "$id", "$anchor", "$dynamicAnchor" };
	enum schema_dialect dialect = s->options.dialect;

	if (!n->resource && (read_dialect(n, &dialect, e) < 0 || !add_resource(s, n, dialect, e)))
		return -1;
	if (n->resource->dialect == SCHEMA_DRAFT_07 && json_get(n->v, "$ref"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const struct json_val *v = json_get(n->v, names[i]);
		struct str name = json_str(v);

		if (!v || (i > 0 && n->resource->dialect == SCHEMA_DRAFT_07))
			continue;
		if (json_type(v) != JSON_STR) {
			err_set(e, ERR_INVALID, "must be a string");
			return schema_refuse(n, names[i], e);
		}
		if ((i == 0 ? read_id(s, n, name, e) : add_anchor(s, n, names[i], name, e)) < 0)
			return -1;
	}
	return 0;
}

struct schema_node *schema_read(struct schema *s, const struct json_val *v,
				const struct schema_node *at, struct schema_resource *resource,
				struct err *e)
{
	struct schema_node *n = arena_alloc(s->arena, sizeof(*n), e);

	if (!n)
		return NULL;
	*n = *at;
	n->v = v;
	n->resource = resource;
	if (++s->nodes_n > s->options.subschemas) {
		err_set(e, ERR_TOO_LARGE, "a schema of more than %u subschemas",
			s->options.subschemas);
		return NULL;
	}
	*s->nodes_end = n;
	s->nodes_end = &n->next;
	n->never = json_type(v) == JSON_BOOL && !json_bool(v);
	if (json_type(v) != JSON_OBJECT && json_type(v) != JSON_BOOL) {
		err_set(e, ERR_INVALID, "must be a schema: an object, true or false");
		return schema_refuse(n, NULL, e), NULL;
	}
	if (read_identity(s, n, e) < 0 || read_keywords(s, n, e) < 0)
		return NULL;
	return n;
}
