/* Received lines. */
#include "agents/acp/internal.h"
#include "rpc/sniff.h"

enum { VALUES_MAX = 1 << 17, WHY_MAX = 64 };

static const struct json_options limits = { .bytes = ACP_MESSAGE_MAX,
					    .values = VALUES_MAX,
					    .depth = JSON_DEPTH_MAX };

/* ---- answers -------------------------------------------------------------------------------- */

static bool is_why(struct str why)
{
	for (size_t i = 0; i < why.n; i++) {
		if ((why.p[i] < 'a' || why.p[i] > 'z') && why.p[i] != '_')
			return false;
	}
	return why.n > 0 && why.n <= WHY_MAX;
}

/* An internal error of a prompt may be of an engine that died below the program that speaks: then
 * every later prompt has the same answer, and only another process helps. */
static void on_prompt_refused(struct acp *a, const struct json_val *fault)
{
	int64_t code = RPC_INTERNAL_ERROR;
	struct err e;

	(void)json_int64(json_get(fault, "code"), &code);
	acp_fault_err(ACP_PROMPT, fault, &e);
	if (e.code == ERR_AGENT_LOGIN && a->prompt.n > 0 && !a->authenticated) {
		acp_authenticate(a);
		return;
	}
	a->refused = true;
	if (code == RPC_INTERNAL_ERROR && (a->can_resume || a->can_load || a->was_refused))
		acp_end(a, &e);
	else
		acp_end_turn(a, STR_NONE, &e);
}

static void on_prompted(struct acp *a, const struct json_val *result, const struct json_val *fault)
{
	struct str why = json_str(json_get(result, "stopReason"));
	struct err e;

	if (fault) {
		on_prompt_refused(a, fault);
	} else if (a->version == 2) {
		a->accepted = true;
	} else if (is_why(why)) {
		acp_end_turn(a, why, NULL);
	} else {
		err_set(&e, ERR_AGENT, "the agent ended its turn without a reason");
		acp_end_turn(a, STR_NONE, &e);
	}
}

static void take_answer(struct acp *a, enum acp_method method, const struct json_val *result,
			const struct json_val *fault)
{
	struct err e;

	switch (method) {
	case ACP_NONE:
	case ACP_METHODS:
		a->strays++;
		break;
	case ACP_PROMPT:
		on_prompted(a, result, fault);
		break;
	case ACP_SET_MODE:
	case ACP_SET_MODEL:
	case ACP_SET_OPTION:
		if (fault)
			acp_fault_err(method, fault, &e);
		a->o.handler->set(a->o.owner, fault ? NULL : result, fault ? &e : NULL);
		break;
	default:
		acp_open_answer(a, method, result, fault);
	}
}

/* The answer to a request of ours is of no use. */
static void fail(struct acp *a, const struct rpc_id *id, const struct err *why)
{
	enum acp_method method = id->n > 0 ? acp_pending_take(a, id) : ACP_NONE;

	if (method == ACP_NONE)
		a->strays++;
	else if (method == ACP_PROMPT)
		acp_end_turn(a, STR_NONE, why);
	else if (method >= ACP_SET_MODE)
		a->o.handler->set(a->o.owner, NULL, why);
	else
		acp_end(a, why);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Programs print banners there: only what was a request is answered. */
static void take_unread(struct acp *a, struct str line, const struct rpc_id *asked,
			const struct rpc_fault *f)
{
	struct rpc_sniff sniff = { 0 };
	struct rpc_id id;
	struct err e;

	if (asked->n > 0) {
		a->strays++;
		acp_send_fault(a, asked, f);
		return;
	}
	rpc_sniff_feed(&sniff, line);
	rpc_sniff_answer_id(&sniff, &id);
	err_set(&e, ERR_AGENT, "the agent's answer can't be read: %s", f->message);
	fail(a, &id, &e);
}

static void take_message(struct acp *a, struct json_doc **doc)
{
	const struct json_val *v = json_root(*doc);
	struct rpc_fault f;
	struct rpc_msg m;
	struct rpc_id id;
	bool silent;
	struct err e;

	if (rpc_read(v, &m, &f, &silent) < 0) {
		if (!silent && m.id.n > 0)
			acp_send_fault(a, &m.id, &f);
		err_set(&e, ERR_AGENT, "the agent's answer is no message: %s", f.message);
		fail(a, silent ? &m.id : &(struct rpc_id){ 0 }, &e);
		return;
	}
	switch (m.kind) {
	case RPC_RESPONSE:
		take_answer(a, m.id.n > 0 ? acp_pending_take(a, &m.id) : ACP_NONE, m.result,
			    m.error);
		break;
	case RPC_NOTIFICATION:
		if (str_is(m.method, "session/update"))
			acp_update_take(a, m.params);
		else if (str_is(m.method, "$/cancel_request") &&
			 rpc_id_read(json_get(m.params, "requestId"), &id))
			acp_ask_cancelled(a, &id);
		break; /* all others are extensions */
	case RPC_REQUEST:
		acp_ask_take(a, &m, doc);
		break;
	}
}

void acp_take(struct acp *a, struct str line)
{
	AUTO(acp_leave) struct acp *in = acp_enter(a);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct rpc_fault f;
	struct rpc_id id;

	if (!acp_lives(in))
		return;
	in->line_n = line.n;
	if (rpc_parse(line, &limits, &doc, &f, &id) < 0)
		take_unread(in, line, &id, &f);
	else if (json_type(json_root(doc)) != JSON_OBJECT)
		in->strays++;
	else
		take_message(in, &doc);
}

void acp_dropped(struct acp *a, const struct rpc_sniff *sniff, const struct err *why)
{
	AUTO(acp_leave) struct acp *in = acp_enter(a);
	struct rpc_fault f;
	struct rpc_id id;

	if (!acp_lives(in))
		return;
	rpc_sniff_id(sniff, &id);
	if (id.n > 0) {
		in->strays++;
		rpc_fault_set(&f, RPC_INVALID_REQUEST, "%s", why->msg);
		acp_send_fault(in, &id, &f);
		return;
	}
	rpc_sniff_answer_id(sniff, &id);
	fail(in, &id, why);
}
