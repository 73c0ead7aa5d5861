/* Builds messages as the revision requires: the owner's request with _meta, answers to questions of
 * the server, and the next cursor. */
#include "mcp/client/internal.h"

#include <stdlib.h>

#include "json/document/raw.h"
#include "mcp/client/head.h"

enum { OUT_MAX = 128 << 20 };

/* the first revision with a version header */
static const char version_in_headers[] = "2025-06-18";

/* --- who we are --- */

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_put_text(w, key, text);
}

void mcp_write_self(struct json_writer *w, const struct mcp_client *c)
{
	json_write_object(w);
	put_text(w, "name", c->o.name);
	put_text(w, "title", c->profile->title ? c->o.title : NULL);
	put_text(w, "version", c->o.version);
	json_write_object_end(w);
}

void mcp_write_can(struct json_writer *w, const struct mcp_client *c)
{
	const struct mcp_can_more more = { .roots_change = !c->profile->modern,
					   .extensions = c->o.extensions,
					   .n = c->profile->modern ? c->o.extensions_n : 0 };

	mcp_can_write(w, c->can, &more);
}

/* --- parts --- */

void mcp_write_line(struct json_writer *w, struct str text, const struct json_val *v)
{
	if (text.p && !memchr(text.p, '\n', text.n) && !memchr(text.p, '\r', text.n))
		json_write_raw(w, text);
	else
		json_write_val(w, v);
}

static bool is_one_of(struct str key, const char *const *keys)
{
	for (; *keys; keys++) {
		if (str_is(key, *keys))
			return true;
	}
	return false;
}

/* Writes the members of an object except some; true if there were any. */
static bool copy_members(struct json_writer *w, struct str text, const struct json_val *v,
			 const char *const *without)
{
	struct json_raw raw = json_raw(text);
	struct json_iter it = json_iter(v);
	bool any = false;
	struct str at;

	while (json_next(&it) && json_raw_next(&raw, &at)) {
		if (is_one_of(it.key, without))
			continue;
		json_write_key_str(w, it.key);
		mcp_write_line(w, at, it.val);
		any = true;
	}
	return any;
}

static void write_modern(struct json_writer *w, const struct mcp_pending *p)
{
	unsigned level = p->level;

	if (level == MCP_LEVEL_NONE && !p->inner && p->client->level >= 0)
		level = (unsigned)p->client->level;
	put_text(w, MCP_META_VERSION, p->client->profile->version);
	json_write_key(w, MCP_META_CLIENT);
	mcp_write_self(w, p->client);
	json_write_key(w, MCP_META_CAPABILITIES);
	mcp_write_can(w, p->client);
	if (level != MCP_LEVEL_NONE)
		put_text(w, MCP_META_LEVEL, mcp_level_name((enum mcp_level)level));
}

static void write_meta(struct json_writer *w, const struct mcp_pending *p)
{
	static const char *const ours[] = { "progressToken", MCP_META_VERSION,
					    MCP_META_CLIENT, MCP_META_CAPABILITIES,
					    MCP_META_LEVEL,  NULL };
	const struct mcp_client *c = p->client;
	const struct json_val *meta = p->params ? json_get(json_root(p->params), "_meta") : NULL;
	bool token = p->on_progress && p->step == MCP_STEP_REQUEST;
	struct str text = STR_NONE;

	if (!c->profile->modern && !token && json_len(meta) == 0)
		return;
	if (meta)
		text = json_raw_member((struct str){ p->text, p->text_n }, json_root(p->params),
				       "_meta");
	json_put_object(w, "_meta");
	copy_members(w, text, meta, ours);
	if (token)
		json_put_uint(w, "progressToken", p->token);
	if (c->profile->modern)
		write_modern(w, p);
	json_write_object_end(w);
}

static void write_own(struct json_writer *w, const struct mcp_pending *p)
{
	const char *without[6] = { "_meta" };
	struct str cursor = p->listing ? mcp_listing_cursor(p->listing) : STR_NONE;
	size_t n = 1;

	if (cursor.p)
		without[n++] = "cursor";
	if (p->wants_task)
		without[n++] = "task";
	if (p->rounds > 0) {
		without[n++] = "inputResponses";
		without[n++] = "requestState";
	}
	if (p->params)
		copy_members(w, (struct str){ p->text, p->text_n }, json_root(p->params), without);
	if (cursor.p)
		json_put_str(w, "cursor", cursor);
	if (p->wants_task) {
		json_put_object(w, "task");
		if (p->task_ttl_ms > 0)
			json_put_uint(w, "ttl", p->task_ttl_ms);
		json_write_object_end(w);
	}
	/* the answers to the questions of the last answer */
	if (p->rounds > 0 && p->asked) {
		json_write_key(w, "inputResponses");
		mcp_ask_write_answers(w, p);
	}
	if (p->rounds > 0 && p->state)
		json_put_val(w, "requestState", p->state);
}

