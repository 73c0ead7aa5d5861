/* All modules of a hub: which there are, and how many are connected. */
#include "base/log.h"
#include "modules/code/names.h"
#include "modules/internal.h"
#include "store/tools.h"

static void upstreams_on_soon(uv_timer_t *t)
{
	struct upstreams *all = t->data;
	struct upstreams_watch *w = all->watches, *next;

	for (; w; w = next) {
		next = w->next;
		w->on_change(w->arg);
	}
}

void upstreams_changed(struct upstreams *all)
{
	if (!all->closing)
		uv_timer_start(&all->soon, upstreams_on_soon, 0, 0);
}

void upstreams_updated(struct upstreams *all, struct str module, struct str uri)
{
	for (struct upstreams_watch *w = all->watches; w; w = w->next) {
		if (w->on_updated)
			w->on_updated(w->arg, module, uri);
	}
}

void upstreams_watch_add(struct upstreams *all, struct upstreams_watch *w)
{
	w->next = all->watches;
	all->watches = w;
}

/* ---- which there are ----------------------------------------------------------------------- */

static bool upstreams_off(const struct upstreams *all)
{
	const struct config_modules *m = &config_file(all->config)->modules;

	return m->has_enabled && !m->enabled;
}

int upstreams_check(const struct upstreams *all, struct err *e)
{
	if (upstreams_off(all))
		return err_set(e, ERR_DENIED, "the operator has switched modules off");
	if (!hub_store(all->hub))
		return err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder has modules");
	return 0;
}

struct upstream *upstreams_next(const struct upstreams *all, const struct upstream *after)
{
	return after ? after->next : all->first;
}

static bool upstreams_is_called(const struct upstream *u, struct str name)
{
	char python[NAME_SERVER_MAX + 2];

	name_python(str_of(u->name), python);
	return str_is(name, u->name) || str_is(name, python);
}

struct upstream *upstreams_find(struct upstreams *all, struct str name, struct err *e)
{
	struct str rest = name;
	struct upstream *u;

	if (upstreams_check(all, e) < 0)
		return NULL;
	for (u = all->first; u && !str_is(name, u->name); u = u->next)
		;
	if (u)
		return u;
	if (str_starts(rest, "host:"))
		rest = (struct str){ rest.p + 5, rest.n - 5 };
	if (str_starts(rest, "mcp-"))
		rest = (struct str){ rest.p + 4, rest.n - 4 };
	for (u = all->first; u && !upstreams_is_called(u, rest); u = u->next)
		;
	if (!u)
		err_set(e, ERR_MODULE_NOT_FOUND, "there is no module \"%.*s\"",
			STR_CUT(name, CONFIG_SERVER_NAME_MAX));
	return u;
}

static struct upstream *upstreams_take(struct upstream **from, struct str name)
{
	for (; *from; from = &(*from)->next) {
		struct upstream *u = *from;

		if (!str_is(name, u->name))
			continue;
		*from = u->next;
		u->next = NULL;
		return u;
	}
	return NULL;
}

/* Those of the file, in its order: the ones that there are already, and new ones. */
static void upstreams_set(struct upstreams *all, struct config *c)
{
	const struct config_servers *servers = &config_file(c)->mcp_servers;
	struct upstream *was = all->first, **to = &all->first;
	bool none = upstreams_off(all) || !hub_store(all->hub);
	struct err e;

	all->first = NULL;
	for (size_t i = 0; i < servers->n && !none; i++) {
		const struct config_server *s = &servers->p[i];
		struct upstream *u = upstreams_take(&was, s->name);

		if (!u && (u = upstream_new(all, c, s, &e)) && grant_read(u, &e) < 0) {
			upstream_free(u);
			u = NULL;
		}
		if (!u) {
			log_error("module %.*s: %s", STR_ARG(s->name), e.msg);
			continue;
		}
		*to = u;
		to = &u->next;
		upstream_change(u, c, s);
	}
	while (was) {
		struct upstream *u = was;

		was = u->next;
		u->next = all->gone;
		all->gone = u;
		u->is_gone = true;
		if (upstreams_check(all, &e) < 0)
			upstream_stop(u, &e);
		upstream_change(u, c, NULL);
	}
}

