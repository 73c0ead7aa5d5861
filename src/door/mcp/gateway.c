/*
 * Tools of modules as tools of this server, SERVER__TOOL: the set "gateway". They are those that
 * were approved, also of a module that is not connected, and calls of them are calls of
 * module.call. What a module says of its tools is cleaned before a client sees it, and a list has
 * only short forms of it, unless the client wants the whole.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "call/aside.h"
#include "door/mcp/internal.h"
#include "modules/code/brief.h"
#include "modules/code/clean.h"
#include "modules/code/names.h"
#include "op/module/module.h"
#include "op/ops.h"

enum {
	GATEWAY_MAX = GATEWAY_LIST_MAX,
	DEFINITION_MAX = 4 << 20,
	RESULT_MAX = 8 << 20,
	MAKING_MAX = 24 << 20,
	SAID_MAX = 64 << 10,
	LINE_MAX_BYTES = 1024,
};

const struct tool gateway_tool = { .op = &module_call_op, .name = "gateway", .asks = true };

/* A listed tool, as long as it is listed or called. */
struct gateway_entry {
	struct mcp_tool tool; /* first */
	struct mcp_tool brief; /* the same for lists */
	unsigned refs;
	struct json_doc *doc; /* the cleaned definition */
	char *schema, *output, *module, *name; /* owned; output may be NULL */
	char *brief_schema, *brief_text;
	char shown[NAME_MAX_BYTES + 1];
};

/* The tools and offers of one module, made of one revision of it. */
struct gateway_module {
	struct gateway_module *next;
	char name[CONFIG_SERVER_NAME_MAX + 1];
	uint64_t revision; /* of what is made, or of what it is being made of */
	struct gateway_making *making; /* NULL: nothing is made */
	struct gateway_entry **p; /* holds them */
	size_t n;
	struct offers *offers; /* NULL: none */
	bool there; /* in the operator's file */
};

struct gateway {
	struct mcp_door *door;
	struct upstreams *modules;
	struct upstreams_watch watch;
	struct gateway_module *first;
	bool changing; /* all is shown once that has ended */
	/* As clients may see them; holds them. */
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
	free(g->brief_schema);
	free(g->brief_text);
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

void gateway_says(struct buf *said, const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;
	struct err e;

	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	if (buf_addf(said, &e, "%s\n", line) < 0)
		said->n = said->max; /* that is enough */
}

/* A server may call anything an output schema: without one that can be held against results, its
 * tool is listed all the same. */
static int entry_prepare(struct gateway_entry *g, const struct json_val *output, struct buf *said,
			 struct err *e)
{
	if (json_type(output) == JSON_OBJECT && !(g->output = entry_text(output, e)))
		return -1;
	g->tool.output_schema = g->output;
	if (mcp_tool_prepare(&g->tool, e) == 0)
		return 0;
	if (!g->output)
		return -1;
	gateway_says(said, "%s: its output schema is left out: %s", g->name, e->msg);
	mcp_tool_release(&g->tool);
	g->tool.output_schema = NULL;
	return mcp_tool_prepare(&g->tool, e);
}

static struct gateway_entry *entry_of(const struct mcp_tool *t)
{
	return (struct gateway_entry *)(uintptr_t)t;
}

/* Results are held against the output schema here, whoever has seen it. */
static int entry_shorten(struct gateway_entry *g, struct err *e)
{
	autobuf struct buf schema = BUF_INIT(DEFINITION_MAX), text = BUF_INIT(DEFINITION_MAX);
	AUTO(json_free) struct json_doc *doc = json_parse(str_of(g->schema), NULL, e);
	struct str title = str_of(g->tool.title);

	if (!doc || brief_schema(&schema, json_root(doc), e) < 0 ||
	    brief_text(&text, str_of(g->tool.description), BRIEF_TEXT_CHARS, e) < 0)
		return -1;
	g->brief_schema = buf_take(&schema);
	g->brief_text = buf_take(&text);
	g->brief = g->tool;
	g->brief.prepared = NULL;
	g->brief.description = g->brief_text;
	g->brief.input_schema = g->brief_schema;
	g->brief.output_schema = NULL;
	if (title.n > BRIEF_ARGUMENT_CHARS || brief_is_same(title, str_of(g->name)))
		g->brief.title = NULL;
	return 0;
}

static struct gateway_entry *entry_new(struct str module, const struct json_val *v,
				       struct str shown, struct buf *to, struct err *e)
{
	AUTO(entry_unref) struct gateway_entry *g = calloc(1, sizeof(*g));
	struct str name = json_str(json_get(v, "name"));
	autobuf struct buf b = BUF_INIT(DEFINITION_MAX), schema = BUF_INIT(DEFINITION_MAX);
	const struct json_val *clean;
	struct str said;

