/*
 * Received messages. A message is parsed once. Answers go to the request that waits for them,
 * requests to ask.c, notifications to those concerned. What matches nothing is counted and dropped,
 * since a wrong or late message must not disturb anything else.
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "json/document/raw.h"
#include "rpc/sniff.h"

/* --- messages that are kept --- */

int mcp_in_keep(struct mcp_in *in, struct err *e)
{
	size_t n = in->held == 0 ? json_footprint(in->doc) : 0;

	if (budget_take(in->memory, n, e) < 0)
		return err_wrap(e, "of what the server said");
	in->held += n;
	in->refs++;
	return 0;
}

void mcp_in_unref(struct mcp_in *in)
{
	if (!in || --in->refs > 0)
		return;
	budget_give(in->memory, in->held);
	json_free(in->doc);
	free(in);
}

/* --- answers --- */

/* Our ids are integers. Some servers give them back as texts. */
static struct mcp_pending *find(const struct mcp_client *c, const struct rpc_id *id)
{
	struct inflight_entry *found = id->n > 0 ? inflight_find(c->inflight, id) : NULL;
	struct rpc_id bare;

	if (!found && id->n > 2 && id->json[0] == '"') {
		bare.n = (unsigned short)(id->n - 2);
		memcpy(bare.json, id->json + 1, bare.n);
		found = inflight_find(c->inflight, &bare);
	}
	return (struct mcp_pending *)found;
}

/* Finds the request that m answers. An error may lack an id, if the server could not read the
 * request, and some servers put a name there, which is no id of ours. Such an error belongs to the
 * request on whose stream it came. */
static struct mcp_pending *find_answered(const struct mcp_client *c, struct mcp_pending *p,
					 const struct rpc_msg *m)
{
	struct mcp_pending *q = find(c, &m->id);
	bool nameless = m->error && (m->id.n == 0 || m->id.json[0] == '"');

	if (!q && nameless)
		q = p ? p : m->id.n == 0 && !c->t->streams ? c->first : NULL;
	/* a modern stream belongs to one request */
	if (q && p && q != p && c->era == MCP_MODERN)
		q = NULL;
	return q && mcp_pending_awaits(q) ? q : NULL;
}

/* True if it answered `asked`, on whose stream it came; or if it came on no stream. */
static bool take_answer(struct mcp_client *c, struct mcp_pending *asked, struct mcp_in *in,
			const struct json_val *v, const struct rpc_msg *m)
{
	struct mcp_pending *p = find_answered(c, asked, m);
	bool awaited = !asked || p == asked;
	struct mcp_answer a = { .result = m->result, .fault = m->error };
	const struct err wrong = { ERR_INVALID, "the server answered with no object" };
	int64_t code = RPC_INTERNAL_ERROR;

	if (!p) {
		c->strays++;
		return false;
	}
	mcp_pending_unlist(p);
	p->resent = false;
	if (p != c->first &&
	    !p->inner) /* our own requests in each session are no sign that it works */
		c->relapses = 0;
	if (m->result && json_type(m->result) != JSON_OBJECT) {
		mcp_pending_fail(p, &wrong);
		return awaited;
	}
	if (m->result)
		a.text = json_raw_member(in->text, v, "result");
	if (m->error && json_int64(json_get(m->error, "code"), &code) &&
	    (code < INT32_MIN || code > INT32_MAX))
		code = RPC_INTERNAL_ERROR;
	a.code = m->error ? (int)code : 0;
	p->answered(p, in, &a);
	return awaited;
}

/* An invalid message. If it has a request's id, that request fails, since it will get no other
 * answer. */
static bool take_broken(struct mcp_client *c, const struct json_val *v, const struct rpc_msg *m,
			const struct rpc_fault *f)
{
	struct mcp_pending *p = json_get(v, "method") ? NULL : find(c, &m->id);
	struct err e;

	c->garbage++;
	if (!p)
		return false;
	err_set(&e, ERR_INVALID, "the server's answer is no message: %s", f->message);
	mcp_pending_fail(p, &e);
	return true;
}

/* --- notifications --- */

