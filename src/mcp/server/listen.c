/*
 * Notifications of changes. A modern client opens subscriptions/listen, a call that lasts until
 * either side ends it; its filter is read from its request each time, since the call keeps that. A
 * legacy client is notified of lists without asking, and names resources with resources/subscribe.
 */
#include <stdio.h>
#include <stdlib.h>

#include "mcp/server/internal.h"

enum {
	URI_MAX = 8192,
	FILTER_MAX = 1 << 20, /* bytes of the request of a listen */
	BAD_REQUEST = 400,
};

static const struct {
	enum mcp_list list;
	enum mcp_need needs;
	const char *key, *method;
} lists[] = {
	{ MCP_TOOLS, MCP_NEEDS_TOOLS, "toolsListChanged", "notifications/tools/list_changed" },
	{ MCP_PROMPTS, MCP_NEEDS_PROMPTS, "promptsListChanged",
	  "notifications/prompts/list_changed" },
	{ MCP_RESOURCES, MCP_NEEDS_RESOURCES, "resourcesListChanged",
	  "notifications/resources/list_changed" },
};

struct mcp_listen {
	struct mcp_listen *next; /* in the session */
	struct mcp_call *call;
	unsigned lists;
	const struct json_val *uris, *tasks; /* arrays of strings; NULL: none */
};

static void tell_watched(const struct mcp_server *srv)
{
	if (srv->o.handler && srv->o.handler->watched)
		srv->o.handler->watched(srv->o.owner);
}

/* --- what is sent --- */

/* Begins a notification with {"_meta":{subscriptionId}; the object stays open. */
static struct json_writer *open_params(const struct mcp_listen *l, const char *method)
{
	struct json_writer *w = mcp_out_begin(l->call->server);

	rpc_write_notification(w, method);
	json_write_object(w);
	json_put_object(w, "_meta");
	json_put_raw(w, MCP_META_SUBSCRIPTION, rpc_id_str(&l->call->entry.id));
	json_write_object_end(w);
	return w;
}

static void close_params(const struct mcp_listen *l, struct json_writer *w)
{
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_notify(l->call->session, l->call->in->stream);
}

/* Leaves out tasks that the client may not see, as if they did not exist. */
static void write_tasks(struct json_writer *w, const struct mcp_listen *l)
{
	struct json_iter it = json_iter(l->tasks);

	if (!l->tasks)
		return;
	json_put_array(w, "taskIds");
	while (json_next(&it)) {
		if (mcp_task_is_seen(l->call->session, json_str(it.val)))
			json_write_val(w, it.val);
	}
	json_write_array_end(w);
}

static void acknowledge(const struct mcp_listen *l)
{
	struct json_writer *w = open_params(l, "notifications/subscriptions/acknowledged");

	json_put_object(w, "notifications");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!(l->lists & lists[i].list))
			continue;
		json_put_bool(w, lists[i].key, true);
	}
	if (l->uris)
		json_put_val(w, "resourceSubscriptions", l->uris);
	write_tasks(w, l);
	json_write_object_end(w);
	close_params(l, w);
}

/* --- subscriptions/listen --- */

static void listen_unlist(struct mcp_listen *l)
{
	struct mcp_session *s = l->call->session;
	struct mcp_listen **at = &s->listens;
	bool watched = l->uris != NULL;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	s->listening--;
	free(l);
	if (watched)
		tell_watched(s->server);
}

static void listen_cancelled(struct mcp_call *c)
{
	listen_unlist(c->inner);
	mcp_call_drop(c);
}

static void listen_end(struct mcp_listen *l)
{
	struct mcp_call *c = l->call;
	struct json_writer *w = mcp_call_result_begin(c);

	mcp_result_open(w, c->profile);
	json_put_object(w, "_meta");
	json_put_raw(w, MCP_META_SUBSCRIPTION, rpc_id_str(&c->entry.id));
	json_write_raw(w, str_of(c->server->info));
	json_write_object_end(w);
	json_write_object_end(w);
	listen_unlist(l);
	mcp_call_result_end(c);
}

void mcp_listens_end(struct mcp_session *s)
{
	while (!s->closed && s->listens)
		listen_end(s->listens);
}

static int read_names(const struct json_val *filter, const char *key, size_t max,
		      const struct json_val **ret, struct rpc_fault *f)
{
	const struct json_val *names = json_get(filter, key);
	struct json_iter it = json_iter(names);

	if (names && json_type(names) != JSON_ARRAY)
		return mcp_takes(key, "an array of strings", names, f);
	if (json_len(names) > max)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "%s takes at most %zu", key, max);
	while (json_next(&it)) {
		if (json_type(it.val) != JSON_STR)
			return mcp_takes(key, "an array of strings", it.val, f);
	}
	*ret = names;
	return 0;
}

