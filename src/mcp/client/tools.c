/*
 * What is kept of listed tools: x-mcp-header, taskSupport, and the output schema, which is compiled
 * when the first result is checked. A whole list replaces what was known. A page that an owner has
 * requested by itself is added to it.
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "json/schema/schema.h"
#include "mcp/message/param.h"

enum { SCHEMA_MAX = JSON_BYTES_MAX, SCHEMA_DEPTH = 1024 };

struct mcp_known {
	char *name;
	size_t name_n;
	enum mcp_tasking task;
	struct json_doc *input; /* the document that params borrow from; NULL: none */
	struct mcp_params params;
	char *output; /* schema; NULL: none */
	size_t output_n;
	struct schema *compiled; /* NULL: not compiled yet */
	size_t held; /* bytes counted for it */
	bool stale; /* replaced by the list that is being learned */
};

static void release(struct mcp_client *c, struct mcp_known *t)
{
	budget_give(c->o.memory, t->held);
	free(t->name);
	mcp_params_fini(&t->params);
	json_free(t->input);
	free(t->output);
	schema_free(t->compiled);
}

void mcp_tools_forget(struct mcp_client *c, struct mcp_known_tools *all)
{
	for (size_t i = 0; i < all->n; i++)
		release(c, &all->p[i]);
	free(all->p);
	*all = (struct mcp_known_tools){ .n = 0 };
}

static void forget_output(struct mcp_client *c, struct mcp_known *t)
{
	budget_give(c->o.memory, t->output_n);
	t->held -= t->output_n;
	t->output_n = 0;
	free(take_ptr(t->output));
	schema_free(take_ptr(t->compiled));
}

void mcp_tools_doubt(struct mcp_client *c)
{
	for (size_t i = 0; i < c->tools.n; i++)
		forget_output(c, &c->tools.p[i]);
}

/* --- learning --- */

static char *text_of(const struct json_val *v, size_t *ret_n, struct err *e)
{
	autobuf struct buf b = BUF_INIT(SCHEMA_MAX);
	struct json_writer w = json_writer(&b);

	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return NULL;
	*ret_n = b.n;
	return buf_take(&b);
}

static struct json_doc *copy_of(const struct json_val *v, struct err *e)
{
	const struct json_options o = { .bytes = SCHEMA_MAX, .depth = SCHEMA_DEPTH };
	size_t n = 0;
	autofree char *text = text_of(v, &n, e);

	return text ? json_parse((struct str){ text, n }, &o, e) : NULL;
}

/* Headers matter over HTTP only; elsewhere the annotation has no meaning. */
static int learn_params(struct mcp_known *t, const struct mcp_client *c,
			const struct json_val *schema, struct err *e)
{
	int rc;

	if (!c->profile->modern || !c->t->streams)
		return 0;
	rc = mcp_params_find(schema, &t->params, e);
	if (t->params.n == 0 || rc < 0)
		return rc;
	mcp_params_fini(&t->params);
	t->input = copy_of(schema, e);
	return t->input ? mcp_params_find(json_root(t->input), &t->params, e) : -1;
}

static size_t size_of(const struct mcp_known *t)
{
	return sizeof(*t) + t->name_n + t->output_n + (t->input ? json_footprint(t->input) : 0);
}

static int tools_learn(struct mcp_known *t, const struct mcp_client *c, const struct json_val *tool,
		       struct err *e)
{
	const struct json_val *output = json_get(tool, "outputSchema");
	struct str name = json_str(json_get(tool, "name"));
	struct str tasking = json_str(json_get(json_get(tool, "execution"), "taskSupport"));

	t->name_n = name.n;
	t->name = mem_dup(name.p, name.n);
	if (!t->name)
		return err_set(e, ERR_LIMIT, "out of memory");
	t->task = str_is(tasking, "required") ? MCP_TASK_REQUIRED
		: str_is(tasking, "optional") ? MCP_TASK_OPTIONAL
					      : MCP_TASK_NEVER;
	if (learn_params(t, c, json_get(tool, "inputSchema"), e) < 0)
		return -1;
	if (output && json_type(output) != JSON_NULL) {
		t->output = text_of(output, &t->output_n, e);
		if (!t->output)
			return -1;
	}
	if (budget_take(c->o.memory, size_of(t), e) < 0)
		return err_wrap(e, "of its tools");
	t->held = size_of(t);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct mcp_known *x = a, *y = b;

	return str_cmp((struct str){ x->name, x->name_n }, (struct str){ y->name, y->name_n });
}

static struct mcp_known *find(const struct mcp_client *c, struct str name)
{
	size_t from = 0, to = name.p ? c->tools.n : 0;

	while (from < to) {
		size_t i = from + (to - from) / 2;
		struct mcp_known *t = &c->tools.p[i];
		int rc = str_cmp(name, (struct str){ t->name, t->name_n });

		if (rc == 0)
			return t;
		*(rc < 0 ? &to : &from) = rc < 0 ? i : i + 1;
	}
	return NULL;
}

