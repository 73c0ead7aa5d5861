/*
 * Tools of modules as tools of this server, SERVER__TOOL: the set "gateway". They are those that
 * were approved, also of a module that is not connected, and calls of them are calls of
 * module.call. What a module says of its tools is cleaned before a client sees it.
 */
#include <stdlib.h>

#include "base/log.h"
#include "door/mcp/internal.h"
#include "modules/code/clean.h"
#include "modules/code/names.h"
#include "op/module/module.h"
#include "op/ops.h"

enum { GATEWAY_MAX = 1000, DEFINITION_MAX = 4 << 20, RESULT_MAX = 8 << 20 };

const struct tool gateway_tool = { .op = &module_call_op, .name = "gateway", .asks = true };

/* A listed tool, as long as it is listed or called. */
struct gateway_entry {
	struct mcp_tool tool; /* first */
	unsigned refs;
	struct json_doc *doc; /* the cleaned definition */
	char *schema, *output, *module, *name; /* owned; output may be NULL */
	char shown[NAME_MAX_BYTES + 1];
};

struct gateway {
	struct mcp_door *door;
	struct upstreams *modules;
	struct upstreams_watch watch;
	struct gateway_entry **p;
	size_t n;
};

static void entry_unref(struct gateway_entry *g)
{
	if (!g || --g->refs > 0)
		return;
	mcp_tool_release(&g->tool);
	json_free(g->doc);
	free(g->schema);
	free(g->output);
	free(g->module);
	free(g->name);
	free(g);
}
AUTO_DEFINE(entry_unref, struct gateway_entry)

static char *entry_text(const struct json_val *v, struct err *e)
{
	autobuf struct buf b = BUF_INIT(DEFINITION_MAX);
	struct json_writer w = json_writer(&b);

	json_write_val(&w, v);
	return json_write_done(&w, e) < 0 ? NULL : buf_take(&b);
}

static const char *entry_description(const struct json_val *v, const char *shown)
{
	struct str said = json_str(json_get(v, "description"));

	return said.n ? said.p : shown;
}

/* A server may call anything an output schema: without one that can be held against results, its
 * tool is listed all the same. */
static int entry_prepare(struct gateway_entry *g, const struct json_val *output, struct err *e)
{
	if (json_type(output) == JSON_OBJECT && !(g->output = entry_text(output, e)))
		return -1;
	g->tool.output_schema = g->output;
	if (mcp_tool_prepare(&g->tool, e) == 0)
		return 0;
	if (!g->output)
		return -1;
	log_warn("module %s: %s: its output schema is left out: %s", g->module, g->name, e->msg);
	mcp_tool_release(&g->tool);
	g->tool.output_schema = NULL;
	return mcp_tool_prepare(&g->tool, e);
}

static struct gateway_entry *entry_new(struct str module, const struct json_val *v,
				       struct str shown, struct err *e)
{
	AUTO(entry_unref) struct gateway_entry *g = calloc(1, sizeof(*g));
	struct str name = json_str(json_get(v, "name"));
	autobuf struct buf b = BUF_INIT(DEFINITION_MAX);
	const struct json_val *clean;

	if (!g) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	g->refs = 1;
	g->module = mem_dup(module.p, module.n);
	g->name = mem_dup(name.p, name.n);
	snprintf(g->shown, sizeof(g->shown), "%.*s", STR_ARG(shown));
	if (!g->module || !g->name || clean_json(&b, v, CLEAN_TEXT, e) < 0 ||
	    !(g->doc = json_parse(buf_str(&b), NULL, e)))
		return NULL;
	clean = json_root(g->doc);
	g->schema = entry_text(json_get(clean, "inputSchema"), e);
	if (!g->schema)
		return NULL;
	g->tool = (struct mcp_tool){
		.name = g->shown,
		.description = entry_description(clean, g->shown),
		.title = json_str(json_get(clean, "title")).p,
		.input_schema = g->schema,
		.task = MCP_TASK_OPTIONAL,
		.row = &gateway_tool,
	};
	return entry_prepare(g, json_get(clean, "outputSchema"), e) < 0 ? NULL : take_ptr(g);
}

/* ---- which there are ----------------------------------------------------------------------- */

static void gateway_add(struct gateway *w, struct str module, const struct json_val *v,
			struct str shown)
{
	struct err e = ERR_INIT;
	struct gateway_entry *g = w->n < GATEWAY_MAX ? entry_new(module, v, shown, &e) : NULL;

	if (g)
		w->p[w->n++] = g;
	else
		log_warn("module %.*s: the tool %.*s is not listed: %s", STR_ARG(module),
			 STR_ARG(shown), e.code ? e.msg : "too many");
}

static int gateway_add_all(struct gateway *w, struct upstream *u, struct err *e)
{
	struct upstream_info i;
	AUTO(json_free) struct json_doc *pins = NULL;

	upstream_info(u, &i);
	if (!i.approved || i.disabled || !i.pins.n)
		return 0;
	pins = json_parse(i.pins, NULL, e);
	if (!pins)
		return -1;
	for (struct json_iter it = json_iter(json_get(json_root(pins), "tools")); json_next(&it);) {
		struct str name = json_str(json_get(it.val, "name"));
		struct str shown = upstream_listed(u, name);
		struct err none;

		if (shown.p && upstream_check(u, name, &none) == 0)
			gateway_add(w, i.name, it.val, shown);
	}
	return 0;
}

static bool gateway_same(const struct gateway *w, struct gateway_entry *const *was, size_t n)
{
	for (size_t i = 0; i < n && n == w->n; i++) {
		const struct gateway_entry *a = w->p[i], *b = was[i];

		if (strcmp(a->shown, b->shown) != 0 || strcmp(a->schema, b->schema) != 0 ||
		    strcmp(a->output ?: "", b->output ?: "") != 0 ||
		    strcmp(a->tool.description, b->tool.description) != 0)
			return false;
	}
	return n == w->n;
}

