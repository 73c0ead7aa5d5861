/*
 * Calls. A call is listed in flight from its request to its end, even if it was cancelled, since it
 * still costs resources; it counts against the limit. Its answer is sent unless it was cancelled or
 * its session is closed. A call that became a task is no longer in flight; its answer goes to
 * task.c.
 *
 * The handler ends a call. While it has asked the client and returned (ask.c), no handler without
 * an on_cancel() would, so a cancelled call is ended here.
 */
#include <stdlib.h>

#include "base/log.h"
#include "mcp/server/internal.h"

enum { ARENA_MAX = 32 << 20 };

/* --- from the request to the call --- */

/* Counts the message's memory for the session, once. One message is always accepted. */
static int hold(struct mcp_session *s, struct mcp_inbound *in, struct rpc_fault *f)
{
	size_t bytes = json_footprint(in->doc);

	if (in->held > 0)
		return 0;
	if (s->held > 0 && bytes > s->server->o.held_max - s->held) {
		rpc_fault_set(f, RPC_INTERNAL_ERROR,
			      "requests in flight hold %zu bytes; wait for an answer", s->held);
		f->reason = err_info(ERR_LIMIT);
		return -1;
	}
	in->held = bytes;
	s->held += bytes;
	return 0;
}

void mcp_call_hold(const struct mcp_call *c, bool on)
{
	const struct mcp_server_options *o = &c->server->o;

	if (o->handler && o->handler->hold)
		o->handler->hold(o->owner, c->tool, on);
}

static void call_free(struct mcp_call *c)
{
	if (!c)
		return;
	if (c->on_stack)
		c->on_stack->gone = true;
	mcp_ask_end(c);
	mcp_task_forget(c);
	if (c->tool)
		mcp_call_hold(c, false);
	free(c->progress.message);
	arena_fini(&c->own);
	spare_give(&c->server->spare_call, c);
}
AUTO_DEFINE(call_free, struct mcp_call)

/* "mcp-SESSION-REQUEST" */
static void put_label(char *to, const struct mcp_session *s)
{
	memcpy(to, "mcp-", 4);
	to += 4;
	to += rpc_put_uint(to, s->number);
	*to++ = '-';
	to += rpc_put_uint(to, s->requests);
	*to = '\0';
}

static struct mcp_call *call_new(const struct mcp_request *q, enum mcp_call_kind kind)
{
	struct mcp_call *c = spare_take(&q->s->server->spare_call, sizeof(*c));
	struct err e;

	if (!c)
		return NULL;
	c->server = q->s->server;
	c->session = q->s;
	c->data = q->s->data;
	c->in = q->in;
	c->profile = q->profile;
	c->kind = kind;
	c->can = q->can;
	c->params = q->m->params;
	c->level = MCP_LEVEL_NONE;
	if (q->meta.level)
		c->level = (unsigned)mcp_level_find(json_str(q->meta.level));
	c->arena = &c->own;
	arena_init(c->arena, ARENA_MAX);
	put_label(c->label, q->s);
	if (q->s->wish.profile.p && !(c->wanted = arena_dup(c->arena, q->s->wish.profile, &e))) {
		call_free(c);
		return NULL;
	}
	return c;
}

struct mcp_call *mcp_call_begin(const struct mcp_request *q, enum mcp_call_kind kind,
				struct rpc_fault *f)
{
	AUTO(call_free) struct mcp_call *c = call_new(q, kind);

	if (!c) {
		rpc_fault_set(f, RPC_INTERNAL_ERROR, "out of memory");
		f->reason = err_info(ERR_LIMIT);
		return NULL;
	}
	if (q->meta.token && !rpc_id_read(q->meta.token, &c->token)) {
		rpc_fault_set(f, RPC_INVALID_PARAMS,
			      "progressToken takes a string or an integer of at most %d bytes",
			      RPC_ID_MAX);
		return NULL;
	}
	if (hold(q->s, q->in, f) < 0 || inflight_add(&q->s->inflight, &c->entry, &q->m->id, f) < 0)
		return NULL;
	q->in->refs++;
	q->in->awaited++;
	return take_ptr(c);
}

