/* What an editor is shown of a conversation: its events as updates of ACP, its questions as
 * requests for permission, the end of its turn as the answer to the prompt. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/agent/editor.h"
#include "json/document/put.h"

enum { AUTH_REQUIRED = -32000 };

/* ---- updates --------------------------------------------------------------------------------- */

static void update_begin(struct editor_out *m, const struct editor_session *s, const char *kind)
{
	editor_notify(m, "session/update");
	json_write_object(&m->w);
	json_put_text(&m->w, "sessionId", s->id);
	json_put_object(&m->w, "update");
	json_put_text(&m->w, "sessionUpdate", kind);
}

static void update_end(struct editor_out *m)
{
	json_write_object_end(&m->w);
	json_write_object_end(&m->w);
	editor_end(m);
}

static void write_text_block(struct json_writer *w, struct str text)
{
	json_write_object(w);
	json_put_text(w, "type", "text");
	json_put_str(w, "text", text);
	json_write_object_end(w);
}

static void update_text(const struct editor_session *s, const char *kind, struct str text)
{
	struct editor_out m;

	if (!text.n)
		return;
	update_begin(&m, s, kind);
	json_write_key(&m.w, "content");
	write_text_block(&m.w, text);
	update_end(&m);
}

/* Members as events have them, and as updates do. */
static const struct shown_row {
	const char *from, *to;
} tool_rows[] = {
	{ "tool_call_id", "toolCallId" }, { "title", "title" },
	{ "name", "name" },		  { "kind", "kind" },
	{ "status", "status" },		  { "locations", "locations" },
	{ "content", "content" },	  { "raw_input", "rawInput" },
	{ "raw_output", "rawOutput" },
}, plan_rows[] = {
	{ "entries", "entries" },
}, usage_rows[] = {
	{ "used", "used" }, { "size", "size" }, { "cost", "cost" },
};

static void update_rows(const struct editor_session *s, const char *kind,
			const struct json_val *data, const struct shown_row *rows, size_t n)
{
	struct editor_out m;

	update_begin(&m, s, kind);
	for (size_t i = 0; i < n; i++) {
		const struct json_val *v = json_get(data, rows[i].from);

		if (v)
			json_put_val(&m.w, rows[i].to, v);
	}
	update_end(&m);
}

static void show_tool(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	update_rows(s, "tool_call", data, tool_rows, ARRAY_LEN(tool_rows));
}

static void show_tool_update(struct editor *d, struct editor_session *s,
			     const struct json_val *data)
{
	update_rows(s, "tool_call_update", data, tool_rows, ARRAY_LEN(tool_rows));
}

static void show_plan(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	update_rows(s, "plan", data, plan_rows, ARRAY_LEN(plan_rows));
}

static void show_usage(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	update_rows(s, "usage_update", data, usage_rows, ARRAY_LEN(usage_rows));
}

/* ---- texts ----------------------------------------------------------------------------------- */

static const char *const say_kinds[EDITOR_SAYS] = { "agent_message_chunk", "agent_thought_chunk" };

/* Pieces come before the event that has the whole, of which only the rest is new then. */
static void show_rest(struct editor_session *s, enum editor_says what, const struct json_val *data)
{
	struct str text = json_str(json_get(data, "text"));
	size_t *shown = &s->streamed[what];

	if (*shown < text.n)
		update_text(s, say_kinds[what], (struct str){ text.p + *shown, text.n - *shown });
	*shown -= *shown < text.n ? *shown : text.n;
}

static void show_message(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	show_rest(s, EDITOR_MESSAGE, data);
}

static void show_thought(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	show_rest(s, EDITOR_THOUGHT, data);
}

static void show_live(struct editor_session *s, const struct json_val *line)
{
	struct str kind = json_str(json_get(line, "live"));
	struct str text = json_str(json_get(json_get(line, "data"), "text"));

	for (size_t i = 0; i < EDITOR_SAYS; i++) {
		if (!str_is(kind, say_kinds[i]))
			continue;
		update_text(s, say_kinds[i], text);
		s->streamed[i] += text.n;
	}
}

