/* The methods that answer at once, and how each method is served. */
#include <stdio.h>

#include "base/log.h"
#include "json/document/utf8.h"
#include "mcp/server/internal.h"

enum { NAME_SHOWN = 48, NOT_FOUND = 404, BAD_REQUEST = 400 };

/* --- the peers --- */

void mcp_put_client(char text[MCP_CLIENT_MAX], const struct json_val *info)
{
	struct str name = json_str(json_get(info, "name"));
	struct str version = json_str(json_get(info, "version"));

	text[0] = '\0';
	if (name.p)
		snprintf(text, MCP_CLIENT_MAX, "%.*s/%.*s", STR_ARG(utf8_cut(name, NAME_SHOWN)),
			 STR_ARG(utf8_cut(version, NAME_SHOWN)));
}

static bool session_has(const struct mcp_session *s, unsigned what)
{
	const struct mcp_server_options *o = &s->server->o;

	return !o->handler || !o->handler->has || (o->handler->has(o->owner, s) & what);
}

bool mcp_offers(const struct mcp_session *s, enum mcp_need need)
{
	const struct mcp_server_options *o = &s->server->o;
	const struct mcp_handler *h = o->handler;

	switch (need) {
	case MCP_NEEDS_NOTHING:
		return true;
	case MCP_NEEDS_TOOLS:
		return (h && h->tools) || o->offer.tools_n > 0;
	case MCP_NEEDS_RESOURCES:
		return (h && (h->resources || h->templates || h->read)) ||
		       o->offer.resources_n > 0 || o->offer.templates_n > 0;
	case MCP_NEEDS_SUBSCRIBE:
		return o->subscribe && session_has(s, MCP_HAS_SUBSCRIBE) &&
		       mcp_offers(s, MCP_NEEDS_RESOURCES);
	case MCP_NEEDS_PROMPTS:
		return ((h && h->prompts) || o->offer.prompts_n > 0) &&
		       session_has(s, MCP_HAS_PROMPTS);
	case MCP_NEEDS_COMPLETE:
		return h && h->complete;
	case MCP_NEEDS_LOGGING:
		return o->logging && session_has(s, MCP_HAS_LOGGING);
	case MCP_NEEDS_TASKS:
		return o->tasks;
	}
	return false;
}

static void put_list(struct json_writer *w, const struct mcp_session *s, const char *key,
		     enum mcp_need need, unsigned list)
{
	if (!mcp_offers(s, need))
		return;
	json_put_object(w, key);
	if (need == MCP_NEEDS_RESOURCES && mcp_offers(s, MCP_NEEDS_SUBSCRIBE))
		json_put_bool(w, "subscribe", true);
	if (mcp_changes(s) & list)
		json_put_bool(w, "listChanged", true);
	json_write_object_end(w);
}

static void put_empty(struct json_writer *w, const char *key)
{
	json_put_raw(w, key, STR_LIT("{}"));
}

static void put_extensions(struct json_writer *w, const struct mcp_server_options *o)
{
	if (!o->tasks && o->extensions_n == 0)
		return;
	json_put_object(w, "extensions");
	if (o->tasks)
		put_empty(w, MCP_EXTENSION_TASKS);
	for (size_t i = 0; i < o->extensions_n; i++) {
		json_put_raw(w, o->extensions[i].name, str_of(o->extensions[i].settings));
	}
	json_write_object_end(w);
}

static void put_capabilities(struct json_writer *w, const struct mcp_session *s,
			     const struct mcp_profile *p)
{
	const struct mcp_server *srv = s->server;

	json_put_object(w, "capabilities");
	put_list(w, s, "tools", MCP_NEEDS_TOOLS, MCP_TOOLS);
	put_list(w, s, "resources", MCP_NEEDS_RESOURCES, MCP_RESOURCES);
	put_list(w, s, "prompts", MCP_NEEDS_PROMPTS, MCP_PROMPTS);
	if (mcp_offers(s, MCP_NEEDS_COMPLETE) && p->annotations)
		put_empty(w, "completions");
	if (mcp_offers(s, MCP_NEEDS_LOGGING))
		put_empty(w, "logging");
	if (mcp_offers(s, MCP_NEEDS_TASKS) && p->old_tasks) {
		json_put_object(w, "tasks");
		if (mcp_tasks_are_listed(s))
			put_empty(w, "list");
		put_empty(w, "cancel");
		json_put_raw(w, "requests", STR_LIT("{\"tools\":{\"call\":{}}}"));
		json_write_object_end(w);
	}
	if (p->modern)
		put_extensions(w, &srv->o);
	json_write_object_end(w);
}

