/* `holt prompts`: what people are asked. Without a subcommand it lists what waits for an answer. */
#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"

enum { BODY_MAX = 128 << 10, NAMES_MAX = 1024, PATH_SIZE = 160, SHORT = 120, LINE = 1000 };
#define PROMPTS "/api/prompts"

static int prompt_path(char *ret, size_t size, const char *id, const char *more, struct err *e)
{
	size_t n = strlen(id);

	if (n == 0 || n > 64 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n)
		return err_set(e, ERR_QUESTION_NOT_FOUND, "no question has the id \"%.80s\"", id);
	snprintf(ret, size, PROMPTS "/%s%s", id, more);
	return 0;
}

/* id: of the question, with the rest of its path. */
static int prompt_ask_hub(struct hub_link *l, const char *method, const char *id, const char *more,
			  struct str body, struct json_doc **ret, struct err *e)
{
	char path[PATH_SIZE];

	if (prompt_path(path, sizeof(path), id, more, e) < 0)
		return -1;
	if (hub_link_ask(l, method, path, body, ret, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND) /* the only not_found that the link knows */
		e->code = ERR_QUESTION_NOT_FOUND;
	return -1;
}

/* ---- ls ------------------------------------------------------------------------------------ */

struct ls_options {
	struct verb_options common;
	bool all;
	uint32_t output;
};

static const struct option_row ls_rows[] = {
	OPTION(struct ls_options, all, OPTION_FLAG, "all", .letter = 'a',
	       .doc = "Also those that have ended."),
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

static struct str prompt_text(const struct json_val *v)
{
	struct str question = json_str(json_get(v, "question"));

	return question.n ? question : json_str(json_get(v, "title"));
}

static int prompts_ls(const struct ls_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free)
	struct table *t = TABLE(e, "ID", "STATE", "KIND", "WHO", "EXPIRES", "QUESTION");
	const char *path = o->all ? PROMPTS "?state=all" : PROMPTS;
	struct json_iter it;

	if (!l || !t || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_get(json_root(doc), "prompts"), e);
	it = json_iter(json_get(json_root(doc), "prompts"));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "request_id")));
		table_str(t, json_str(json_get(it.val, "state")));
		table_str(t, json_str(json_get(it.val, "kind")));
		table_str(t, json_str(json_get(it.val, "principal")));
		table_str(t, json_str(json_get(it.val, "expires_at")));
		table_short(t, prompt_text(it.val), SHORT);
	}
	table_print(t);
	return 0;
}

