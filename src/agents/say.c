/*
 * What an agent reports becomes events. Pieces of a message are shown live, and the whole is one
 * event: a reader of the log sees messages, not how they came.
 */
#include "agents/internal.h"
#include "base/log.h"
#include "json/document/put.h"
#include "json/document/utf8.h"

enum {
	ROOM = EVENTS_DATA_MAX,
	LOG_MAX = 256 << 20, /* of one process */
	MODE_MS = 1000, /* from one writing of the record to the next */
};

int agent_said(struct agent *a, size_t n, struct err *e)
{
	a->said += n;
	return a->said <= LOG_MAX
		     ? 0
		     : err_set(e, ERR_LIMIT, "the agent has said more than %d MiB", LOG_MAX >> 20);
}

void agent_event(struct agent *a, const char *type, struct json_writer *w, struct buf *b)
{
	struct err e;

	if (agent_said(a, b->n, &e) < 0 || json_write_done(w, &e) < 0 ||
	    (a->conversation &&
	     conversation_append(a->conversation, type, buf_str(b), NULL, &e) < 0))
		agent_fail_later(a, &e);
}

/* ---- messages and thoughts ------------------------------------------------------------------ */

const char *agent_say_type(const struct agent *a)
{
	return a->say.kind == ACP_THOUGHT ? "agent_thought" : "agent_message";
}

/* piece: which one of a message text is; 0: it is the whole. */
static void write_say(struct json_writer *w, const struct agent *a, struct str text, unsigned piece)
{
	json_write_object(w);
	json_put_str(w, "text", text);
	if (a->say.message_id[0])
		json_put_text(w, "message_id", a->say.message_id);
	if (piece)
		json_put_uint(w, "piece", piece);
	json_write_object_end(w);
}

void agent_say_end(struct agent *a)
{
	autobuf struct buf b = BUF_INIT(ROOM);
	struct json_writer w = json_writer(&b);

	if (a->say.text.n == 0 || !a->conversation)
		return;
	write_say(&w, a, buf_str(&a->say.text), 0);
	a->say.text.n = 0;
	a->say.pieces = 0;
	agent_event(a, agent_say_type(a), &w, &b);
}

static void say_live(struct agent *a, struct str text)
{
	autobuf struct buf b = BUF_INIT(ROOM);
	struct json_writer w = json_writer(&b);
	struct err e;

	write_say(&w, a, text, ++a->say.pieces);
	if (json_write_done(&w, &e) == 0)
		conversation_live(a->conversation,
				  a->say.kind == ACP_THOUGHT ? "agent_thought_chunk"
							     : "agent_message_chunk",
				  buf_str(&b));
}

static void say(struct agent *a, const struct acp_update *u)
{
	bool same = a->say.kind == u->kind && str_is(u->message_id, a->say.message_id);
	struct str rest = u->text;
	struct err e;

	if (!same)
		agent_say_end(a);
	if (same && u->whole)
		a->say.text.n = 0;
	a->say.kind = u->kind;
	snprintf(a->say.message_id, sizeof(a->say.message_id), "%.*s", STR_ARG(u->message_id));
	while (rest.n > 0 && a->conversation) {
		struct str piece = utf8_cut(rest, AGENT_SAY_MAX - a->say.text.n);

		if (piece.n == 0) {
			agent_say_end(a); /* a long one is several events */
			continue;
		}
		if (buf_add(&a->say.text, piece.p, piece.n, &e) < 0) {
			agent_fail(a, &e);
			return;
		}
		say_live(a, piece);
		rest.p += piece.n;
		rest.n -= piece.n;
	}
}

/* ---- the others ----------------------------------------------------------------------------- */

/* Members as they are sent, and as events have them. large: left out of what is too large. */
static const struct say_row {
	const char *from, *to;
	bool large;
} tool_rows[] = {
	{ "toolCallId", "tool_call_id", false },
	{ "title", "title", false },
	{ "name", "name", false },
	{ "kind", "kind", false },
	{ "status", "status", false },
	{ "locations", "locations", true },
	{ "content", "content", true },
	{ "rawInput", "raw_input", true },
	{ "rawOutput", "raw_output", true },
}, usage_rows[] = {
	{ "used", "used", false },
	{ "size", "size", false },
	{ "cost", "cost", false },
}, plan_rows[] = {
	{ "entries", "entries", false },
};

