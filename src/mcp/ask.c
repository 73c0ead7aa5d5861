/*
 * Asking the client. The handler says what it wants to know and returns; here its questions go on
 * their way, by the era of the call:
 *
 *	modern	the request is answered with input_required; the questions and answers so far travel,
 *		sealed, in requestState. mcp_ask_resume() opens it in the call of the client's next
 *		request, and nothing was kept in between. Answers that come without a state (a client
 *		that knows what it will be asked) wait in c->params until their question is asked.
 *	legacy	each question is a request of ours on the call's stream
 *	task	they stand in the task until tasks/update or, in 2025-11-25, tasks/result (task.c)
 *
 * When no question is open, the handler runs again. A question that has its answer, or that the
 * client refused, is never asked again in the same call.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/log.h"
#include "json/utf8.h"
#include "mcp/asking.h"
#include "mcp/question.h"

enum {
	STATE_MAX = 2 * SEAL_PLAIN_MAX, /* bytes of requestState */
	REASON_MAX = 160, /* of a client's error */
	MS = 1000,
};

/* --- sealing --- */

static struct seal_ring *ring_new(const struct mcp_server_options *o, struct err *e)
{
	AUTO(seal_ring_free) struct seal_ring *ring = seal_ring_new(e);

	if (!ring || o->keys_n == 0)
		return take_ptr(ring);
	for (size_t i = o->keys_n; i-- > 0;) {
		const struct str key = { (const char *)o->keys[i], MCP_KEY_BYTES };

		if (seal_ring_add(ring, key, e) < 0)
			return NULL;
		/* the random one that it began with */
		if (i == o->keys_n - 1)
			seal_ring_trim(ring);
	}
	return take_ptr(ring);
}

struct mcp_seal {
	struct seal_ring *ring;
};

void mcp_seal_free(struct mcp_seal *seal)
{
	if (seal)
		seal_ring_free(seal->ring);
	free(seal);
}
AUTO_DEFINE(mcp_seal_free, struct mcp_seal)

static const struct seal_ring *ring_of(struct mcp_server *srv, struct err *e)
{
	AUTO(mcp_seal_free) struct mcp_seal *seal = NULL;

	if (srv->seal)
		return srv->seal->ring;
	seal = calloc(1, sizeof(*seal));
	if (!seal) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	seal->ring = ring_new(&srv->o, e);
	if (!seal->ring)
		return NULL;
	srv->seal = take_ptr(seal);
	return srv->seal->ring;
}

/* What a state belongs to: whose it is, and to do what. As JSON, so that nothing can be moved from
 * one part to the next. */
static int write_context(const struct mcp_call *c, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_array(&w);
	json_write_str(&w, mcp_principal(c->server, c->data));
	json_write_int(&w, c->kind);
	json_write_val(&w, json_get(c->params, c->kind == MCP_CALL_READ ? "uri" : "name"));
	json_write_val(&w, json_get(c->params, "arguments"));
	json_write_array_end(&w);
	return json_write_done(&w, e);
}

static int seal_state(struct mcp_call *c, struct buf *to, struct err *e)
{
	autobuf struct buf context = BUF_INIT(c->server->o.reply_max);
	const struct seal_ring *ring = ring_of(c->server, e);

	if (!ring || write_context(c, &context, e) < 0)
		return -1;
	return mcp_asking_seal(c->asking, ring, buf_str(&context),
			       c->server->o.wall_ms() + c->server->o.state_ms, to, e);
}

static int open_state(struct mcp_call *c, struct str text, struct err *e)
{
	autobuf struct buf context = BUF_INIT(c->server->o.reply_max);
	const struct seal_ring *ring = ring_of(c->server, e);

	if (!ring || write_context(c, &context, e) < 0)
		return -1;
	return mcp_asking_open(c->asking, ring, buf_str(&context), c->server->o.wall_ms(), text, e);
}

/* --- what is waited for --- */

static bool can_ask(const struct mcp_call *c, unsigned needs)
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

static struct mcp_asking *asking_of(struct mcp_call *c, struct err *e)
{
	if (!c->asking)
		c->asking = calloc(1, sizeof(*c->asking));
	if (!c->asking)
		err_set(e, ERR_LIMIT, "out of memory");
	return c->asking;
}

/* Nothing is open any more. From inside of the handler it runs again when it has returned. */
static void run_again(struct mcp_call *c)
{
	c->asking->waits = false;
	if (c->on_stack)
		c->on_stack->again = true;
	else
		mcp_call_run(c);
}

/* --- modern: input_required --- */

