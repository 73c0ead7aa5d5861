/*
 * Questions to a legacy client. Each is a request of ours on the stream of the call that asks; for
 * a task, on that of a tasks/result. An invalid answer, an error, and ask_ms without an answer make
 * the question fail. The end of the call withdraws its questions with a notification. MCP
 * 2025-11-25, client/elicitation, client/sampling, client/roots.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "json/document/utf8.h"
#include "mcp/server/internal.h"
#include "mcp/message/question.h"

enum {
	REASON_MAX = 160, /* bytes of a client's error message */
	MS = 1000,
};

static void ask_legacy_settle(struct mcp_asked *q, const struct rpc_msg *m)
{
	struct mcp_asking *a = q->call->asking;
	struct err e;

	if (m->error) {
		struct str says = json_str(json_get(m->error, "message"));

		mcp_asked_fail(a, q,
			       says.n > 0 ? utf8_cut(says, REASON_MAX)
					  : STR_LIT("an error without a message"));
	} else if (mcp_asked_answer(a, q, m->result, &e) < 0) {
		mcp_asked_fail(a, q, str_of(e.msg));
	}
}

/* m NULL: the session ended. Its calls are cancelled; the question of a task goes to another that
 * waits for its result. */
static void on_response(struct mcp_reach *r, const struct rpc_msg *m)
{
	struct mcp_asked *q = (struct mcp_asked *)r;
	struct mcp_call *c = q->call;

	q->stream = NULL;
	if (!m) {
		mcp_task_asks_others(c);
		return;
	}
	ask_legacy_settle(q, m);
	mcp_ask_settled(c);
}

static int send_question(struct mcp_call *c, struct mcp_asked *q, struct mcp_session *s,
			 void *stream, struct err *e)
{
	char id[ID_MAX];
	struct json_writer *w;

	id_make(id, "elicit");
	q->reach.done = on_response;
	q->sent_ms = c->server->o.now_ms();
	q->stream = stream;
	w = mcp_reach_start(s, &q->reach, mcp_question_method(q->kind));
	json_write_object(w);
	mcp_task_write_related(w, c);
	mcp_question_write(w, q->kind, c->profile, q->params ? json_root(q->params) : NULL, id);
	json_write_object_end(w);
	rpc_write_end(w);
	if (mcp_out_request(s, stream, e) == 0)
		return 0;
	mcp_reach_drop(&q->reach);
	return -1;
}

int mcp_ask_send(struct mcp_call *c, struct mcp_session *s, void *stream, struct err *e)
{
	for (struct mcp_asked *q = c->asking->first; q; q = q->next) {
		if (q->state == MCP_ASKED_OPEN && !q->reach.session &&
		    send_question(c, q, s, stream, e) < 0)
			return -1;
	}
	return 0;
}

static void ask_legacy_withdraw(struct mcp_asked *q, const char *reason)
{
	struct mcp_session *s = q->reach.session;
	struct json_writer *w;

	if (!s)
		return;
	mcp_reach_drop(&q->reach);
	w = mcp_out_begin(s->server);
	rpc_write_notification(w, "notifications/cancelled");
	json_write_object(w);
	mcp_task_write_related(w, q->call);
	json_put_uint(w, "requestId", q->reach.id);
	json_put_text(w, "reason", reason);
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_notify(s, q->stream);
	q->stream = NULL;
}

void mcp_ask_withdraw(struct mcp_call *c, const char *reason)
{
	for (struct mcp_asked *q = c->asking ? c->asking->first : NULL; q; q = q->next)
		ask_legacy_withdraw(q, reason);
}

/* All our requests to legacy clients are questions. */
static struct mcp_asked *find_on(const struct mcp_session *s, const void *stream)
{
	for (struct mcp_reach *r = s->reaches; r; r = r->next) {
		struct mcp_asked *q = (struct mcp_asked *)r;

		if (q->stream == stream)
			return q;
	}
	return NULL;
}

void mcp_ask_leave(struct mcp_session *s, const void *stream)
{
	struct mcp_asked *q;

	while ((q = find_on(s, stream)))
		ask_legacy_withdraw(q, "nothing on this stream waits for the answer");
}

static struct mcp_asked *find_overdue(const struct mcp_server *srv)
{
	uint64_t now = srv->o.now_ms();

	for (const struct mcp_session *s = srv->sessions; s; s = s->next) {
		for (struct mcp_reach *r = s->reaches; r; r = r->next) {
			struct mcp_asked *q = (struct mcp_asked *)r;

			if (now - q->sent_ms >= srv->o.ask_ms)
				return q;
		}
	}
	return NULL;
}

void mcp_ask_tick(struct mcp_server *srv)
{
	struct mcp_asked *q;

	while ((q = find_overdue(srv))) {
		struct mcp_call *c = q->call;
		char why[64];

		snprintf(why, sizeof(why), "no answer within %u s", srv->o.ask_ms / MS);
		ask_legacy_withdraw(q, why);
		mcp_asked_fail(c->asking, q, str_of(why));
		mcp_ask_settled(c);
	}
}
