/* The methods that answer at once, and the table of all. */
#include <stdio.h>

#include "base/base64.h"
#include "base/log.h"
#include "json/utf8.h"
#include "mcp/core.h"

enum { NAME_SHOWN = 48 };

/* 0: answered, or will be. -1: the fault is the answer. */
typedef int method_fn(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
		      struct rpc_fault *ret_fault);

static int takes(const char *what, const char *type, const struct json_val *v, struct rpc_fault *f)
{
	return rpc_fault_set(f, RPC_INVALID_PARAMS, "%s takes %s, not %s", what, type,
			     json_type_name(json_type(v)));
}

/* --- initialize --- */

static int read_client(struct mcp_session *s, const struct json_val *params, struct rpc_fault *f)
{
	const struct json_val *info = json_get(params, "clientInfo");
	const struct json_val *caps = json_get(params, "capabilities");
	struct str name = json_str(json_get(info, "name"));
	struct str version = json_str(json_get(info, "version"));

	if (info && json_type(info) != JSON_OBJECT)
		return takes("clientInfo", "an object", info, f);
	if (caps && json_type(caps) != JSON_OBJECT)
		return takes("capabilities", "an object", caps, f);
	if (name.p)
		snprintf(s->client, sizeof(s->client), "%.*s/%.*s",
			 STR_ARG(utf8_cut(name, NAME_SHOWN)),
			 STR_ARG(utf8_cut(version, NAME_SHOWN)));
	return 0;
}

static void write_text_member(struct json_writer *w, const char *key, const char *text)
{
	if (!text)
		return;
	json_write_key(w, key);
	json_write_text(w, text);
}

static void write_server(struct json_writer *w, const struct mcp_profile *p,
			 const struct mcp_server_options *o)
{
	json_write_object(w);
	write_text_member(w, "protocolVersion", p->version);
	json_write_key(w, "capabilities");
	json_write_raw(w, STR_LIT("{\"tools\":{}}"));
	json_write_key(w, "serverInfo");
	json_write_object(w);
	write_text_member(w, "name", o->name);
	if (p->title)
		write_text_member(w, "title", o->title);
	write_text_member(w, "version", o->version);
	json_write_object_end(w);
	write_text_member(w, "instructions", o->instructions);
	if (o->meta) {
		json_write_key(w, "_meta");
		json_write_raw(w, str_of(o->meta));
	}
	json_write_object_end(w);
}

static int initialize(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
		      struct rpc_fault *f)
{
	const struct json_val *version = json_get(m->params, "protocolVersion");
	struct json_writer *w;

	if (s->profile)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "initialized already, with %s",
				     s->profile->version);
	if (json_type(version) != JSON_STR)
		return takes("protocolVersion", "a string", version, f);
	if (read_client(s, m->params, f) < 0)
		return -1;
	s->profile = mcp_profile_find(json_str(version));
	if (!s->profile)
		s->profile = mcp_profile_latest();
	log_info("mcp: client %s, revision %s", s->client, s->profile->version);
	w = mcp_out_begin(s);
	rpc_write_result(w, &m->id);
	write_server(w, s->profile, &s->server->o);
	rpc_write_end(w);
	mcp_out_end(s, from, &m->id);
	return 0;
}

/* --- ping --- */

static int ping(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
		struct rpc_fault *f)
{
	struct json_writer *w = mcp_out_begin(s);

	rpc_write_result(w, &m->id);
	json_write_object(w);
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_end(s, from, &m->id);
	return 0;
}

/* --- tools/list --- */

/* A cursor is the name of the last tool sent, so that it means the same when the list has changed
 * between two pages; base64 keeps clients from building on that. */
static void write_cursor(struct json_writer *w, const struct mcp_tool *last)
{
	json_write_key(w, "nextCursor");
	json_write_base64(w, str_of(last->name));
}

/* The index of the first tool behind the cursor. */
static int read_cursor(const struct json_val *cursor, const struct mcp_tool *const *tools, size_t n,
		       size_t *ret, struct rpc_fault *f)
{
	autobuf struct buf name = BUF_INIT(64);
	struct err e;

	*ret = 0;
	if (!cursor)
		return 0;
	if (json_type(cursor) != JSON_STR)
		return takes("cursor", "a string", cursor, f);
	if (base64_decode(&name, json_str(cursor), &e) == 0) {
		for (size_t i = 0; i < n; i++) {
			if (str_is(buf_str(&name), tools[i]->name)) {
				*ret = i + 1;
				return 0;
			}
		}
	}
	return rpc_fault_set(f, RPC_INVALID_PARAMS,
			     "cursor takes the nextCursor of an answer to tools/list");
}

static int tools_list(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
		      struct rpc_fault *f)
{
	const struct mcp_server_options *o = &s->server->o;
	const struct mcp_tool *const *tools;
	struct json_writer *w;
	size_t n = 0, i, end;

	tools = o->handler->tools(o->owner, s, &n);
	if (read_cursor(json_get(m->params, "cursor"), tools, n, &i, f) < 0)
		return -1;
	end = n - i > o->page ? i + o->page : n;
	w = mcp_out_begin(s);
	rpc_write_result(w, &m->id);
	json_write_object(w);
	json_write_key(w, "tools");
	json_write_array(w);
	for (; i < end; i++)
		mcp_write_tool(w, s->profile, tools[i]);
	json_write_array_end(w);
	if (end < n)
		write_cursor(w, tools[end - 1]);
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_end(s, from, &m->id);
	return 0;
}

/* --- the table --- */

static const struct method {
	const char *name;
	method_fn *run;
	bool always; /* before initialize too */
} methods[] = {
	{ "tools/call", mcp_call_start, false },
	{ "tools/list", tools_list, false },
	{ "ping", ping, true },
	{ "initialize", initialize, true },
};

static const struct method *find(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (str_is(name, methods[i].name))
			return &methods[i];
	}
	return NULL;
}

static int run(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
	       struct rpc_fault *f)
{
	const struct method *method = find(m->method);

	s->requests++;
	if (inflight_find(s->inflight, &m->id))
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "a request with this id is in flight");
	if (!method)
		return rpc_fault_set(f, RPC_METHOD_NOT_FOUND, "unknown method \"%.*s\"",
				     STR_ARG(utf8_cut(m->method, NAME_SHOWN)));
	if (!s->profile && !method->always)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "send initialize before %s",
				     method->name);
	if (json_type(m->params) == JSON_ARRAY)
		return takes("params", "an object", m->params, f);
	return method->run(s, from, m, f);
}

void mcp_request(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m)
{
	struct rpc_fault f;

	if (run(s, from, m, &f) < 0)
		mcp_send_fault(s, from, &m->id, &f);
}

/* --- notifications: those that we don't know mean nothing to us --- */

static void cancelled(struct mcp_session *s, const struct rpc_msg *m)
{
	struct inflight_entry *found;
	struct rpc_id id;

	if (!rpc_id_read(json_get(m->params, "requestId"), &id))
		return;
	found = inflight_find(s->inflight, &id);
	if (found)
		mcp_call_cancel((struct mcp_call *)found);
}

void mcp_notification(struct mcp_session *s, const struct rpc_msg *m)
{
	if (str_is(m->method, "notifications/cancelled"))
		cancelled(s, m);
	else
		log_debug("mcp: notification %.*s", STR_ARG(utf8_cut(m->method, NAME_SHOWN)));
}
