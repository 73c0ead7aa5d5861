/* Questions of legacy servers: each is a request of the server, answered by itself. MCP 2025-11-25,
 * client/elicitation, client/sampling, client/roots. */
#include "mcp/client/internal.h"

#include <stdlib.h>

static struct mcp_question *find_id(const struct mcp_client *c, const struct rpc_id *id)
{
	for (struct mcp_question *q = c->questions; q; q = q->next) {
		if (!q->p && str_eq(rpc_id_str(&q->id), rpc_id_str(id)))
			return q;
	}
	return NULL;
}

static int lacks(const struct mcp_client *c, enum mcp_ask_kind kind, struct rpc_fault *f)
{
	bool elicits = kind == MCP_ASK_FORM || kind == MCP_ASK_URL;
	bool other = elicits && (c->can & (MCP_CAN_FORM | MCP_CAN_URL));

	return rpc_fault_set(f, other ? RPC_INVALID_PARAMS : RPC_METHOD_NOT_FOUND, "%s",
			     mcp_question_lack(kind));
}

static int check_legacy(const struct mcp_client *c, const struct rpc_msg *m, int kind,
			struct rpc_fault *f)
{
	struct err e;

	if (kind < 0)
		return rpc_fault_set(f, RPC_METHOD_NOT_FOUND, "the client has no such method");
	if (mcp_question_needs((enum mcp_ask_kind)kind, m->params) & ~c->can)
		return lacks(c, (enum mcp_ask_kind)kind, f);
	if (c->state != MCP_CLIENT_READY)
		return rpc_fault_set(f, RPC_INVALID_REQUEST, "the session has not begun");
	if (c->questions_n >= c->o.questions_max)
		return mcp_over_limit(f, "one question too many", c->o.questions_max);
	if (mcp_question_read((enum mcp_ask_kind)kind, m->params, &e) < 0)
		return rpc_fault_set(f, RPC_INVALID_PARAMS, "%s", e.msg);
	return 0;
}

/* The request to which the question belongs; NULL if that is unknown. */
static struct mcp_pending *whose(const struct mcp_client *c, struct mcp_pending *on_stream,
				 const struct json_val *params)
{
	const struct json_val *task = json_get(json_get(params, "_meta"), MCP_META_TASK);
	struct mcp_pending *p = on_stream && !on_stream->ended ? on_stream : NULL;

	if (!p)
		p = mcp_follow_find(c, json_str(json_get(task, "taskId")));
	if (p || c->pendings_n != 1)
		return p;
	p = c->pendings;
	while (p && p->inner)
		p = p->next;
	return p;
}

static int begin_legacy(struct mcp_client *c, struct mcp_pending *on_stream, struct mcp_in *in,
			const struct rpc_msg *m, struct rpc_fault *f)
{
	int kind = mcp_question_find(m->method, m->params);
	struct mcp_question *q;
	struct err e;

	if (check_legacy(c, m, kind, f) < 0)
		return -1;
	q = calloc(1, sizeof(*q));
	if (!q)
		return mcp_over_limit(f, "out of memory", 0);
	q->client = c;
	q->kind = (enum mcp_ask_kind)kind;
	q->id = m->id;
	q->params = m->params;
	if (mcp_in_keep(in, &e) < 0) {
		mcp_question_free(q);
		return mcp_fault_of(f, &e);
	}
	q->in = in;
	q->clock = whose(c, on_stream, m->params);
	q->loose = !q->clock;
	mcp_question_open(q);
	mcp_question_hand_out(q);
	return 0;
}

void mcp_ask_legacy(struct mcp_client *c, struct mcp_pending *p, struct mcp_in *in,
		    const struct rpc_msg *m)
{
	struct rpc_fault f;
	struct err e;

	/* an id that is in use must not get a second answer */
	if (find_id(c, &m->id))
		c->garbage++;
	else if (str_is(m->method, "ping"))
		(void)!mcp_send_result(c, &m->id, STR_LIT("{}"), &e);
	else if (begin_legacy(c, p, in, m, &f) < 0)
		mcp_send_refusal(c, &m->id, &f);
}

void mcp_ask_outlives(struct mcp_pending *p)
{
	for (struct mcp_question *q = p->client->questions; q; q = q->next) {
		if (q->clock == p)
			q->clock = NULL;
	}
}

void mcp_ask_withdrawn(struct mcp_client *c, const struct rpc_id *id)
{
	struct mcp_question *q = find_id(c, id);

	if (q)
		mcp_question_withdraw(q);
	else
		c->strays++;
}

void mcp_ask_drop_legacy(struct mcp_client *c)
{
	struct mcp_question *q = c->questions;

	while (q) {
		if (q->p) {
			q = q->next;
			continue;
		}
		mcp_question_withdraw(q);
		q = c->questions;
	}
}