void upstreams_configure(struct upstreams *all, struct config *c)
{
	struct config *old = all->config;

	all->config = config_ref(c);
	upstreams_set(all, c);
	config_unref(old);
	upstreams_changed(all);
	packages_sweep(all);
}

/* ---- how many are connected ---------------------------------------------------------------- */

int upstreams_make_room(struct upstreams *all, struct err *e)
{
	uint32_t most = config_file(all->config)->modules.connected;
	struct upstream *idle = NULL;
	uint32_t n = 0;
	struct err why;

	for (struct upstream *u = all->first; u; u = u->next) {
		n += u->conn != NULL;
		if (u->conn && u->conn->ready && u->calls == 0 &&
		    (!idle || u->used_ms < idle->used_ms))
			idle = u;
	}
	if (n < most)
		return 0;
	if (!idle)
		return err_set(e, ERR_LIMIT, "%u modules are connected, and all are in use",
			       (unsigned)n);
	err_set(&why, ERR_CANCELLED, "another module needed its place");
	upstream_drop(idle, UPSTREAM_IDLE, &why);
	return 0;
}

/* ---- indexes of tools ---------------------------------------------------------------------- */

struct tools *upstreams_take_tools(struct upstreams *all, const char *key)
{
	struct upstreams_index *x = all->indexes;

	for (int i = 0; i < INDEXES_KEPT; i++) {
		if (x[i].tools && strcmp(x[i].key, key) == 0)
			return take_ptr(x[i].tools);
	}
	return NULL;
}

void upstreams_keep_tools(struct upstreams *all, const char *key, struct tools *t)
{
	struct upstreams_index *x = all->indexes;
	int at = 0;

	/* in the place of one that is as old, was taken, or is the oldest */
	while (at < INDEXES_KEPT - 1 && x[at].tools && strcmp(x[at].key, key) != 0)
		at++;
	tools_free(x[at].tools);
	memmove(x + 1, x, (size_t)at * sizeof(*x));
	snprintf(x->key, sizeof(x->key), "%s", key);
	x->tools = t;
}

/* ---- the beginning and the end ------------------------------------------------------------- */

struct upstreams *upstreams_new(const struct upstreams_options *o, struct err *e)
{
	struct upstreams *all = calloc(1, sizeof(*all));
	struct store *store = hub_store(o->hub);

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	if (store && store_module_key(store, all->key, e) < 0) {
		free(all);
		return NULL;
	}
	all->loop = hub_loop(o->hub);
	all->hub = o->hub;
	all->config = config_ref(o->config);
	all->build = o->build;
	all->place = (struct program_sandbox_of){ .loop = all->loop,
						  .hub = o->hub,
						  .secrets = o->secrets,
						  .rules = o->rules,
						  .gave_secret = o->gave_secret,
						  .data = o->data };
	uv_timer_init(all->loop, &all->soon);
	all->soon.data = all;
	upstreams_set(all, all->config);
	packages_sweep(all);
	return all;
}

const struct program_sandbox_of *upstreams_programs(const struct upstreams *all)
{
	return &all->place;
}

static void upstreams_on_freed(uv_handle_t *h)
{
	struct upstreams *all = h->data;
	void (*on_closed)(void *arg) = all->on_closed;
	void *arg = all->closed_arg;

	for (int i = 0; i < INDEXES_KEPT; i++)
		tools_free(all->indexes[i].tools);
	config_unref(all->config);
	free(all);
	on_closed(arg);
}

void upstreams_try_close(struct upstreams *all)
{
	if (all->closing && all->open == 0 && !uv_is_closing((uv_handle_t *)&all->soon))
		uv_close((uv_handle_t *)&all->soon, upstreams_on_freed);
}

void upstreams_close(struct upstreams *all, void (*on_closed)(void *arg), void *arg)
{
	struct err e;

	all->closing = true;
	uv_timer_stop(&all->soon);
	results_close(all);
	packages_close(all);
	all->on_closed = on_closed;
	all->closed_arg = arg;
	err_set(&e, ERR_CANCELLED, "Holt is shutting down");
	while (all->first) {
		struct upstream *u = all->first;

		all->first = u->next;
		u->next = all->gone;
		all->gone = u;
		u->is_gone = true;
		upstream_drop(u, UPSTREAM_CLOSED, &e);
	}
	upstreams_try_close(all);
}
