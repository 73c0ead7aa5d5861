/* `holt conversations`: conversations with agents. Without a subcommand it lists them. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/link/ask.h"

enum { BODY_MAX = 512 << 10, PATH_SIZE = 512, LINE = 4000 };

static const struct ask_noun conversations = {
	.path = "/api/sessions",
	.noun = "conversation",
	.missing = ERR_CONVERSATION_NOT_FOUND,
	.letters = ASK_LOWER,
	.max = 64,
	.alone = true,
};

static const struct ask_noun prompts = {
	.noun = "prompt",
	.missing = ERR_CONVERSATION_NOT_FOUND,
	.letters = ASK_LETTERS,
	.max = 128,
};

/* Asks about one; its not_found is that of a conversation. */
static int conversation_ask(struct hub_link *l, const char *method, const char *path,
			    struct str body, struct json_doc **ret, struct err *e)
{
	if (hub_link_ask(l, method, path, body, ret, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND) /* the only not_found that the link knows */
		e->code = ERR_CONVERSATION_NOT_FOUND;
	return -1;
}

/* ---- ls, new --------------------------------------------------------------------------------- */

static const struct option_row ls_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "archived", .member = "archived", .off = "false",
		   .doc = "List archived conversations instead of the others."),
	ASK_OPTION(texts[0], OPTION_TEXT, "workspace", .arg = "NAME", .member = "workspace",
		   .doc = "Only conversations of this workspace."),
	ASK_END,
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List conversations with agents.",                          \
	.page = "holt-conversations",                                                              \
	ASK(ls_table, .of = &conversations, .list = "conversations",                               \
	    ASK_COLUMNS({ "ID", "session_id" }, { "STATE", "state" }, { "AGENT", "acp_server" },   \
			{ "QUEUE", "queue_length", .unit = 1 },                                    \
			{ "EVENTS", "message_count", .unit = 1 }, { "UPDATED", "updated_at" },     \
			{ "TITLE", "title", .cut = 60 }, { "CAUSE", "cause", .cut = 120 }))

static const struct verb conversations_ls_verb = { .name = "conversations ls", LIST };

static const struct option_row new_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "title", .arg = "TEXT", .member = "title",
		   .doc = "Title of the conversation."),
	ASK_OPTION(texts[1], OPTION_TEXT, "agent", .arg = "NAME", .member = "acp_server",
		   .doc = "Agent, by its name in the operator's file."),
	ASK_OPTION(texts[2], OPTION_TEXT, "workspace", .arg = "NAME", .member = "workspace",
		   .doc = "The workspace in which the agent works."),
	ASK_OPTION(texts[3], OPTION_TEXT, "folder", .arg = "PATH", .member = "working_dir",
		   .doc = "Absolute path of the agent's folder, instead of a workspace."),
	HELP_ROW(struct ask_options),
};
static const struct option_table new_table = OPTION_TABLE(new_rows, .mixed = true);

static const struct verb conversations_new_verb = {
	.name = "conversations new",
	.usage = "[OPTION...] [PROMPT]",
	.doc = "Start a conversation, and print its id.",
	ASK(new_table, .of = &conversations, .method = "POST", .operands = { "initial_prompt" },
	    .prints = "session_id"),
	.max_operands = 1,
};

/* ---- show, send, cancel ---------------------------------------------------------------------- */

static const struct verb conversations_show_verb = {
	.name = "conversations show",
	.usage = "ID",
	.doc = "Print everything about a conversation, as JSON.",
	ASK(verb_bare, .of = &conversations, .json = true),
	.min_operands = 1,
};

static const struct option_row send_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "key", .arg = "TEXT", .member = "key",
		   .doc = "Your own id for the prompt; the same key queues it only once."),
	HELP_ROW(struct ask_options),
};
static const struct option_table send_table = OPTION_TABLE(send_rows, .mixed = true);

static const struct verb conversations_send_verb = {
	.name = "conversations send",
	.usage = "[--key TEXT] ID PROMPT",
	.doc = "Add a prompt to the queue, and print its id.",
	ASK(send_table, .of = &conversations, .method = "POST", .more = "/queue",
	    .operands = { NULL, "prompt" }, .prints = "message_id"),
	.min_operands = 2,
};

static const struct verb conversations_queue_verb = {
	.name = "conversations queue",
	.usage = "[OPTION...] ID",
	.doc = "List the prompts that wait for their turn, or failed.",
	ASK(verb_output, .of = &conversations, .more = "/queue", .list = "messages",
	    ASK_COLUMNS({ "ID", "id" }, { "STATE", "state" }, { "QUEUED", "queued_at" },
			{ "PROMPT", "message", .cut = 60 }, { "CAUSE", "error", .cut = 60 })),
	.min_operands = 1,
};

static const struct verb conversations_unqueue_verb = {
	.name = "conversations unqueue",
	.usage = "ID PROMPT_ID",
	.doc = "Take a prompt out of the queue.",
	ASK(verb_bare, .of = &conversations, .method = "DELETE", .more = "/queue/%",
	    .part = &prompts),
	.min_operands = 2,
};

