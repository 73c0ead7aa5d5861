/* Tools whose arguments are repeated in headers, as the last tools/list said. */
#include <stdlib.h>

#include "base/log.h"
#include "json/document/write.h"
#include "mcp/connect/internal.h"

enum { TOOLS_MAX = 10000, SCHEMA_MAX = 1 << 20 };

struct relay_tool {
	char *name;
	size_t n;
	struct json_doc *input;
	struct mcp_params params; /* borrowed from input */
	size_t held; /* bytes counted for it */
};

static void tool_fini(struct mcp_relay *r, struct relay_tool *t)
{
	budget_give(&r->memory, t->held);
	mcp_params_fini(&t->params);
	json_free(t->input);
	free(t->name);
}

void relay_tools_free(struct mcp_relay *r)
{
	while (r->tools_n > 0)
		tool_fini(r, &r->tools[--r->tools_n]);
	free(take_ptr(r->tools));
}

static struct relay_tool *tool_find(const struct mcp_relay *r, struct str name)
{
	for (size_t i = 0; i < r->tools_n; i++) {
		if (str_eq((struct str){ r->tools[i].name, r->tools[i].n }, name))
			return &r->tools[i];
	}
	return NULL;
}

const struct mcp_params *relay_tools_find(const struct mcp_relay *r, struct str name)
{
	const struct relay_tool *t = name.p ? tool_find(r, name) : NULL;

	return t ? &t->params : NULL;
}

static int tool_read(struct mcp_relay *r, struct relay_tool *t, struct str name,
		     const struct json_val *schema, struct err *e)
{
	autobuf struct buf text = BUF_INIT(SCHEMA_MAX);
	struct json_writer w = json_writer(&text);

	json_write_val(&w, schema);
	if (json_write_done(&w, e) < 0)
		return -1;
	t->input = json_parse(buf_str(&text), NULL, e);
	t->name = mem_dup(name.p, name.n);
	t->n = name.n;
	if (!t->input || mcp_params_find(json_root(t->input), &t->params, e) < 0)
		return -1;
	if (!t->name)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (budget_take(&r->memory, json_footprint(t->input) + name.n, e) < 0)
		return -1;
	t->held = json_footprint(t->input) + name.n;
	return 0;
}

/* A tool with invalid headers must be left out by the client; none are sent for it. */
static void tool_learn(struct mcp_relay *r, struct str name, const struct json_val *schema)
{
	struct relay_tool t = { .name = NULL }, *more, *old = tool_find(r, name);
	struct mcp_params found;
	struct err e = ERR_INIT;
	bool has = mcp_params_find(schema, &found, &e) == 0 && found.n > 0;

	mcp_params_fini(&found);
	if (old) {
		tool_fini(r, old);
		*old = r->tools[--r->tools_n];
	}
	if (!has || r->tools_n == TOOLS_MAX)
		return;
	more = realloc(r->tools, (r->tools_n + 1) * sizeof(*more));
	if (more)
		r->tools = more;
	if (more && tool_read(r, &t, name, schema, &e) == 0) {
		r->tools[r->tools_n++] = t;
		return;
	}
	log_warn("mcp relay: the headers of a tool are not kept: %s", more ? e.msg : "no memory");
	tool_fini(r, &t);
}

void relay_tools_learn(struct mcp_relay *r, const struct json_val *result)
{
	struct json_iter it = json_iter(json_get(result, "tools"));

	while (json_next(&it)) {
		struct str name = json_str(json_get(it.val, "name"));

		if (name.p)
			tool_learn(r, name, json_get(it.val, "inputSchema"));
	}
}
