/*
 * Each line becomes a message. If it needs an answer, it is also a call, which is the transport's
 * request. A call ends by an answer, a failure or a cancellation; the client is told of the first
 * two.
 */
#include <stdlib.h>

#include "base/log.h"
#include "json/document/put.h"
#include "mcp/message/protocol.h"
#include "mcp/message/header_text.h"
#include "mcp/connect/internal.h"

enum { ANSWER_MAX = 64 << 20, OWN_MAX = 1 << 20, PAGES_MAX = 100 };

static const struct err no_memory = { ERR_LIMIT, "out of memory" };

void relay_call_free(struct relay_call *c)
{
	struct mcp_relay *r = c->r;

	*c->at = c->next;
	if (c->next)
		c->next->at = c->at;
	for (struct relay_call *p = r->calls; p; p = p->next) {
		if (p->caller == c)
			p->caller = NULL;
	}
	free(c->text);
	free(c);
}

/* text: kept to be sent again; STR_NONE: it is not. */
static struct relay_call *call_new(struct mcp_relay *r, struct str text)
{
	struct relay_call *c = calloc(1, sizeof(*c));
	char *copy = c && text.p ? mem_dup(text.p, text.n) : NULL;

	if (!c || (text.p && !copy)) {
		free(c);
		return NULL;
	}
	*c = (struct relay_call){
		.r = r, .text = copy, .n = text.n, .next = r->calls, .at = &r->calls
	};
	if (c->next)
		c->next->at = &c->next;
	r->calls = c;
	return c;
}

static struct relay_call *call_find(const struct mcp_relay *r, const struct rpc_id *id)
{
	struct relay_call *c = id->n > 0 ? r->calls : NULL;

	while (c && (c->ours || !str_eq(rpc_id_str(&c->id), rpc_id_str(id))))
		c = c->next;
	return c;
}

static void put_failure(struct mcp_relay *r, const struct rpc_id *id, const struct err *e)
{
	struct rpc_fault f;

	log_info("mcp relay: %s", e->msg);
	rpc_fault_set(&f, RPC_INTERNAL_ERROR, "%s", e->msg);
	f.reason = err_info(e->code);
	relay_put_fault(r, id, &f);
}

/* --- to the server --- */

static char *header_text(struct str s)
{
	struct err e;

	return s.p ? mcp_header_encode(s, &e) : NULL;
}

static struct str version_of(const struct rpc_msg *m)
{
	return json_str(json_get(json_get(m->params, "_meta"), MCP_META_VERSION));
}

/* Headers beside a modern message. A value that can't be encoded is left out, and the server will
 * miss it. */
static void set_modern(const struct mcp_relay *r, struct mcp_client_out *out,
		       const struct rpc_msg *m, struct str version)
{
	const struct mcp_method *row = mcp_method_find(m->method);
	struct str name = row && row->named ? json_str(json_get(m->params, row->named)) : STR_NONE;
	struct err e = ERR_INIT;

	out->modern = true;
	out->version = header_text(version);
	out->method = m->method;
	out->name = header_text(name);
	if (str_is(m->method, "tools/call") &&
	    mcp_head_params(out, relay_tools_find(r, name), json_get(m->params, "arguments"), &e) <
		    0)
		log_warn("mcp relay: %s", e.msg);
}

/* m NULL: a batch. c NULL: no answer is expected. */
static void send_message(struct mcp_relay *r, struct relay_call *c, struct str text,
			 const struct rpc_msg *m)
{
	struct str version = m && m->kind != RPC_RESPONSE ? version_of(m) : STR_NONE;
	struct mcp_client_out out = { .text = text,
				      .kind = c ? MCP_OUT_REQUEST : MCP_OUT_NOTIFICATION };
	bool sent;

	if (version.p) {
		set_modern(r, &out, m, version);
	} else {
		out.version = c && c->is_initialize ? NULL : r->version;
		out.is_initialize = c && c->is_initialize;
		out.opens_stream = m && m->kind == RPC_NOTIFICATION &&
				   str_is(m->method, "notifications/initialized");
	}
	sent = mcp_fetch_send(r->fetch, &out, c);
	mcp_head_release(&out);
	if (version.p)
		free((void *)(uintptr_t)out.version);
	if (!sent && c)
		relay_events.failed(r, c, false, &no_memory);
}

