/* Servers that are added to a file, whose text stays as it is otherwise. */
#include <stdio.h>

#include "config/internal.h"
#include "json/document/where.h"

enum { INSERT_VALUES_MAX = 1 << 20 };

/* Behind the opening bracket, where comments can't stand in the way. */
int config_insert(struct str text, const char *name, const char brackets[2], struct str what,
		  struct buf *to, struct err *e)
{
	const struct json_options limits = { .values = INSERT_VALUES_MAX };
	autobuf struct buf bare = BUF_INIT(to->max);
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *in;
	char pointer[CONFIG_NAME_MAX];
	size_t at;

	if (!text.n)
		text = STR_LIT("{}\n");
	if (buf_add(&bare, text.p, text.n, e) < 0 || config_strip_loosely(bare.p, bare.n, e) < 0)
		return -1;
	doc = json_parse(buf_str(&bare), &limits, e);
	if (!doc)
		return -1;
	in = json_get(json_root(doc), name);
	if (json_type(json_root(doc)) != JSON_OBJECT ||
	    (in && json_type(in) != (*brackets == '{' ? JSON_OBJECT : JSON_ARRAY)))
		return err_set(e, ERR_INVALID, "\"%s\" is not what it should be", name);
	snprintf(pointer, sizeof(pointer), "/%s", name);
	at = 1 + json_where(doc, buf_str(&bare), in ? pointer : "");
	if (buf_add(to, text.p, at, e) < 0 ||
	    (!in && buf_addf(to, e, "\n  \"%s\": %c", name, brackets[0]) < 0) ||
	    buf_add(to, what.p, what.n, e) < 0 ||
	    (!in && buf_addf(to, e, "\n  %c", brackets[1]) < 0) ||
	    buf_add(to, json_len(in ? in : json_root(doc)) ? "," : "\n", 1, e) < 0)
		return -1;
	return buf_add(to, text.p + at, text.n - at, e);
}

int config_add(struct str text, struct str servers, struct str inputs, struct buf *to,
	       struct err *e)
{
	autobuf struct buf with = BUF_INIT(CONFIG_BYTES_MAX);
	AUTO(config_unref) struct config *c = NULL;
	size_t from = to->n;

	if (inputs.n && config_insert(text, "inputs", "[]", inputs, &with, e) < 0)
		return -1;
	if (config_insert(inputs.n ? buf_str(&with) : text, "mcpServers", "{}", servers, to, e) < 0)
		return -1;
	c = config_parse((struct str){ to->p + from, to->n - from }, "the new file", e);
	return c ? 0 : -1;
}
