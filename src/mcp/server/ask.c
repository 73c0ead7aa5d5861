/*
 * Questions to the client. The handler lists its questions and returns; this file sends them, as
 * the call's era requires:
 *
 * 	modern	The request is answered with input_required; requestState carries the questions and
 * 		answers so far, sealed. mcp_ask_resume() opens it in the call of the client's next
 * 		request; the server keeps nothing in between. Answers without a state (from a
 * 		client that knows the questions) wait in c->params until their question is asked.
 * 	legacy	Each question is a request of the server on the call's stream.
 * 	task	They wait in the task for tasks/update or, in 2025-11-25, tasks/result (task.c).
 *
 * The handler runs again when no question is open. A question that was answered or refused is not
 * asked again in the same call.
 */
#include <stdlib.h>

#include "mcp/server/internal.h"
#include "mcp/message/question.h"

/* --- what is waited for --- */

bool mcp_ask_can(const struct mcp_call *c, unsigned needs)
{
	unsigned can = c->can;

	can &= ~(c->profile->form ? 0u : MCP_CAN_FORM);
	can &= ~(c->profile->url ? 0u : MCP_CAN_URL);
	return (needs & ~can) == 0;
}

bool mcp_ask_waits(const struct mcp_call *c)
{
	return c->asking && c->asking->waits && !c->on_stack;
}

struct mcp_asking *mcp_asking_of(struct mcp_call *c, struct err *e)
{
	if (!c->asking)
		c->asking = calloc(1, sizeof(*c->asking));
	if (!c->asking)
		err_set(e, ERR_LIMIT, "out of memory");
	return c->asking;
}

/* No question is open. If the handler is running, it runs again after its return. */
void mcp_ask_run_again(struct mcp_call *c)
{
	c->asking->waits = false;
	if (c->on_stack)
		c->on_stack->again = true;
	else
		mcp_call_run(c);
}

void mcp_ask_settled(struct mcp_call *c)
{
	if (c->asking->open > 0)
		return;
	if (c->task)
		mcp_task_goes_on(c);
	mcp_ask_run_again(c);
}

void mcp_ask_end(struct mcp_call *c)
{
	if (!c->asking)
		return;
	mcp_ask_withdraw(c, "the request that needed it has ended");
	mcp_asking_fini(c->asking);
	free(take_ptr(c->asking));
}

/* --- what is open --- */

void mcp_ask_write(struct json_writer *w, const struct mcp_call *c)
{
	json_write_object(w);
	for (const struct mcp_asked *q = c->asking->first; q; q = q->next) {
		if (q->state != MCP_ASKED_OPEN)
			continue;
		json_put_object(w, q->key);
		json_put_text(w, "method", mcp_question_method(q->kind));
		json_put_object(w, "params");
		mcp_question_write(w, q->kind, c->profile, q->params ? json_root(q->params) : NULL,
				   NULL);
		json_write_object_end(w);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

int mcp_ask_take(struct mcp_call *c, const struct json_val *answers, struct rpc_fault *f)
{
	struct err e;

	for (struct mcp_asked *q = c->asking->first; q; q = q->next) {
		const struct json_val *v = json_get(answers, q->key);

		if (q->state != MCP_ASKED_OPEN || !v)
			continue;
		if (mcp_asked_answer(c->asking, q, v, &e) < 0)
			return mcp_fault_of(f, &e);
	}
	return 0;
}

/* --- for handlers --- */

static int check_call(const struct mcp_call *c, size_t n, struct err *e)
{
	if (c->cancelled)
		return err_set(e, ERR_CANCELLED, "the call was cancelled");
	if (c->kind != MCP_CALL_TOOL && c->kind != MCP_CALL_READ && c->kind != MCP_CALL_GET)
		return err_set(e, ERR_BUG, "only tools, resources and prompts can ask");
	if (c->asking && (c->asking->waits || (c->on_stack && c->on_stack->again)))
		return err_set(e, ERR_BUG, "asked twice in one run");
	if (n > c->server->o.asks_max)
		return err_set(e, ERR_LIMIT, "%zu questions at once, at most %u are taken", n,
			       c->server->o.asks_max);
	if (c->asking && c->asking->rounds >= MCP_ASK_ROUNDS_MAX)
		return err_set(e, ERR_LIMIT, "the client was asked %d times for one call",
			       MCP_ASK_ROUNDS_MAX);
	return 0;
}

/* Collects those of asks that are new. */
static int gather(const struct mcp_asking *a, const struct mcp_ask *asks, size_t n,
		  struct mcp_asking *fresh, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct mcp_asked *old = mcp_asking_find(a, str_of(asks[i].key));

		if (old && old->state == MCP_ASKED_FAILED)
			return err_set(e, ERR_CLIENT_FAILED, "the client was asked for %s: %s",
				       old->key, old->error ? old->error : "no answer");
		if (!old &&
		    !mcp_asking_add(fresh, str_of(asks[i].key), asks[i].kind, asks[i].params, e))
			return -1;
	}
	if (n > 0 && fresh->n == 0)
		return err_set(e, ERR_BUG, "%s was asked and answered already", asks[0].key);
	return 0;
}

static int check_can(const struct mcp_call *c, const struct mcp_asking *fresh, struct err *e)
{
	for (const struct mcp_asked *q = fresh->first; q; q = q->next) {
		if (!mcp_ask_can(c, mcp_question_needs(q->kind,
						       q->params ? json_root(q->params) : NULL)))
			return err_set(e, ERR_CLIENT_CANT, "%s", mcp_question_lack(q->kind));
	}
	return 0;
}

/* Makes the questions part of the call. */
static int take_questions(struct mcp_call *c, struct mcp_asking *fresh, struct str state,
			  struct err *e)
{
	struct mcp_asked *q;

	if (mcp_asking_set_state(c->asking, state, e) < 0)
		return -1;
	q = fresh->first;
	if (mcp_asking_append(c->asking, fresh, e) < 0)
		return -1;
	for (; q; q = q->next)
		q->call = c;
	c->asking->rounds++;
	return 0;
}

int mcp_call_ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, struct str state,
		 struct err *e)
{
	struct mcp_asking fresh = { 0 };
	bool asked = n > 0;