static const struct verb conversations_retry_verb = {
	.name = "conversations retry",
	.usage = "ID PROMPT_ID",
	.doc = "Send a prompt again that failed.",
	ASK(verb_bare, .of = &conversations, .method = "POST", .more = "/queue/%/retry",
	    .part = &prompts),
	.min_operands = 2,
};

static const struct verb conversations_login_verb = {
	.name = "conversations login",
	.usage = "ID METHOD",
	.doc = "Log in to its agent, and send failed prompts again.",
	ASK(verb_bare, .of = &conversations, .method = "PATCH", .operands = { NULL, "login" }),
	.min_operands = 2,
};

static const struct verb conversations_cancel_verb = {
	.name = "conversations cancel",
	.usage = "ID",
	.doc = "Cancel the current turn.",
	ASK(verb_bare, .of = &conversations, .method = "POST", .more = "/cancel"),
	.min_operands = 1,
};

/* ---- history --------------------------------------------------------------------------------- */

static const struct option_row history_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "follow", .letter = 'f',
		   .doc = "Print all events, and then each new one."),
	ASK_OPTION(counts[0], OPTION_COUNT, "last", .letter = 'n', .arg = "N", .min = 1, .max = 500,
		   .doc = "Number of newest events; 50 by default."),
	ASK_END,
};
static const struct option_table history_table = OPTION_TABLE(history_rows, .mixed = true);
static const struct ask_options history_defaults = { .counts = { 50 } };

/* Beats and changes of the state have no number. */
static int history_print(void *arg, const struct json_val *v, struct err *e)
{
	const struct ask_options *o = arg;
	static const char *const members[] = { "timestamp", "type" }, *const texts[] = {
		"message", "text", "title", "stop_reason", "question"
	};
	struct str text = STR_NONE;
	uint64_t seq = 0;

	json_uint64(json_get(v, "seq"), &seq);
	if (!seq)
		return 0;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(v, e) < 0 || fflush(stdout) ? -1 : 0;
	printf("%" PRIu64 "  ", seq);
	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		safe_line(stdout, json_str(json_get(v, members[i])));
		fputs("  ", stdout);
	}
	for (size_t i = 0; !text.n && i < ARRAY_LEN(texts); i++)
		text = json_str(json_get(json_get(v, "data"), texts[i]));
	safe_short(stdout, text, LINE);
	putchar('\n');
	return fflush(stdout) == 0 ? 0 : err_set(e, ERR_IO, "standard output is closed");
}

static int conversations_history(const struct verb_input *in, struct err *e)
{
	const struct ask_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[PATH_SIZE], more[64];
	struct json_iter it;

	snprintf(more, sizeof(more), o->flags[0] ? "/events?follow=true" : "/events?limit=%u",
		 o->counts[0]);
	if (!l || hub_ask_path(&conversations, path, sizeof(path), in->operands[0], more, e) < 0)
		return -1;
	if (o->flags[0])
		return hub_link_follow(l, path, history_print, (void *)o, e);
	if (conversation_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_get(json_root(doc), "events"), e);
	it = json_iter(json_get(json_root(doc), "events"));
	while (json_next(&it)) {
		if (history_print((void *)o, it.val, e) < 0)
			return -1;
	}
	return 0;
}

static const struct verb conversations_history_verb = {
	.name = "conversations history",
	.usage = "[OPTION...] ID",
	.doc = "Print the events of a conversation.",
	.options = &history_table,
	.defaults = &history_defaults,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.run = conversations_history,
	.fail = hub_link_fail,
};

/* ---- archive, rm, restore -------------------------------------------------------------------- */

static const struct option_row archive_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "undo", .member = "archived", .on = "false",
		   .off = "true", .doc = "Take them out of the archive."),
	HELP_ROW(struct ask_options),
};
static const struct option_table archive_table = OPTION_TABLE(archive_rows, .mixed = true);

static const struct verb conversations_archive_verb = {
	.name = "conversations archive",
	.usage = "[--undo] ID...",
	.doc = "Archive conversations; their agents end.",
	ASK(archive_table, .of = &conversations, .method = "PATCH", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

static const struct option_row rm_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "children", .member = "children",
		   .doc = "Also remove the conversations that they have started."),
	HELP_ROW(struct ask_options),
};
static const struct option_table rm_table = OPTION_TABLE(rm_rows, .mixed = true);