static void put_instructions(struct json_writer *w, struct mcp_session *s)
{
	const struct mcp_server_options *o = &s->server->o;

	mcp_put_text(w, "instructions",
		     o->handler && o->handler->instructions ? o->handler->instructions(o->owner, s)
							    : o->instructions);
}

/* --- initialize --- */

static void write_server(struct json_writer *w, struct mcp_session *s)
{
	const struct mcp_server *srv = s->server;
	const struct mcp_profile *p = s->profile;

	json_write_object(w);
	mcp_put_text(w, "protocolVersion", p->version);
	put_capabilities(w, s, p);
	json_write_key(w, "serverInfo");
	mcp_write_implementation(w, p, &srv->o);
	put_instructions(w, s);
	mcp_put_raw(w, "_meta", str_of(srv->o.meta));
	json_write_object_end(w);
}

static int methods_initialize(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct json_val *version = json_get(q->m->params, "protocolVersion");
	const struct json_val *info = json_get(q->m->params, "clientInfo");
	const struct json_val *caps = json_get(q->m->params, "capabilities");
	struct mcp_session *s = q->s;
	const struct mcp_profile *p;
	struct json_writer *w;

	if (s->profile)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "initialized already, with %s",
				     s->profile->version);
	if (json_type(version) != JSON_STR)
		return mcp_takes("protocolVersion", "a string", version, f);
	if (info && json_type(info) != JSON_OBJECT)
		return mcp_takes("clientInfo", "an object", info, f);
	if (caps && json_type(caps) != JSON_OBJECT)
		return mcp_takes("capabilities", "an object", caps, f);
	mcp_put_client(s->client, info);
	s->can = mcp_read_capabilities(caps);
	p = mcp_profile_find(json_str(version));
	s->profile = p && !p->modern ? p : mcp_profile_latest();
	log_info("mcp: client %s, revision %s", s->client, s->profile->version);
	w = mcp_out_begin(s->server);
	rpc_write_result(w, &q->m->id);
	write_server(w, s);
	rpc_write_end(w);
	mcp_out_answer(s, q->in, &q->m->id);
	return 0;
}

/* --- server/discover --- */

static int discover(const struct mcp_request *q, struct rpc_fault *f)
{
	const struct mcp_server *srv = q->s->server;
	struct json_writer *w = mcp_answer_begin(q);

	json_write_key(w, "supportedVersions");
	mcp_write_versions(w);
	put_capabilities(w, q->s, q->profile);
	put_instructions(w, q->s);
	mcp_write_cache(w, q->profile, srv->o.ttl_ms, srv->o.cache_public);
	json_put_object(w, "_meta");
	mcp_write_members(w, str_of(srv->o.meta));
	json_write_key(w, MCP_META_SERVER);
	mcp_write_implementation(w, q->profile, &srv->o);
	json_write_object_end(w);
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_answer(q->s, q->in, &q->m->id);
	return 0;
}

/* --- ping, logging/setLevel --- */

struct json_writer *mcp_answer_begin(const struct mcp_request *q)
{
	struct json_writer *w = mcp_out_begin(q->s->server);

	rpc_write_result(w, &q->m->id);
	mcp_result_open(w, q->profile);
	return w;
}

int mcp_answer_end(const struct mcp_request *q, struct json_writer *w)
{
	mcp_result_close(w, q->s->server, q->profile, STR_NONE);
	rpc_write_end(w);
	mcp_out_answer(q->s, q->in, &q->m->id);
	return 0;
}

int mcp_answer_empty(const struct mcp_request *q)
{
	return mcp_answer_end(q, mcp_answer_begin(q));
}

static int ping(const struct mcp_request *q, struct rpc_fault *f)
{
	return mcp_answer_empty(q);
}

static int set_level(const struct mcp_request *q, struct rpc_fault *f)
{
	int level = mcp_level_find(json_str(json_get(q->m->params, "level")));

	if (level < 0)
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "level takes debug, info, notice, warning, error, critical, "
				     "alert or emergency");
	q->s->level = (unsigned)level;
	return mcp_answer_empty(q);
}

/* --- the table --- */