/* Sends a message that was sent before, or one of our own. */
static void send_kept(struct relay_call *c)
{
	struct str text = { c->text, c->n };
	AUTO(json_free) struct json_doc *doc = NULL;
	struct rpc_fault f;
	struct rpc_id id;
	struct rpc_msg m;
	bool silent;

	if (rpc_parse(text, NULL, &doc, &f, &id) < 0 ||
	    rpc_read(json_root(doc), &m, &f, &silent) < 0) {
		relay_events.failed(c->r, c, false, &no_memory);
		return;
	}
	c->id = m.id;
	send_message(c->r, c, text, &m);
}

/* --- the session --- */

static void reopening_failed(struct mcp_relay *r, const struct err *why)
{
	struct err e = *why;

	err_wrap(&e, "the server could not open a new session");
	r->session = RELAY_SESSION_LOST;
	mcp_fetch_fail_held(r->fetch, &e);
}

/* Opens it with the client's own initialize. */
static void reopen(struct mcp_relay *r)
{
	struct relay_call *c;

	c = r->init_text ? call_new(r, (struct str){ r->init_text, r->init_n }) : NULL;
	if (!c) {
		reopening_failed(r, &no_memory);
		return;
	}
	c->ours = c->is_initialize = true;
	r->session = RELAY_SESSION_OPENS;
	send_kept(c);
}

static void on_session_lost(void *owner, void *request)
{
	struct mcp_relay *r = owner;

	if (r->session != RELAY_SESSION_OPENS)
		reopen(r);
}

/* Handles the answer to an initialize. */
static void opened(struct mcp_relay *r, struct relay_call *c, const struct rpc_msg *m)
{
	static const struct str text =
		STR_LIT("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	const struct rpc_msg initialized = { .kind = RPC_NOTIFICATION,
					     .method = STR_LIT("notifications/initialized") };
	static const struct err refused = { ERR_TRANSPORT, "it refused" };
	char *version = header_text(json_str(json_get(m->result, "protocolVersion")));

	r->session = m->result ? RELAY_SESSION_OPEN : RELAY_SESSION_NONE;
	if (version) {
		free(r->version);
		r->version = version;
	}
	if (m->result && !c->ours) {
		free(r->init_text);
		r->init_text = take_ptr(c->text);
		r->init_n = c->n;
	} else if (m->result) {
		send_message(r, NULL, text, &initialized);
	} else if (c->ours) {
		reopening_failed(r, &refused);
	}
}

/* --- headers that the server misses --- */

/* The caller's _meta, without members about its request alone. */
static void write_meta(struct json_writer *w, const struct json_val *meta)
{
	struct json_iter it = json_iter(meta);

	json_write_object(w);
	while (json_next(&it)) {
		if (str_is(it.key, "progressToken"))
			continue;
		json_write_key_str(w, it.key);
		json_write_val(w, it.val);
	}
	json_write_object_end(w);
}

static int write_list(struct buf *to, const struct json_val *meta, struct str cursor, struct err *e)
{
	struct json_writer w = json_writer(to);

	rpc_write_request(&w, 0, "tools/list");
	json_write_object(&w);
	json_write_key(&w, "_meta");
	write_meta(&w, meta);
	if (cursor.p)
		json_put_str(&w, "cursor", cursor);
	json_write_object_end(&w);
	rpc_write_end(&w);
	return json_write_done(&w, e);
}

static bool ask_list(struct mcp_relay *r, struct relay_call *caller, struct str cursor)
{
	autobuf struct buf text = BUF_INIT(OWN_MAX);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct relay_call *c;
	struct err e;

	doc = json_parse((struct str){ caller->text, caller->n }, NULL, &e);
	if (!doc || write_list(&text, json_get(json_get(json_root(doc), "params"), "_meta"), cursor,
			       &e) < 0)
		return false;
	c = call_new(r, buf_str(&text));
	if (!c)
		return false;
	c->ours = c->lists = true;
	c->caller = caller;
	send_kept(c);
	return true;
}

