#include "modules/code/brief.h"

#include <ctype.h>

#include "base/buf.h"
#include "json/document/put.h"
#include "json/document/utf8.h"
#include "json/document/write.h"
#include "modules/code/clean.h"

enum {
	DEFS_MAX = 256, /* with more, all stay */
	DEPTH_MAX = 16, /* of alternatives, to find an object in them */
};

/* ---- texts ---------------------------------------------------------------------------------- */

/* The bytes of the first `chars` characters. */
static size_t brief_room(struct str s, size_t chars)
{
	size_t at = 0, n;

	for (; chars > 0 && at < s.n; chars--, at += n)
		utf8_next((struct str){ s.p + at, s.n - at }, &n);
	return at;
}

/* Whether a sentence ends before the blank at i; "e.g. this" and "etc. and" go on. */
static bool brief_ends_at(struct str s, size_t i)
{
	if (i < 2 || i + 1 >= s.n || !strchr(".!?:", s.p[i - 1]) || s.p[i - 1] == ':')
		return false;
	return !(i >= 3 && s.p[i - 3] == '.') && !islower((unsigned char)s.p[i + 1]);
}

int brief_text(struct buf *to, struct str text, size_t chars, struct err *e)
{
	autobuf struct buf line = BUF_INIT(CLEAN_CHARS * 4 + 64);
	size_t room, end = 0, word = 0;
	struct str s;

	if (clean_text(&line, text, CLEAN_LINE, CLEAN_CHARS, e) < 0)
		return -1;
	s = buf_str(&line);
	room = brief_room(s, chars);
	if (room == s.n)
		return buf_add(to, s.p, s.n, e);
	for (size_t i = 0; i <= room; i++) {
		if (s.p[i] == ' ' && brief_ends_at(s, i))
			end = i;
		/* the full stops of Chinese and Japanese have no blank behind them */
		else if (i >= 3 &&
			 (memcmp(s.p + i - 3, "。", 3) == 0 || memcmp(s.p + i - 3, "！", 3) == 0))
			end = i;
		if (s.p[i] == ' ')
			word = i;
	}
	/* half of a sentence tells more than a first sentence of two words */
	if (end < room / 4)
		end = word > room / 2 ? word : brief_room(s, chars);
	return buf_addf(to, e, "%.*s %s", (int)end, s.p, BRIEF_CUT);
}

bool brief_is_same(struct str a, struct str b)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a.n && !isalnum((unsigned char)a.p[i]) && !(a.p[i] & 0x80))
			i++;
		while (k < b.n && !isalnum((unsigned char)b.p[k]) && !(b.p[k] & 0x80))
			k++;
		if (i == a.n || k == b.n)
			return i == a.n && k == b.n;
		if (tolower((unsigned char)a.p[i++]) != tolower((unsigned char)b.p[k++]))
			return false;
	}
}

/* ---- keywords ------------------------------------------------------------------------------- */

/* What a keyword's value is made of. */
enum brief_part { BRIEF_VALUE, BRIEF_ONE, BRIEF_LIST, BRIEF_MAP };

static const struct {
	const char *name;
	enum brief_part part;
} parts[] = {
	{ "properties", BRIEF_MAP },
	{ "patternProperties", BRIEF_MAP },
	{ "$defs", BRIEF_MAP },
	{ "definitions", BRIEF_MAP },
	{ "dependentSchemas", BRIEF_MAP },
	{ "anyOf", BRIEF_LIST },
	{ "oneOf", BRIEF_LIST },
	{ "allOf", BRIEF_LIST },
	{ "prefixItems", BRIEF_LIST },
	{ "items", BRIEF_ONE },
	{ "additionalProperties", BRIEF_ONE },
	{ "additionalItems", BRIEF_ONE },
	{ "unevaluatedProperties", BRIEF_ONE },
	{ "unevaluatedItems", BRIEF_ONE },
	{ "contains", BRIEF_ONE },
	{ "propertyNames", BRIEF_ONE },
	{ "not", BRIEF_ONE },
	{ "if", BRIEF_ONE },
	{ "then", BRIEF_ONE },
	{ "else", BRIEF_ONE },
};

static enum brief_part part_of(struct str key, const struct json_val *v)
{
	size_t i = 0;

	while (i < ARRAY_LEN(parts) && !str_is(key, parts[i].name))
		i++;
	if (i == ARRAY_LEN(parts))
		return BRIEF_VALUE;
	if (json_type(v) == JSON_ARRAY) /* items of older drafts */
		return parts[i].part == BRIEF_MAP ? BRIEF_VALUE : BRIEF_LIST;
	return json_type(v) == JSON_OBJECT ? parts[i].part : BRIEF_VALUE;
}

/* ---- definitions that are used -------------------------------------------------------------- */

struct brief_defs {
	const struct json_val *of; /* the root's $defs, or definitions; NULL: all stay */
	const char *key;
	bool used[DEFS_MAX];
	bool odd; /* there are references that are not understood */
};

