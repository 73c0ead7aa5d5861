/* `holt conversations`: conversations with agents. Without a subcommand it lists them. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"

enum { BODY_MAX = 512 << 10, NAMES_MAX = 1024, PATH_SIZE = 512, SHORT = 60, LINE = 4000 };
#define SESSIONS "/api/sessions"

static int talk_path(char *ret, size_t size, const char *id, const char *more, struct err *e)
{
	size_t n = strlen(id);

	if (n == 0 || n > 64 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") != n)
		return err_set(e, ERR_CONVERSATION_NOT_FOUND,
			       "no conversation has the id \"%.80s\"", id);
	snprintf(ret, size, SESSIONS "/%s%s", id, more);
	return 0;
}

/* Asks about one; its not_found is that of a conversation. */
static int talk_ask_path(struct hub_link *l, const char *method, const char *path, struct str body,
			 struct json_doc **ret, struct err *e)
{
	if (hub_link_ask(l, method, path, body, ret, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND) /* the only not_found that the link knows */
		e->code = ERR_CONVERSATION_NOT_FOUND;
	return -1;
}

static int talk_ask(struct hub_link *l, const char *method, const char *id, const char *more,
		    struct str body, struct json_doc **ret, struct err *e)
{
	char path[PATH_SIZE];

	return talk_path(path, sizeof(path), id, more, e) < 0
		     ? -1
		     : talk_ask_path(l, method, path, body, ret, e);
}

struct bare_options {
	struct verb_options common;
};
static const struct option_row bare_rows[] = { HELP_ROW(struct bare_options) };
static const struct option_table bare_table = OPTION_TABLE(bare_rows, .mixed = true);

/* ---- ls -------------------------------------------------------------------------------------- */

struct ls_options {
	struct verb_options common;
	bool archived;
	const char *workspace;
	uint32_t output;
};
static const struct option_row ls_rows[] = {
	OPTION(struct ls_options, archived, OPTION_FLAG, "archived",
	       .doc = "List archived conversations instead of the others."),
	OPTION(struct ls_options, workspace, OPTION_TEXT, "workspace", .arg = "NAME",
	       .doc = "Only conversations of this workspace."),
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

static int talks_ls(const struct ls_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free)
	struct table *t = TABLE(e, "ID", "STATE", "AGENT", "QUEUE", "EVENTS", "UPDATED", "TITLE");
	char path[PATH_SIZE];
	struct json_iter it;

	snprintf(path, sizeof(path), SESSIONS "?archived=%s", o->archived ? "true" : "false");
	if (!l || !t ||
	    (o->workspace &&
	     hub_link_query(path, sizeof(path), "workspace", o->workspace, e) < 0) ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_get(json_root(doc), "conversations"), e);
	it = json_iter(json_get(json_root(doc), "conversations"));
	while (json_next(&it)) {
		uint64_t queue = 0, events = 0;

		json_uint64(json_get(it.val, "queue_length"), &queue);
		json_uint64(json_get(it.val, "message_count"), &events);
		table_str(t, json_str(json_get(it.val, "session_id")));
		table_str(t, json_str(json_get(it.val, "state")));
		table_str(t, json_str(json_get(it.val, "acp_server")));
		table_cell(t, "%" PRIu64, queue);
		table_cell(t, "%" PRIu64, events);
		table_str(t, json_str(json_get(it.val, "updated_at")));
		table_short(t, json_str(json_get(it.val, "title")), SHORT);
	}
	table_print(t);
	return 0;
}

static int talks_ls_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return talks_ls(in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List conversations with agents.",                          \
	.page = "holt-conversations", .options = &ls_table, .size = sizeof(struct ls_options),     \
	.usage_exit = 2, .run = talks_ls_run

static const struct verb talks_ls_verb = { .name = "conversations ls", LIST };

/* ---- new ------------------------------------------------------------------------------------- */

struct new_options {
	struct verb_options common;
	const char *title, *agent, *workspace, *folder;
};
static const struct option_row new_rows[] = {
	OPTION(struct new_options, title, OPTION_TEXT, "title", .arg = "TEXT",
	       .doc = "Title of the conversation."),
	OPTION(struct new_options, agent, OPTION_TEXT, "agent", .arg = "NAME",
	       .doc = "Agent, by its name in the operator's file."),
	OPTION(struct new_options, workspace, OPTION_TEXT, "workspace", .arg = "NAME",
	       .doc = "The workspace in which the agent works."),
	OPTION(struct new_options, folder, OPTION_TEXT, "folder", .arg = "PATH",
	       .doc = "Absolute path of the agent's folder, instead of a workspace."),
	HELP_ROW(struct new_options),
};
static const struct option_table new_table = OPTION_TABLE(new_rows, .mixed = true);

static int talks_new(const struct verb_input *in, struct err *e)
{
	const struct new_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);

	json_write_object(&w);
	hub_link_text(&w, "title", o->title);
	hub_link_text(&w, "acp_server", o->agent);
	hub_link_text(&w, "workspace", o->workspace);
	hub_link_text(&w, "working_dir", o->folder);
	hub_link_text(&w, "initial_prompt", in->n_operands ? in->operands[0] : NULL);
	json_write_object_end(&w);
	if (!l || json_write_done(&w, e) < 0 ||
	    hub_link_ask(l, "POST", SESSIONS, buf_str(&body), &doc, e) < 0)
		return -1;
	safe_line(stdout, json_str(json_get(json_root(doc), "session_id")));
	putchar('\n');
	return 0;
}

static int talks_new_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return talks_new(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb talks_new_verb = {
	.name = "conversations new",
	.usage = "[OPTION...] [PROMPT]",
	.doc = "Start a conversation, and print its id.",
	.page = "holt-conversations",
	.options = &new_table,
	.size = sizeof(struct new_options),
	.max_operands = 1,
	.usage_exit = 2,
	.run = talks_new_run,
};

/* ---- show, cancel ---------------------------------------------------------------------------- */

static int talks_show_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!l || talk_ask(l, "GET", in->operands[0], "", STR_NONE, &doc, &e) < 0 ||
	    hub_link_print(json_root(doc), &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

static int talks_cancel_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);

	return !l || talk_ask(l, "POST", in->operands[0], "/cancel", STR_LIT("{}"), NULL, &e) < 0
		     ? hub_link_fail(&e)
		     : 0;
}

#define ONE(word, doc_, run_)                                                                      \
	{                                                                                          \
		.name = "conversations " word, .usage = "ID", .doc = doc_,                         \
		.page = "holt-conversations", .options = &bare_table,                              \
		.size = sizeof(struct bare_options), .min_operands = 1, .max_operands = 1,         \
		.usage_exit = 2, .run = run_,                                                      \
	}

static const struct verb talks_show_verb =
	ONE("show", "Print everything about a conversation, as JSON.", talks_show_run);
static const struct verb talks_cancel_verb = ONE("cancel", "Cancel the current turn.",
						 talks_cancel_run);

/* ---- send ------------------------------------------------------------------------------------ */

struct send_options {
	struct verb_options common;
	const char *key;
};
static const struct option_row send_rows[] = {
	OPTION(struct send_options, key, OPTION_TEXT, "key", .arg = "TEXT",
	       .doc = "Your own id for the prompt; the same key queues it only once."),
	HELP_ROW(struct send_options),
};
static const struct option_table send_table = OPTION_TABLE(send_rows, .mixed = true);

static int talks_send(const struct verb_input *in, struct err *e)
{
	const struct send_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);

