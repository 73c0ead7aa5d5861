/*
 * Which tools of a module may be called: those that say of themselves what they said when they were
 * approved. The first list after the approval of a module is taken as it is, but for tools in which
 * the scan finds something and those that the operator's file hides. From then on what is new or
 * another waits for the operator.
 *
 * The row keeps all approved definitions, {"instructions":…,"tools":[…]}, so that a difference can
 * be shown.
 */
#include "base/log.h"
#include "json/document/put.h"
#include "modules/code/brief.h"
#include "modules/code/names.h"
#include "modules/code/pin.h"
#include "modules/code/scan.h"
#include "modules/internal.h"

enum { PINS_MAX = 8 << 20, SCAN_BYTES_MAX = 1 << 20, NAMES_BYTES_MAX = 8 << 20 };

const char *const upstream_pin_names[UPSTREAM_PINS] = {
	[UPSTREAM_PIN_APPROVED] = "approved",
	[UPSTREAM_PIN_NEW] = "new",
	[UPSTREAM_PIN_CHANGED] = "changed",
	[UPSTREAM_PIN_WARNED] = "warned",
};

static const struct json_val *pins_find(const struct json_doc *pins, struct str name)
{
	struct json_iter it = json_iter(json_get(json_root(pins), "tools"));

	while (json_next(&it)) {
		if (str_eq(json_str(json_get(it.val, "name")), name))
			return it.val;
	}
	return NULL;
}

static int pins_digest(const struct upstream_tool *t, char ret[SHA256_HEX], struct err *e)
{
	AUTO(json_free) struct json_doc *doc = json_parse(t->json, NULL, e);

	return doc ? pin_tool(json_root(doc), ret, e) : -1;
}

/* Those that are approved, as they are now, and of changed ones what was approved of them. */
static int pins_save(struct upstream *u, struct err *e)
{
	const struct upstream_tools *t = u->tools;
	AUTO(json_free)
	struct json_doc *old = u->pins ? json_parse(str_of(u->pins), NULL, e) : NULL;
	autobuf struct buf b = BUF_INIT(PINS_MAX);
	struct json_writer w = json_writer(&b);
	char *was;

	if (u->pins && !old)
		return err_wrap(e, "the approved tools");
	json_write_object(&w);
	json_put_str(&w, "instructions",
		     t->told ? t->instructions
			     : json_str(json_get(json_root(old), "instructions")));
	json_put_array(&w, "tools");
	for (size_t i = 0; i < t->n; i++) {
		if (t->p[i].pin == UPSTREAM_PIN_APPROVED)
			json_write_raw(&w, t->p[i].json);
		else if (t->p[i].pin == UPSTREAM_PIN_CHANGED)
			json_write_val(&w, pins_find(old, t->p[i].name));
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0)
		return err_wrap(e, "its tools");
	was = pins_swap(u, buf_take(&b));
	if (grant_write(u, e) < 0) {
		free(pins_swap(u, was));
		return -1;
	}
	free(was);
	return 0;
}

/* Nobody is shown what the operator's file hides, so nobody approves it. */
static bool pins_shows(const struct upstream *u, const struct upstream_tool *t)
{
	return config_server_shows(u->server, t->name) &&
	       config_server_approval(u->server, t->name) != CONFIG_DENY;
}

static int pins_warned(struct upstream_tool *t, const struct scan_names *own, bool is_shown,
		       struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(SCAN_BYTES_MAX);
	AUTO(json_free) struct json_doc *doc = json_parse(t->json, NULL, e);
	struct scan_findings found = { .n = 0 };

	t->pin = UPSTREAM_PIN_NEW;
	if (!is_shown)
		return 0;
	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (!doc || scan_tool(json_root(doc), own, a, &found, e) < 0)
		return -1;
	t->pin = found.n ? UPSTREAM_PIN_WARNED : UPSTREAM_PIN_APPROVED;
	return 0;
}

