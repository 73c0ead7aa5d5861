/*
 * Calls. A call is listed in flight from its request to mcp_call_done(), also when it was
 * cancelled between: it still costs what it costs, and counts. Its answer is sent unless it was
 * cancelled or its session is closed.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "json/near.h"
#include "json/utf8.h"
#include "mcp/core.h"

enum {
	ARENA_MAX = 32 << 20,
	PROGRESS_TEXT_MAX = 1024,
	NAME_SHOWN = 64,
};

/* --- from the request to the handler --- */

static const struct mcp_tool *find_tool(struct mcp_session *s, struct str name,
					const struct mcp_tool **ret_near)
{
	const struct mcp_server_options *o = &s->server->o;
	const struct mcp_tool *const *tools;
	unsigned best = near_enough(name) + 1;
	size_t n = 0;

	*ret_near = NULL;
	tools = o->handler->tools(o->owner, s, &n);
	for (size_t i = 0; i < n; i++) {
		if (str_is(name, tools[i]->name))
			return tools[i];
	}
	for (size_t i = 0; i < n; i++) {
		unsigned distance = near_distance(name, str_of(tools[i]->name));

		if (distance < best) {
			best = distance;
			*ret_near = tools[i];
		}
	}
	return NULL;
}

static int read_tool(struct mcp_call *c, const struct json_val *params, struct rpc_fault *f)
{
	const struct json_val *name = json_get(params, "name");
	const struct mcp_tool *near;

	if (json_type(name) != JSON_STR)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "name takes a string, not %s",
				     json_type_name(json_type(name)));
	c->tool = find_tool(c->session, json_str(name), &near);
	if (!c->tool)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "unknown tool \"%.*s\"%s%s%s",
				     STR_ARG(utf8_cut(json_str(name), NAME_SHOWN)),
				     near ? "; did you mean \"" : "", near ? near->name : "",
				     near ? "\"?" : "");
	return 0;
}

static int read_params(struct mcp_call *c, const struct json_val *params, struct rpc_fault *f)
{
	const struct json_val *meta = json_get(params, "_meta");
	const struct json_val *token = json_get(meta, "progressToken");

	c->args = json_get(params, "arguments");
	if (c->args && json_type(c->args) != JSON_OBJECT)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "arguments takes an object, not %s",
				     json_type_name(json_type(c->args)));
	if (meta && json_type(meta) != JSON_OBJECT)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "_meta takes an object, not %s",
				     json_type_name(json_type(meta)));
	if (token && !rpc_id_read(token, &c->token))
		return rpc_fault_set(
			f, RPC_INVALID_PARAMS,
			"progressToken takes a string or an integer of at most %d bytes",
			RPC_ID_MAX);
	return read_tool(c, params, f);
}

/* Counts the message's memory for the session, once. One message is always let in. */
static int hold(struct mcp_session *s, struct mcp_message *m, struct rpc_fault *f)
{
	size_t bytes = json_footprint(m->doc);

	if (m->held > 0)
		return 0;
	if (s->held > 0 && bytes > s->server->o.held_max - s->held) {
		rpc_fault_set(f, RPC_INTERNAL_ERROR,
			      "requests in flight hold %zu bytes; wait for an answer", s->held);
		f->reason = err_info(ERR_LIMIT)->name;
		return -1;
	}
	m->held = bytes;
	s->held += bytes;
	return 0;
}

static void call_free(struct mcp_call *c)
{
	if (!c)
		return;
	free(c->progress.message);
	arena_free(c->arena);
	free(c);
}
AUTO_DEFINE(call_free, struct mcp_call)

static struct mcp_call *call_new(struct mcp_session *s, const struct mcp_origin *from)
{
	struct mcp_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->session = s;
	c->origin = *from;
	c->profile = s->profile;
	c->arena = arena_new(ARENA_MAX);
	if (!c->arena) {
		call_free(c);
		return NULL;
	}
	snprintf(c->label, sizeof(c->label), "mcp-%u-%u", s->number, s->requests);
	return c;
}

int mcp_call_start(struct mcp_session *s, const struct mcp_origin *from, const struct rpc_msg *m,
		   struct rpc_fault *ret_fault)
{
	const struct mcp_server_options *o = &s->server->o;
	AUTO(call_free) struct mcp_call *c = call_new(s, from);

	if (!c) {
		rpc_fault_set(ret_fault, RPC_INTERNAL_ERROR, "out of memory");
		ret_fault->reason = err_info(ERR_LIMIT)->name;
		return -1;
	}
	if (read_params(c, m->params, ret_fault) < 0 || hold(s, from->message, ret_fault) < 0 ||
	    inflight_add(s->inflight, &c->entry, &m->id, ret_fault) < 0)
		return -1;
	from->message->refs++;
	if (from->batch)
		from->batch->waiting++;
	log_request(c->label);
	log_debug("mcp: tools/call %s", c->tool->name);
	o->handler->call(o->owner, take_ptr(c));
	log_request(NULL);
	return 0;
}

/* --- to its end --- */

static bool is_wanted(const struct mcp_call *c)
{
	return !c->cancelled && !c->session->closed;
}