/* --- from the call to its handler --- */

/* The handler may end the call, so c may be freed when it returns. A call that was cancelled
 * between its question and its return must be ended here. */
void mcp_call_run(struct mcp_call *c)
{
	struct mcp_run run = { .again = true };

	c->on_stack = &run;
	while (run.again && !run.gone) {
		run.again = false;
		log_request(c->label);
		c->run(c);
		log_request(NULL);
	}
	if (run.gone)
		return;
	c->on_stack = NULL;
	if (c->cancelled && mcp_ask_waits(c) && !c->on_cancel)
		mcp_call_drop(c);
}

int mcp_call_go(struct mcp_call *c, struct rpc_fault *f)
{
	bool asks = c->kind != MCP_CALL_COMPLETE && c->profile->modern;

	int rc = asks ? mcp_ask_resume(c, f) : 0;

	if (rc == 0 && c->kind == MCP_CALL_TOOL)
		rc = mcp_task_before(c, f);
	if (rc == 0)
		mcp_call_run(c);
	else if (rc < 0)
		mcp_call_fault(c, f);
	return 0;
}

/* --- to its end --- */

bool mcp_call_is_wanted(const struct mcp_call *c)
{
	return !c->cancelled && (c->task || !c->session->closed);
}

/* One request less is in flight; s may be freed. */
static void call_leave(struct mcp_session *s, bool was_open)
{
	if (was_open && !s->closed && s->entered == 0 && mcp_session_open(s) == 0 && s->t->idle)
		s->t->idle(s->transport);
	else
		mcp_session_settle(s);
}

void mcp_call_drop(struct mcp_call *c)
{
	struct mcp_session *s = c->session;
	bool was_open = !c->cancelled;

	if (!s) {
		mcp_inbound_unref(NULL, c->in);
		call_free(c);
		return;
	}
	s->cancelled -= c->cancelled;
	inflight_remove(&s->inflight, &c->entry);
	s->entered++;
	if (was_open)
		mcp_inbound_release(s, c->in);
	mcp_inbound_unref(s, c->in);
	call_free(c);
	s->entered--;
	call_leave(s, was_open);
}

void mcp_call_cancel(struct mcp_call *c)
{
	void (*on_cancel)(struct mcp_call *, void *) = c->on_cancel;
	bool waits = mcp_ask_waits(c);

	if (c->cancelled)
		return;
	c->cancelled = true;
	if (c->session) {
		c->session->cancelled++;
		mcp_inbound_release(c->session, c->in);
	}
	if (c->kind == MCP_CALL_INNER)
		c->inner_cancel(c);
	else if (on_cancel)
		on_cancel(c, c->cancel_data);
	else if (waits)
		mcp_call_drop(c);
}

void mcp_call_detach(struct mcp_call *c)
{
	struct mcp_session *s = c->session;

	mcp_out_answer(s, c->in, &c->entry.id);
	inflight_remove(&s->inflight, &c->entry);
	s->held -= c->in->held;
	c->in->held = 0;
	c->session = NULL;
	s->entered++;
	mcp_inbound_release(s, c->in);
	s->entered--;
	call_leave(s, true);
}

struct json_writer *mcp_call_result_begin(struct mcp_call *c)
{
	struct json_writer *w = mcp_out_begin(c->server);

	if (!c->task)
		rpc_write_result(w, &c->entry.id);
	return w;
}

void mcp_call_result_end(struct mcp_call *c)
{
	struct rpc_fault f;
	struct err e;

	if (!c->task) {
		rpc_write_end(&c->server->w);
		mcp_out_answer(c->session, c->in, &c->entry.id);
	} else if (json_write_done(&c->server->w, &e) == 0) {
		mcp_task_result(c, buf_str(&c->server->out));
	} else {
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "the result can't be kept: %s", e.msg);
		f.reason = err_info(e.code);
		mcp_task_fault(c, &f);
	}
	mcp_call_drop(c);
}

