/*
 * Questions of the server, in both eras. A modern question is in the answer to a request
 * (input_required), or in the state of a task. All answers are sent together, by repeating the
 * request or by tasks/update. A legacy question is a request of the server, answered by itself.
 *
 *	OPEN -> ANSWERED -> SENT	modern
 *	OPEN -> gone			legacy; or withdrawn
 */
#include "mcp/client/internal.h"

#include <stdlib.h>

enum {
	ANSWER_MAX = JSON_BYTES_MAX,
	SAMPLING_REFUSED = -1, /* client/sampling */
};

void mcp_question_free(struct mcp_question *q)
{
	if (!q)
		return;
	mcp_in_unref(q->in);
	free(q->key);
	free(q->result);
	free(q);
}

/* --- open questions --- */

void mcp_question_open(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	q->next = c->questions;
	q->at = &c->questions;
	if (q->next)
		q->next->at = &q->next;
	c->questions = q;
	c->questions_n++;
	if (q->loose)
		mcp_clocks_hold(c);
	if (q->clock)
		mcp_pending_hold(q->clock);
	if (q->p)
		q->p->open++;
}

static void close_question(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	*q->at = q->next;
	if (q->next)
		q->next->at = q->at;
	c->questions_n--;
	if (q->loose)
		mcp_clocks_unhold(c);
	if (q->clock)
		mcp_pending_unhold(q->clock);
	if (q->p)
		q->p->open--;
}

/* A question of a pending is freed with it. */
static void bury(struct mcp_question *q)
{
	q->gone = true;
	if (q->p)
		return;
	q->next = q->client->gone;
	q->client->gone = q;
}

void mcp_question_withdraw(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	close_question(q);
	q->state = MCP_QUESTION_SENT;
	bury(q);
	if (!c->freed && q->handed && c->o.handler->withdrawn)
		c->o.handler->withdrawn(c->o.owner, q);
}

void mcp_question_hand_out(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	if (q->kind == MCP_ASK_URL)
		mcp_urls_note(c, q->params);
	q->handed = true;
	if (c->o.handler->asked)
		c->o.handler->asked(c->o.owner, q);
	else
		mcp_question_refuse(q, "nobody is there to answer");
}

/* --- answers --- */

/* The question is answered. If none of its pending is open, continues that. */
static void question_settle(struct mcp_question *q)
{
	struct mcp_pending *p = q->p;

	q->state = MCP_QUESTION_ANSWERED;
	close_question(q);
	bury(q);
	if (p->open > 0)
		return;
	if (p->task)
		mcp_follow_go_on(p);
	else
		mcp_pending_go_on(p);
}

/* result is on one line, and valid for the question. */
static int reply(struct mcp_question *q, struct str result, struct err *e)
{
	if (q->p) {
		q->result = strndup(result.p, result.n);
		q->result_n = result.n;
		if (!q->result)
			return err_set(e, ERR_LIMIT, "out of memory");
		question_settle(q);
		return 0;
	}
	if (mcp_send_result(q->client, &q->id, result, e) < 0)
		return -1;
	close_question(q);
	bury(q);
	return 0;
}

int mcp_question_answer(struct mcp_question *q, struct str result, struct err *e)
{
	AUTO(mcp_client_leave) struct mcp_client *c = mcp_client_enter(q->client);
	const struct json_options o = { .bytes = ANSWER_MAX, .depth = 2 * JSON_DEPTH_MAX };
	autobuf struct buf line = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&line);
	AUTO(json_free) struct json_doc *d = NULL;

	if (q->gone || c->freed)
		return err_set(e, ERR_BUG, "the question is gone");
	d = json_parse(result, &o, e);
	if (!d) {
		e->code = e->code == ERR_LIMIT ? ERR_LIMIT : ERR_INVALID;
		return -1;
	}
	if (mcp_answer_check(q->kind, q->params, json_root(d), e) < 0)
		return -1;
	mcp_write_line(&w, result, json_root(d));
	if (json_write_done(&w, e) < 0)
		return -1;
	return reply(q, buf_str(&line), e);
}

/* The protocol has no refusal for it, so the request that depends on the answer fails. */
static void refuse_modern(struct mcp_question *q, const char *why)
{
	struct mcp_pending *p = q->p;
	struct err e;

	err_set(&e, ERR_CLIENT_FAILED, "%s was refused: %s", mcp_question_method(q->kind), why);
	q->state = MCP_QUESTION_SENT;
	close_question(q);
	bury(q);
	if (p->task)
		mcp_follow_cancel(p);
	mcp_pending_fail(p, &e);
}

void mcp_question_fail(struct mcp_question *q, const char *why)
{
	AUTO(mcp_client_leave) struct mcp_client *c = mcp_client_enter(q->client);
	struct rpc_fault f;

	if (q->gone || c->freed)
		return;
	if (q->p) {
		refuse_modern(q, why);
		return;
	}
	rpc_fault_set(&f, q->kind == MCP_ASK_SAMPLING ? SAMPLING_REFUSED : RPC_INTERNAL_ERROR, "%s",
		      why);
	mcp_send_refusal(q->client, &q->id, &f);
	close_question(q);
	bury(q);
}

void mcp_question_refuse(struct mcp_question *q, const char *why)
{
	AUTO(mcp_client_leave) struct mcp_client *c = mcp_client_enter(q->client);
	bool elicits = q->kind == MCP_ASK_FORM || q->kind == MCP_ASK_URL;
	struct err e = ERR_INIT;

	if (q->gone || c->freed)
		return;
	if (elicits && reply(q, STR_LIT("{\"action\":\"decline\"}"), &e) == 0)
		return;
	if (q->p && q->kind == MCP_ASK_ROOTS && reply(q, STR_LIT("{\"roots\":[]}"), &e) == 0)
		return;
	mcp_question_fail(q, e.code ? e.msg : why);
}

/* --- what is asked --- */

enum mcp_ask_kind mcp_question_kind(const struct mcp_question *q)
{
	return q->kind;
}

const struct json_val *mcp_question_params(const struct mcp_question *q)
{
	return q->params;
}

struct mcp_pending *mcp_question_pending(const struct mcp_question *q)
{
	return q->clock;
}

void mcp_question_set_data(struct mcp_question *q, void *data)
{
	q->data = data;
}

void *mcp_question_data(const struct mcp_question *q)
{
	return q->data;
}