/* MCP 2026-07-28, basic/transports/streamable-http: retried once, after the list was read. */
static bool refreshes(struct mcp_relay *r, struct relay_call *c, const struct rpc_msg *m)
{
	int64_t code = 0;

	if (c->is_initialize || !c->text || c->refreshed ||
	    !json_int64(json_get(m->error, "code"), &code) || code != MCP_HEADER_MISMATCH)
		return false;
	c->refreshed = true;
	return ask_list(r, c, STR_NONE);
}

/* A page of a list of our own; m NULL: it failed. */
static void listed(struct mcp_relay *r, struct relay_call *c, const struct rpc_msg *m)
{
	struct relay_call *caller = take_ptr(c->caller);
	struct str next = m ? json_str(json_get(m->result, "nextCursor")) : STR_NONE;

	relay_call_free(c);
	if (!caller)
		return;
	if (next.n == 0 || ++caller->pages > PAGES_MAX || !ask_list(r, caller, next))
		send_kept(caller);
}

/* --- from the server --- */

/* An error without a request's id answers the request on whose stream it came. */
static void put_error(struct mcp_relay *r, const struct rpc_id *id, const struct json_val *error)
{
	autobuf struct buf text = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&text);
	struct err e = ERR_INIT;

	json_write_object(&w);
	json_put_text(&w, "jsonrpc", "2.0");
	json_put_raw(&w, "id", rpc_id_str(id));
	json_put_val(&w, "error", error);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		relay_put_line(r, buf_str(&text));
	else
		put_failure(r, id, &e);
}

/* Frees c, unless it is sent again. */
static void take_answer(struct mcp_relay *r, struct relay_call *c, struct str text,
			const struct rpc_msg *m)
{
	if (c->lists && m->result)
		relay_tools_learn(r, m->result);
	if (c->ours && c->lists) {
		listed(r, c, m);
		return;
	}
	if (!c->ours && m->error && refreshes(r, c, m))
		return;
	if (c->is_initialize)
		opened(r, c, m);
	if (!c->ours && m->id.n > 0)
		relay_put_line(r, text);
	else if (!c->ours)
		put_error(r, &c->id, m->error);
	relay_call_free(c);
}

/* True if nothing more will come for c. */
static bool take_of_batch(struct relay_call *c, struct str text, size_t n)
{
	relay_put_line(c->r, text);
	c->left -= n < c->left ? n : c->left;
	if (c->left > 0)
		return false;
	relay_call_free(c);
	return true;
}

static bool take_response(struct mcp_relay *r, struct relay_call *asked, struct str text,
			  const struct rpc_msg *m)
{
	bool mine = asked && asked->id.n > 0 &&
		    (m->id.n == 0 || str_eq(rpc_id_str(&m->id), rpc_id_str(&asked->id)));
	struct relay_call *c = mine ? asked : call_find(r, &m->id);

	if (!c && asked && asked->id.n == 0)
		return take_of_batch(asked, text, 1);
	if (!c) {
		log_debug("mcp relay: an answer to nothing, or to what was cancelled, is dropped");
		return false;
	}
	if (c != asked)
		mcp_fetch_let_go(r->fetch, c);
	take_answer(r, c, text, m);
	return mine;
}

static size_t responses_in(const struct json_val *batch)
{
	struct json_iter it = json_iter(batch);
	size_t n = 0;

	while (json_next(&it))
		n += !json_get(it.val, "method");
	return n;
}

static bool on_message(void *owner, void *request, struct str text)
{
	const struct json_options any = { .bytes = ANSWER_MAX, .values = 1 << 24, .depth = 256 };
	struct mcp_relay *r = owner;
	struct relay_call *c = request;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct rpc_fault f;
	struct rpc_id id;
	struct rpc_msg m;
	bool silent;

	if (rpc_parse(text, &any, &doc, &f, &id) < 0) {
		log_warn("mcp relay: what is no message is dropped: %s", f.message);
		return false;
	}
	if (json_type(json_root(doc)) == JSON_ARRAY) {
		if (c && c->id.n == 0)
			return take_of_batch(c, text, responses_in(json_root(doc)));
		relay_put_line(r, text);
		return false;
	}
	if (rpc_read(json_root(doc), &m, &f, &silent) < 0) {
		log_warn("mcp relay: what is no message is dropped: %s", f.message);
		return false;
	}
	if (m.kind == RPC_RESPONSE)
		return take_response(r, c, text, &m);
	relay_put_line(r, text);
	return false;
}