void mcp_call_fault(struct mcp_call *c, const struct rpc_fault *f)
{
	if (c->task)
		mcp_task_fault(c, f);
	else if (mcp_call_is_wanted(c))
		mcp_send_fault(c->session, c->in, &c->entry.id, f);
	mcp_call_drop(c);
}

/* --- what a handler asks --- */

enum mcp_call_kind mcp_call_kind(const struct mcp_call *c)
{
	return c->kind;
}

const struct mcp_tool *mcp_call_tool(const struct mcp_call *c)
{
	return c->tool;
}

const struct mcp_prompt *mcp_call_prompt(const struct mcp_call *c)
{
	return c->prompt;
}

const struct mcp_resource *mcp_call_resource(const struct mcp_call *c)
{
	return c->resource;
}

const struct mcp_template *mcp_call_template(const struct mcp_call *c)
{
	return c->template;
}

struct str mcp_call_uri(const struct mcp_call *c)
{
	return c->kind == MCP_CALL_READ ? json_str(json_get(c->params, "uri")) : STR_NONE;
}

struct str mcp_call_uri_value(const struct mcp_call *c, size_t i)
{
	return i < MCP_URI_VALUES ? c->uri_values[i] : STR_NONE;
}

struct mcp_server *mcp_call_server(const struct mcp_call *c)
{
	return c->server;
}

void *mcp_call_owner(const struct mcp_call *c)
{
	return c->server->o.owner;
}

struct mcp_session *mcp_call_session(const struct mcp_call *c)
{
	return c->session && !c->session->closed ? c->session : NULL;
}

void *mcp_call_principal(const struct mcp_call *c)
{
	return c->data;
}

struct str mcp_call_profile(const struct mcp_call *c)
{
	return str_of(c->wanted);
}

const char *mcp_call_version(const struct mcp_call *c)
{
	return c->profile->version;
}

const char *mcp_call_client(const struct mcp_call *c)
{
	const struct json_val *info = json_get(mcp_call_meta(c), MCP_META_CLIENT);
	struct str name = json_str(json_get(info, "name"));
	char *text;
	struct err e;

	if (!c->profile->modern)
		return c->session ? c->session->client : "";
	if (!name.p)
		return "";
	text = arena_alloc(c->arena, MCP_CLIENT_MAX, &e);
	if (!text)
		return "";
	mcp_put_client(text, info);
	return text;
}

const struct json_val *mcp_call_args(const struct mcp_call *c)
{
	return c->args;
}

const struct json_val *mcp_call_meta(const struct mcp_call *c)
{
	return json_get(c->params, "_meta");
}

struct arena *mcp_call_arena(const struct mcp_call *c)
{
	return c->arena;
}

int mcp_call_decode(struct mcp_call *c, const struct field_table *t, void *ret, struct err *e)
{
	return field_decode(t, c->args, c->arena, ret, e);
}

const char *mcp_call_label(const struct mcp_call *c)
{
	return c->label;
}

void mcp_call_set_data(struct mcp_call *c, void *data)
{
	c->handler_data = data;
}

void *mcp_call_data(const struct mcp_call *c)
{
	return c->handler_data;
}

void mcp_call_on_cancel(struct mcp_call *c, void (*on_cancel)(struct mcp_call *c, void *data),
			void *data)
{
	c->on_cancel = on_cancel;
	c->cancel_data = data;
	if (c->cancelled && on_cancel)
		on_cancel(c, data);
}

bool mcp_call_cancelled(const struct mcp_call *c)
{
	return c->cancelled;
}

void mcp_call_cache(struct mcp_call *c, uint64_t ttl_ms, bool is_public)
{
	c->ttl_ms = ttl_ms;
	c->cache_public = is_public;
}

void mcp_call_disconnect(struct mcp_call *c)
{
	struct mcp_session *s = mcp_call_session(c);

	if (s && s->road == MCP_ROAD_HTTP && c->in->stream && s->t->stream_drop)
		s->t->stream_drop(s->transport, c->in->stream);
}
