#include "cli/common/args.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/option.h"
#include "json/schema/schema.h"
#include "json/document/utf8.h"
#include "json/document/write.h"

enum { DEPTH_MAX = 16, STEPS_MAX = 1000, SHOWN = 60 };

/* ---- which types a schema allows ----------------------------------------------------------- */

static const struct type {
	const char *name, *article;
	unsigned bit;
} types[] = {
	{ "string", "a string", 1 << JSON_STR },
	{ "integer", "an integer", 1 << JSON_INT },
	{ "number", "a number", 1 << JSON_INT | 1 << JSON_REAL },
	{ "boolean", "true or false", 1 << JSON_BOOL },
	{ "array", "an array as JSON", 1 << JSON_ARRAY },
	{ "object", "an object as JSON", 1 << JSON_OBJECT },
	{ "null", "null", 1 << JSON_NULL },
};

static unsigned bit_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		if (str_is(name, types[i].name))
			return types[i].bit;
	}
	return 0;
}

/* A schema is untrusted: references and branches could make the walk endless. */
struct walk {
	const struct json_val *root;
	size_t left; /* steps */
};

/* False if the limit is reached. v: an object in which a key is looked up. */
static bool args_step(struct walk *w, const struct json_val *v)
{
	size_t cost = 1 + json_len(v) / 8;

	w->left -= cost < w->left ? cost : w->left;
	return w->left > 0;
}

/* Resolves "#/$defs/name", two keys below the root, as generators write it. Other forms are
 * ignored. */
static const struct json_val *args_follow(struct walk *w, struct str ref)
{
	const struct json_val *v = w->root;

	if (!str_starts(ref, "#/"))
		return NULL;
	ref = (struct str){ ref.p + 2, ref.n - 2 };
	while (v && ref.p && args_step(w, v)) {
		const char *slash = ref.n ? memchr(ref.p, '/', ref.n) : NULL;
		size_t n = slash ? (size_t)(slash - ref.p) : ref.n;

		v = json_get_str(v, (struct str){ ref.p, n });
		ref = slash ? (struct str){ slash + 1, ref.n - n - 1 } : STR_NONE;
	}
	return ref.p ? NULL : v;
}

static unsigned allowed(struct walk *w, const struct json_val *s, unsigned depth);

static unsigned allowed_by_any(struct walk *w, const struct json_val *list, unsigned depth)
{
	struct json_iter it = json_iter(list);
	unsigned found = 0;

	while (json_next(&it)) {
		unsigned one = allowed(w, it.val, depth + 1);

		if (!one)
			return 0; /* it says nothing */
		found |= one;
	}
	return found;
}

static unsigned allowed_values(struct walk *w, const struct json_val *list)
{
	struct json_iter it = json_iter(list);
	unsigned found = 0;

	while (args_step(w, NULL) && json_next(&it))
		found |= 1u << json_type(it.val);
	return found;
}

/* Bits of enum json_type; 0 if the schema does not say. */
static unsigned allowed(struct walk *w, const struct json_val *s, unsigned depth)
{
	const struct json_val *type = json_get(s, "type");
	struct json_iter it = json_iter(type);
	unsigned found = bit_of(json_str(type));

	if (depth > DEPTH_MAX || !args_step(w, s))
		return 0;
	while (args_step(w, NULL) && json_next(&it))
		found |= bit_of(json_str(it.val));
	if (!found && json_get(s, "enum"))
		found = allowed_values(w, json_get(s, "enum"));
	if (!found && json_get(s, "const"))
		found = 1u << json_type(json_get(s, "const"));
	if (!found && json_get(s, "anyOf"))
		found = allowed_by_any(w, json_get(s, "anyOf"), depth);
	if (!found && json_get(s, "oneOf"))
		found = allowed_by_any(w, json_get(s, "oneOf"), depth);
	if (!found && json_get(s, "$ref"))
		found = allowed(w, args_follow(w, json_str(json_get(s, "$ref"))), depth + 1);
	return found;
}

