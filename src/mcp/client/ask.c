/* Questions of modern servers: in the answer to a request, or in the state of a task. MCP
 * 2026-07-28, basic/patterns/mrtr. */
#include "mcp/client/internal.h"

#include <stdlib.h>

enum { KEY_MAX = 1024 };

static struct mcp_question *find_key(const struct mcp_pending *p, struct str key)
{
	for (struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (str_eq((struct str){ q->key, q->key_n }, key))
			return q;
	}
	return NULL;
}

static struct mcp_question *read_question(struct mcp_pending *p, struct str key,
					  const struct json_val *request, struct err *e)
{
	AUTO(mcp_question_free) struct mcp_question *q = calloc(1, sizeof(*q));
	const struct json_val *params = json_get(request, "params");
	int kind = mcp_question_find(json_str(json_get(request, "method")), params);

	if (!q || !(q->key = mem_dup(key.p, key.n)))
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	q->key_n = key.n;
	q->client = p->client;
	q->p = q->clock = p;
	q->params = params;
	if (kind < 0 || key.n > KEY_MAX)
		return err_set(e, ERR_INVALID, "the server asks what is no question"), NULL;
	q->kind = (enum mcp_ask_kind)kind;
	if (mcp_question_needs(q->kind, params) & ~p->client->can) {
		err_set(e, ERR_INVALID, "the server asks for %s, which was not offered to it",
			mcp_question_method(q->kind));
		return NULL;
	}
	return mcp_question_read(q->kind, params, e) < 0 ? NULL : take_ptr(q);
}

static int add_question(struct mcp_pending *p, struct mcp_in *in, struct str key,
			const struct json_val *request, struct err *e)
{
	AUTO(mcp_question_free) struct mcp_question *q = NULL;

	if (p->client->questions_n >= p->client->o.questions_max)
		return err_set(e, ERR_LIMIT, "the server asks more than %u questions at once",
			       p->client->o.questions_max);
	q = read_question(p, key, request, e);
	if (!q || mcp_in_keep(in, e) < 0)
		return -1;
	q->in = in;
	q->sibling = p->asked;
	p->asked = q;
	mcp_question_open(take_ptr(q));
	return 0;
}

int mcp_ask_take_map(struct mcp_pending *p, struct mcp_in *in, const struct json_val *map,
		     struct err *e)
{
	struct json_iter it = json_iter(map);
	int n = 0;

	if (map && json_type(map) != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "inputRequests takes an object, not %s",
			       json_type_name(json_type(map)));
	while (json_next(&it)) {
		if (find_key(p, it.key))
			continue;
		if (add_question(p, in, it.key, it.val, e) < 0)
			return -1;
		n++;
	}
	return n;
}

/* In the order of the questions. */
static struct mcp_question *find_next(const struct mcp_pending *p)
{
	struct mcp_question *first = NULL;

	for (struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (q->state == MCP_QUESTION_OPEN && !q->handed)
			first = q;
	}
	return first;
}

void mcp_ask_hand_out(struct mcp_pending *p)
{
	struct mcp_question *q;

	while (!p->ended && (q = find_next(p)))
		mcp_question_hand_out(q);
}

void mcp_ask_forget(struct mcp_pending *p)
{
	struct mcp_client *c = p->client;

	while (p->asked) {
		struct mcp_question *q = p->asked;

		p->asked = q->sibling;
		q->next = c->gone;
		c->gone = q;
	}
	mcp_in_unref(take_ptr(p->state_in));
	p->state = NULL;
}

static int read_round(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result,
		      struct err *e)
{
	const struct json_val *state = json_get(result, "requestState");
	const struct json_val *map = json_get(result, "inputRequests");

	if (p->rounds++ >= p->client->o.rounds_max)
		return err_set(e, ERR_LIMIT, "the server asks for more than %u rounds of input",
			       p->client->o.rounds_max);
	if (state && json_type(state) != JSON_STR)
		return err_set(e, ERR_INVALID, "requestState takes a string, not %s",
			       json_type_name(json_type(state)));
	if (!state && json_len(map) == 0)
		return err_set(e, ERR_INVALID, "the server wants input and does not say what");
	if (state) {
		if (mcp_in_keep(in, e) < 0)
			return -1;
		p->state_in = in;
		p->state = state;
	}
	return mcp_ask_take_map(p, in, map, e);
}

void mcp_ask_round(struct mcp_pending *p, struct mcp_in *in, const struct json_val *result)
{
	struct err e;

	mcp_ask_forget(p);
	if (read_round(p, in, result, &e) < 0)
		mcp_pending_fail(p, &e);
	else if (p->open == 0)
		mcp_pending_go_on(p);
	else
		mcp_ask_hand_out(p);
}

void mcp_ask_drop_missing(struct mcp_pending *p, const struct json_val *map)
{
	for (struct mcp_question *q = p->asked; q && !p->ended; q = q->sibling) {
		if (q->state == MCP_QUESTION_OPEN &&
		    !json_get_str(map, (struct str){ q->key, q->key_n }))
			mcp_question_withdraw(q);
	}
}

void mcp_ask_drop(struct mcp_pending *p)
{
	for (struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (q->state == MCP_QUESTION_OPEN)
			mcp_question_withdraw(q);
	}
}

bool mcp_ask_has_answers(const struct mcp_pending *p)
{
	for (const struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (q->state == MCP_QUESTION_ANSWERED)
			return true;
	}
	return false;
}

void mcp_ask_write_answers(struct json_writer *w, const struct mcp_pending *p)
{
	json_write_object(w);
	for (const struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (q->state != MCP_QUESTION_ANSWERED)
			continue;
		json_write_key_str(w, (struct str){ q->key, q->key_n });
		json_write_raw(w, (struct str){ q->result, q->result_n });
	}
	json_write_object_end(w);
}

void mcp_ask_sent(struct mcp_pending *p)
{
	for (struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (q->state != MCP_QUESTION_ANSWERED)
			continue;
		q->state = MCP_QUESTION_SENT;
		free(take_ptr(q->result));
	}
}
