/*
 * Questions of the server, in both eras. A modern one stands in the answer to a request (input_required), or
 * in the state of a task: what is asked is answered all at once, with the request sent anew or by
 * tasks/update. A legacy one is a request of the server, answered by itself. MCP 2026-07-28,
 * basic/patterns/mrtr; 2025-11-25, client/elicitation, client/sampling, client/roots.
 */
#include "mcp/client_impl.h"

#include <stdlib.h>

enum {
	KEY_MAX = 1024,
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
AUTO_DEFINE(mcp_question_free, struct mcp_question)

/* --- open questions --- */

static void open_question(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	q->next = c->questions;
	q->at = &c->questions;
	if (q->next)
		q->next->at = &q->next;
	c->questions = q;
	c->questions_n++;
	if (!q->p) {
		mcp_clocks_hold(c);
		return;
	}
	q->p->open++;
	mcp_pending_hold(q->p);
}

static void close_question(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	*q->at = q->next;
	if (q->next)
		q->next->at = q->at;
	c->questions_n--;
	if (!q->p) {
		mcp_clocks_unhold(c);
		return;
	}
	q->p->open--;
	mcp_pending_unhold(q->p);
}

/* A pending's own are freed with it. */
static void bury(struct mcp_question *q)
{
	q->gone = true;
	if (q->p)
		return;
	q->next = q->client->gone;
	q->client->gone = q;
}

static void withdraw(struct mcp_question *q)
{
	struct mcp_client *c = q->client;

	close_question(q);
	q->state = MCP_QUESTION_SENT;
	bury(q);
	if (!c->freed && q->handed && c->o.handler->withdrawn)
		c->o.handler->withdrawn(c->o.owner, q);
}

static void hand_out(struct mcp_question *q)
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

/* --- modern: of one request --- */

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

	if (!q || !(q->key = strndup(key.p, key.n))) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	q->key_n = key.n;
	q->client = p->client;
	q->p = p;
	q->params = params;
	if (kind < 0 || key.n > KEY_MAX) {
		err_set(e, ERR_INVALID, "the server asks what is no question");
		return NULL;
	}
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
	open_question(take_ptr(q));
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

/* The first is handed out first. */
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
		hand_out(q);
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
			withdraw(q);
	}
}

void mcp_ask_drop(struct mcp_pending *p)
{
	for (struct mcp_question *q = p->asked; q; q = q->sibling) {
		if (q->state == MCP_QUESTION_OPEN)
			withdraw(q);
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

/* --- legacy: requests of the server --- */

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

static int begin_legacy(struct mcp_client *c, struct mcp_in *in, const struct rpc_msg *m,
			struct rpc_fault *f)
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
	open_question(q);
	hand_out(q);
	return 0;
}

void mcp_ask_legacy(struct mcp_client *c, struct mcp_in *in, const struct rpc_msg *m)
{
	struct rpc_fault f;
	struct err e;

	/* two answers with one id would be one too many */
	if (find_id(c, &m->id))
		c->garbage++;
	else if (str_is(m->method, "ping"))
		(void)!mcp_send_result(c, &m->id, STR_LIT("{}"), &e);
	else if (begin_legacy(c, in, m, &f) < 0)
		mcp_send_refusal(c, &m->id, &f);
}

void mcp_ask_withdrawn(struct mcp_client *c, const struct rpc_id *id)
{
	struct mcp_question *q = find_id(c, id);

	if (q)
		withdraw(q);
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
		withdraw(q);
		q = c->questions;
	}
}

/* --- answers --- */

/* Everything that was asked has its answer: on with it. */
static void settle(struct mcp_question *q)
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

/* result is on one line, and what the server asked for. */
static int reply(struct mcp_question *q, struct str result, struct err *e)
{
	if (q->p) {
		q->result = strndup(result.p, result.n);
		q->result_n = result.n;
		if (!q->result)
			return err_set(e, ERR_LIMIT, "out of memory");
		settle(q);
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

static void refuse_legacy(struct mcp_question *q, const char *why)
{
	struct rpc_fault f;

	rpc_fault_set(&f, q->kind == MCP_ASK_SAMPLING ? SAMPLING_REFUSED : RPC_INTERNAL_ERROR, "%s",
		      why);
	mcp_send_refusal(q->client, &q->id, &f);
	close_question(q);
	bury(q);
}

/* There is no word for it: what depends on the answer can't go on. */
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
	if (q->p)
		refuse_modern(q, e.code ? e.msg : why);
	else
		refuse_legacy(q, why);
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

void mcp_question_set_data(struct mcp_question *q, void *data)
{
	q->data = data;
}

void *mcp_question_data(const struct mcp_question *q)
{
	return q->data;
}