static unsigned types_of(const struct json_val *schema, const struct json_val *root)
{
	return allowed(&(struct walk){ .root = root, .left = STEPS_MAX }, schema, 0);
}

/* Names of the types, with or without an article, joined by "or". */
static void name_types(unsigned bits, bool article, char *ret, size_t size)
{
	size_t n = 0;

	*ret = '\0';
	if ((bits & types[2].bit) == types[2].bit)
		bits |= 1u << 31; /* a number, and so no integer beside it */
	for (size_t i = 0; i < ARRAY_LEN(types) && n < size; i++) {
		bool number = types[i].bit == types[2].bit, all = bits >> 31;

		if ((bits & types[i].bit) != types[i].bit || (number && !all) ||
		    (types[i].bit == 1 << JSON_INT && all))
			continue;
		n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? " or " : "",
				      article ? types[i].article : types[i].name);
	}
}

void args_type_name(const struct json_val *schema, const struct json_val *root, char *ret,
		    size_t size)
{
	unsigned bits = types_of(schema, root);

	if (bits)
		name_types(bits, false, ret, size);
	else
		snprintf(ret, size, "any");
}

bool args_required(const struct json_val *schema, struct str name)
{
	struct json_iter it = json_iter(json_get(schema, "required"));

	while (json_next(&it)) {
		if (str_eq(json_str(it.val), name))
			return true;
	}
	return false;
}

/* ---- one value ----------------------------------------------------------------------------- */

static bool fits(const struct json_val *v, unsigned bits)
{
	int64_t i;

	if (bits & 1u << json_type(v))
		return true;
	return json_type(v) == JSON_REAL && (bits & 1 << JSON_INT) && json_int64(v, &i);
}

int args_value(const char *name, struct str text, const struct json_val *schema,
	       const struct json_val *root, struct buf *to, struct err *e)
{
	unsigned bits = schema ? types_of(schema, root) : 0;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_writer w = json_writer(to);
	struct err why = ERR_INIT;
	char wanted[160];

	if (!bits || bits & 1 << JSON_STR) {
		if (!utf8_valid(text))
			return err_set(e, ERR_INVALID, "%.60s is not UTF-8", name);
		json_write_str(&w, text);
		return json_write_done(&w, e);
	}
	doc = json_parse(text, NULL, &why);
	if (doc && fits(json_root(doc), bits)) {
		json_write_val(&w, json_root(doc));
		return json_write_done(&w, e);
	}
	name_types(bits, true, wanted, sizeof(wanted));
	return err_set(e, ERR_INVALID, "%.60s takes %s, not '%.*s'", name, wanted,
		       (int)utf8_cut(text, SHOWN).n, text.p);
}

/* ---- all of them --------------------------------------------------------------------------- */

static const char *property_name(const void *of, size_t i)
{
	return ((const char *const *)of)[i];
}

/* A name that the schema lacks is probably a mistake, unless the schema allows others. */
static int refuse_name(const struct json_val *schema, const char *name, struct err *e)
{
	struct json_iter it = json_iter(json_get(schema, "properties"));
	const char *known[64], *meant;
	size_t n = 0;

	while (n < ARRAY_LEN(known) && json_next(&it)) {
		if (!memchr(it.key.p, '\0', it.key.n))
			known[n++] = it.key.p;
	}
	meant = option_nearest(name, property_name, known, n);
	if (meant)
		return err_set(e, ERR_INVALID,
			       "the schema has no argument %.60s; did you mean %.60s?", name,
			       meant);
	return err_set(e, ERR_INVALID, "the schema has no argument %.60s%s", name,
		       json_type(json_get(schema, "additionalProperties")) == JSON_ABSENT
			       ? "; write := instead of = to send it anyway"
			       : "");
}

