/* Reports of the agent: session/update of every kind, of both versions. */
#include "agents/acp/internal.h"
#include "json/document/utf8.h"

enum { TEXT_MAX = ACP_MESSAGE_MAX, NAME_MAX_OF = 64 };

static const struct update_row {
	const char *name;
	enum acp_update_kind kind;
	bool whole;
} rows[] = {
	{ "user_message_chunk", ACP_USER_MESSAGE, false },
	{ "agent_message_chunk", ACP_MESSAGE, false },
	{ "agent_thought_chunk", ACP_THOUGHT, false },
	{ "user_message", ACP_USER_MESSAGE, true },
	{ "agent_message", ACP_MESSAGE, true },
	{ "agent_thought", ACP_THOUGHT, true },
	{ "tool_call", ACP_TOOL_CALL, false },
	{ "tool_call_update", ACP_TOOL_UPDATE, false },
	{ "tool_call_content_chunk", ACP_TOOL_UPDATE, false },
	{ "plan", ACP_PLAN, false },
	{ "plan_update", ACP_PLAN, false },
	{ "available_commands_update", ACP_COMMANDS, false },
	{ "current_mode_update", ACP_MODE, false },
	{ "config_option_update", ACP_CONFIG, false },
	{ "session_info_update", ACP_INFO, false },
	{ "usage_update", ACP_USAGE, false },
	{ "state_update", ACP_RUNS, false },
};

/* ---- texts ---------------------------------------------------------------------------------- */

/* A block as markdown. */
static int add_block(struct buf *to, const struct json_val *block, struct err *e)
{
	struct str type = json_str(json_get(block, "type"));
	const struct json_val *resource = json_get(block, "resource");
	struct str uri = json_str(json_get(resource ?: block, "uri"));
	struct str name = json_str(json_get(block, "name"));
	struct str mime = json_str(json_get(block, "mimeType"));
	struct str text = json_str(json_get(block, "text"));

	if (str_is(type, "text"))
		return buf_add(to, text.p, text.n, e);
	if (str_is(type, "resource_link"))
		return buf_addf(to, e, "[%.*s](%.*s)", STR_CUT(name, 512), STR_CUT(uri, 4096));
	if (str_is(type, "resource"))
		return buf_addf(to, e, "[%.*s]", STR_CUT(uri, 4096));
	return buf_addf(to, e, "[%.*s %.*s]", STR_CUT(type, 64), STR_CUT(mime, 128));
}

/* One block, or an array of blocks. False: there is no memory for it. */
static bool read_text(const struct json_val *content, struct buf *room, struct str *ret)
{
	struct json_iter it = json_iter(content);
	struct err e;

	if (json_type(content) == JSON_OBJECT &&
	    str_is(json_str(json_get(content, "type")), "text")) {
		*ret = json_str(json_get(content, "text"));
		return true;
	}
	if (json_type(content) == JSON_OBJECT && add_block(room, content, &e) < 0)
		return false;
	while (json_type(content) == JSON_ARRAY && json_next(&it)) {
		if (add_block(room, it.val, &e) < 0)
			return false;
	}
	*ret = buf_str(room);
	return true;
}

/* ---- updates -------------------------------------------------------------------------------- */

static bool is_id(struct str id)
{
	return id.n > 0 && id.n <= ACP_ID_MAX && !memchr(id.p, '\0', id.n);
}

/* Version 2: the turn ends when the agent is idle, once it has accepted the prompt. */
static bool read_state(struct acp *a, struct acp_update *u)
{
	struct str state = json_str(json_get(u->all, "state"));
	struct str why = json_str(json_get(u->all, "stopReason"));

	u->waits = str_is(state, "requires_action");
	if (a->version == 2 && a->accepted && str_is(state, "idle")) {
		acp_end_turn(a, is_id(why) ? why : STR_LIT("end_turn"), NULL);
		return false;
	}
	return a->version == 2 && !str_is(state, "idle");
}

/* False: there is nothing to tell. */
static bool read_update(struct acp *a, struct acp_update *u, struct buf *room)
{
	const struct json_val *content = json_get(u->all, "content");

	switch (u->kind) {
	case ACP_USER_MESSAGE:
	case ACP_MESSAGE:
	case ACP_THOUGHT:
		u->message_id = json_str(json_get(u->all, "messageId"));
		if (u->message_id.n > ACP_ID_MAX)
			u->message_id.n = ACP_ID_MAX;
		return content && read_text(content, room, &u->text);
	case ACP_TOOL_CALL:
	case ACP_TOOL_UPDATE:
		u->tool_call_id = json_str(json_get(u->all, "toolCallId"));
		return is_id(u->tool_call_id);
	case ACP_MODE:
		u->mode_id = json_str(json_get(u->all, "currentModeId"));
		return is_id(u->mode_id);
	case ACP_RUNS:
		return read_state(a, u);
	default:
		return true;
	}
}

void acp_update_take(struct acp *a, const struct json_val *params)
{
	struct acp_update u = { .kind = ACP_OTHER, .all = json_get(params, "update") };
	autobuf struct buf room = BUF_INIT(TEXT_MAX);

	u.name = json_str(json_get(u.all, "sessionUpdate"));
	if (!acp_is_open(a) || u.name.n == 0 || u.name.n > NAME_MAX_OF ||
	    !str_eq(json_str(json_get(params, "sessionId")), acp_session_id(a))) {
		a->strays++;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!str_is(u.name, rows[i].name))
			continue;
		u.kind = rows[i].kind;
		u.whole = rows[i].whole;
	}
	if (read_update(a, &u, &room))
		a->o.handler->update(a->o.owner, &u);
}