static void refs_note(struct brief_defs *d, const struct json_val *v);

static void refs_note_one(struct brief_defs *d, struct str ref)
{
	struct json_iter it = json_iter(d->of);
	size_t key = strlen(d->key);

	if (str_is(ref, "#"))
		return;
	if (!str_starts(ref, "#/") || memchr(ref.p, '~', ref.n) || memchr(ref.p, '%', ref.n)) {
		d->odd = true;
		return;
	}
	if (ref.n < key + 4 || memcmp(ref.p + 2, d->key, key) != 0 || ref.p[2 + key] != '/')
		return;
	ref = (struct str){ ref.p + key + 3, ref.n - key - 3 };
	ref.n = memchr(ref.p, '/', ref.n)
		      ? (size_t)((const char *)memchr(ref.p, '/', ref.n) - ref.p)
		      : ref.n;
	while (json_next(&it)) {
		if (d->used[it.index] || !str_eq(it.key, ref))
			continue;
		d->used[it.index] = true;
		refs_note(d, it.val);
	}
}

static void refs_note(struct brief_defs *d, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	while (!d->odd && json_next(&it)) {
		if (it.val == d->of)
			continue;
		if (str_is(it.key, "$ref"))
			refs_note_one(d, json_str(it.val));
		d->odd |= str_is(it.key, "$dynamicRef") || str_is(it.key, "$recursiveRef") ||
			  str_is(it.key, "$id") || str_is(it.key, "$anchor");
		refs_note(d, it.val);
	}
}

static void defs_init(struct brief_defs *d, const struct json_val *root)
{
	bool both = json_get(root, "$defs") && json_get(root, "definitions");

	*d = (struct brief_defs){ .key = json_get(root, "$defs") ? "$defs" : "definitions" };
	d->of = json_get(root, d->key);
	if (both || json_type(d->of) != JSON_OBJECT || json_len(d->of) > DEFS_MAX) {
		d->of = NULL;
		return;
	}
	refs_note(d, root);
	if (d->odd)
		d->of = NULL;
}

/* ---- schemas -------------------------------------------------------------------------------- */

/* Whether a schema means the same in each draft since 06. */
static bool is_plain(const struct json_val *v)
{
	static const char *const odd[] = { "dependencies",     "additionalItems", "$recursiveRef",
					   "$recursiveAnchor", "$dynamicRef",	  "$id" };
	struct json_iter it = json_iter(v);

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		if (json_get(v, odd[i]))
			return false;
	}
	if (json_str(json_get(v, "id")).p || (json_get(v, "$ref") && json_len(v) > 1) ||
	    json_type(json_get(v, "exclusiveMinimum")) == JSON_BOOL ||
	    json_type(json_get(v, "exclusiveMaximum")) == JSON_BOOL ||
	    json_type(json_get(v, "items")) == JSON_ARRAY)
		return false;
	while (json_next(&it)) {
		enum brief_part part = part_of(it.key, it.val);
		struct json_iter in = json_iter(it.val);

		if (part == BRIEF_ONE && !is_plain(it.val))
			return false;
		while ((part == BRIEF_LIST || part == BRIEF_MAP) && json_next(&in)) {
			if (!is_plain(in.val))
				return false;
		}
	}
	return true;
}

struct brief {
	struct json_writer w;
	const struct json_val *root;
	struct brief_defs defs;
	bool plain;
};

static bool is_empty(const struct json_val *v)
{
	enum json_type type = json_type(v);

	return type == JSON_NULL || (type == JSON_STR && json_str(v).n == 0) ||
	       ((type == JSON_ARRAY || type == JSON_OBJECT) && json_len(v) == 0);
}

/* name: the argument's that v is the schema of; said: a description that stands above. */
static bool is_dropped(const struct brief *b, const struct json_val *v, const struct json_iter *at,
		       struct str name, struct str said)
{
	struct str key = at->key, text = json_str(at->val);

	if (str_is(key, "$comment") || str_is(key, "examples"))
		return true;
	if (str_is(key, "$schema"))
		return v == b->root && (b->plain || strstr(text.p ?: "", "2020-12"));
	if (str_is(key, "default") || str_is(key, "required"))
		return is_empty(at->val);
	if (str_is(key, "description"))
		return text.n == 0 || str_eq(text, said);
	if (str_is(key, "title") && text.p)
		return !json_get(v, "const") &&
		       (v == b->root || json_str(json_get(v, "description")).n > 0 || said.n > 0 ||
			name.n == 0 || brief_is_same(text, name));
	return false;
}

static void write_brief(struct brief *b, const struct json_val *v, struct str name,
			struct str said);

static void write_text(struct brief *b, struct str text)
{
	autobuf struct buf cut = BUF_INIT(BRIEF_ARGUMENT_CHARS * 4 + 64);
	struct err e;

	if (brief_text(&cut, text, BRIEF_ARGUMENT_CHARS, &e) < 0)
		json_write_fail(&b->w, &e);
	json_write_str(&b->w, buf_str(&cut));
}