static bool takes_others(const struct json_val *schema)
{
	const struct json_val *others = json_get(schema, "additionalProperties");

	if (json_len(json_get(schema, "properties")) == 0 || json_get(schema, "patternProperties"))
		return true;
	return json_bool(others) || json_type(others) == JSON_OBJECT;
}

static int add_word(const struct args_word *w, const struct json_val *schema, struct buf *to,
		    struct err *e)
{
	const struct json_val *property = json_get(json_get(schema, "properties"), w->name);
	struct json_writer writer = json_writer(to);

	json_write_text(&writer, w->name);
	if (json_write_done(&writer, e) < 0 || buf_add(to, ":", 1, e) < 0)
		return -1;
	if (!w->json)
		return args_value(w->name, w->text, property, schema, to, e);
	writer = json_writer(to);
	json_write_val(&writer, json_root(w->json));
	return json_write_done(&writer, e);
}

static int add_object(const struct args *a, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_val(&w, json_root(a->object));
	return json_write_done(&w, e);
}

static bool is_known(const struct json_val *schema, const struct args_word *w)
{
	return json_get(json_get(schema, "properties"), w->name) != NULL;
}

static int add_words(const struct args *a, const struct json_val *schema, bool known_only,
		     struct buf *to, struct err *e)
{
	size_t added = 0;

	if (buf_add(to, "{", 1, e) < 0)
		return -1;
	for (size_t i = 0; i < a->n; i++) {
		const struct args_word *w = &a->words[i];

		if (known_only && !is_known(schema, w))
			continue;
		if (schema && !w->json && !is_known(schema, w) && !takes_others(schema))
			return refuse_name(schema, w->name, e);
		if ((added++ > 0 && buf_add(to, ",", 1, e) < 0) || add_word(w, schema, to, e) < 0)
			return -1;
	}
	return buf_add(to, "}", 1, e);
}

int args_build(const struct args *a, const struct json_val *schema, struct buf *to, struct err *e)
{
	return a->object ? add_object(a, to, e) : add_words(a, schema, false, to, e);
}

int args_build_known(const struct args *a, const struct json_val *schema, struct buf *to,
		     struct err *e)
{
	return a->object ? add_object(a, to, e) : add_words(a, schema, true, to, e);
}

/* ---- is that what the schema wants? -------------------------------------------------------- */

static int check_required(const struct json_val *object, const struct json_val *schema,
			  struct err *e)
{
	struct json_iter it = json_iter(json_get(schema, "required"));
	char type[80];

	while (json_next(&it)) {
		struct str name = json_str(it.val);
		const struct json_val *property = json_get_str(json_get(schema, "properties"),
							       name);
		struct str doc = json_str(json_get(property, "description"));

		if (!name.p || json_get_str(object, name))
			continue;
		args_type_name(property, schema, type, sizeof(type));
		return err_set(e, ERR_INVALID, "%.*s is missing (%s%s%.*s)",
			       (int)utf8_cut(name, SHOWN).n, name.p, type, doc.n ? ": " : "",
			       (int)utf8_cut(doc, 2 * SHOWN).n, doc.p ? doc.p : "");
	}
	return 0;
}

int args_check(struct str object, const struct json_val *schema, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(object, NULL, e);
	AUTO(schema_free) struct schema *s = NULL;
	struct schema_fault fault;
	struct schema_faults faults = { .p = &fault, .max = 1 };
	struct err why = ERR_INIT;

	if (!doc || check_required(json_root(doc), schema, e) < 0)
		return -1;
	s = schema ? schema_new(schema, NULL, &why) : NULL;
	if (!s || schema_check(s, json_root(doc), &faults, &why) == 0 || why.code != ERR_INVALID)
		return 0;
	return err_set(e, ERR_INVALID, "%s %s (schema: %s)",
		       fault.instance[0] ? fault.instance + 1 : "the arguments:", fault.says,
		       fault.keyword);
}