static int pins_compare(const struct json_doc *pins, struct upstream_tool *t, struct err *e)
{
	const struct json_val *old = pins_find(pins, t->name);
	char was[SHA256_HEX], is[SHA256_HEX];

	t->pin = UPSTREAM_PIN_NEW;
	if (!old)
		return 0;
	if (pin_tool(old, was, e) < 0 || pins_digest(t, is, e) < 0)
		return -1;
	t->pin = strcmp(was, is) == 0 ? UPSTREAM_PIN_APPROVED : UPSTREAM_PIN_CHANGED;
	return 0;
}

static int pins_order(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* The digest of all that the server says of its tools. */
static int pins_seen(struct upstream_tools *t, struct err *e)
{
	char(*all)[SHA256_HEX] = arena_array(t->arena, t->n + 1, sizeof(*all), e);

	if (!all || pin_instructions(t->instructions, all[t->n], e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		AUTO(json_free) struct json_doc *doc = json_parse(t->p[i].json, NULL, e);
		autobuf struct buf schema = BUF_INIT(PINS_MAX);
		struct err why;

		if (!doc || pin_tool(json_root(doc), all[i], e) < 0)
			return -1;
		t->p[i].odd = brief_object(&schema, json_get(json_root(doc), "inputSchema"), &why) <
			      0;
	}
	qsort(all, t->n, sizeof(*all), pins_order);
	sha256_hex((struct str){ all[0], (t->n + 1) * sizeof(*all) }, t->seen);
	return 0;
}

/* ---- judging ------------------------------------------------------------------------------- */

/* In the work pool, since a list may have megabytes. */
struct pins_judging {
	uv_work_t work;
	struct upstream_conn *conn; /* NULL: nobody waits for it any more */
	struct upstream_tools *t; /* a reference */
	bool *shown; /* each of them, in its arena */
	char *pins; /* as they were when it began, owned; NULL: there were none */
	struct err err;
};

static int pins_judge_all(struct pins_judging *j)
{
	struct upstream_tools *t = j->t;
	struct scan_names own;
	struct str *names;
	AUTO(json_free)
	struct json_doc *pins = j->pins ? json_parse(str_of(j->pins), NULL, &j->err) : NULL;

	if (j->pins && !pins)
		return err_wrap(&j->err, "the approved tools");
	names = arena_array(t->arena, t->n + 1, sizeof(*names), &j->err);
	if (!names)
		return -1;
	own = (struct scan_names){ names, t->n };
	for (size_t i = 0; i < t->n; i++)
		names[i] = t->p[i].name;
	for (size_t i = 0; i < t->n; i++) {
		if ((pins ? pins_compare(pins, &t->p[i], &j->err)
			  : pins_warned(&t->p[i], &own, j->shown[i], &j->err)) < 0)
			return -1;
	}
	t->told = !pins ||
		  str_eq(json_str(json_get(json_root(pins), "instructions")), t->instructions);
	return pins_seen(t, &j->err);
}

static void pins_in_pool(uv_work_t *work)
{
	struct pins_judging *j = work->data;

	if (pins_judge_all(j) == 0)
		j->err.code = ERR_NONE;
}

static void pins_on_judged(uv_work_t *work, int status);

static int pins_queue(struct pins_judging *j, struct err *e)
{
	const struct upstream *u = j->conn->of;

	free(j->pins);
	j->pins = u->pins ? strdup(u->pins) : NULL;
	if ((u->pins && !j->pins) ||
	    uv_queue_work(j->conn->all->loop, &j->work, pins_in_pool, pins_on_judged) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	return 0;
}

static void pins_judging_free(struct pins_judging *j)
{
	upstream_tools_unref(j->t);
	free(j->pins);
	free(j);
}

/* Judged again where the operator has approved others meanwhile. */
static void pins_on_judged(uv_work_t *work, int status)
{
	struct pins_judging *j = work->data;
	struct upstream_conn *k = j->conn;
	const char *pins = k ? k->of->pins : NULL;

	if (k && (pins ? !j->pins || strcmp(pins, j->pins) != 0 : j->pins != NULL) &&
	    pins_queue(j, &j->err) == 0)
		return;
	if (k) {
		k->judging = NULL;
		conn_on_judged(k, j->t, j->err.code == ERR_NONE ? NULL : &j->err);
	}
	pins_judging_free(j);
}

int pins_judge_start(struct upstream_conn *k, struct upstream_tools *t, struct err *e)
{
	struct pins_judging *j = calloc(1, sizeof(*j));

	if (!j) {
		upstream_tools_unref(t);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	j->work.data = j;
	j->conn = k;
	j->t = t;
	j->shown = arena_array(t->arena, t->n + 1, sizeof(*j->shown), e);
	for (size_t i = 0; j->shown && i < t->n; i++)
		j->shown[i] = pins_shows(k->of, &t->p[i]);
	if (!j->shown || pins_queue(j, e) < 0) {
		pins_judging_free(j);
		return -1;
	}
	k->judging = j;
	return 0;
}

void pins_judge_leave(struct upstream_conn *k)
{
	struct pins_judging *j = take_ptr(k->judging);

	if (j)
		j->conn = NULL;
}

int pins_take(struct upstream *u, struct err *e)
{
	return u->pins ? 0 : pins_save(u, e);
}

/* ---- before it is connected ---------------------------------------------------------------- */

static struct upstream_tools *pins_tools(struct upstream *u, struct err *e)
{
	AUTO(json_free) struct json_doc *pins = json_parse(str_of(u->pins), NULL, e);
	const struct json_val *root = json_root(pins), *all = json_get(root, "tools");
	autofree const struct json_val **items = calloc(json_len(all) + 1, sizeof(*items));
	struct upstream_tools *t;

	if (!pins || !items)
		return NULL;
	for (struct json_iter it = json_iter(all); json_next(&it);)
		items[it.index] = it.val;
	t = upstream_tools_new(u, items, json_len(all), json_str(json_get(root, "instructions")),
			       e);
	for (size_t i = 0; t && i < t->n; i++)
		t->p[i].pin = UPSTREAM_PIN_APPROVED;
	if (!t || pins_seen(t, e) == 0)
		return t;
	upstream_tools_unref(t);
	return NULL;
}

void pins_recall(struct upstream *u)
{
	struct err e = ERR_INIT;

	if (u->tools || !u->pins || !grant_holds(u))
		return;
	u->tools = pins_tools(u, &e);
	if (!u->tools) {
		log_warn("module %s: what was approved of its tools: %s", u->name, e.msg);
		return;
	}
	u->tools->told = true;
	u->tools->recalled = true;
}

/* ---- approving ----------------------------------------------------------------------------- */

static bool pins_names(const struct field_strs *tools, struct str name)
{
	for (size_t i = 0; i < tools->n; i++) {
		if (str_eq(tools->p[i], name))
			return true;
	}
	return false;
}

static int pins_known(const struct upstream *u, const struct field_strs *tools, struct err *e)
{
	const struct upstream_tools *t = u->tools;

	for (size_t i = 0; i < tools->n; i++) {
		size_t k = 0;

		while (k < t->n && !str_eq(t->p[k].name, tools->p[i]))
			k++;
		if (k == t->n || !pins_shows(u, &t->p[k]))
			return err_set(e, ERR_MODULE_TOOL, "the module lists no tool %.*s",
				       STR_ARG(tools->p[i]));
	}
	return 0;
}

/* An approval that could not be kept is undone. */
int pins_approve(struct upstream *u, const struct field_strs *tools, struct err *e)
{
	struct upstream_tools *t = u->tools;
	autofree enum upstream_pin *was = calloc(t->n + 1, sizeof(*was));
	bool told = t->told;

	if (!was)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (pins_known(u, tools, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		was[i] = t->p[i].pin;
		if (pins_shows(u, &t->p[i]) && (!tools->n || pins_names(tools, t->p[i].name)))
			t->p[i].pin = UPSTREAM_PIN_APPROVED;
	}
	t->told = told || !tools->n;
	if (pins_save(u, e) == 0)
		return 0;
	for (size_t i = 0; i < t->n; i++)
		t->p[i].pin = was[i];
	t->told = told;
	return -1;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Names of the approved tools in a plain list of tools. */
struct upstream_names {
	struct arena *arena;
	struct str *tools;
	struct tool_name *p;
	size_t n;
};

static void pins_names_free(struct upstream_names *names)
{
	if (names)
		arena_free(names->arena);
	free(names);
}
AUTO_DEFINE(pins_names_free, struct upstream_names)

char *pins_swap(struct upstream *u, char *pins)
{
	char *was = u->pins;

	u->pins = pins;
	u->revision = ++u->all->revisions;
	pins_names_free(take_ptr(u->names));
	return was;
}

void pins_free(struct upstream *u)
{
	free(pins_swap(u, NULL));
}

static struct upstream_names *pins_names_new(const struct upstream *u, struct err *e)
{
	AUTO(pins_names_free) struct upstream_names *names = calloc(1, sizeof(*names));
	AUTO(json_free) struct json_doc *pins = json_parse(str_of(u->pins), NULL, e);
	struct json_iter it = json_iter(json_get(json_root(pins), "tools"));
	size_t n = json_len(json_get(json_root(pins), "tools"));

	if (!pins || !names || !(names->arena = arena_new(NAMES_BYTES_MAX)))
		return NULL;
	names->tools = arena_array(names->arena, n + 1, sizeof(*names->tools), e);
	names->p = arena_array(names->arena, n + 1, sizeof(*names->p), e);
	if (!names->tools || !names->p)
		return NULL;
	while (json_next(&it)) {
		struct str name = json_str(json_get(it.val, "name"));

		names->tools[names->n].p = arena_dup(names->arena, name, e);
		names->tools[names->n].n = name.n;
		if (!names->tools[names->n++].p)
			return NULL;
	}
	return names_make(str_of(u->name), names->tools, names->n, names->arena, names->p, e) < 0
		     ? NULL
		     : take_ptr(names);
}

struct str upstream_listed(struct upstream *u, struct str tool)
{
	struct err e;

	if (u->pins && !u->names)
		u->names = pins_names_new(u, &e);
	for (size_t i = 0; u->names && i < u->names->n; i++) {
		if (str_eq(u->names->tools[i], tool))
			return u->names->p[i].gateway;
	}
	return STR_NONE;
}

/* Names as clients see them, of the tools that may be called. */
static struct str pins_spelled(struct upstream *u, struct str tool, struct arena *a, struct err *e)
{
	size_t max = u->tools ? u->tools->n : 0, n = 0;
	struct str *own = arena_array(a, max, sizeof(*own), e);
	struct tool_name *names = arena_array(a, max, sizeof(*names), e);
	struct err none;

	for (size_t i = 0; own && names && i < max; i++) {
		own[n] = u->tools->p[i].name;
		n += upstream_check(u, own[n], &none) == 0;
	}
	if (!own || !names || names_make(str_of(u->name), own, n, a, names, e) < 0)
		return STR_NONE;
	for (size_t i = 0; i < n; i++) {
		if (str_eq(names[i].function, tool) || str_eq(upstream_listed(u, own[i]), tool))
			return own[i];
	}
	return tool;
}

struct str upstream_tool_spelled(struct upstream *u, struct str tool, struct arena *a,
				 struct err *e)
{
	struct str own = tool;

	for (size_t i = 0; u->tools && i < u->tools->n; i++) {
		if (str_eq(u->tools->p[i].name, tool))
			return tool;
	}
	own = pins_spelled(u, tool, a, e);
	if (own.p)
		own = (struct str){ arena_dup(a, own, e), own.n };
	return own;
}
