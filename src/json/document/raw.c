#include "json/document/raw.h"

size_t json_string_end(struct str s, size_t i)
{
	for (size_t from = i; i < s.n;) {
		const char *quote = memchr(s.p + i, '"', s.n - i);
		size_t escapes = 0;

		if (!quote)
			return s.n;
		i = (size_t)(quote - s.p);
		while (i - escapes > from && s.p[i - escapes - 1] == '\\')
			escapes++;
		i++;
		if (escapes % 2 == 0)
			return i;
	}
	return s.n;
}

static struct str raw_behind(struct str s, size_t n)
{
	return (struct str){ s.p + n, s.n - n };
}

static struct str raw_skip(struct str s, const char *what)
{
	while (s.n > 0 && *s.p && strchr(what, *s.p))
		s = raw_behind(s, 1);
	return s;
}

/* s begins with an object or array. */
static size_t nested_end(struct str s)
{
	unsigned depth = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '"')
			i = json_string_end(s, i + 1) - 1;
		else if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return i + 1;
	}
	return s.n;
}

static size_t value_end(struct str s)
{
	size_t i = 0;

	if (s.n > 0 && s.p[0] == '"')
		return json_string_end(s, 1);
	if (s.n > 0 && (s.p[0] == '{' || s.p[0] == '['))
		return nested_end(s);
	while (i < s.n && !strchr(",]} \t\r\n", s.p[i]))
		i++;
	return i;
}

struct json_raw json_raw(struct str text)
{
	struct str s = raw_skip(text, " \t\r\n");

	if (s.n == 0 || (s.p[0] != '{' && s.p[0] != '['))
		return (struct json_raw){ .rest = STR_NONE };
	return (struct json_raw){ .rest = raw_behind(s, 1), .object = s.p[0] == '{' };
}

bool json_raw_next(struct json_raw *r, struct str *ret_val)
{
	struct str s = raw_skip(r->rest, " \t\r\n,");

	if (s.n == 0 || s.p[0] == '}' || s.p[0] == ']')
		return false;
	if (r->object)
		s = raw_skip(raw_behind(s, json_string_end(s, 1)), " \t\r\n:");
	*ret_val = (struct str){ s.p, value_end(s) };
	r->rest = raw_behind(s, ret_val->n);
	return true;
}

struct str json_raw_member(struct str text, const struct json_val *v, const char *key)
{
	struct json_raw raw = json_raw(text);
	struct json_iter it = json_iter(v);
	struct str at;

	while (json_next(&it) && json_raw_next(&raw, &at)) {
		if (str_is(it.key, key))
			return at;
	}
	return STR_NONE;
}