static void write_params(struct json_writer *w, const struct mcp_pending *p)
{
	json_write_object(w);
	if (p->step == MCP_STEP_REQUEST) {
		write_own(w, p);
	} else {
		json_put_str(w, "taskId", mcp_follow_id(p->task));
	}
	if (p->step == MCP_STEP_UPDATE) {
		json_write_key(w, "inputResponses");
		mcp_ask_write_answers(w, p);
	}
	write_meta(w, p);
	json_write_object_end(w);
}

static const char *method_of(const struct mcp_pending *p)
{
	switch (p->step) {
	case MCP_STEP_REQUEST:
		return p->method;
	case MCP_STEP_GET:
		return "tasks/get";
	case MCP_STEP_UPDATE:
		return "tasks/update";
	case MCP_STEP_RESULT:
		return "tasks/result";
	}
	return p->method;
}

/* --- whole messages --- */

static void send(struct mcp_client *c, struct mcp_client_out *m, const struct buf *text)
{
	const char *version = c->profile->version;
	bool said = strcmp(version, version_in_headers) >= 0;

	m->text = buf_str(text);
	m->modern = c->profile->modern;
	m->version = m->modern || (said && c->state == MCP_CLIENT_READY) ? version : NULL;
	c->t->send(c->transport, m);
}

int mcp_send_request(struct mcp_pending *p, struct err *e)
{
	struct mcp_client *c = p->client;
	autobuf struct buf text = BUF_INIT(OUT_MAX);
	struct json_writer w = json_writer(&text);
	struct mcp_client_out m = { .kind = MCP_OUT_REQUEST,
				    .pending = p,
				    .is_initialize = p == c->first && c->era == MCP_LEGACY,
				    .method = str_of(method_of(p)) };
	uint64_t id = ++c->ids;
	struct rpc_fault f;
	struct rpc_id name;
	int rc;

	rpc_write_request(&w, id, method_of(p));
	write_params(&w, p);
	rpc_write_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	if (p->step == MCP_STEP_REQUEST)
		rc = mcp_head_fill(&m, c, p->method, p->params ? json_root(p->params) : NULL, e);
	else /* tasks/… requests name the task in a header */
		rc = mcp_head_name(&m, c, mcp_follow_id(p->task), e);
	if (rc < 0) {
		mcp_head_release(&m);
		return -1;
	}
	name.n = (unsigned short)rpc_put_uint(name.json, id);
	if (inflight_add(c->inflight, &p->entry, &name, &f) < 0) {
		mcp_head_release(&m);
		return err_set(e, ERR_LIMIT, "%s", f.message);
	}
	p->generation = c->generation;
	p->sent = true;
	p->queued = false;
	send(c, &m, &text);
	mcp_head_release(&m);
	return 0;
}

int mcp_send_notification(struct mcp_client *c, const char *method, struct str params,
			  struct err *e)
{
	autobuf struct buf text = BUF_INIT(OUT_MAX);
	struct json_writer w = json_writer(&text);
	struct mcp_client_out m = { .kind = MCP_OUT_NOTIFICATION, .method = str_of(method) };

	m.opens_stream = strcmp(method, "notifications/initialized") == 0;
	rpc_write_notification(&w, method);
	json_write_raw(&w, params.p ? params : STR_LIT("{}"));
	rpc_write_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	send(c, &m, &text);
	return 0;
}

int mcp_send_result(struct mcp_client *c, const struct rpc_id *id, struct str result, struct err *e)
{
	autobuf struct buf text = BUF_INIT(OUT_MAX);
	struct json_writer w = json_writer(&text);
	struct mcp_client_out m = { .kind = MCP_OUT_RESPONSE };

	rpc_write_result(&w, id);
	json_write_raw(&w, result);
	rpc_write_end(&w);
	if (json_write_done(&w, e) < 0)
		return -1;
	send(c, &m, &text);
	return 0;
}

void mcp_send_refusal(struct mcp_client *c, const struct rpc_id *id, const struct rpc_fault *f)
{
	autobuf struct buf text = BUF_INIT(OUT_MAX);
	struct json_writer w = json_writer(&text);
	struct mcp_client_out m = { .kind = MCP_OUT_RESPONSE };
	struct err e;

	rpc_write_fault(&w, id, f);
	if (json_write_done(&w, &e) == 0)
		send(c, &m, &text);
}