	json_write_object(&w);
	hub_link_text(&w, "prompt", in->operands[1]);
	hub_link_text(&w, "key", o->key);
	json_write_object_end(&w);
	if (!l || json_write_done(&w, e) < 0 ||
	    talk_ask(l, "POST", in->operands[0], "/queue", buf_str(&body), &doc, e) < 0)
		return -1;
	safe_line(stdout, json_str(json_get(json_root(doc), "message_id")));
	putchar('\n');
	return 0;
}

static int talks_send_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return talks_send(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb talks_send_verb = {
	.name = "conversations send",
	.usage = "[--key TEXT] ID PROMPT",
	.doc = "Add a prompt to the queue, and print its id.",
	.page = "holt-conversations",
	.options = &send_table,
	.size = sizeof(struct send_options),
	.min_operands = 2,
	.max_operands = 2,
	.usage_exit = 2,
	.run = talks_send_run,
};

/* ---- history --------------------------------------------------------------------------------- */

struct history_options {
	struct verb_options common;
	bool follow;
	uint32_t n;
	uint32_t output;
};
static const struct option_row history_rows[] = {
	OPTION(struct history_options, follow, OPTION_FLAG, "follow", .letter = 'f',
	       .doc = "Print all events, and then each new one."),
	OPTION(struct history_options, n, OPTION_COUNT, "last", .letter = 'n', .arg = "N", .min = 1,
	       .max = 500, .doc = "Number of newest events; 50 by default."),
	OUTPUT_ROW(struct history_options),
	HELP_ROW(struct history_options),
};
static const struct option_table history_table = OPTION_TABLE(history_rows, .mixed = true);
static const struct history_options history_defaults = { .n = 50 };

/* Beats and changes of the state have no number. */
static int history_print(void *arg, const struct json_val *v, struct err *e)
{
	const struct history_options *o = arg;
	static const char *const members[] = { "timestamp", "type" }, *const texts[] = {
		"message", "text", "title", "stop_reason"
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

static int talks_history(const struct verb_input *in, struct err *e)
{
	const struct history_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[PATH_SIZE], more[64];
	struct json_iter it;

	snprintf(more, sizeof(more), o->follow ? "/events?follow=true" : "/events?limit=%u", o->n);
	if (!l || talk_path(path, sizeof(path), in->operands[0], more, e) < 0)
		return -1;
	if (o->follow)
		return hub_link_follow(l, path, history_print, (void *)o, e);
	if (talk_ask_path(l, "GET", path, STR_NONE, &doc, e) < 0)
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

static int talks_history_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return talks_history(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb talks_history_verb = {
	.name = "conversations history",
	.usage = "[OPTION...] ID",
	.doc = "Print the events of a conversation.",
	.page = "holt-conversations",
	.options = &history_table,
	.defaults = &history_defaults,
	.size = sizeof(struct history_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = talks_history_run,
};

/* ---- archive, rm, restore -------------------------------------------------------------------- */

/* Continues after a failure; the exit status is that of the first one. */
static int talks_each(const struct verb_input *in, const char *method, const char *more,
		      struct str body)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = talk_ask(l, method, in->operands[i], more, body, NULL, &e) < 0
				   ? hub_link_fail(&e)
				   : 0;

		status = status ? status : failed;
	}
	return status;
}

struct archive_options {
	struct verb_options common;
	bool undo;
};
static const struct option_row archive_rows[] = {
	OPTION(struct archive_options, undo, OPTION_FLAG, "undo",
	       .doc = "Take them out of the archive."),
	HELP_ROW(struct archive_options),
};
static const struct option_table archive_table = OPTION_TABLE(archive_rows, .mixed = true);

static int talks_archive_run(const struct verb_input *in)
{
	const struct archive_options *o = in->options;

	return talks_each(in, "PATCH", "",
			  o->undo ? STR_LIT("{\"archived\":false}")
				  : STR_LIT("{\"archived\":true}"));
}

static const struct verb talks_archive_verb = {
	.name = "conversations archive",
	.usage = "[--undo] ID...",
	.doc = "Archive conversations; their agents end.",
	.page = "holt-conversations",
	.options = &archive_table,
	.size = sizeof(struct archive_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = talks_archive_run,
};

struct rm_options {
	struct verb_options common;
	bool children;
};
static const struct option_row rm_rows[] = {
	OPTION(struct rm_options, children, OPTION_FLAG, "children",
	       .doc = "Also remove the conversations that they have started."),
	HELP_ROW(struct rm_options),
};
static const struct option_table rm_table = OPTION_TABLE(rm_rows, .mixed = true);

static int talks_rm_run(const struct verb_input *in)
{
	const struct rm_options *o = in->options;

	return talks_each(in, "DELETE", o->children ? "?children=true" : "", STR_NONE);
}

static const struct verb talks_rm_verb = {
	.name = "conversations rm",
	.usage = "[--children] ID...",
	.doc = "Move conversations to the trash.",
	.page = "holt-conversations",
	.options = &rm_table,
	.size = sizeof(struct rm_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = talks_rm_run,
};

static int talks_restore_run(const struct verb_input *in)
{
	return talks_each(in, "POST", "/restore", STR_LIT("{}"));
}

static const struct verb talks_restore_verb = {
	.name = "conversations restore",
	.usage = "ID...",
	.doc = "Restore conversations from the trash.",
	.page = "holt-conversations",
	.options = &bare_table,
	.size = sizeof(struct bare_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = talks_restore_run,
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

static int talks_flags(const struct verb_input *in, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	AUTO(table_free) struct table *t = TABLE(e, "FLAG", "");
	struct json_iter it;

	if (!l || !t)
		return -1;
	if (in->n_operands > 1 &&
	    (flags_write(in, &body, e) < 0 ||
	     talk_ask(l, "PATCH", in->operands[0], "/settings", buf_str(&body), NULL, e) < 0))
		return -1;
	if (talk_ask(l, "GET", in->operands[0], "", STR_NONE, &doc, e) < 0)
		return -1;
	it = json_iter(json_get(json_root(doc), "flags"));
	while (json_next(&it)) {
		table_str(t, it.key);
		table_str(t, json_bool(it.val) ? STR_LIT("on") : STR_LIT("off"));
	}
	table_print(t);
	return 0;
}

static int talks_flags_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return talks_flags(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb talks_flags_verb = {
	.name = "conversations flags",
	.usage = "ID [FLAG=on|off...]",
	.doc = "Show what the agent may do, and change it.",
	.page = "holt-conversations",
	.options = &bare_table,
	.size = sizeof(struct bare_options),
	.min_operands = 1,
	.max_operands = 33,
	.usage_exit = 2,
	.run = talks_flags_run,
};

static const struct verb *const words[] = { &talks_ls_verb,
					    &talks_new_verb,
					    &talks_show_verb,
					    &talks_send_verb,
					    &talks_history_verb,
					    &talks_cancel_verb,
					    &talks_flags_verb,
					    &talks_archive_verb,
					    &talks_rm_verb,
					    &talks_restore_verb,
					    NULL };

const struct verb conversations_verb = { .name = "conversations", LIST, .words = words };
