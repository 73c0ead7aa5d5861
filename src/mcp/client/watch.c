/*
 * Notifications of changes. Modern: one subscriptions/listen. It stays until another one has
 * replaced it, and is opened again when it ends. Legacy: resources are subscribed to one by one;
 * changes of lists come without asking. MCP 2026-07-28, basic/patterns/subscriptions; 2025-11-25,
 * server/resources.
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

#include "base/log.h"

enum {
	URIS_MAX = 1000,
	URI_MAX = 8192,
	FILTER_MAX = 16 << 20,
	DELAY_MS = 1000, /* before the next subscriptions/listen; doubled each time */
	DELAY_MAX_MS = 30 * 1000,
};

static void free_uris(char **uris, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(uris[i]);
	free(uris);
}

void mcp_watch_fini(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;

	free_uris(w->uris, w->n);
	for (size_t i = 0; i < w->on_n; i++)
		free(w->on[i].uri);
	free(w->on);
	free(w->stepping);
}

static const struct json_val *capability(const struct mcp_client *c, const char *key)
{
	return json_get(json_get(c->about, "capabilities"), key);
}

/* --- modern --- */

static struct mcp_pending *find_listen(const struct mcp_client *c, const struct rpc_id *id)
{
	struct mcp_pending *const listens[] = { c->watch.fresh, c->watch.live };

	for (size_t i = 0; i < ARRAY_LEN(listens); i++) {
		if (listens[i] && str_eq(rpc_id_str(&listens[i]->entry.id), rpc_id_str(id)))
			return listens[i];
	}
	return NULL;
}

/* Finds the listen that a notification names, else the one of its stream. */
static struct mcp_pending *listen_of(const struct mcp_client *c, struct mcp_pending *p,
				     const struct json_val *params)
{
	const struct json_val *said = json_get(json_get(params, "_meta"), MCP_META_SUBSCRIPTION);
	struct rpc_id id;

	if (!said && !p)
		return c->watch.live;
	if (!said)
		return p == c->watch.live || p == c->watch.fresh ? p : NULL;
	return rpc_id_read(said, &id) ? find_listen(c, &id) : NULL;
}

bool mcp_watch_takes(const struct mcp_client *c, const struct mcp_pending *p,
		     const struct json_val *params)
{
	return listen_of(c, (struct mcp_pending *)(uintptr_t)p, params) != NULL;
}

static void stop(struct mcp_pending *p)
{
	if (!p)
		return;
	p->done = NULL;
	mcp_pending_take_back(p, "it is not listened to any more");
	mcp_pending_end(p, NULL);
}

