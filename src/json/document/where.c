#include "json/document/where.h"

#include <stdio.h>

#include "json/document/pointer.h"
#include "json/document/raw.h"

static bool where_is_member(struct str step, const struct json_iter *it)
{
	char index[24];

	if (it->key.p)
		return json_pointer_is(step, it->key);
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