static const struct mcp_served served[MCP_METHODS] = {
	[MCP_METHOD_TOOLS_CALL] = { mcp_tools_call, MCP_NEEDS_TOOLS },
	[MCP_METHOD_TOOLS_LIST] = { mcp_tools_list, MCP_NEEDS_TOOLS },
	[MCP_METHOD_RESOURCES_READ] = { mcp_resources_read, MCP_NEEDS_RESOURCES },
	[MCP_METHOD_RESOURCES_LIST] = { mcp_resources_list, MCP_NEEDS_RESOURCES },
	[MCP_METHOD_TEMPLATES_LIST] = { mcp_templates_list, MCP_NEEDS_RESOURCES },
	[MCP_METHOD_PROMPTS_GET] = { mcp_prompts_get, MCP_NEEDS_PROMPTS },
	[MCP_METHOD_PROMPTS_LIST] = { mcp_prompts_list, MCP_NEEDS_PROMPTS },
	[MCP_METHOD_COMPLETE] = { mcp_complete, MCP_NEEDS_COMPLETE },
	[MCP_METHOD_DISCOVER] = { discover },
	[MCP_METHOD_LISTEN] = { mcp_listen_start },
	[MCP_METHOD_SUBSCRIBE] = { mcp_subscribe, MCP_NEEDS_SUBSCRIBE },
	[MCP_METHOD_UNSUBSCRIBE] = { mcp_unsubscribe, MCP_NEEDS_SUBSCRIBE },
	[MCP_METHOD_SET_LEVEL] = { set_level, MCP_NEEDS_LOGGING },
	[MCP_METHOD_PING] = { ping, .always = true },
	[MCP_METHOD_INITIALIZE] = { methods_initialize, .always = true },
	[MCP_METHOD_TASKS_GET] = { mcp_tasks_get, MCP_NEEDS_TASKS },
	[MCP_METHOD_TASKS_UPDATE] = { mcp_tasks_update, MCP_NEEDS_TASKS },
	[MCP_METHOD_TASKS_CANCEL] = { mcp_tasks_cancel, MCP_NEEDS_TASKS },
	[MCP_METHOD_TASKS_RESULT] = { mcp_tasks_result, MCP_NEEDS_TASKS },
	[MCP_METHOD_TASKS_LIST] = { mcp_tasks_list, MCP_NEEDS_TASKS },
};

/* The profile by which a message is served: that of its own revision, else the session's. */
static int read_request(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_msg *m,
			struct mcp_request *q, struct rpc_fault *f)
{
	*q = (struct mcp_request){
		.s = s, .in = in, .m = m, .meta = in->meta, .profile = in->profile, .can = s->can
	};
	if (json_type(m->params) == JSON_ARRAY)
		return mcp_takes("params", "an object", m->params, f);
	if (in->is_batch)
		mcp_meta_read(m->params, &q->meta);
	if (q->meta.all && json_type(q->meta.all) != JSON_OBJECT)
		return mcp_takes("_meta", "an object", q->meta.all, f);
	if (q->profile)
		q->can = mcp_read_capabilities(q->meta.capabilities);
	else
		q->profile = s->profile;
	return 0;
}

static int methods_run(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_msg *m,
		       struct rpc_fault *f)
{
	const struct mcp_method *method = mcp_method_find(m->method);
	const struct mcp_profile *p = in->profile ? in->profile : s->profile;
	struct mcp_request q;

	s->requests++;
	if (inflight_find(&s->inflight, &m->id))
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "a request with this id is in flight");
	if (!method || !mcp_method_in(method, p) || !mcp_offers(s, served[method->id].needs)) {
		rpc_fault_set(f, RPC_METHOD_NOT_FOUND, "unknown method \"%.*s\"",
			      STR_ARG(mcp_shown(m->method)));
		f->status = in->profile ? NOT_FOUND : 0;
		return -1;
	}
	if (!p && !served[method->id].always)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "send initialize before %s",
				     method->name);
	if (read_request(s, in, m, &q, f) < 0)
		return -1;
	return served[method->id].run(&q, f);
}

void mcp_serve_request(struct mcp_session *s, struct mcp_inbound *in, const struct rpc_msg *m)
{
	struct rpc_fault f;

	if (methods_run(s, in, m, &f) < 0)
		mcp_send_fault(s, in, &m->id, &f);
}

/* --- notifications: unknown ones are ignored --- */

static void methods_cancelled(struct mcp_session *s, const struct rpc_msg *m)
{
	struct inflight_entry *found;
	struct rpc_id id;

	if (!rpc_id_read(json_get(m->params, "requestId"), &id))
		return;
	found = inflight_find(&s->inflight, &id);
	if (found)
		mcp_call_cancel((struct mcp_call *)found);
}

void mcp_serve_notification(struct mcp_session *s, const struct rpc_msg *m)
{
	if (str_is(m->method, "notifications/cancelled"))
		methods_cancelled(s, m);
	else
		log_debug("mcp: notification %.*s", STR_ARG(mcp_shown(m->method)));
}