void mcp_call_cancel(struct mcp_call *c)
{
	void (*on_cancel)(struct mcp_call *, void *) = c->on_cancel;

	if (c->cancelled)
		return;
	c->cancelled = true;
	c->session->cancelled++;
	mcp_batch_release(take_ptr(c->origin.batch));
	if (on_cancel)
		on_cancel(c, c->cancel_data);
}

static void finish(struct mcp_call *c)
{
	struct mcp_session *s = c->session;
	bool was_open = !c->cancelled;

	s->cancelled -= c->cancelled;
	inflight_remove(s->inflight, &c->entry);
	mcp_batch_release(c->origin.batch);
	mcp_message_unref(s, c->origin.message);
	call_free(c);
	if (was_open && !s->closed && s->entered == 0 && mcp_session_open(s) == 0 && s->t->idle)
		s->t->idle(s->transport);
	else
		mcp_session_settle(s);
}

static void send_progress(struct mcp_call *c, const char *message)
{
	struct json_writer *w = mcp_out_begin(c->session);
	struct str text = utf8_cut(str_of(message), PROGRESS_TEXT_MAX);

	rpc_write_notification(w, "notifications/progress");
	json_write_object(w);
	json_write_key(w, "progressToken");
	json_write_raw(w, rpc_id_str(&c->token));
	json_write_key(w, "progress");
	json_write_real(w, c->progress.value);
	if (c->progress.total > 0) {
		json_write_key(w, "total");
		json_write_real(w, c->progress.total);
	}
	if (text.p && c->profile->progress_message) {
		json_write_key(w, "message");
		json_write_str(w, text);
	}
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_notify(c->session, c->origin.stream);
}

static void send_held_progress(struct mcp_call *c)
{
	if (!c->progress.held)
		return;
	c->progress.held = false;
	send_progress(c, c->progress.message);
}

static bool has_structured(const struct mcp_result *r)
{
	return r->structured.n > 0 || r->table;
}

void mcp_call_done(struct mcp_call *c, const struct mcp_result *r)
{
	struct mcp_session *s = c->session;
	struct json_writer *w;

	if (c->tool->output_schema && !r->is_error && !has_structured(r))
		log_error("mcp: %s has an output schema and gave no structured content",
			  c->tool->name);
	if (is_wanted(c)) {
		send_held_progress(c);
		w = mcp_out_begin(s);
		rpc_write_result(w, &c->entry.id);
		mcp_write_result(w, c->profile, r, s->server->o.reply_max);
		rpc_write_end(w);
		mcp_out_end(s, &c->origin, &c->entry.id);
	}
	finish(c);
}

void mcp_call_text(struct mcp_call *c, struct str text)
{
	const struct mcp_content content = { .type = MCP_TEXT, .text = text };

	mcp_call_done(c, &(struct mcp_result){ .content = &content, .content_n = 1 });
}

void mcp_call_fail(struct mcp_call *c, const struct err *e)
{
	static const char no_memory[] = "{\"code\":\"limit_exceeded\",\"cause\":\"out of memory\","
					"\"remediation\":\"Try again later.\",\"retryable\":true}";
	autofree char *text = mcp_error_text(e);
	const struct mcp_content content = { .type = MCP_TEXT,
					     .text = str_of(text ? text : no_memory) };

	mcp_call_done(
		c, &(struct mcp_result){ .content = &content, .content_n = 1, .is_error = true });
}

/* --- progress --- */

static bool may_send(const struct mcp_call *c)
{
	const struct mcp_session *s = c->session;

	if (s->t->congested && s->t->congested(s->transport))
		return false;
	return c->progress.sent_ms == 0 ||
	       s->server->o.now_ms() - c->progress.sent_ms >= s->server->o.progress_ms;
}

void mcp_call_progress(struct mcp_call *c, double progress, double total, const char *message)
{
	if (!is_wanted(c) || !mcp_call_wants_progress(c) || !isfinite(progress) ||
	    !isfinite(total) || (c->progress.any && progress <= c->progress.value))
		return;
	c->progress.any = true;
	c->progress.value = progress;
	c->progress.total = total;
	free(take_ptr(c->progress.message));
	c->progress.held = !may_send(c);
	if (c->progress.held) {
		/* without memory it goes without its text */
		c->progress.message = message ? strndup(message, PROGRESS_TEXT_MAX + 4) : NULL;
		return;
	}
	send_progress(c, message);
	c->progress.sent_ms = c->session->server->o.now_ms();
}

/* --- what a handler asks --- */

const struct mcp_tool *mcp_call_tool(const struct mcp_call *c)
{
	return c->tool;
}

struct mcp_session *mcp_call_session(const struct mcp_call *c)
{
	return c->session->closed ? NULL : c->session;
}

void *mcp_call_principal(const struct mcp_call *c)
{
	return c->session->data;
}

const struct json_val *mcp_call_args(const struct mcp_call *c)
{
	return c->args;
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

bool mcp_call_wants_progress(const struct mcp_call *c)
{
	return c->token.n > 0;
}
