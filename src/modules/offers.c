/*
 * What a module has beside its tools: resources, templates of them, prompts; what it says of them
 * later; and its log messages. Lists are read one after the other once the tools are known, and
 * again where they have changed, not more often than is good. None of it keeps a call waiting, and
 * a list that can't be had is empty.
 */
#include "base/log.h"
#include "mcp/message/protocol.h"
#include "modules/code/clean.h"
#include "modules/internal.h"

enum {
	OFFER_BYTES_MAX = 2 << 20, /* of a list */
	OFFER_ITEM_MAX = 64 << 10,
	OFFER_PAUSE_MS = 1000,
	UPDATES_A_SECOND = 50,
	LOG_TEXT_MAX = 16 << 10,
	LOG_CHARS = 2000,
	LOG_CALL_BYTES = 256 << 10, /* of a call */
};

const char *const upstream_kind_methods[UPSTREAM_KINDS] = {
	[UPSTREAM_CALL] = "tools/call",
	[UPSTREAM_READ] = "resources/read",
	[UPSTREAM_GET] = "prompts/get",
	[UPSTREAM_COMPLETE] = "completion/complete",
};

/* ---- lists --------------------------------------------------------------------------------- */

static const struct {
	const char *what, *capability;
	unsigned list;
} offers[UPSTREAM_LISTS] = {
	[UPSTREAM_RESOURCES] = { "resources", "resources", MCP_RESOURCES },
	[UPSTREAM_TEMPLATES] = { "resourceTemplates", "resources", MCP_RESOURCES },
	[UPSTREAM_PROMPTS] = { "prompts", "prompts", MCP_PROMPTS },
};

static const struct json_val *offers_capability(const struct upstream_conn *k, const char *name)
{
	return json_get(json_get(mcp_client_about(mcp_link_client(k->link)), "capabilities"), name);
}

static int offer_add(struct upstream_offer *to, const struct json_val *v, struct err *e)
{
	autobuf struct buf b = BUF_INIT(OFFER_ITEM_MAX);
	struct json_writer w = json_writer(&b);

	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return -1;
	to->p[to->n] = (struct str){ arena_dup(to->arena, buf_str(&b), e), b.n };
	return to->p[to->n].p ? (int)to->n++ : -1;
}

/* An item that is too large for the list is left out. */
static struct upstream_offer offer_of(const struct upstream_conn *k, const struct mcp_listed *l)
{
	struct upstream_offer o = { .arena = arena_new(OFFER_BYTES_MAX) };
	struct err e;

	if (o.arena)
		o.p = arena_array(o.arena, l->n + 1, sizeof(*o.p), &e);
	for (size_t i = 0; o.p && i < l->n; i++) {
		if (offer_add(&o, l->items[i], &e) < 0)
			log_debug("module %s: %s: %s", k->of->name, offers[k->offers.now].what,
				  e.msg);
	}
	return o;
}

static void offer_set(struct upstream *u, enum upstream_list which, struct upstream_offer o)
{
	arena_free(u->offers[which].arena);
	u->offers[which] = o;
	u->revision = ++u->all->revisions;
}

void offers_forget(struct upstream *u)
{
	for (int i = 0; i < UPSTREAM_LISTS; i++)
		offer_set(u, (enum upstream_list)i, (struct upstream_offer){ .n = 0 });
}

static void offers_step(struct upstream_conn *k);

static void offers_on_listed(void *owner, const struct mcp_listed *l)
{
	struct upstream_conn *k = owner;
	struct upstream_offer none = { .n = 0 };

	k->offers.pending = NULL;
	if (k->ending || k->retired)
		return;
	if (l->failed)
		log_debug("module %s: it does not list its %s", k->of->name,
			  offers[k->offers.now].what);
	offer_set(k->of, k->offers.now, l->failed ? none : offer_of(k, l));
	upstreams_changed(k->all);
	offers_step(k);
}

/* The next list that is wanted. */
static void offers_step(struct upstream_conn *k)
{
	struct err e;

	while (!k->ending && !k->retired && !k->offers.pending && k->offers.wanted) {
		k->offers.now = (enum upstream_list)__builtin_ctz(k->offers.wanted);
		k->offers.wanted &= ~(1u << k->offers.now);
		k->offers.since_ms = uv_now(k->all->loop);
		k->offers.pending = mcp_client_list(mcp_link_client(k->link),
						    offers[k->offers.now].what, offers_on_listed, k,
						    &e);
	}
}

static void offers_on_timer(uv_timer_t *t)
{
	offers_step(t->data);
}

void offers_changed(struct upstream_conn *k, unsigned lists)
{
	uint64_t since = uv_now(k->all->loop) - k->offers.since_ms;

	for (int i = 0; i < UPSTREAM_LISTS; i++) {
		if ((lists & offers[i].list) && offers_capability(k, offers[i].capability))
			k->offers.wanted |= 1u << i;
	}
	if (!k->offers.wanted || k->offers.pending || uv_is_active((uv_handle_t *)&k->offers.timer))
		return;
	uv_timer_start(&k->offers.timer, offers_on_timer,
		       since < OFFER_PAUSE_MS ? OFFER_PAUSE_MS - since : 0, 0);
}