static void progress(struct mcp_client *c, struct mcp_pending *p, const struct json_val *params)
{
	const struct json_val *value = json_get(params, "progress");
	struct mcp_progress now = { .progress = json_real(value),
				    .total = json_real(json_get(params, "total")),
				    .message = json_str(json_get(params, "message")) };

	p = mcp_pending_of_token(c, json_get(params, "progressToken"));
	if (!p || (json_type(value) != JSON_INT && json_type(value) != JSON_REAL)) {
		c->strays++;
		return;
	}
	if (p->progressed && now.progress <= p->progress)
		return;
	p->progressed = true;
	p->progress = now.progress;
	mcp_pending_alive(p);
	if (p->on_progress)
		p->on_progress(p->owner, &now);
}

static void message(struct mcp_client *c, struct mcp_pending *p, const struct json_val *params)
{
	int level = mcp_level_find(json_str(json_get(params, "level")));
	struct mcp_log_message m = { .logger = json_str(json_get(params, "logger")),
				     .data = json_get(params, "data"),
				     .pending = p };

	if (level < 0) {
		c->garbage++;
		return;
	}
	m.level = (enum mcp_level)level;
	if (c->o.handler->log)
		c->o.handler->log(c->o.owner, &m);
}

static void cancelled(struct mcp_client *c, struct mcp_pending *p, const struct json_val *params)
{
	struct rpc_id id;

	if (!rpc_id_read(json_get(params, "requestId"), &id))
		c->garbage++;
	else if (c->era == MCP_LEGACY)
		mcp_ask_withdrawn(c, &id);
	else if (!mcp_watch_ended(c, &id))
		c->strays++;
}

static void url_done(struct mcp_client *c, struct mcp_pending *p, const struct json_val *params)
{
	struct str id = json_str(json_get(params, "elicitationId"));

	if (!mcp_urls_done(c, id))
		c->strays++;
	else if (c->o.handler->url_done)
		c->o.handler->url_done(c->o.owner, id);
}

static void updated(struct mcp_client *c, struct mcp_pending *p, const struct json_val *params)
{
	struct str uri = json_str(json_get(params, "uri"));

	if (!uri.p)
		c->garbage++;
	else if (c->o.handler->updated)
		c->o.handler->updated(c->o.owner, uri);
}

static const struct {
	const char *method;
	void (*take)(struct mcp_client *c, struct mcp_pending *p, const struct json_val *params);
	unsigned list; /* the list that has changed; used instead of take */
	bool watched; /* modern servers send it only if it was asked for */
} notifications[] = {
	{ "notifications/progress", progress, 0, false },
	{ "notifications/message", message, 0, false },
	{ "notifications/cancelled", cancelled, 0, false },
	{ "notifications/elicitation/complete", url_done, 0, false },
	{ "notifications/resources/updated", updated, 0, true },
	{ "notifications/tools/list_changed", NULL, MCP_TOOLS, true },
	{ "notifications/resources/list_changed", NULL, MCP_RESOURCES, true },
	{ "notifications/prompts/list_changed", NULL, MCP_PROMPTS, true },
};

static void changed(struct mcp_client *c, unsigned list)
{
	if (c->era == MCP_MODERN && !(c->watch.lists & list)) {
		c->strays++;
		return;
	}
	if (list == MCP_TOOLS)
		mcp_tools_doubt(c);
	if (c->o.handler->changed)
		c->o.handler->changed(c->o.owner, list);
}

static void take_notification(struct mcp_client *c, struct mcp_pending *p, const struct rpc_msg *m)
{
	const struct json_val *params = json_type(m->params) == JSON_OBJECT ? m->params : NULL;

	for (size_t i = 0; i < ARRAY_LEN(notifications); i++) {
		if (!str_is(m->method, notifications[i].method))
			continue;
		if (notifications[i].watched && c->era == MCP_MODERN &&
		    !mcp_watch_takes(c, p, params))
			c->strays++;
		else if (notifications[i].take)
			notifications[i].take(c, p, params);
		else
			changed(c, notifications[i].list);
		return;
	}
	if (str_is(m->method, "notifications/subscriptions/acknowledged")) {
		mcp_watch_acknowledged(c, p, params);
		return;
	}
	if (str_is(m->method, "notifications/tasks/status"))
		mcp_follow_hint(c, params);
	if (mcp_client_lives(c) && c->o.handler->notified)
		c->o.handler->notified(c->o.owner, m->method, params);
}