	if (check_call(c, n, e) < 0 || !mcp_asking_of(c, e))
		return -1;
	if (gather(c->asking, asks, n, &fresh, e) < 0 || check_can(c, &fresh, e) < 0 ||
	    take_questions(c, &fresh, state, e) < 0) {
		mcp_asking_fini(&fresh);
		return -1;
	}
	if (c->task) {
		c->asking->waits = true;
		if (asked)
			mcp_task_asks(c);
		else
			mcp_ask_run_again(c);
		return 0;
	}
	if (c->profile->modern)
		return mcp_ask_modern(c, asked, e);
	c->asking->waits = true;
	if (mcp_ask_send(c, c->session, c->in->stream, e) < 0) {
		c->asking->waits = false;
		mcp_ask_withdraw(c, "the request that needed it has failed");
		return -1;
	}
	if (!asked)
		mcp_ask_run_again(c);
	return 0;
}

static const struct mcp_asked *question_of(const struct mcp_call *c, const char *key)
{
	return c->asking ? mcp_asking_find(c->asking, str_of(key)) : NULL;
}

const struct json_val *mcp_call_answer(const struct mcp_call *c, const char *key)
{
	const struct mcp_asked *q = question_of(c, key);

	return q && q->answer ? json_root(q->answer) : NULL;
}

struct str mcp_call_ask_error(const struct mcp_call *c, const char *key)
{
	const struct mcp_asked *q = question_of(c, key);

	if (!q || q->state != MCP_ASKED_FAILED)
		return STR_NONE;
	return str_of(q->error ? q->error : "");
}

struct str mcp_call_state(const struct mcp_call *c)
{
	if (!c->asking || !c->asking->state)
		return STR_NONE;
	return (struct str){ c->asking->state, c->asking->state_n };
}

bool mcp_call_can_ask(const struct mcp_call *c, enum mcp_ask_kind kind)
{
	return (c->kind == MCP_CALL_TOOL || c->kind == MCP_CALL_READ || c->kind == MCP_CALL_GET) &&
	       mcp_ask_can(c, mcp_question_needs(kind, NULL));
}

bool mcp_call_stays(const struct mcp_call *c)
{
	return c->task || !c->profile->modern;
}

void mcp_call_cant_ask(struct mcp_call *c, enum mcp_ask_kind kind)
{
	struct rpc_fault f;
	struct err e;

	if (c->profile->modern) {
		mcp_fault_missing(&f, mcp_question_needs(kind, NULL));
		mcp_call_fault(c, &f);
		return;
	}
	err_set(&e, ERR_CLIENT_CANT, "%s", mcp_question_lack(kind));
	mcp_call_fail(c, &e);
}
