/* Messages of ours, and which of them wait for an answer. */
#include "agents/acp/internal.h"
#include "json/document/utf8.h"

enum { FAULT_MAX = 96 }; /* bytes of what an error says */

static const char *const methods[3][ACP_METHODS] = {
	[1] = { [ACP_INITIALIZE] = "initialize",
		[ACP_AUTHENTICATE] = "authenticate",
		[ACP_SESSION_NEW] = "session/new",
		[ACP_SESSION_LOAD] = "session/load",
		[ACP_SESSION_RESUME] = "session/resume",
		[ACP_PROMPT] = "session/prompt",
		[ACP_SET_MODE] = "session/set_mode",
		[ACP_SET_MODEL] = "session/set_model",
		[ACP_SET_OPTION] = "session/set_config_option" },
	[2] = { [ACP_INITIALIZE] = "initialize",
		[ACP_AUTHENTICATE] = "auth/login",
		[ACP_SESSION_NEW] = "session/new",
		[ACP_SESSION_RESUME] = "session/resume",
		[ACP_PROMPT] = "session/prompt",
		[ACP_SET_OPTION] = "session/set_config_option" },
};

static void out_begin(struct acp_out *m, struct acp *a)
{
	m->a = a;
	m->b = BUF_INIT(ACP_MESSAGE_MAX);
	m->pending = NULL;
	json_writer_init(&m->w, &m->b);
}

void acp_out_request(struct acp_out *m, struct acp *a, enum acp_method method)
{
	struct err e;

	out_begin(m, a);
	for (size_t i = 0; i < ACP_PENDING_MAX && !m->pending; i++) {
		if (a->pending[i].method == ACP_NONE)
			m->pending = &a->pending[i];
	}
	if (m->pending) {
		*m->pending = (struct acp_pending){ method, ++a->ids };
	} else {
		err_set(&e, ERR_CONFLICT, "the agent has not answered %d requests",
			ACP_PENDING_MAX);
		json_write_fail(&m->w, &e);
	}
	rpc_write_request(&m->w, a->ids, methods[a->version ?: 1][method]);
}

void acp_out_result(struct acp_out *m, struct acp *a, const struct rpc_id *id)
{
	out_begin(m, a);
	rpc_write_result(&m->w, id);
}

void acp_out_notification(struct acp_out *m, struct acp *a, const char *method)
{
	out_begin(m, a);
	rpc_write_notification(&m->w, method);
}

int acp_out_end(struct acp_out *m, struct err *e)
{
	int rc;

	rpc_write_end(&m->w);
	rc = json_write_done(&m->w, e);
	if (rc == 0)
		m->a->o.handler->send(m->a->o.owner, buf_str(&m->b));
	else if (m->pending)
		m->pending->method = ACP_NONE;
	buf_wipe(&m->b); /* it may have a token */
	return rc;
}

void acp_send_fault(struct acp *a, const struct rpc_id *id, const struct rpc_fault *f)
{
	struct acp_out m;
	struct err e;

	out_begin(&m, a);
	rpc_write_fault(&m.w, id, f);
	if (json_write_done(&m.w, &e) == 0)
		a->o.handler->send(a->o.owner, buf_str(&m.b));
	buf_fini(&m.b);
}

enum acp_method acp_pending_take(struct acp *a, const struct rpc_id *id)
{
	char digits[RPC_DIGITS];

	for (size_t i = 0; i < ACP_PENDING_MAX; i++) {
		struct acp_pending *p = &a->pending[i];
		const enum acp_method method = p->method;

		if (method == ACP_NONE ||
		    !str_eq(rpc_id_str(id), (struct str){ digits, rpc_put_uint(digits, p->id) }))
			continue;
		p->method = ACP_NONE;
		return method;
	}
	return ACP_NONE;
}

/* What an error says beside its message, on one line: agents put the cause there. */
static struct str fault_data(const struct json_val *data, char *room, size_t size)
{
	static const char *const members[] = { "details", "message", "error", "reason" };
	struct str text = json_str(data);
	autobuf struct buf whole = BUF_INIT(ACP_MESSAGE_MAX);
	struct json_writer w = json_writer(&whole);
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(members) && !text.n; i++)
		text = json_str(json_get(data, members[i]));
	if (!text.n && json_type(data) == JSON_OBJECT && json_len(data) > 0) {
		json_write_val(&w, data);
		if (json_write_done(&w, &e) == 0)
			text = buf_str(&whole);
	}
	return utf8_line(text, room, size);
}

int acp_fault_err(enum acp_method method, const struct json_val *fault, struct err *e)
{
	struct str said = json_str(json_get(fault, "message"));
	char room[FAULT_MAX], more_room[FAULT_MAX];
	struct str more = fault_data(json_get(fault, "data"), more_room, sizeof(more_room));
	int64_t code = RPC_INTERNAL_ERROR;

	(void)json_int64(json_get(fault, "code"), &code);
	said = utf8_line(said, room, sizeof(room));
	if (str_eq(said, more))
		more.n = 0;
	return err_set(e, code == ACP_AUTH_REQUIRED ? ERR_AGENT_LOGIN : ERR_AGENT,
		       "the agent refused %s: %.*s%s%.*s (%lld)", methods[1][method], STR_ARG(said),
		       more.n ? ": " : "", STR_ARG(more), (long long)code);
}