void offers_begin(struct upstream_conn *k)
{
	if (!k->offers.since_ms)
		offers_changed(k, MCP_RESOURCES | MCP_PROMPTS);
}

/* ---- what is watched ----------------------------------------------------------------------- */

void offers_watch(struct upstream_conn *k)
{
	struct mcp_client *c = mcp_link_client(k->link);
	unsigned lists = MCP_TOOLS;
	struct err e = ERR_INIT;

	for (int i = 0; i < UPSTREAM_LISTS; i++) {
		if (offers_capability(k, offers[i].capability))
			lists |= offers[i].list;
	}
	if (mcp_client_watch(c, lists, k->of->watched, k->of->n_watched, &e) < 0 &&
	    (!k->of->n_watched || mcp_client_watch(c, lists, NULL, 0, &e) < 0))
		log_debug("module %s: %s", k->of->name, e.msg);
}

static bool watched_same(const struct upstream *u, const struct str *uris, size_t n)
{
	for (size_t i = 0; i < n && n == u->n_watched; i++) {
		if (!str_eq(u->watched[i], uris[i]))
			return false;
	}
	return n == u->n_watched;
}

int upstream_watch(struct upstream *u, const struct str *uris, size_t n, struct err *e)
{
	size_t bytes = n * sizeof(*uris);
	struct str *to;
	char *at;

	if (n > UPSTREAM_WATCHED_MAX)
		return err_set(e, ERR_LIMIT, "at most %d resources of a module are watched",
			       UPSTREAM_WATCHED_MAX);
	if (watched_same(u, uris, n))
		return 0;
	for (size_t i = 0; i < n; i++)
		bytes += uris[i].n;
	to = n ? malloc(bytes) : NULL;
	if (n && !to)
		return err_set(e, ERR_LIMIT, "out of memory");
	at = (char *)(to + n);
	for (size_t i = 0; i < n; i++) {
		to[i] = (struct str){ at, uris[i].n };
		str_put(&at, uris[i]);
	}
	free(u->watched);
	u->watched = to;
	u->n_watched = n;
	if (u->conn && u->conn->ready)
		offers_watch(u->conn);
	return 0;
}

void offers_on_updated(void *owner, struct str uri)
{
	struct upstream_conn *k = owner;
	struct upstream *u = k->of;
	uint64_t now = uv_now(k->all->loop);

	if (!u || k->retired)
		return;
	if (now - u->second_ms >= 1000) {
		u->second_ms = now;
		u->updates = 0;
	}
	if (u->updates++ < UPDATES_A_SECOND)
		upstreams_updated(k->all, str_of(u->name), uri);
}

/* ---- log messages -------------------------------------------------------------------------- */

/* To which call it belongs, if that is known; else the newest, where the connection has served one
 * principal: the call that it belongs to may have ended. */
static struct upstream_call *log_call(const struct upstream_conn *k, const struct mcp_pending *p)
{
	struct upstream_call *c = k->calls;

	if (!p)
		return k->mixed ? NULL : k->calls;
	while (c && c->pending != p)
		c = c->next;
	return c;
}

/* One line of the module's log. bare: without its text, which is not for all who may read that. */
static int log_line(struct buf *to, const struct mcp_log_message *m, bool bare, struct err *e)
{
	autobuf struct buf json = BUF_INIT(LOG_TEXT_MAX);
	struct str text = json_str(m->data);
	struct json_writer w = json_writer(&json);

	if (bare) {
		text = STR_LIT("(of a call)");
	} else if (!text.p) {
		json_write_val(&w, m->data);
		text = json_write_done(&w, e) < 0 ? STR_LIT("(much)") : buf_str(&json);
	}
	if (buf_addf(to, e, "[%s] ", mcp_level_name(m->level)) < 0 ||
	    (m->logger.n &&
	     (clean_text(to, m->logger, CLEAN_LINE, 64, e) < 0 || buf_add(to, ": ", 2, e) < 0)))
		return -1;
	if (text.n > LOG_TEXT_MAX)
		text.n = LOG_TEXT_MAX;
	return clean_text(to, text, CLEAN_LINE, LOG_CHARS, e) < 0 ? -1 : buf_add(to, "\n", 1, e);
}

void offers_on_log(void *owner, const struct mcp_log_message *m)
{
	struct upstream_conn *k = owner;
	struct upstream_call *c = log_call(k, m->pending);
	autobuf struct buf line = BUF_INIT(4 * LOG_TEXT_MAX), bare = BUF_INIT(LOG_TEXT_MAX);
	struct err e;

	if (!k->of || log_line(&line, m, false, &e) < 0 || log_line(&bare, m, true, &e) < 0)
		return;
	upstream_heard(k->of, c || k->mixed ? buf_str(&bare) : buf_str(&line));
	if (!c || !c->on_log || m->level < c->level || c->logged >= LOG_CALL_BYTES)
		return;
	c->logged += line.n;
	c->on_log(c->owner, m);
}