/* What hinders the agent, in the hub's words. */
static void show_notice(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "[Holt: %.*s. %.*s]\n",
			 STR_CUT(json_str(json_get(data, "message")), 200),
			 STR_CUT(json_str(json_get(data, "remediation")), 250));

	update_text(s, "agent_thought_chunk", (struct str){ text, (size_t)n });
}

/* ---- options and commands -------------------------------------------------------------------- */

static void write_choices(struct json_writer *w, const struct json_val *option, const char *id)
{
	struct json_iter it = json_iter(json_get(option, "choices"));

	while (json_next(&it)) {
		struct str value = json_str(json_get(it.val, "value"));
		struct str name = json_str(json_get(it.val, "name"));

		json_write_object(w);
		json_put_str(w, id, value);
		json_put_str(w, "name", name.n ? name : value);
		if (json_get(it.val, "description"))
			json_put_val(w, "description", json_get(it.val, "description"));
		json_write_object_end(w);
	}
}

static void write_option(struct json_writer *w, const struct json_val *v)
{
	static const char *const copied[] = { "description", "category" };
	struct str id = json_str(json_get(v, "id")), name = json_str(json_get(v, "name"));
	bool boolean = str_is(json_str(json_get(v, "kind")), "boolean");

	json_write_object(w);
	json_put_str(w, "id", id);
	json_put_str(w, "name", name.n ? name : id);
	for (size_t i = 0; i < ARRAY_LEN(copied); i++) {
		if (json_get(v, copied[i]))
			json_put_val(w, copied[i], json_get(v, copied[i]));
	}
	json_put_text(w, "type", boolean ? "boolean" : "select");
	if (boolean) {
		json_put_bool(w, "currentValue", str_is(json_str(json_get(v, "value")), "true"));
	} else {
		json_put_str(w, "currentValue", json_str(json_get(v, "value")));
		json_put_array(w, "options");
		write_choices(w, v, "value");
		json_write_array_end(w);
	}
	json_write_object_end(w);
}

void editor_write_options(struct json_writer *w, const struct json_val *view)
{
	struct json_iter it = json_iter(json_get(view, "options"));

	json_put_array(w, "configOptions");
	while (json_next(&it))
		write_option(w, it.val);
	json_write_array_end(w);
	it = json_iter(json_get(view, "options"));
	while (json_next(&it)) {
		if (!str_is(json_str(json_get(it.val, "kind")), "mode"))
			continue;
		json_put_object(w, "modes");
		json_put_str(w, "currentModeId", json_str(json_get(it.val, "value")));
		json_put_array(w, "availableModes");
		write_choices(w, it.val, "id");
		json_write_array_end(w);
		json_write_object_end(w);
	}
}

static void offer_tell(const struct editor_session *s, const struct json_val *view)
{
	struct json_iter it = json_iter(json_get(view, "commands"));
	struct editor_out m;

	update_begin(&m, s, "config_option_update");
	editor_write_options(&m.w, view);
	update_end(&m);
	update_begin(&m, s, "available_commands_update");
	json_put_array(&m.w, "availableCommands");
	while (json_next(&it)) {
		json_write_object(&m.w);
		json_put_str(&m.w, "name", json_str(json_get(it.val, "name")));
		json_put_str(&m.w, "description", json_str(json_get(it.val, "description")));
		if (json_get(it.val, "hint")) {
			json_put_object(&m.w, "input");
			json_put_val(&m.w, "hint", json_get(it.val, "hint"));
			json_write_object_end(&m.w);
		}
		json_write_object_end(&m.w);
	}
	json_write_array_end(&m.w);
	update_end(&m);
}

