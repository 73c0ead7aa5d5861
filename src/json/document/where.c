#include "json/document/where.h"

#include <stdio.h>

#include "json/document/raw.h"

/* Whether a step of a pointer, up to the next slash, is this key. */
static bool where_is_key(struct str step, struct str key)
{
	size_t k = 0;

	for (size_t i = 0; i < step.n; i++, k++) {
		char c = step.p[i];

		if (c == '~' && i + 1 < step.n)
			c = step.p[++i] == '1' ? '/' : '~';
		if (k >= key.n || key.p[k] != c)
			return false;
	}
	return k == key.n;
}

static bool where_is_member(struct str step, const struct json_iter *it)
{
	char index[24];

	if (it->key.p)
		return where_is_key(step, it->key);
	snprintf(index, sizeof(index), "%zu", it->index);
	return str_is(step, index);
}

size_t json_where(const struct json_doc *d, struct str text, const char *pointer)
{
	const struct json_val *v = json_root(d);
	struct str at = text;
	bool found = true;

	while (found && *pointer == '/') {
		struct json_iter it = json_iter(v);
		struct json_raw raw = json_raw(at);
		struct str step = { pointer + 1, strcspn(pointer + 1, "/") }, here;

		for (found = false; !found && json_next(&it) && json_raw_next(&raw, &here);)
			found = where_is_member(step, &it);
		if (!found)
			break;
		v = it.val;
		at = here;
		pointer += 1 + step.n;
	}
	return (size_t)(at.p - text.p);
}

unsigned json_line(struct str text, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at && i < text.n; i++)
		line += text.p[i] == '\n';
	return line;
}