	if (!g)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	g->refs = 1;
	g->module = mem_dup(module.p, module.n);
	g->name = mem_dup(name.p, name.n);
	snprintf(g->shown, sizeof(g->shown), "%.*s", STR_ARG(shown));
	if (!g->module || !g->name || clean_json(&b, v, CLEAN_TEXT, e) < 0 ||
	    !(g->doc = json_parse(buf_str(&b), NULL, e)))
		return NULL;
	clean = json_root(g->doc);
	said = json_str(json_get(clean, "description"));
	if (brief_object(&schema, json_get(clean, "inputSchema"), e) < 0)
		return NULL;
	g->schema = buf_take(&schema);
	g->tool = (struct mcp_tool){
		.name = g->shown,
		.description = said.n ? said.p : g->shown,
		.title = json_str(json_get(clean, "title")).p,
		.input_schema = g->schema,
		.task = MCP_TASK_OPTIONAL,
		.row = &gateway_tool,
	};
	return entry_prepare(g, json_get(clean, "outputSchema"), to, e) < 0 ||
			       entry_shorten(g, e) < 0
		     ? NULL
		     : take_ptr(g);
}

/* ---- what a module has --------------------------------------------------------------------- */

/* Made in the work pool, since it may be megabytes. */
struct gateway_making {
	struct aside_work work; /* first: the two are cast */
	struct gateway *gateway;
	struct gateway_module *of; /* NULL: nobody waits for it any more */
	struct arena *arena;
	/* In the arena: from what. */
	struct str module, pins;
	struct field_strs lists[UPSTREAM_LISTS];
	/* The result. */
	struct gateway_entry **p;
	size_t n;
	struct offers *offers;
	struct buf said;
};

static void entries_free(struct gateway_entry **p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		entry_unref(p[i]);
	free(p);
}

static void making_free(struct gateway_making *k)
{
	if (!k)
		return;
	entries_free(k->p, k->n);
	offers_unref(k->offers);
	buf_fini(&k->said);
	arena_free(k->arena);
	free(k);
}
AUTO_DEFINE(making_free, struct gateway_making)

static int making_tools(struct gateway_making *k, struct err *e)
{
	AUTO(json_free) struct json_doc *pins = json_parse(k->pins, NULL, e);
	struct json_iter it = json_iter(json_get(json_root(pins), "tools"));
	size_t n = json_len(json_get(json_root(pins), "tools"));
	struct str *own = arena_array(k->arena, n + 1, sizeof(*own), e);
	struct tool_name *names = arena_array(k->arena, n + 1, sizeof(*names), e);

	if (!pins || !own || !names)
		return -1;
	for (size_t i = 0; json_next(&it); i++)
		own[i] = json_str(json_get(it.val, "name"));
	k->p = calloc(n + 1, sizeof(struct gateway_entry *));
	if (!k->p)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (names_make(k->module, own, n, k->arena, names, e) < 0)
		return -1;
	it = json_iter(json_get(json_root(pins), "tools"));
	for (size_t i = 0; json_next(&it); i++) {
		k->p[k->n] = entry_new(k->module, it.val, names[i].gateway, &k->said, e);
		if (k->p[k->n])
			k->n++;
		else
			gateway_says(&k->said, "the tool %.*s is not listed: %s",
				     STR_ARG(names[i].gateway), e->msg);
	}
	return 0;
}

static void making_run(struct aside_work *work)
{
	struct gateway_making *k = (struct gateway_making *)work;
	struct err e;

	if (k->pins.n && making_tools(k, &e) < 0)
		gateway_says(&k->said, "its tools are not listed: %s", e.msg);
	k->offers = offers_new(k->module, k->lists, &k->said);
}

static void gateway_show(struct gateway *w);

static void making_then(struct aside_work *work)
{
	AUTO(making_free) struct gateway_making *k = (struct gateway_making *)work;
	struct gateway_module *m = k->of;
	const char *end;

	if (!m)
		return;
	m->making = NULL;
	entries_free(m->p, m->n);
	m->p = take_ptr(k->p);
	m->n = k->n;
	k->n = 0;
	offers_unref(m->offers);
	m->offers = take_ptr(k->offers);
	for (const char *line = k->said.p; line && (end = strchr(line, '\n')); line = end + 1)
		log_warn("module %s: %.*s", m->name, (int)(end - line), line);
	if (!k->gateway->changing)
		gateway_show(k->gateway);
}

static int making_copy(struct arena *a, struct str *to, struct str from, struct err *e)
{
	*to = (struct str){ arena_dup(a, from, e), from.n };
	return to->p ? 0 : -1;
}

/* Copies its sources, which may be gone before it is made. */
static struct gateway_making *making_new(struct gateway *w, const struct upstream_info *i,
					 size_t *ret_bytes, struct err *e)
{
	AUTO(making_free) struct gateway_making *k = calloc(1, sizeof(*k));

	if (!k || !(k->arena = arena_new(MAKING_MAX)))
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	k->work = (struct aside_work){ .run = making_run, .then = making_then };
	k->gateway = w;
	k->said = BUF_INIT(SAID_MAX);
	*ret_bytes = i->pins.n;
	if (making_copy(k->arena, &k->module, i->name, e) < 0 ||
	    making_copy(k->arena, &k->pins, i->pins, e) < 0)
		return NULL;
	for (int l = 0; l < UPSTREAM_LISTS; l++) {
		struct str *to = arena_array(k->arena, i->lists[l].n, sizeof(*to), e);

		for (size_t n = 0; to && n < i->lists[l].n; n++) {
			if (making_copy(k->arena, &to[n], i->lists[l].p[n], e) < 0)
				return NULL;
			*ret_bytes += to[n].n;
		}
		k->lists[l] = (struct field_strs){ to, to ? i->lists[l].n : 0 };
	}
	return take_ptr(k);
}

static void module_make(struct gateway *w, struct gateway_module *m, const struct upstream_info *i)
{
	struct err e;
	size_t bytes;
	struct gateway_making *k = making_new(w, i, &bytes, &e);

	if (m->making)
		m->making->of = NULL;
	m->making = k;
	m->revision = i->revision;
	if (k)
		k->of = m;
	/* nobody waits yet while the hub starts, and who comes then wants to see all */
	if (k && aside_work_start(&k->work, hub_loop(ops_hub(w->door->ops)), NULL,
				  w->door->server ? bytes : 0, &e) == 0)
		return;
	log_warn("module %s: what it has is not listed: %s", m->name, e.msg);
	making_free(k);
	m->making = NULL;
	m->revision = 0;
}

/* ---- which there are ----------------------------------------------------------------------- */

static struct gateway_module *gateway_module(struct gateway *w, struct str name)
{
	struct gateway_module *m = w->first;