static void on_failed(void *owner, void *request, bool sent, const struct err *why)
{
	struct mcp_relay *r = owner;
	struct relay_call *c = request;
	struct err e = *why;

	err_wrap(&e, "%s", r->url);
	if (sent && c->acts)
		err_unsure(&e);
	if (c->ours && c->lists) {
		listed(r, c, NULL);
		return;
	}
	if (c->ours)
		reopening_failed(r, &e);
	else
		put_failure(r, &c->id, &e);
	if (c->is_initialize && !c->ours)
		r->session = RELAY_SESSION_NONE;
	relay_call_free(c);
}

static void on_settled(void *owner)
{
	relay_look(owner);
}

const struct mcp_fetch_events relay_events = {
	.message = on_message,
	.failed = on_failed,
	.session_lost = on_session_lost,
	.settled = on_settled,
};

/* --- from the client --- */

/* The answer is no longer wanted. True if closing the connection tells the server. */
static bool take_cancel(struct mcp_relay *r, const struct rpc_msg *m)
{
	struct relay_call *c;
	struct rpc_id id;
	bool modern;

	if (m->kind != RPC_NOTIFICATION || !str_is(m->method, "notifications/cancelled") ||
	    !rpc_id_read(json_get(m->params, "requestId"), &id))
		return false;
	c = call_find(r, &id);
	if (!c || c->is_initialize)
		return false;
	modern = c->modern;
	mcp_fetch_let_go(r->fetch, c);
	relay_call_free(c);
	return modern;
}

static size_t requests_in(const struct json_val *batch)
{
	struct json_iter it = json_iter(batch);
	size_t n = 0;

	while (json_next(&it))
		n += json_get(it.val, "method") && json_get(it.val, "id");
	return n;
}

static void take_batch(struct mcp_relay *r, struct str line, const struct json_val *root)
{
	size_t n = requests_in(root);
	bool asks = n > 0 || json_len(root) == 0;
	struct relay_call *c = asks ? call_new(r, STR_NONE) : NULL;

	if (asks && !c) {
		put_failure(r, NULL, &no_memory);
		return;
	}
	if (c)
		c->left = n ?: 1;
	send_message(r, c, line, NULL);
}

static void take_request(struct mcp_relay *r, struct str line, const struct rpc_msg *m)
{
	bool modern = version_of(m).p;
	bool opens = !modern && str_is(m->method, "initialize");
	bool acts = str_is(m->method, "tools/call"), again = opens || (modern && acts);
	struct relay_call *c = call_new(r, again ? line : STR_NONE);

	if (!c) {
		put_failure(r, &m->id, &no_memory);
		return;
	}
	c->id = m->id;
	c->modern = modern;
	c->is_initialize = opens;
	c->acts = acts;
	c->lists = modern && str_is(m->method, "tools/list");
	if (opens)
		r->session = RELAY_SESSION_OPENS;
	send_message(r, c, line, m);
}

void relay_take(struct mcp_relay *r, struct str line, const struct json_val *root)
{
	bool batch = json_type(root) == JSON_ARRAY;
	struct rpc_fault f;
	struct rpc_msg m;
	bool silent;

	if (!batch && rpc_read(root, &m, &f, &silent) < 0) {
		if (!silent)
			relay_put_fault(r, &m.id, &f);
		return;
	}
	if (!batch && take_cancel(r, &m))
		return;
	if (r->session == RELAY_SESSION_LOST &&
	    (batch || (!version_of(&m).p && !str_is(m.method, "initialize"))))
		reopen(r);
	if (batch)
		take_batch(r, line, root);
	else if (m.kind == RPC_REQUEST)
		take_request(r, line, &m);
	else
		send_message(r, NULL, line, &m);
}
