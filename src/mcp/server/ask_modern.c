/*
 * Questions to a modern client. Its request is answered with input_required, and the questions and
 * answers so far go with it, sealed, as requestState. The client's next request brings them back;
 * the server keeps nothing in between. MCP 2026-07-28, basic/patterns/mrtr.
 */
#include <stdlib.h>

#include "mcp/server/internal.h"
#include "mcp/message/question.h"

enum { STATE_MAX = 2 * SEAL_PLAIN_MAX }; /* bytes of requestState */

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
		/* the random key from the start */
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
	if (!seal)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	seal->ring = ring_new(&srv->o, e);
	if (!seal->ring)
		return NULL;
	srv->seal = take_ptr(seal);
	return srv->seal->ring;
}

/* The context of a state: its principal, and its request. It is JSON, so that nothing can be moved
 * from one part to the next; base64 holds bytes that are not UTF-8. */
static int write_context(const struct mcp_call *c, struct buf *to, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_array(&w);
	json_write_base64(&w, mcp_principal(c->server, c->data));
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

/* --- modern: input_required --- */

/* Ends this request; the client's next one continues. */
static int answer_input_required(struct mcp_call *c, struct err *e)
{
	autobuf struct buf state = BUF_INIT(STATE_MAX);
	struct json_writer *w;

	if (seal_state(c, &state, e) < 0)
		return -1;
	w = mcp_call_result_begin(c);
	json_write_object(w);
	json_put_text(w, "resultType", "input_required");
	if (c->asking->open > 0) {
		json_write_key(w, "inputRequests");
		mcp_ask_write(w, c);
	}
	json_put_str(w, "requestState", buf_str(&state));
	mcp_result_close(w, c->server, c->profile, STR_NONE);
	mcp_call_result_end(c);
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

/* Asks again for what the client has left out, if the client can still be asked. */
static int ask_rest(struct mcp_call *c, struct rpc_fault *f)
{
	unsigned needs = 0;
	struct err e;

	for (const struct mcp_asked *q = c->asking->first; q; q = q->next) {
		if (q->state == MCP_ASKED_OPEN)
			needs |= mcp_question_needs(q->kind,
						    q->params ? json_root(q->params) : NULL);
	}
	if (!mcp_ask_can(c, needs))
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
	if (!mcp_asking_of(c, &e))
		return mcp_fault_of(f, &e);
	if (open_state(c, json_str(state), &e) < 0)
		return refuse_state(&e, f);
	if (mcp_ask_take(c, answers, f) < 0)
		return -1;
	return c->asking->open > 0 ? ask_rest(c, f) : 0;
}

/* Takes answers that came before their question. asked: there are new questions. */
int mcp_ask_modern(struct mcp_call *c, bool asked, struct err *e)
{
	struct rpc_fault f;

	if (mcp_ask_take(c, json_get(c->params, "inputResponses"), &f) < 0) {
		mcp_call_fault(c, &f);
		return 0;
	}
	if (c->asking->open > 0 || !asked)
		return answer_input_required(c, e);
	mcp_ask_run_again(c);
	return 0;
}