	while (m && !str_is(name, m->name))
		m = m->next;
	if (m || !(m = calloc(1, sizeof(*m))))
		return m;
	snprintf(m->name, sizeof(m->name), "%.*s", STR_ARG(name));
	m->next = w->first;
	return w->first = m;
}

/* Those that are not there any more. */
static void gateway_sweep(struct gateway *w)
{
	struct gateway_module **at = &w->first, *m;

	while ((m = *at)) {
		if (m->there) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		if (m->making)
			m->making->of = NULL;
		entries_free(m->p, m->n);
		offers_unref(m->offers);
		free(m);
	}
}

static bool gateway_same(const struct gateway *w, struct gateway_entry *const *was, size_t n)
{
	for (size_t i = 0; i < n && n == w->n; i++) {
		const struct gateway_entry *a = w->p[i], *b = was[i];

		if (a != b &&
		    (strcmp(a->shown, b->shown) != 0 || strcmp(a->schema, b->schema) != 0 ||
		     strcmp(a->output ?: "", b->output ?: "") != 0 ||
		     strcmp(a->tool.description, b->tool.description) != 0))
			return false;
	}
	return n == w->n;
}

static void gateway_add_all(struct gateway *w, const struct gateway_module *m,
			    const struct upstream *u)
{
	struct err none;

	for (size_t i = 0; i < m->n; i++) {
		if (upstream_check(u, str_of(m->p[i]->name), &none) < 0)
			continue;
		if (w->n == GATEWAY_MAX) {
			log_warn("module %s: the tool %s is not listed: too many", m->name,
				 m->p[i]->shown);
			return;
		}
		m->p[i]->refs++;
		w->p[w->n++] = m->p[i];
	}
}

/* Sets what clients may see of all that was made. */
static void gateway_show(struct gateway *w)
{
	struct gateway_entry **was = w->p, **p = calloc(GATEWAY_MAX, sizeof(*p));
	struct offers_shown offers[UPSTREAM_LISTS] = { { .n = 0 } };
	size_t n = w->n;
	unsigned changed;

	if (!p)
		return;
	w->p = p;
	w->n = 0;
	for (struct upstream *u = upstreams_next(w->modules, NULL); u;
	     u = upstreams_next(w->modules, u)) {
		struct gateway_module *m = w->first;
		struct upstream_info i;

		upstream_info(u, &i);
		while (m && !str_is(i.name, m->name))
			m = m->next;
		if (m) {
			gateway_add_all(w, m, u);
			offers_show(offers, u, m->offers);
		}
	}
	changed = offers_take(w->door, offers) | (gateway_same(w, was, n) ? 0 : MCP_TOOLS);
	entries_free(was, n);
	if (w->door->server && changed)
		mcp_server_changed(w->door->server, changed);
}

/* Only of a module that is another something is made. */
static void gateway_on_change(void *arg)
{
	struct gateway *w = arg;
	struct upstream_info i;

	w->changing = true;
	for (struct gateway_module *m = w->first; m; m = m->next)
		m->there = false;
	for (struct upstream *u = upstreams_next(w->modules, NULL); u;
	     u = upstreams_next(w->modules, u)) {
		struct gateway_module *m;

		upstream_info(u, &i);
		m = gateway_module(w, i.name);
		if (!m)
			continue;
		m->there = true;
		if (i.approved && !i.disabled && m->revision != i.revision)
			module_make(w, m, &i);
	}
	gateway_sweep(w);
	w->changing = false;
	gateway_show(w);
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
	for (struct gateway_module *m = w->first; m; m = m->next)
		m->there = false;
	gateway_sweep(w);
	entries_free(w->p, w->n);
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
		if (profile_has(&p, str_of(w->p[i]->module)))
			to[n++] = &w->p[i]->tool;
	}
	if (w)
		profile_fini(&p);
	return n;
}