static void gateway_fill(struct gateway *w)
{
	struct err e = ERR_INIT;

	if (upstreams_check(w->modules, &e) < 0)
		return;
	for (struct upstream *u = upstreams_next(w->modules, NULL); u;
	     u = upstreams_next(w->modules, u)) {
		if (gateway_add_all(w, u, &e) < 0)
			log_warn("the tools of a module are not listed: %s", e.msg);
	}
}

static void gateway_on_change(void *arg)
{
	struct gateway *w = arg;
	struct gateway_entry **was = w->p;
	size_t n = w->n;

	offers_update(w->door);
	w->p = calloc(GATEWAY_MAX, sizeof(struct gateway_entry *));
	w->n = 0;
	if (!w->p) {
		w->p = was;
		w->n = n;
		return;
	}
	gateway_fill(w);
	if (w->door->server && !gateway_same(w, was, n))
		mcp_server_changed(w->door->server, MCP_TOOLS);
	for (size_t i = 0; i < n; i++)
		entry_unref(was[i]);
	free(was);
}

static void gateway_on_updated(void *arg, struct str module, struct str uri)
{
	struct gateway *w = arg;

	offers_updated(w->door, module, uri);
}

int gateway_open(struct mcp_door *d, struct err *e)
{
	struct gateway *w;

	if (!ops_upstreams(d->ops))
		return 0;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, ERR_LIMIT, "out of memory");
	*w = (struct gateway){ .door = d, .modules = ops_upstreams(d->ops) };
	w->watch = (struct upstreams_watch){ .on_change = gateway_on_change,
					     .on_updated = gateway_on_updated,
					     .arg = w };
	upstreams_watch_add(w->modules, &w->watch);
	d->gateway = w;
	gateway_on_change(w);
	return 0;
}

/* The modules have ended before. */
void gateway_free(struct gateway *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		entry_unref(w->p[i]);
	free(w->p);
	free(w);
}

size_t gateway_list(const struct gateway *w, const struct mcp_session *s,
		    const struct mcp_tool **to, size_t max)
{
	struct door_profile p;
	struct err e;
	size_t n = 0;
	bool ok = w && profile_init(&p, w->door, s, &e) == 0;

	for (size_t i = 0; ok && i < w->n && n < max; i++) {
		if (!p.any || profile_check_server(&p.p, str_of(w->p[i]->module), &e) == 0)
			to[n++] = &w->p[i]->tool;
	}
	if (w)
		profile_fini(&p);
	return n;
}

/* ---- calls --------------------------------------------------------------------------------- */

static struct gateway_entry *entry_of(const struct mcp_tool *t)
{
	return (struct gateway_entry *)(uintptr_t)t;
}

void gateway_hold(void *door, const struct mcp_tool *t, bool on)
{
	if (t->row != &gateway_tool)
		return;
	if (on)
		entry_of(t)->refs++;
	else
		entry_unref(entry_of(t));
}

int gateway_decode(struct mcp_call *mc, struct arena *a, void *request, struct err *e)
{
	const struct gateway_entry *g = entry_of(mcp_call_tool(mc));
	const struct json_val *args = mcp_call_args(mc);
	char *module = arena_dup(a, str_of(g->module), e);
	char *tool = arena_dup(a, str_of(g->name), e);
	autofree char *text = args ? entry_text(args, e) : strdup("{}");
	char *arguments = text ? arena_dup(a, str_of(text), e) : NULL;

	if (!module || !tool || !arguments)
		return -1;
	*(struct module_call_request *)request = (struct module_call_request){
		.module = str_of(module), .tool = str_of(tool), .arguments = { str_of(arguments) }
	};
	return 0;
}

static bool has_resources(const struct json_val *content)
{
	struct json_iter it = json_iter(content);

	while (json_next(&it)) {
		if (str_starts(json_str(json_get(it.val, "type")), "resource"))
			return true;
	}
	return false;
}

static char *entry_content(struct str module, const struct json_val *content, struct err *e)
{
	autobuf struct buf b = BUF_INIT(RESULT_MAX);
	struct json_writer w = json_writer(&b);

	if (!has_resources(content))
		return entry_text(content, e);
	offers_write_content(&w, module, content);
	return json_write_done(&w, e) < 0 ? NULL : buf_take(&b);
}

/* As its server gave it, and as redaction left it. */
int gateway_answer(struct str module, const struct mcp_tool *t, const void *result,
		   struct json_doc **ret_doc, char **ret_content, char **ret_structured,
		   struct mcp_result *ret, struct err *e)
{
	const struct module_result *r = result;
	const struct json_val *v;

	*ret_doc = json_parse(r->result.text, NULL, e);
	if (!*ret_doc)
		return -1;
	v = json_root(*ret_doc);
	/* Where it was kept, it can't be what the tool's output schema wants. */
	ret->is_error = json_bool(json_get(v, "isError")) || (r->kept && (!t || t->output_schema));
	if (json_get(v, "structuredContent")) {
		*ret_structured = entry_text(json_get(v, "structuredContent"), e);
		ret->structured = str_of(*ret_structured);
		if (!*ret_structured)
			return -1;
	}
	/* Where there is none, the structured content stands for it. */
	if (json_len(json_get(v, "content")) == 0)
		return 0;
	*ret_content = entry_content(module, json_get(v, "content"), e);
	ret->content_json = str_of(*ret_content);
	return *ret_content ? 0 : -1;
}