static void write_rows(struct json_writer *w, const struct json_val *v, const struct say_row *rows,
		       size_t n, bool small)
{
	json_write_object(w);
	for (size_t i = 0; i < n; i++) {
		const struct json_val *member = json_get(v, rows[i].from);

		if (!member || (small && rows[i].large))
			continue;
		json_put_val(w, rows[i].to, member);
	}
	if (small)
		json_put_bool(w, "truncated", true);
	json_write_object_end(w);
}

static void say_rows(struct agent *a, const char *type, const struct json_val *v,
		     const struct say_row *rows, size_t n)
{
	autobuf struct buf b = BUF_INIT(ROOM);
	struct json_writer w = json_writer(&b);

	write_rows(&w, v, rows, n, false);
	if (w.err.code == ERR_TOO_LARGE) {
		buf_fini(&b);
		w = json_writer(&b);
		write_rows(&w, v, rows, n, true);
	}
	agent_event(a, type, &w, &b);
}

void agent_keep_mode(struct agent *a)
{
	struct conversation_record r;
	struct err e;

	if (!a->mode[0] || !a->conversation)
		return;
	r = *conversation_record(a->conversation);
	r.current_mode_id = str_of(a->mode);
	if (!str_eq(r.current_mode_id, conversation_record(a->conversation)->current_mode_id) &&
	    conversation_change(a->conversation, &r, &e) < 0)
		log_warn("conversation %s: %s", conversation_id(a->conversation), e.msg);
	a->mode[0] = '\0';
	a->mode_ms = uv_now(a->all->loop);
}

/* Updates that are no part of the history go to those who look now. */
static void say_other(struct agent *a, const struct acp_update *u)
{
	autobuf struct buf b = BUF_INIT(ROOM);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_val(&w, u->all);
	if (json_write_done(&w, &e) == 0)
		conversation_live(a->conversation, "agent_update", buf_str(&b));
}

void agent_update(struct agent *a, const struct acp_update *u)
{
	if (uv_now(a->all->loop) - a->mode_ms >= MODE_MS)
		agent_keep_mode(a);
	if (u->kind == ACP_MESSAGE || u->kind == ACP_THOUGHT) {
		say(a, u);
		return;
	}
	if (u->kind != ACP_RUNS)
		agent_say_end(a);
	if (!a->conversation)
		return;
	switch (u->kind) {
	case ACP_TOOL_CALL:
	case ACP_TOOL_UPDATE:
		agent_call_note(a, u);
		say_rows(a, u->kind == ACP_TOOL_CALL ? "tool_call" : "tool_call_update", u->all,
			 tool_rows, ARRAY_LEN(tool_rows));
		break;
	case ACP_PLAN:
		say_rows(a, "plan", json_get(u->all, "plan") ?: u->all, plan_rows,
			 ARRAY_LEN(plan_rows));
		break;
	case ACP_USAGE:
		say_rows(a, "usage", u->all, usage_rows, ARRAY_LEN(usage_rows));
		break;
	case ACP_LOGINS:
	case ACP_OPENED:
	case ACP_COMMANDS:
	case ACP_CONFIG:
	case ACP_INFO:
		agent_offer(a, u);
		break;
	case ACP_MODE:
		agent_offer(a, u);
		/* The record goes to the disk: modes in quick succession are one change. */
		snprintf(a->mode, sizeof(a->mode), "%.*s", STR_ARG(u->mode_id));
		if (uv_now(a->all->loop) - a->mode_ms >= MODE_MS)
			agent_keep_mode(a);
		break;
	case ACP_USER_MESSAGE: /* its event is there */
	case ACP_RUNS:
		break;
	default:
		say_other(a, u);
	}
}