static int write_filter(const struct mcp_watch *watch, struct buf *to, struct err *e)
{
	static const struct {
		enum mcp_list list;
		const char *key;
	} lists[] = { { MCP_TOOLS, "toolsListChanged" },
		      { MCP_RESOURCES, "resourcesListChanged" },
		      { MCP_PROMPTS, "promptsListChanged" } };
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	json_put_object(&w, "notifications");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!(watch->lists & lists[i].list))
			continue;
		json_put_bool(&w, lists[i].key, true);
	}
	if (watch->n > 0) {
		json_put_array(&w, "resourceSubscriptions");
		for (size_t i = 0; i < watch->n; i++)
			json_write_text(&w, watch->uris[i]);
		json_write_array_end(&w);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static void again(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;

	w->delay_ms = w->delay_ms == 0		     ? DELAY_MS
		    : w->delay_ms < DELAY_MAX_MS / 2 ? 2 * w->delay_ms
						     : DELAY_MAX_MS;
	w->again_ms = mcp_client_now(c) + w->delay_ms;
}

static void listen_done(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	struct mcp_watch *w = &c->watch;
	bool was_live = p == w->live;
	char room[MCP_SAID_MAX];

	*(was_live ? &w->live : &w->fresh) = NULL;
	if (!mcp_client_lives(c))
		return;
	if (a->fault)
		log_warn("%s: subscriptions/listen: %.*s", c->o.label,
			 STR_ARG(mcp_said(json_str(json_get(a->fault, "message")), room)));
	if (a->fault && a->code == RPC_METHOD_NOT_FOUND)
		return; /* nor will it exist later */
	if (was_live && mcp_client_now(c) - p->begun_ms > DELAY_MAX_MS)
		w->delay_ms = 0;
	w->missed |= was_live;
	again(c);
}

static void listen(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;
	autobuf struct buf filter = BUF_INIT(FILTER_MAX);
	struct err e;

	w->again_ms = MCP_CLIENT_NEVER;
	stop(take_ptr(w->fresh));
	if (w->lists == 0 && w->n == 0) {
		stop(take_ptr(w->live));
		return;
	}
	if (write_filter(w, &filter, &e) == 0)
		w->fresh = mcp_pending_inner(c, "subscriptions/listen", buf_str(&filter),
					     listen_done);
	if (!w->fresh)
		again(c);
}

/* Reports a change of everything watched, since changes in between were missed. */
static void tell_missed(struct mcp_client *c)
{
	const struct mcp_client_handler *h = c->o.handler;

	if (c->watch.lists & MCP_TOOLS)
		mcp_tools_doubt(c);
	if (c->watch.lists && h->changed)
		h->changed(c->o.owner, c->watch.lists);
	for (size_t i = 0; mcp_client_lives(c) && i < c->watch.n && h->updated; i++) {
		/* the callback may change what is watched */
		autofree char *uri = strdup(c->watch.uris[i]);

		if (uri)
			h->updated(c->o.owner, str_of(uri));
	}
}

void mcp_watch_acknowledged(struct mcp_client *c, struct mcp_pending *p,
			    const struct json_val *params)
{
	struct mcp_watch *w = &c->watch;

	if (!p && !json_get(json_get(params, "_meta"), MCP_META_SUBSCRIPTION))
		p = w->fresh;
	else
		p = listen_of(c, p, params);
	if (!p || p != w->fresh) {
		c->strays++;
		return;
	}
	p->timeless = true;
	w->fresh = NULL;
	stop(take_ptr(w->live));
	w->live = p;
	if (w->missed) {
		w->missed = false;
		tell_missed(c);
	}
}

bool mcp_watch_ended(struct mcp_client *c, const struct rpc_id *id)
{
	struct mcp_pending *p = find_listen(c, id);
	const struct err e = { ERR_CANCELLED, "the server has ended it" };

	if (!p)
		return false;
	mcp_pending_fail(p, &e);
	return true;
}

uint64_t mcp_watch_due(const struct mcp_client *c)
{
	return c->watch.again_ms == MCP_CLIENT_NEVER ? UINT64_MAX : c->watch.again_ms;
}

void mcp_watch_tick(struct mcp_client *c, uint64_t now)
{
	if (mcp_watch_due(c) <= now)
		listen(c);
}

/* --- legacy --- */

static void step(struct mcp_client *c);

static int add_on(struct mcp_watch *w, char *uri)
{
	struct mcp_watched *more = realloc(w->on, (w->on_n + 1) * sizeof(*more));

	if (!more)
		return -1;
	w->on = more;
	w->on[w->on_n++] = (struct mcp_watched){ .uri = uri, .wanted = true };
	return 0;
}

static void subscribed(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	struct mcp_watch *w = &c->watch;
	char room[MCP_SAID_MAX];

	w->step = NULL;
	if (!mcp_client_lives(c))
		return;
	if (!a->result)
		log_warn("%s: %s: %.*s", c->o.label, p->method,
			 STR_ARG(a->e ? str_of(a->e->msg)
				      : mcp_said(json_str(json_get(a->fault, "message")), room)));
	else if (w->stepping && add_on(w, w->stepping) == 0)
		w->stepping = NULL;
	free(take_ptr(w->stepping));
	step(c);
}

static void request(struct mcp_client *c, const char *method, const char *uri)
{
	autobuf struct buf b = BUF_INIT(8 * URI_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_put_text(&w, "uri", uri);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		c->watch.step = mcp_pending_inner(c, method, buf_str(&b), subscribed);
}

static bool is_among(char *const *uris, size_t n, const char *uri)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(uris[i], uri) == 0)
			return true;
	}
	return false;
}

static bool is_on(const struct mcp_watch *w, const char *uri)
{
	for (size_t i = 0; i < w->on_n; i++) {
		if (strcmp(w->on[i].uri, uri) == 0)
			return true;
	}
	return false;
}