static void write_map(struct brief *b, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	json_write_object(&b->w);
	while (json_next(&it)) {
		if (b->defs.of && v == b->defs.of && !b->defs.used[it.index])
			continue;
		json_write_key_str(&b->w, it.key);
		write_brief(b, it.val, it.key, STR_NONE);
	}
	json_write_object_end(&b->w);
}

static void write_list(struct brief *b, const struct json_val *v, struct str said)
{
	struct json_iter it = json_iter(v);

	json_write_array(&b->w);
	while (json_next(&it))
		write_brief(b, it.val, STR_NONE, said);
	json_write_array_end(&b->w);
}

static bool uses_none(const struct brief_defs *d)
{
	for (size_t i = 0; i < json_len(d->of); i++) {
		if (d->used[i])
			return false;
	}
	return true;
}

static void write_brief(struct brief *b, const struct json_val *v, struct str name, struct str said)
{
	struct json_iter it = json_iter(v);
	struct str own = json_str(json_get(v, "description"));

	if (json_type(v) != JSON_OBJECT) {
		json_write_val(&b->w, v);
		return;
	}
	json_write_object(&b->w);
	while (json_next(&it)) {
		enum brief_part part = part_of(it.key, it.val);

		if (is_dropped(b, v, &it, name, said) ||
		    (b->defs.of && it.val == b->defs.of && uses_none(&b->defs)))
			continue;
		json_write_key_str(&b->w, it.key);
		if (part == BRIEF_MAP)
			write_map(b, it.val);
		else if (part == BRIEF_LIST)
			write_list(b, it.val, own.n ? own : said);
		else if (part == BRIEF_ONE)
			write_brief(b, it.val, STR_NONE, STR_NONE);
		else if (str_is(it.key, "description") && json_str(it.val).p)
			write_text(b, json_str(it.val));
		else
			json_write_val(&b->w, it.val);
	}
	json_write_object_end(&b->w);
}

int brief_schema(struct buf *to, const struct json_val *schema, struct err *e)
{
	struct brief b = { .w = json_writer(to), .root = schema, .plain = is_plain(schema) };

	defs_init(&b.defs, schema);
	write_brief(&b, schema, STR_NONE, STR_NONE);
	return json_write_done(&b.w, e);
}

/* ---- objects -------------------------------------------------------------------------------- */

static bool names_object(const struct json_val *type)
{
	struct json_iter it = json_iter(type);

	if (!type || json_type(type) == JSON_STR)
		return !type || str_is(json_str(type), "object");
	while (json_next(&it)) {
		if (str_is(json_str(it.val), "object"))
			return true;
	}
	return false;
}

/* Whether an object may be valid; what can't be told may be. */
static bool takes_object(const struct json_val *v, unsigned depth)
{
	static const char *const some[] = { "anyOf", "oneOf", "enum", "allOf" };
	const struct json_val *only = json_get(v, "const");

	if (json_type(v) == JSON_BOOL)
		return json_bool(v);
	if (json_type(v) != JSON_OBJECT || depth == DEPTH_MAX)
		return true;
	if (!names_object(json_get(v, "type")) || (only && json_type(only) != JSON_OBJECT))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(some); i++) {
		const struct json_val *list = json_get(v, some[i]);
		struct json_iter it = json_iter(list);
		bool all = str_is(str_of(some[i]), "allOf"), any = all;

		while (json_next(&it)) {
			bool takes = str_is(str_of(some[i]), "enum")
					   ? json_type(it.val) == JSON_OBJECT
					   : takes_object(it.val, depth + 1);

			any = all ? any && takes : any || takes;
		}
		if (json_type(list) == JSON_ARRAY && !any)
			return false;
	}
	return true;
}

int brief_object(struct buf *to, const struct json_val *schema, struct err *e)
{
	struct json_writer w = json_writer(to);
	struct json_iter it = json_iter(schema);
	enum json_type type = json_type(schema);

	if (type != JSON_ABSENT && type != JSON_NULL && type != JSON_BOOL && type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "its inputSchema is %s, not an object",
			       json_type_name(type));
	if (!takes_object(schema, 0))
		return err_set(e, ERR_INVALID,
			       "its inputSchema takes no object, but arguments are one");
	if (str_is(json_str(json_get(schema, "type")), "object")) {
		json_write_val(&w, schema);
		return json_write_done(&w, e);
	}
	json_write_object(&w);
	json_put_str(&w, "type", STR_LIT("object"));
	while (type == JSON_OBJECT && json_next(&it)) {
		if (str_is(it.key, "type"))
			continue;
		json_write_key_str(&w, it.key);
		json_write_val(&w, it.val);
	}
	json_write_object_end(&w);
	return json_write_done(&w, e);
}