static void offer_look(struct editor_session *s, const struct json_val *view)
{
	static const char *const members[] = { "options", "commands" };
	autobuf struct buf b = BUF_INIT(EDITOR_LINE_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_array(&w);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		if (json_get(view, members[i]))
			json_write_val(&w, json_get(view, members[i]));
	}
	json_write_array_end(&w);
	if (json_write_done(&w, &e) < 0 || (s->offered && str_is(buf_str(&b), s->offered)))
		return;
	free(s->offered);
	s->offered = mem_dup(b.p, b.n);
	if (json_len(json_get(view, "options")) > 0 || json_len(json_get(view, "commands")) > 0)
		offer_tell(s, view);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void write_ask(struct json_writer *w, const struct editor_session *s,
		      const struct json_val *data)
{
	struct json_iter it = json_iter(json_get(data, "options"));
	struct str call = json_str(json_get(data, "tool_call_id"));
	struct str text = json_str(json_get(data, "text"));

	json_write_object(w);
	json_put_text(w, "sessionId", s->id);
	json_put_object(w, "toolCall");
	json_put_str(w, "toolCallId", call.n ? call : json_str(json_get(data, "request_id")));
	json_put_str(w, "title", json_str(json_get(data, "question")));
	if (text.n) {
		json_put_array(w, "content");
		json_write_object(w);
		json_put_text(w, "type", "content");
		json_write_key(w, "content");
		write_text_block(w, text);
		json_write_object_end(w);
		json_write_array_end(w);
	}
	json_write_object_end(w);
	json_put_array(w, "options");
	while (json_next(&it)) {
		struct str id = json_str(json_get(it.val, "id"));
		struct str kind = json_str(json_get(it.val, "kind"));

		json_write_object(w);
		json_put_str(w, "optionId", id);
		json_put_str(w, "name", json_str(json_get(it.val, "label")));
		json_put_str(w, "kind",
			     kind.n		? kind
			     : str_is(id, "no") ? STR_LIT("reject_once")
						: STR_LIT("allow_once"));
		json_write_object_end(w);
	}
	json_write_array_end(w);
	json_write_object_end(w);
}

/* Questions without options are for the inbox. */
static void show_question(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	struct editor_ask *a = d->asks;
	struct editor_out m;

	while (a < d->asks + EDITOR_ASKS_MAX && a->id)
		a++;
	if (json_len(json_get(data, "options")) == 0 || a == d->asks + EDITOR_ASKS_MAX) {
		update_text(s, "agent_thought_chunk",
			    STR_LIT("[Holt: a question waits in the inbox (`holt inbox`)]\n"));
		return;
	}
	*a = (struct editor_ask){ .id = ++d->ids, .of = s };
	snprintf(a->question, sizeof(a->question), "%.*s",
		 STR_CUT(json_str(json_get(data, "request_id")), EDITOR_ID));
	editor_request(&m, a->id, "session/request_permission");
	write_ask(&m.w, s, data);
	editor_end(&m);
}

/* It was answered elsewhere, or needs no answer any more. */
static void show_question_end(struct editor *d, struct editor_session *s,
			      const struct json_val *data)
{
	struct str id = json_str(json_get(data, "request_id"));
	struct editor_out m;

	for (size_t i = 0; i < EDITOR_ASKS_MAX; i++) {
		if (!d->asks[i].id || !str_is(id, d->asks[i].question))
			continue;
		editor_notify(&m, "$/cancel_request");
		json_write_object(&m.w);
		json_put_uint(&m.w, "requestId", d->asks[i].id);
		json_write_object_end(&m.w);
		editor_end(&m);
		d->asks[i] = (struct editor_ask){ 0 };
	}
}

void editor_answered(struct editor *d, const struct rpc_msg *q)
{
	const struct json_val *outcome = json_get(q->result, "outcome");
	struct str option = json_str(json_get(outcome, "optionId"));
	autobuf struct buf body = BUF_INIT(4 << 10);
	struct json_writer w = json_writer(&body);
	struct editor_ask a = { 0 };
	char id[RPC_DIGITS], path[EDITOR_PATH];
	struct err e;

	for (size_t i = 0; i < EDITOR_ASKS_MAX && !a.id; i++) {
		if (!d->asks[i].id || !str_eq(rpc_id_str(&q->id),
					      (struct str){ id, rpc_put_uint(id, d->asks[i].id) }))
			continue;
		a = d->asks[i];
		d->asks[i] = (struct editor_ask){ 0 };
	}
	/* "cancelled" comes with the end of the turn, which withdraws the question */
	if (!a.id || !option.n)
		return;
	json_write_object(&w);
	json_put_str(&w, "option_id", option);
	json_write_object_end(&w);
	snprintf(path, sizeof(path), "/api/prompts/%s/answer", a.question);
	if (json_write_done(&w, &e) < 0 ||
	    hub_link_ask(d->hub, "POST", path, buf_str(&body), NULL, &e) < 0)
		fprintf(stderr, "holt: an answer is not taken: %s\n", e.msg);
}

/* ---- the end of a turn ----------------------------------------------------------------------- */

void editor_turn_end(struct editor_session *s, struct str why)
{
	struct editor_out m;

	if (!s->prompt.n)
		return;
	if (*s->error) {
		editor_fault(&s->prompt, s->needs_login ? AUTH_REQUIRED : RPC_INTERNAL_ERROR,
			     s->error);
	} else {
		editor_result(&m, &s->prompt);
		json_write_object(&m.w);
		json_put_str(&m.w, "stopReason", why);
		json_write_object_end(&m.w);
		editor_end(&m);
	}
	s->prompt.n = 0;
	*s->error = '\0';
	s->streamed[EDITOR_MESSAGE] = s->streamed[EDITOR_THOUGHT] = 0;
}

static void show_error(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	s->needs_login = str_is(json_str(json_get(data, "code")), "agent_login_required");
	snprintf(s->error, sizeof(s->error), "%.*s",
		 STR_CUT(json_str(json_get(data, "message")), sizeof(s->error) - 1));
}

static void show_stop(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	struct str why = json_str(json_get(data, "stop_reason"));

	if (str_is(why, "interrupted"))
		snprintf(s->error, sizeof(s->error), "the hub has ended the turn");
	editor_turn_end(s, why);
}

/* The prompt that failed is the editor's to send again. */
void editor_drop_prompt(struct editor *d, struct editor_session *s)
{
	char more[EDITOR_PATH];
	struct err e;

	snprintf(more, sizeof(more), "/queue/%s", s->prompt_id);
	/* it is gone where the agent has had it */
	(void)!editor_ask_hub(d, s, "DELETE", more, STR_NONE, NULL, &e);
}

/* A turn that did not begin ends without an event. */
static void show_change(struct editor *d, struct editor_session *s, const struct json_val *line)
{
	struct str state = json_str(json_get(line, "state"));
	AUTO(json_free) struct json_doc *doc = NULL;
	struct err e;

	if (editor_ask_hub(d, s, "GET", "", STR_NONE, &doc, &e) < 0)
		return;
	offer_look(s, json_root(doc));
	if (!*s->error || !s->prompt.n ||
	    !(str_is(state, "failed") || str_is(state, "needs_login") || str_is(state, "idle")))
		return;
	editor_drop_prompt(d, s);
	editor_turn_end(s, STR_NONE);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void show_user(struct editor *d, struct editor_session *s, const struct json_val *data)
{
	update_text(s, "user_message_chunk", json_str(json_get(data, "message")));
}

static const struct show_row {
	const char *type;
	void (*show)(struct editor *d, struct editor_session *s, const struct json_val *data);
	bool replayed, now; /* where a session is loaded; while it goes on */
} shows[] = {
	{ "user_prompt", show_user, true, false },
	{ "agent_message", show_message, true, true },
	{ "agent_thought", show_thought, true, true },
	{ "tool_call", show_tool, true, true },
	{ "tool_call_update", show_tool_update, true, true },
	{ "plan", show_plan, true, true },
	{ "usage", show_usage, true, true },
	{ "network", show_notice, false, true },
	{ "ui_prompt", show_question, false, true },
	{ "ui_prompt_answer", show_question_end, false, true },
	{ "error", show_error, false, true },
	{ "stop", show_stop, false, true },
};

void editor_replay(struct editor *d, struct editor_session *s, const struct json_val *event)
{
	struct str type = json_str(json_get(event, "type"));

	for (size_t i = 0; i < ARRAY_LEN(shows); i++) {
		if (shows[i].replayed && str_is(type, shows[i].type))
			shows[i].show(d, s, json_get(event, "data"));
	}
}

void editor_event(struct editor *d, struct editor_session *s, const struct json_val *line)
{
	struct str type = json_str(json_get(line, "type"));

	if (str_is(type, "live"))
		show_live(s, line);
	else if (str_is(type, "changed"))
		show_change(d, s, line);
	for (size_t i = 0; i < ARRAY_LEN(shows); i++) {
		if (shows[i].now && str_is(type, shows[i].type))
			shows[i].show(d, s, json_get(line, "data"));
	}
}