/* Decides which known tools stay besides n new ones: those with other names, or none if there would
 * be more than a list may have. */
static void mark_stale(struct mcp_client *c, const struct json_val *const *items, size_t n,
		       bool whole)
{
	bool all = whole || n > c->o.list_max || c->tools.n > c->o.list_max - n;

	for (size_t i = 0; i < c->tools.n; i++)
		c->tools.p[i].stale = all;
	for (size_t i = 0; i < n; i++) {
		struct mcp_known *t = find(c, json_str(json_get(items[i], "name")));

		if (t)
			t->stale = true;
	}
}

/* `all` has room for both. */
static void replace(struct mcp_client *c, struct mcp_known_tools *all)
{
	for (size_t i = 0; i < c->tools.n; i++) {
		if (c->tools.p[i].stale)
			release(c, &c->tools.p[i]);
		else
			all->p[all->n++] = c->tools.p[i];
	}
	free(c->tools.p);
	qsort(all->p, all->n, sizeof(all->p[0]), by_name);
	c->tools = *all;
}

int mcp_tools_learn(struct mcp_client *c, const struct json_val **items, size_t n, bool whole,
		    struct err *e)
{
	struct mcp_known_tools all = { .p = calloc(n + c->tools.n + 1, sizeof(*all.p)) };
	char room[MCP_SAID_MAX];
	int dropped = 0;

	if (!all.p)
		return err_set(e, ERR_LIMIT, "out of memory");
	mark_stale(c, items, n, whole);
	for (size_t i = 0; i < n; i++) {
		struct mcp_known *t = &all.p[all.n];

		if (tools_learn(t, c, items[i], e) == 0) {
			all.n++;
			continue;
		}
		release(c, t);
		*t = (struct mcp_known){ .name = NULL };
		if (e->code == ERR_LIMIT) {
			mcp_tools_forget(c, &all);
			return -1;
		}
		log_warn("%s: tool %.*s is left out: %s", c->o.label,
			 STR_ARG(mcp_said(json_str(json_get(items[i], "name")), room)), e->msg);
		items[i] = NULL;
		dropped++;
	}
	replace(c, &all);
	return dropped;
}

/* A failure is only logged, since the owner has its result in any case. */
void mcp_tools_learn_page(struct mcp_pending *p, const struct json_val *result)
{
	const struct json_val *tools = json_get(result, "tools");
	const struct json_val *asked = p->params ? json_get(json_root(p->params), "cursor") : NULL;
	bool whole = !json_str(asked).p && json_str(json_get(result, "nextCursor")).n == 0;
	struct json_iter it = json_iter(tools);
	autofree const struct json_val **items = NULL;
	size_t n = 0;
	struct err e;

	if (json_type(tools) != JSON_ARRAY || json_len(tools) > p->client->o.list_max)
		return;
	items = calloc(json_len(tools) + 1, sizeof(*items));
	while (items && json_next(&it)) {
		if (json_type(json_get(it.val, "name")) == JSON_STR)
			items[n++] = it.val;
	}
	if (items && mcp_tools_learn(p->client, items, n, whole, &e) < 0)
		log_warn("%s: tools are not kept: %s", p->client->o.label, e.msg);
}

/* --- queries --- */

const struct mcp_params *mcp_tool_params(const struct mcp_client *c, struct str name)
{
	const struct mcp_known *t = find(c, name);

	return t ? &t->params : NULL;
}

int mcp_tool_tasking(const struct mcp_client *c, struct str name)
{
	const struct mcp_known *t = find(c, name);

	return t ? (int)t->task : -1;
}

/* Whether results are held against an output schema. One that can't be read is as good as none. */
static int has_output(struct mcp_client *c, struct mcp_known *t, struct err *e)
{
	char room[MCP_SAID_MAX];

	if (!t->output || t->compiled)
		return t->output != NULL;
	t->compiled = schema_parse((struct str){ t->output, t->output_n }, NULL, e);
	if (t->compiled)
		return 1;
	if (e->code == ERR_LIMIT)
		return err_wrap(e, "the tool's output schema can't be used");
	log_warn("mcp client: the output schema of %.*s is left out: %s",
		 STR_ARG(mcp_said((struct str){ t->name, t->name_n }, room)), e->msg);
	forget_output(c, t);
	return 0;
}

int mcp_tool_check_result(struct mcp_client *c, struct str name, const struct json_val *result,
			  struct err *e)
{
	const struct json_val *v = json_get(result, "structuredContent");
	struct mcp_known *t = find(c, name);
	int rc;

	if (!t || !c->profile->structured || json_bool(json_get(result, "isError")))
		return 0;
	rc = has_output(c, t, e);
	if (rc <= 0)
		return rc;
	if (!v)
		return err_set(e, ERR_INVALID,
			       "the tool has an output schema, and gave no structuredContent");
	return schema_check(t->compiled, v, NULL, e) < 0
		     ? err_wrap(e, "the tool's output schema refuses its structuredContent")
		     : 0;
}