static int prompts_ls_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return prompts_ls(in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the questions that wait for a person.",               \
	.page = "holt-prompts", .options = &ls_table, .size = sizeof(struct ls_options),           \
	.usage_exit = 2, .run = prompts_ls_run

static const struct verb prompts_ls_verb = { .name = "prompts ls", LIST };

/* ---- show ---------------------------------------------------------------------------------- */

struct bare_options {
	struct verb_options common;
};

static const struct option_row bare_rows[] = { HELP_ROW(struct bare_options) };
static const struct option_table bare_table = OPTION_TABLE(bare_rows, .mixed = true);

static int prompts_show_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!l || prompt_ask_hub(l, "GET", in->operands[0], "", STR_NONE, &doc, &e) < 0 ||
	    hub_link_print(json_root(doc), &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

static const struct verb prompts_show_verb = {
	.name = "prompts show",
	.usage = "ID",
	.doc = "Print a question as JSON.",
	.page = "holt-prompts",
	.options = &bare_table,
	.size = sizeof(struct bare_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = prompts_show_run,
};

/* ---- answer -------------------------------------------------------------------------------- */

struct answer_options {
	struct verb_options common;
	const char *text;
	struct option_list set;
};

static const struct option_row answer_rows[] = {
	OPTION(struct answer_options, text, OPTION_TEXT, "text", .letter = 't', .arg = "TEXT",
	       .doc = "The answer, where it is a text."),
	OPTION(struct answer_options, set, OPTION_LIST, "set", .letter = 's', .arg = "NAME=VALUE",
	       .doc = "A value of a form. May be repeated."),
	HELP_ROW(struct answer_options),
};
static const struct option_table answer_table = OPTION_TABLE(answer_rows, .mixed = true);

/* A value of a form: a text where its schema says so, else JSON. */
static int answer_write_value(struct json_writer *w, const struct json_val *members,
			      const char *text, struct err *e)
{
	const char *eq = strchr(text, '=');
	struct str name = { text, eq ? (size_t)(eq - text) : 0 };
	const struct json_val *member = json_get_str(members, name);
	AUTO(json_free) struct json_doc *value = NULL;

	if (!eq)
		return err_set(e, ERR_INVALID, "--set takes NAME=VALUE, not \"%.80s\"", text);
	json_write_key_str(w, name);
	if (!member || str_is(json_str(json_get(member, "type")), "string")) {
		json_write_text(w, eq + 1);
		return 0;
	}
	value = json_parse(str_of(eq + 1), NULL, e);
	if (!value)
		return err_wrap(e, "--set %.*s", STR_CUT(name, 64));
	json_write_val(w, json_root(value));
	return 0;
}

static int answer_write_values(struct hub_link *l, struct json_writer *w, const char *id,
			       const struct option_list *set, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *schema;

	if (set->n == 0)
		return 0;
	if (prompt_ask_hub(l, "GET", id, "", STR_NONE, &doc, e) < 0)
		return -1;
	schema = json_get(json_root(doc), "schema");
	json_write_name(w, "values");
	json_write_object(w);
	for (size_t i = 0; i < set->n; i++) {
		if (answer_write_value(w, json_get(schema, "properties"), set->p[i], e) < 0)
			return -1;
	}
	json_write_object_end(w);
	return 0;
}

static int prompts_answer(const struct verb_input *in, struct err *e)
{
	const struct answer_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);
	const char *id = in->operands[0];

	if (!l)
		return -1;
	json_write_object(&w);
	hub_link_text(&w, "option_id", in->n_operands > 1 ? in->operands[1] : NULL);
	hub_link_text(&w, "free_text", o->text);
	if (answer_write_values(l, &w, id, &o->set, e) < 0)
		return -1;
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0
		     ? -1
		     : prompt_ask_hub(l, "POST", id, "/answer", buf_str(&body), NULL, e);
}

static int prompts_answer_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return prompts_answer(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb prompts_answer_verb = {
	.name = "prompts answer",
	.usage = "[OPTION...] ID [CHOICE]",
	.doc = "Answer a question; the first answer counts.",
	.page = "holt-prompts",
	.options = &answer_table,
	.size = sizeof(struct answer_options),
	.min_operands = 1,
	.max_operands = 2,
	.usage_exit = 2,
	.run = prompts_answer_run,
};

/* ---- cancel -------------------------------------------------------------------------------- */

/* Continues after a failure; the exit status is that of the first one. */
static int prompts_cancel_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		const char *id = in->operands[i];
		bool failed = prompt_ask_hub(l, "POST", id, "/cancel", STR_LIT("{}"), NULL, &e) < 0;
		int exit = failed ? hub_link_fail(&e) : 0;

		status = status ? status : exit;
	}
	return status;
}

static const struct verb prompts_cancel_verb = {
	.name = "prompts cancel",
	.usage = "ID...",
	.doc = "Take questions back: nobody is to answer them any more.",
	.page = "holt-prompts",
	.options = &bare_table,
	.size = sizeof(struct bare_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = prompts_cancel_run,
};

/* ---- watch --------------------------------------------------------------------------------- */

struct watch_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row watch_rows[] = {
	OUTPUT_ROW(struct watch_options),
	HELP_ROW(struct watch_options),
};
static const struct option_table watch_table = OPTION_TABLE(watch_rows, .mixed = true);

static void prompts_print_line(const struct json_val *v)
{
	static const char *const members[] = { "request_id", "state", "kind", "principal" };

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		safe_line(stdout, json_str(json_get(v, members[i])));
		fputs("  ", stdout);
	}
	safe_short(stdout, prompt_text(v), LINE);
	putchar('\n');
}

static int prompts_print_all(const struct json_val *list, bool json, struct err *e)
{
	struct json_iter it = json_iter(list);

	while (json_next(&it)) {
		if (!json)
			prompts_print_line(it.val);
		else if (hub_link_print(it.val, e) < 0)
			return -1;
	}
	return fflush(stdout) == 0 ? 0 : err_set(e, ERR_IO, "standard output is closed");
}

/* First what waits, then each change. */
static int prompts_watch(struct hub_link *l, bool json, struct err *e)
{
	char path[PATH_SIZE] = PROMPTS;

	for (;;) {
		AUTO(json_free) struct json_doc *doc = NULL;

		if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0 ||
		    prompts_print_all(json_get(json_root(doc), "prompts"), json, e) < 0)
			return -1;
		snprintf(path, sizeof(path), PROMPTS "?wait_seconds=60&after=%.*s",
			 STR_CUT(json_str(json_get(json_root(doc), "cursor")), 64));
	}
}

static int prompts_watch_run(const struct verb_input *in)
{
	const struct watch_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);

	if (l)
		prompts_watch(l, o->output == OUTPUT_JSON, &e);
	return hub_link_fail(&e);
}

static const struct verb prompts_watch_verb = {
	.name = "prompts watch",
	.usage = "[OPTION...]",
	.doc = "Show the questions that wait, and each change of one.",
	.page = "holt-prompts",
	.options = &watch_table,
	.size = sizeof(struct watch_options),
	.usage_exit = 2,
	.run = prompts_watch_run,
};

static const struct verb *const words[] = { &prompts_ls_verb,	  &prompts_show_verb,
					    &prompts_answer_verb, &prompts_cancel_verb,
					    &prompts_watch_verb,  NULL };

const struct verb prompts_verb = { .name = "prompts", LIST, .words = words };