static int lacks_tasks(struct rpc_fault *f)
{
	rpc_fault_set(f, MCP_MISSING_CAPABILITY, "taskIds needs the extension %s of the client",
		      MCP_EXTENSION_TASKS);
	f->status = BAD_REQUEST;
	f->reason = err_info(ERR_CLIENT_CANT);
	snprintf(f->data, sizeof(f->data),
		 "{\"requiredCapabilities\":{\"extensions\":{\"%s\":{}}}}", MCP_EXTENSION_TASKS);
	return -1;
}

static int read_filter(const struct mcp_request *q, struct mcp_listen *l, struct rpc_fault *f)
{
	const struct json_val *filter = json_get(q->m->params, "notifications");
	const struct mcp_server *srv = q->s->server;
	size_t max = srv->o.subscriptions_max;

	if (json_type(filter) != JSON_OBJECT)
		return mcp_takes("notifications", "an object", filter, f);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const struct json_val *wanted = json_get(filter, lists[i].key);

		if (wanted && json_type(wanted) != JSON_BOOL)
			return mcp_takes(lists[i].key, "a boolean", wanted, f);
		if (json_bool(wanted) && (mcp_changes(q->s) & lists[i].list) &&
		    mcp_offers(q->s, lists[i].needs))
			l->lists |= lists[i].list;
	}
	if (read_names(filter, "resourceSubscriptions", max, &l->uris, f) < 0 ||
	    read_names(filter, "taskIds", max, &l->tasks, f) < 0)
		return -1;
	if (!mcp_offers(q->s, MCP_NEEDS_SUBSCRIBE))
		l->uris = NULL;
	if (!mcp_offers(q->s, MCP_NEEDS_TASKS))
		l->tasks = NULL;
	return l->tasks && !(q->can & MCP_CAN_TASKS) ? lacks_tasks(f) : 0;
}

int mcp_listen_start(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_session *s = q->s;
	autofree struct mcp_listen *l = calloc(1, sizeof(*l));
	bool watched;

	if (s->listening >= s->server->o.listens_max)
		return mcp_over_limit(f, "one listen too many", s->server->o.listens_max);
	if (json_footprint(q->in->doc) > FILTER_MAX)
		return mcp_over_limit(f, "bytes of a listen", FILTER_MAX);
	if (!l)
		return mcp_over_limit(f, "out of memory", 0);
	if (read_filter(q, l, f) < 0)
		return -1;
	l->call = mcp_call_begin(q, MCP_CALL_INNER, f);
	if (!l->call)
		return -1;
	l->call->inner = l;
	l->call->inner_cancel = listen_cancelled;
	l->next = s->listens;
	s->listens = l;
	s->listening++;
	watched = l->uris != NULL;
	acknowledge(take_ptr(l));
	if (watched)
		tell_watched(s->server);
	return 0;
}

/* --- resources/subscribe and resources/unsubscribe: what a legacy session watches --- */

/* Owned URIs. They are searched one by one, as every update must do anyway. */
struct mcp_uris {
	size_t n, room;
	char *p[];
};

static size_t uris_find(const struct mcp_uris *u, struct str uri)
{
	size_t i = 0;

	while (u && i < u->n && !str_is(uri, u->p[i]))
		i++;
	return i;
}

static bool uris_has(const struct mcp_uris *u, struct str uri)
{
	return u && uris_find(u, uri) < u->n;
}

void mcp_uris_free(struct mcp_uris *u)
{
	for (size_t i = 0; u && i < u->n; i++)
		free(u->p[i]);
	free(u);
}

static int uris_add(struct mcp_session *s, struct str uri)
{
	struct mcp_uris *u = s->watched;

	if (!u || u->n == u->room) {
		size_t n = u ? u->n : 0, room = n > 0 ? n * 2 : 4;

		u = realloc(u, sizeof(*u) + room * sizeof(u->p[0]));
		if (!u)
			return -1;
		u->n = n;
		u->room = room;
		s->watched = u;
	}
	u->p[u->n] = strndup(uri.p, uri.n);
	if (!u->p[u->n])
		return -1;
	u->n++;
	return 0;
}

static int read_uri(const struct mcp_request *q, struct str *ret, struct rpc_fault *f)
{
	const struct json_val *uri = json_get(q->m->params, "uri");

	*ret = json_str(uri);
	if (json_type(uri) != JSON_STR)
		return mcp_takes("uri", "a string", uri, f);
	if (ret->n > URI_MAX || memchr(ret->p, '\0', ret->n))
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "uri takes at most %d bytes, and no NUL", URI_MAX);
	return 0;
}

