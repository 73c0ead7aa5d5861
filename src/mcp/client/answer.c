/* Handles answers: the end of a request, or the same request in another way. */
#include "mcp/client/internal.h"

/* --- retries --- */

/* MCP 2026-07-28, basic/versioning: retry with a revision that both have. */
static bool renegotiates(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	const struct json_val *supported = json_get(json_get(a->fault, "data"), "supported");
	const struct mcp_profile *common;

	if (a->code != MCP_UNSUPPORTED_VERSION || p->renegotiated || c->era != MCP_MODERN)
		return false;
	common = mcp_version_common(c, supported, true);
	if (!common)
		return false;
	p->renegotiated = true;
	c->profile = common;
	mcp_pending_go_on(p);
	return true;
}

static void refreshed(void *owner, const struct mcp_listed *l)
{
	struct mcp_client *c = owner;
	struct mcp_pending *p = c->pendings;

	c->refresh = NULL;
	/* continues with what is known now, even if it is unchanged: then the owner gets the
	 * server's error */
	while (mcp_client_lives(c) && p) {
		if (!p->refreshing) {
			p = p->next;
			continue;
		}
		p->refreshing = false;
		mcp_pending_go_on(p);
		p = c->pendings;
	}
}

/* basic/transports/streamable-http: our knowledge of the tool's headers is outdated. */
static bool refreshes(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct mcp_client *c = p->client;
	struct err e;

	if (a->code != MCP_HEADER_MISMATCH || p->refreshed || !c->t->streams ||
	    c->era != MCP_MODERN || strcmp(p->method, "tools/call") != 0)
		return false;
	if (!c->refresh)
		c->refresh = mcp_list_tools(c, refreshed, &e);
	if (!c->refresh)
		return false;
	p->refreshed = p->refreshing = true;
	mcp_pending_alive(p);
	return true;
}

/* 2025-11-25, basic/utilities/tasks: a tool that can only be called as a task is refused like
 * this. */
static bool becomes_task(struct mcp_pending *p, const struct mcp_answer *a)
{
	if (a->code != RPC_METHOD_NOT_FOUND || p->wants_task ||
	    !(p->client->o.can & MCP_CAN_TASKS) || !mcp_request_can_task(p))
		return false;
	p->wants_task = true;
	mcp_pending_go_on(p);
	return true;
}

bool mcp_answer_retries(struct mcp_pending *p, const struct mcp_answer *a)
{
	return renegotiates(p, a) || refreshes(p, a) || becomes_task(p, a);
}

/* --- the end --- */

void mcp_answer_finish(struct mcp_pending *p, const struct mcp_answer *a)
{
	struct err e;

	if (mcp_result_check(p, a->result, &e) < 0) {
		mcp_pending_fail(p, &e);
		return;
	}
	if (strcmp(p->method, "tools/list") == 0)
		mcp_tools_learn_page(p, a->result);
	mcp_pending_end(p, a);
}

/* 2025-11-25, client/elicitation: remembers the URLs, so that the owner is told when they are
 * complete. */
static void note_urls(struct mcp_client *c, const struct mcp_answer *a)
{
	const struct json_val *asked = json_get(json_get(a->fault, "data"), "elicitations");
	struct json_iter it = json_iter(asked);

	while (a->code == MCP_URL_REQUIRED && json_type(asked) == JSON_ARRAY && json_next(&it))
		mcp_urls_note(c, it.val);
}

void mcp_answer_take(struct mcp_pending *p, struct mcp_in *in, const struct mcp_answer *a)
{
	struct err e;

	if (p->step != MCP_STEP_REQUEST) {
		mcp_follow_take(p, in, a);
		return;
	}
	if (a->fault) {
		if (mcp_answer_retries(p, a))
			return;
		note_urls(p->client, a);
		mcp_pending_end(p, a);
		return;
	}
	switch (mcp_result_type(p, a->result, &e)) {
	case MCP_RESULT_COMPLETE:
		mcp_answer_finish(p, a);
		break;
	case MCP_RESULT_INPUT:
		mcp_ask_round(p, in, a->result);
		break;
	case MCP_RESULT_TASK:
		mcp_follow_begin(p, in, a->result);
		break;
	default:
		mcp_pending_fail(p, &e);
		break;
	}
}