static void tell_hidden(struct gateway *w, const struct principal *who, const struct upstream *u,
			const struct upstream_info *i, struct buf *to)
{
	unsigned n[UPSTREAM_HIDDENS] = { 0 };
	struct err e;

	for (size_t k = 0; k < i->n_tools; k++)
		n[upstream_hidden(u, &i->tools[k])]++;
	for (const struct gateway_module *m = w->first; m && who; m = m->next) {
		for (size_t k = 0; str_is(i->name, m->name) && k < m->n; k++)
			n[UPSTREAM_HIDDEN_POLICY] += ops_never(w->door->ops, who, &module_call_op,
							       m->p[k]->shown);
	}
	for (int why = UPSTREAM_OFFERED + 1; why < UPSTREAM_HIDDENS; why++) {
		if (n[why] && why != UPSTREAM_HIDDEN_FILE &&
		    buf_addf(to, &e, " %u tool%s of %.*s %s not listed: %s.", n[why],
			     n[why] > 1 ? "s" : "", STR_ARG(i->name), n[why] > 1 ? "are" : "is",
			     upstream_hidden_texts[why]) < 0)
			return;
	}
}

void gateway_tell(struct gateway *w, const struct mcp_session *s, struct buf *to)
{
	struct door_profile p;
	struct upstream_info i;
	struct err e;
	bool ok = profile_init(&p, w->door, s, &e) == 0;

	for (struct upstream *u = upstreams_next(w->modules, NULL); u && ok;
	     u = upstreams_next(w->modules, u)) {
		upstream_info(u, &i);
		if (!profile_has(&p, i.name))
			continue;
		if (i.disabled || !i.approved)
			ok = buf_addf(to, &e, " %.*s is not %s by the operator.", STR_ARG(i.name),
				      i.disabled ? "enabled" : "approved") == 0;
		else
			tell_hidden(w, mcp_session_data(s), u, &i, to);
	}
	profile_fini(&p);
}

const struct mcp_tool *gateway_brief(const struct mcp_tool *t)
{
	return t->row == &gateway_tool ? &entry_of(t)->brief : t;
}

/* ---- calls --------------------------------------------------------------------------------- */

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
	const struct json_val *v, *structured;

	*ret_doc = json_parse(r->result.text, NULL, e);
	if (!*ret_doc)
		return -1;
	v = json_root(*ret_doc);
	/* Where it was kept, it can't be what the tool's output schema wants. */
	ret->is_error = json_bool(json_get(v, "isError")) || (r->kept && (!t || t->output_schema));
	structured = json_get(v, "structuredContent");
	/* Null is nothing, but for a schema that has it. */
	if (structured && (json_type(structured) != JSON_NULL || (t && t->output_schema))) {
		*ret_structured = entry_text(structured, e);
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