/* --- messages --- */

static bool take_one(struct mcp_client *c, struct mcp_pending *p, struct mcp_in *in,
		     const struct json_val *v)
{
	struct rpc_fault f;
	struct rpc_msg m;
	bool silent;

	if (rpc_read(v, &m, &f, &silent) < 0)
		return take_broken(c, v, &m, &f);
	switch (m.kind) {
	case RPC_RESPONSE:
		return take_answer(c, p, in, v, &m);
	case RPC_NOTIFICATION:
		take_notification(c, p, &m);
		return false;
	case RPC_REQUEST:
		if (c->era == MCP_LEGACY)
			mcp_ask_legacy(c, p, in, &m);
		/* a modern server asks only in its answers */
		else
			c->garbage++;
		return false;
	}
	return false;
}

/* Handles a batch, of a revision that has them, or as long as the revision is unknown. */
static bool take_batch(struct mcp_client *c, struct mcp_pending *p, struct mcp_in *in)
{
	struct json_iter it = json_iter(json_root(in->doc));
	struct json_raw raw = json_raw(in->text);
	bool answered = false;

	if (!c->profile->batch || json_len(json_root(in->doc)) == 0) {
		c->garbage++;
		return false;
	}
	while (mcp_client_lives(c) && json_next(&it) && json_raw_next(&raw, &in->text)) {
		/* an earlier answer may have ended p */
		answered |= take_one(c, p && p->ended ? NULL : p, in, it.val);
	}
	return answered;
}

/* Handles a text that is not a valid message. The request that it would have answered fails. */
static bool take_unread(struct mcp_client *c, struct str text, const struct rpc_fault *f)
{
	struct rpc_sniff sniff = { 0 };
	struct mcp_pending *p;
	struct rpc_id id;
	struct err e;

	c->garbage++;
	rpc_sniff_feed(&sniff, text);
	rpc_sniff_answer_id(&sniff, &id);
	p = find(c, &id);
	if (!p)
		return false;
	err_set(&e,
		f->code == RPC_PARSE_ERROR	 ? ERR_INVALID
		: f->code == RPC_INVALID_REQUEST ? ERR_TOO_LARGE
						 : ERR_LIMIT,
		"the server's answer can't be taken: %s", f->message);
	mcp_pending_fail(p, &e);
	return true;
}

bool mcp_client_message(struct mcp_client *c, struct mcp_pending *p, struct str text)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	AUTO(mcp_in_unref) struct mcp_in *in = NULL;
	autofree char *mended = NULL;
	struct json_doc *doc;
	struct rpc_fault f;
	struct rpc_id id;
	int rc;

	if (!mcp_client_lives(inside) || c->state == MCP_CLIENT_NEW)
		return false;
	rc = rpc_parse(text, &c->o.json, &doc, &f, &id);
	if (rc < 0 && f.code == RPC_PARSE_ERROR && (mended = json_mend_halves(text))) {
		text.p = mended;
		rc = rpc_parse(text, &c->o.json, &doc, &f, &id);
	}
	if (rc < 0)
		return take_unread(c, text, &f);
	in = calloc(1, sizeof(*in));
	if (!in) {
		json_free(doc);
		rpc_fault_set(&f, RPC_INTERNAL_ERROR, "no memory here");
		return take_unread(c, text, &f);
	}
	*in = (struct mcp_in){ .memory = c->o.memory, .doc = doc, .text = text, .refs = 1 };
	if (json_type(json_root(doc)) == JSON_ARRAY)
		return take_batch(c, p, in);
	return take_one(c, p, in, json_root(doc));
}

void mcp_client_dropped(struct mcp_client *c, struct mcp_pending *p, const struct rpc_sniff *sniff,
			const struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *inside = mcp_client_enter(c);
	struct rpc_id id;

	if (!mcp_client_lives(inside))
		return;
	if (!p && sniff) {
		rpc_sniff_answer_id(sniff, &id);
		p = find(c, &id);
	}
	if (p && mcp_pending_awaits(p))
		mcp_pending_fail(p, e);
	else
		c->garbage++;
}