void mcp_ask_write(struct json_writer *w, const struct mcp_call *c)
{
	char id[ID_MAX];

	json_write_object(w);
	for (const struct mcp_question *q = c->asking->first; q; q = q->next) {
		if (q->state != MCP_QUESTION_OPEN)
			continue;
		id_make(id, "elicit");
		json_write_key(w, q->key);
		json_write_object(w);
		json_write_key(w, "method");
		json_write_text(w, mcp_question_method(q->kind));
		json_write_key(w, "params");
		json_write_object(w);
		mcp_question_write(w, q->kind, c->profile, q->params ? json_root(q->params) : NULL,
				   id);
		json_write_object_end(w);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

/* Ends this request; the client's next one goes on. */
static int answer_input_required(struct mcp_call *c, struct err *e)
{
	autobuf struct buf state = BUF_INIT(STATE_MAX);
	struct json_writer *w;

	if (seal_state(c, &state, e) < 0)
		return -1;
	w = mcp_call_result_begin(c);
	json_write_object(w);
	json_write_key(w, "resultType");
	json_write_text(w, "input_required");
	if (c->asking->open > 0) {
		json_write_key(w, "inputRequests");
		mcp_ask_write(w, c);
	}
	json_write_key(w, "requestState");
	json_write_str(w, buf_str(&state));
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	mcp_call_result_end(c);
	return 0;
}

int mcp_ask_take(struct mcp_call *c, const struct json_val *answers, struct rpc_fault *f)
{
	struct err e;

	for (struct mcp_question *q = c->asking->first; q; q = q->next) {
		const struct json_val *v = json_get(answers, q->key);

		if (q->state != MCP_QUESTION_OPEN || !v)
			continue;
		if (mcp_question_answer(c->asking, q, v, &e) < 0)
			return mcp_fault_of(f, &e);
	}
	return 0;
}

static int refuse_state(const struct err *e, struct rpc_fault *f)
{
	if (e->code == ERR_INVALID)
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "requestState is not one for this request; begin anew, "
				     "without it");
	if (e->code == ERR_TIMEOUT)
		return rpc_fault_set(f, RPC_INVALID_PARAMS,
				     "requestState has expired; begin anew, without it");
	return mcp_fault_of(f, e);
}

/* What the client left out is asked again, unless it can't be asked that any more. */
static int ask_rest(struct mcp_call *c, struct rpc_fault *f)
{
	unsigned needs = 0;
	struct err e;

	for (const struct mcp_question *q = c->asking->first; q; q = q->next) {
		if (q->state == MCP_QUESTION_OPEN)
			needs |= mcp_question_needs(q->kind,
						    q->params ? json_root(q->params) : NULL);
	}
	if (!can_ask(c, needs))
		return mcp_fault_missing(f, needs & ~c->can);
	return answer_input_required(c, &e) < 0 ? mcp_fault_of(f, &e) : 1;
}

int mcp_ask_resume(struct mcp_call *c, struct rpc_fault *f)
{
	const struct json_val *state = json_get(c->params, "requestState");
	const struct json_val *answers = json_get(c->params, "inputResponses");
	struct err e;

	if (answers && json_type(answers) != JSON_OBJECT)
		return mcp_takes("inputResponses", "an object", answers, f);
	if (!state)
		return 0;
	if (json_type(state) != JSON_STR)
		return mcp_takes("requestState", "a string", state, f);
	if (!asking_of(c, &e))
		return mcp_fault_of(f, &e);
	if (open_state(c, json_str(state), &e) < 0)
		return refuse_state(&e, f);
	if (mcp_ask_take(c, answers, f) < 0)
		return -1;
	return c->asking->open > 0 ? ask_rest(c, f) : 0;
}

/* Answers that came before their question. asked: there are new questions. */
static int ask_modern(struct mcp_call *c, bool asked, struct err *e)
{
	struct rpc_fault f;

	if (mcp_ask_take(c, json_get(c->params, "inputResponses"), &f) < 0) {
		mcp_call_fault(c, &f);
		return 0;
	}
	if (c->asking->open > 0 || !asked)
		return answer_input_required(c, e);
	run_again(c);
	return 0;
}

/* --- legacy: requests of ours --- */

static void settle(struct mcp_question *q, const struct rpc_msg *m)
{
	struct mcp_asking *a = q->call->asking;
	struct err e;

	if (m->error) {
		struct str says = json_str(json_get(m->error, "message"));

		mcp_question_fail(a, q,
				  says.n > 0 ? utf8_cut(says, REASON_MAX)
					     : STR_LIT("an error without a message"));
	} else if (mcp_question_answer(a, q, m->result, &e) < 0) {
		mcp_question_fail(a, q, str_of(e.msg));
	}
}

/* The session ended: its calls are cancelled; a task's question waits for who asks next. */
static void on_response(struct mcp_reach *r, const struct rpc_msg *m)
{
	struct mcp_question *q = (struct mcp_question *)r;
	struct mcp_call *c = q->call;

	q->stream = NULL;
	if (!m)
		return;
	settle(q, m);
	mcp_ask_settled(c);
}

void mcp_ask_settled(struct mcp_call *c)
{
	if (c->asking->open > 0)
		return;
	if (c->task)
		mcp_task_goes_on(c);
	run_again(c);
}

static int send_question(struct mcp_call *c, struct mcp_question *q, struct mcp_session *s,
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
	for (struct mcp_question *q = c->asking->first; q; q = q->next) {
		if (q->state == MCP_QUESTION_OPEN && !q->reach.session &&
		    send_question(c, q, s, stream, e) < 0)
			return -1;
	}
	return 0;
}

static void withdraw(struct mcp_question *q, const char *reason)
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
	json_write_key(w, "requestId");
	json_write_uint(w, q->reach.id);
	json_write_key(w, "reason");
	json_write_text(w, reason);
	json_write_object_end(w);
	rpc_write_end(w);
	mcp_out_notify(s, q->stream);
}