static const struct verb conversations_rm_verb = {
	.name = "conversations rm",
	.usage = "[--children] ID...",
	.doc = "Move conversations to the trash.",
	ASK(rm_table, .of = &conversations, .method = "DELETE", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

static const struct verb conversations_restore_verb = {
	.name = "conversations restore",
	.usage = "ID...",
	.doc = "Restore conversations from the trash.",
	ASK(verb_bare, .of = &conversations, .method = "POST", .more = "/restore", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

/* ---- flags ----------------------------------------------------------------------------------- */

static int flags_write(const struct verb_input *in, struct buf *body, struct err *e)
{
	struct json_writer w = json_writer(body);

	json_write_object(&w);
	json_write_name(&w, "settings");
	json_write_object(&w);
	for (int i = 1; i < in->n_operands; i++) {
		const char *text = in->operands[i], *eq = strchr(text, '=');
		bool on = eq && strcmp(eq + 1, "on") == 0;

		if (!eq || (!on && strcmp(eq + 1, "off") != 0))
			return err_set(e, ERR_INVALID,
				       "flags take FLAG=on or FLAG=off, not '%.80s'", text);
		json_write_key_str(&w, (struct str){ text, (size_t)(eq - text) });
		json_write_bool(&w, on);
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int conversations_flags(const struct verb_input *in, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	AUTO(table_free) struct table *t = TABLE(e, "FLAG", "");
	const char *id = in->operands[0];
	char path[PATH_SIZE];
	struct json_iter it;

	if (!l || !t)
		return -1;
	if (in->n_operands > 1 &&
	    (flags_write(in, &body, e) < 0 ||
	     hub_ask_path(&conversations, path, sizeof(path), id, "/settings", e) < 0 ||
	     conversation_ask(l, "PATCH", path, buf_str(&body), NULL, e) < 0))
		return -1;
	if (hub_ask_path(&conversations, path, sizeof(path), id, "", e) < 0 ||
	    conversation_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_get(json_root(doc), "flags"));
	while (json_next(&it)) {
		table_str(t, it.key);
		table_str(t, json_bool(it.val) ? STR_LIT("on") : STR_LIT("off"));
	}
	table_print(t);
	return 0;
}

static const struct verb conversations_flags_verb = {
	.name = "conversations flags",
	.usage = "ID [FLAG=on|off...]",
	.doc = "Show what the agent may do, and change it.",
	.options = &verb_bare,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.max_operands = 33,
	.run = conversations_flags,
	.fail = hub_link_fail,
};

/* ---- set ------------------------------------------------------------------------------------- */

static int set_write(const struct verb_input *in, struct buf *body, struct err *e)
{
	struct json_writer w = json_writer(body);

	json_write_object(&w);
	json_write_name(&w, "options");
	json_write_object(&w);
	for (int i = 1; i < in->n_operands; i++) {
		const char *text = in->operands[i], *eq = strchr(text, '=');

		if (!eq)
			return err_set(e, ERR_INVALID, "set takes OPTION=VALUE, not '%.80s'", text);
		json_write_key_str(&w, (struct str){ text, (size_t)(eq - text) });
		json_write_str(&w, str_of(eq + 1));
	}
	json_write_object_end(&w);
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

/* The choices in a row, with a mark at those that let the agent act without asking. */
static void set_choices(struct table *t, const struct json_val *choices)
{
	autobuf struct buf b = BUF_INIT(BODY_MAX);
	struct json_iter it = json_iter(choices);
	struct err e;

	while (json_next(&it)) {
		struct str value = json_str(json_get(it.val, "value"));

		if (buf_addf(&b, &e, "%s%.*s%s", b.n ? " " : "", STR_ARG(value),
			     json_bool(json_get(it.val, "unattended")) ? "(!)" : "") < 0)
			break;
	}
	table_short(t, buf_str(&b), LINE);
}

static int conversations_set(const struct verb_input *in, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	AUTO(table_free) struct table *t = TABLE(e, "OPTION", "VALUE", "CHOICES");
	char path[PATH_SIZE];
	struct json_iter it;
	struct str warning;

	if (!l || !t || (in->n_operands > 1 && set_write(in, &body, e) < 0) ||
	    hub_ask_path(&conversations, path, sizeof(path), in->operands[0], "", e) < 0 ||
	    conversation_ask(l, in->n_operands > 1 ? "PATCH" : "GET", path, buf_str(&body), &doc,
			     e) < 0)
		return -1;
	it = json_iter(json_get(json_root(doc), "options"));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "id")));
		table_str(t, json_str(json_get(it.val, "value")));
		set_choices(t, json_get(it.val, "choices"));
	}
	table_print(t);
	warning = json_str(json_get(json_root(doc), "warning"));
	if (warning.n) {
		fputs("holt: ", stderr);
		safe_line(stderr, warning);
		fputc('\n', stderr);
	}
	return 0;
}

static const struct verb conversations_set_verb = {
	.name = "conversations set",
	.usage = "ID [OPTION=VALUE...]",
	.doc = "Show what its agent lets you choose, and choose it.",
	.options = &verb_bare,
	.size = sizeof(struct ask_options),
	.min_operands = 1,
	.max_operands = 33,
	.run = conversations_set,
	.fail = hub_link_fail,
};

static const struct verb *const words[] = {
	&conversations_ls_verb,	     &conversations_new_verb,
	&conversations_show_verb,    &conversations_send_verb,
	&conversations_queue_verb,   &conversations_unqueue_verb,
	&conversations_retry_verb,   &conversations_history_verb,
	&conversations_cancel_verb,  &conversations_flags_verb,
	&conversations_login_verb,   &conversations_set_verb,
	&conversations_archive_verb, &conversations_rm_verb,
	&conversations_restore_verb, NULL
};

const struct verb conversations_verb = { .name = "conversations", LIST, .words = words };