/* True if a request was sent. */
static bool unsubscribe(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;

	for (size_t i = 0; i < w->on_n; i++) {
		autofree char *uri = NULL;

		if (w->on[i].wanted)
			continue;
		uri = w->on[i].uri;
		w->on[i] = w->on[--w->on_n];
		request(c, "resources/unsubscribe", uri);
		return true;
	}
	return false;
}

/* Sends one request at a time; its answer sends the next. */
static void step(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;

	if (w->step || c->state != MCP_CLIENT_READY || unsubscribe(c))
		return;
	while (w->next < w->n && is_on(w, w->uris[w->next]))
		w->next++;
	if (w->next == w->n)
		return;
	free(w->stepping);
	w->stepping = strdup(w->uris[w->next]);
	request(c, "resources/subscribe", w->uris[w->next++]);
}

static bool tells_of_resources(const struct mcp_client *c)
{
	return json_bool(json_get(capability(c, "resources"), "subscribe"));
}

/* --- both --- */

static void send_level(struct mcp_client *c)
{
	autobuf struct buf b = BUF_INIT(64);
	struct err e;

	if (c->level < 0 || c->era != MCP_LEGACY || !capability(c, "logging"))
		return;
	if (buf_addf(&b, &e, "{\"level\":\"%s\"}", mcp_level_name((enum mcp_level)c->level)) == 0)
		mcp_pending_inner(c, "logging/setLevel", buf_str(&b), NULL);
}

static void watch_apply(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;

	if (!w->wanted)
		return;
	if (c->era == MCP_MODERN) {
		w->delay_ms = 0;
		listen(c);
		return;
	}
	w->next = tells_of_resources(c) ? 0 : w->n;
	for (size_t i = 0; i < w->on_n; i++)
		w->on[i].wanted = is_among(w->uris, w->n, w->on[i].uri);
	step(c);
}

void mcp_watch_apply(struct mcp_client *c)
{
	struct mcp_watch *w = &c->watch;

	/* the new session knows none of the earlier subscriptions */
	while (w->on_n > 0)
		free(w->on[--w->on_n].uri);
	send_level(c);
	watch_apply(c);
}

static char **copy_uris(const struct str *uris, size_t n, struct err *e)
{
	char **copy = calloc(n + 1, sizeof(*copy));

	for (size_t i = 0; copy && i < n; i++) {
		bool fits = uris[i].p && uris[i].n <= URI_MAX &&
			    !memchr(uris[i].p, '\0', uris[i].n);

		copy[i] = fits ? strndup(uris[i].p, uris[i].n) : NULL;
		if (copy[i])
			continue;
		free_uris(copy, i);
		if (fits)
			err_set(e, ERR_LIMIT, "out of memory");
		else
			err_set(e, ERR_INVALID, "a URI takes at most %d bytes, and no NUL",
				URI_MAX);
		return NULL;
	}
	if (!copy)
		err_set(e, ERR_LIMIT, "out of memory");
	return copy;
}

int mcp_client_watch(struct mcp_client *c, unsigned lists, const struct str *uris, size_t n,
		     struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	struct mcp_watch *w = &inside->watch;
	char **copy;

	if (n > URIS_MAX)
		return err_set(e, ERR_LIMIT, "at most %d resources are watched", URIS_MAX);
	if (c->state == MCP_CLIENT_READY && c->era == MCP_LEGACY && n > 0 && !tells_of_resources(c))
		return err_set(e, ERR_UNSUPPORTED, "the server does not tell of resources");
	copy = copy_uris(uris, n, e);
	if (!copy)
		return -1;
	free_uris(w->uris, w->n);
	w->uris = copy;
	w->n = n;
	w->lists = lists;
	w->wanted = true;
	w->missed = false;
	if (c->state == MCP_CLIENT_READY)
		watch_apply(c);
	return 0;
}

int mcp_client_set_level(struct mcp_client *c, enum mcp_level level, struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);

	if ((unsigned)level >= MCP_LEVELS)
		return err_set(e, ERR_INVALID, "there is no such level");
	if (inside->state == MCP_CLIENT_READY && c->era == MCP_LEGACY && !capability(c, "logging"))
		return err_set(e, ERR_UNSUPPORTED, "the server sends no log messages");
	c->level = (int)level;
	if (c->state == MCP_CLIENT_READY)
		send_level(c);
	return 0;
}