static void withdraw_all(struct mcp_call *c, const char *reason)
{
	for (struct mcp_question *q = c->asking ? c->asking->first : NULL; q; q = q->next)
		withdraw(q, reason);
}

void mcp_ask_end(struct mcp_call *c)
{
	if (!c->asking)
		return;
	withdraw_all(c, "the request that needed it has ended");
	mcp_asking_fini(c->asking);
	free(take_ptr(c->asking));
}

static struct mcp_question *find_overdue(const struct mcp_server *srv)
{
	uint64_t now = srv->o.now_ms();

	for (const struct mcp_session *s = srv->sessions; s; s = s->next) {
		for (struct mcp_reach *r = s->reaches; r; r = r->next) {
			struct mcp_question *q = (struct mcp_question *)r;

			if (now - q->sent_ms >= srv->o.ask_ms)
				return q;
		}
	}
	return NULL;
}

void mcp_ask_tick(struct mcp_server *srv)
{
	struct mcp_question *q;

	while ((q = find_overdue(srv))) {
		struct mcp_call *c = q->call;
		char why[64];

		snprintf(why, sizeof(why), "no answer within %u s", srv->o.ask_ms / MS);
		withdraw(q, why);
		mcp_question_fail(c->asking, q, str_of(why));
		mcp_ask_settled(c);
	}
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

/* Those of asks that are new. */
static int gather(const struct mcp_asking *a, const struct mcp_ask *asks, size_t n,
		  struct mcp_asking *fresh, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct mcp_question *old = mcp_asking_find(a, str_of(asks[i].key));

		if (old && old->state == MCP_QUESTION_FAILED)
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
	for (const struct mcp_question *q = fresh->first; q; q = q->next) {
		if (!can_ask(c,
			     mcp_question_needs(q->kind, q->params ? json_root(q->params) : NULL)))
			return err_set(e, ERR_CLIENT_CANT, "%s", mcp_question_lack(q->kind));
	}
	return 0;
}

/* The questions become the call's. */
static int take_questions(struct mcp_call *c, struct mcp_asking *fresh, struct str state,
			  struct err *e)
{
	struct mcp_question *q;

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

static int start(struct mcp_call *c, bool asked, struct err *e)
{
	if (c->task) {
		c->asking->waits = true;
		if (asked)
			mcp_task_asks(c);
		else
			run_again(c);
		return 0;
	}
	if (c->profile->modern)
		return ask_modern(c, asked, e);
	c->asking->waits = true;
	if (mcp_ask_send(c, c->session, c->in->stream, e) < 0) {
		c->asking->waits = false;
		withdraw_all(c, "the request that needed it has failed");
		return -1;
	}
	if (!asked)
		run_again(c);
	return 0;
}

int mcp_call_ask(struct mcp_call *c, const struct mcp_ask *asks, size_t n, struct str state,
		 struct err *e)
{
	struct mcp_asking fresh = { 0 };
	bool asked = n > 0;

	if (check_call(c, n, e) < 0 || !asking_of(c, e))
		return -1;
	if (gather(c->asking, asks, n, &fresh, e) < 0 || check_can(c, &fresh, e) < 0 ||
	    take_questions(c, &fresh, state, e) < 0) {
		mcp_asking_fini(&fresh);
		return -1;
	}
	return start(c, asked, e);
}

static const struct mcp_question *question_of(const struct mcp_call *c, const char *key)
{
	return c->asking ? mcp_asking_find(c->asking, str_of(key)) : NULL;
}

const struct json_val *mcp_call_answer(const struct mcp_call *c, const char *key)
{
	const struct mcp_question *q = question_of(c, key);

	return q && q->answer ? json_root(q->answer) : NULL;
}

struct str mcp_call_ask_error(const struct mcp_call *c, const char *key)
{
	const struct mcp_question *q = question_of(c, key);

	if (!q || q->state != MCP_QUESTION_FAILED)
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
	       can_ask(c, mcp_question_needs(kind, NULL));
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