int mcp_subscribe(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_session *s = q->s;
	struct str uri;

	if (read_uri(q, &uri, f) < 0)
		return -1;
	if (!uris_has(s->watched, uri)) {
		if (s->watched && s->watched->n >= s->server->o.subscriptions_max)
			return mcp_over_limit(f, "one subscription too many",
					      s->server->o.subscriptions_max);
		if (uris_add(s, uri) < 0)
			return mcp_over_limit(f, "out of memory", 0);
		tell_watched(s->server);
	}
	return mcp_answer_empty(q);
}

int mcp_unsubscribe(const struct mcp_request *q, struct rpc_fault *f)
{
	struct mcp_uris *u = q->s->watched;
	struct str uri;

	if (read_uri(q, &uri, f) < 0)
		return -1;
	if (uris_has(u, uri)) {
		size_t i = uris_find(u, uri);

		free(u->p[i]);
		u->p[i] = u->p[--u->n];
		tell_watched(q->s->server);
	}
	return mcp_answer_empty(q);
}

/* --- changes --- */

static void tell_changed(struct mcp_session *s, unsigned list, const char *method)
{
	struct json_writer *w;

	if (s->profile) {
		w = mcp_out_begin(s->server);
		rpc_write_notification(w, method);
		json_write_object(w);
		json_write_object_end(w);
		rpc_write_end(w);
		mcp_out_notify(s, NULL);
	}
	for (struct mcp_listen *l = s->listens; l; l = l->next) {
		if (l->lists & list)
			close_params(l, open_params(l, method));
	}
}

unsigned mcp_changes(const struct mcp_session *s)
{
	const struct mcp_server_options *o = &s->server->o;

	return o->handler && o->handler->changes ? o->changes & o->handler->changes(o->owner, s)
						 : o->changes;
}

void mcp_server_changed(struct mcp_server *srv, unsigned changed)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		if (!(changed & lists[i].list))
			continue;
		for (struct mcp_session *s = srv->sessions; s; s = s->next) {
			if ((mcp_changes(s) & lists[i].list) && mcp_offers(s, lists[i].needs))
				tell_changed(s, lists[i].list, lists[i].method);
		}
	}
}

static bool names(const struct json_val *array, struct str name)
{
	struct json_iter it = json_iter(array);

	while (json_next(&it)) {
		if (str_eq(json_str(it.val), name))
			return true;
	}
	return false;
}

static void write_uri(struct json_writer *w, struct str uri)
{
	json_put_str(w, "uri", uri);
}

static bool session_watches(const struct mcp_session *s, struct str uri)
{
	bool found = uris_has(s->watched, uri);

	for (const struct mcp_listen *l = s->listens; l && !found; l = l->next)
		found = names(l->uris, uri);
	return found;
}

static void tell_updated(struct mcp_session *s, struct str uri)
{
	static const char method[] = "notifications/resources/updated";
	const struct mcp_server_options *o = &s->server->o;
	struct json_writer *w;

	if (!session_watches(s, uri) ||
	    (o->handler && o->handler->hears && !o->handler->hears(o->owner, s, uri)))
		return;
	if (uris_has(s->watched, uri)) {
		w = mcp_out_begin(s->server);
		rpc_write_notification(w, method);
		json_write_object(w);
		write_uri(w, uri);
		json_write_object_end(w);
		rpc_write_end(w);
		mcp_out_notify(s, NULL);
	}
	for (struct mcp_listen *l = s->listens; l; l = l->next) {
		if (!names(l->uris, uri))
			continue;
		w = open_params(l, method);
		write_uri(w, uri);
		close_params(l, w);
	}
}

void mcp_server_updated(struct mcp_server *srv, struct str uri)
{
	for (struct mcp_session *s = srv->sessions; s; s = s->next)
		tell_updated(s, uri);
}

void mcp_server_each_watched(struct mcp_server *srv,
			     void (*each)(void *data, struct mcp_session *s, struct str uri),
			     void *data)
{
	for (struct mcp_session *s = srv->sessions; s; s = s->next) {
		for (size_t i = 0; s->watched && i < s->watched->n; i++)
			each(data, s, str_of(s->watched->p[i]));
		for (struct mcp_listen *l = s->listens; l; l = l->next) {
			for (struct json_iter it = json_iter(l->uris); json_next(&it);)
				each(data, s, json_str(it.val));
		}
	}
}

void mcp_listen_task(struct mcp_server *srv, struct str task_id, const char *method,
		     void (*write)(struct json_writer *w, void *data), void *data)
{
	for (struct mcp_session *s = srv->sessions; s; s = s->next) {
		for (struct mcp_listen *l = s->listens; l; l = l->next) {
			struct json_writer *w;

			if (!names(l->tasks, task_id) || !mcp_task_is_seen(s, task_id))
				continue;
			w = open_params(l, method);
			write(w, data);
			close_params(l, w);
		}
	}
}
