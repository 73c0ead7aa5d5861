#include "op/conversation/rc.h"

#include "json/document/json.h"

static enum rc_type rc_type_of(struct str text)
{
	return str_is(text, "url") ? RC_URL : str_is(text, "filename") ? RC_FILENAME : RC_STRING;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct str rc_dup(struct arena *a, const struct json_val *v, struct err *e)
{
	struct str s = json_str(v);
	char *text = s.n ? arena_dup(a, s, e) : NULL;

	return text ? (struct str){ text, s.n } : STR_NONE;
}

static int rc_read_json(struct str text, struct rc_field ret[RC_FIELDS_MAX], struct arena *a,
			struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(text, NULL, e);
	const struct json_val *root = doc ? json_root(doc) : NULL;
	const struct json_val *list = json_get(json_get(root, "metadata"), "user_data");
	struct json_iter it;
	int n = 0;

	if (!doc)
		return -1;
	if (!list)
		list = json_get(json_get(root, "conversations"), "user_data");
	it = json_iter(list);
	while (json_next(&it)) {
		if (n == RC_FIELDS_MAX)
			return err_set(e, ERR_INVALID, "more than %d attributes", RC_FIELDS_MAX);
		ret[n++] = (struct rc_field){
			.name = rc_dup(a, json_get(it.val, "name"), e),
			.description = rc_dup(a, json_get(it.val, "description"), e),
			.type = rc_type_of(json_str(json_get(it.val, "type"))),
		};
	}
	return n;
}

/* ---- YAML ------------------------------------------------------------------------------------ */

struct rc_reader {
	struct str rest;
	unsigned line;
	/* Of the line at hand: spaces before it, whether it begins an element, and its member. */
	size_t indent;
	bool dash;
	struct str key, value;
};

/* Without quotes, or a comment behind it. */
static struct str rc_value(struct str s)
{
	size_t n = 0;

	s = str_trim(s);
	if (s.n > 1 && (*s.p == '"' || *s.p == '\'')) {
		const char *end = memchr(s.p + 1, *s.p, s.n - 1);

		return end ? (struct str){ s.p + 1, (size_t)(end - s.p) - 1 } : s;
	}
	while (n < s.n && !(s.p[n] == '#' && (n == 0 || s.p[n - 1] == ' ')))
		n++;
	return str_trim((struct str){ s.p, n });
}

/* The next line with something on it. 0: the end. */
static int rc_next(struct rc_reader *r, struct err *e)
{
	while (r->rest.n) {
		const char *end = memchr(r->rest.p, '\n', r->rest.n);
		struct str line = { r->rest.p, end ? (size_t)(end - r->rest.p) : r->rest.n };
		const char *colon;

		r->line++;
		r->rest = (struct str){ line.p + line.n + (end != NULL),
					r->rest.n - line.n - (end != NULL) };
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		for (r->indent = 0; r->indent < line.n && line.p[r->indent] == ' ';)
			r->indent++;
		line = str_trim(line);
		if (!line.n || *line.p == '#' || str_is(line, "---"))
			continue;
		r->dash = str_starts(line, "- ");
		if (r->dash)
			line = str_trim((struct str){ line.p + 2, line.n - 2 });
		colon = memchr(line.p, ':', line.n);
		if (!colon && r->dash)
			colon = line.p + line.n; /* an element that is a text */
		if (!colon)
			return err_set(e, ERR_INVALID, "line %u is no member", r->line);
		r->key = rc_value((struct str){ line.p, (size_t)(colon - line.p) });
		r->value = colon < line.p + line.n
				 ? rc_value((struct str){ colon + 1,
							  line.n - (size_t)(colon - line.p) - 1 })
				 : STR_NONE;
		return 1;
	}
	return 0;
}

/* What is elsewhere in the file is passed over. */
static int rc_read_yaml(struct str text, struct rc_field ret[RC_FIELDS_MAX], struct err *e)
{
	struct rc_reader r = { .rest = text };
	bool section = false, list = false;
	size_t list_indent = 0;
	int n = 0, got;

	while ((got = rc_next(&r, e)) > 0) {
		if (list && (r.indent < list_indent || (r.indent == list_indent && !r.dash)))
			list = false;
		if (r.indent == 0 && !r.dash)
			section = str_is(r.key, "conversations") || str_is(r.key, "metadata");
		if (!list) {
			list = section && r.indent > 0 && str_is(r.key, "user_data") && !r.value.n;
			list_indent = r.indent;
			continue;
		}
		if (r.dash && n == RC_FIELDS_MAX)
			return err_set(e, ERR_INVALID, "more than %d attributes", RC_FIELDS_MAX);
		if (r.dash)
			ret[n++] = (struct rc_field){ .type = RC_STRING };
		if (n) {
			if (str_is(r.key, "name"))
				ret[n - 1].name = r.value;
			else if (str_is(r.key, "description"))
				ret[n - 1].description = r.value;
			else if (str_is(r.key, "type"))
				ret[n - 1].type = rc_type_of(r.value);
		}
	}
	return got < 0 ? -1 : n;
}

int rc_read(struct str text, struct rc_field ret[RC_FIELDS_MAX], struct arena *a, struct err *e)
{
	struct str begin = text;

	while (begin.n && strchr(" \t\r\n", *begin.p)) {
		begin.p++;
		begin.n--;
	}
	return begin.n && *begin.p == '{' ? rc_read_json(begin, ret, a, e)
					  : rc_read_yaml(text, ret, e);
}
