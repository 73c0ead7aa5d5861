/* `holt prompts`: what people are asked. Without a subcommand it lists what waits for an answer. */
#include "cli/inbox/inbox.h"

static struct str prompt_text(const struct json_val *v)
{
	struct str question = json_str(json_get(v, "question"));

	return question.n ? question : json_str(json_get(v, "title"));
}

static const struct ask_noun questions = {
	.path = "/api/prompts",
	.noun = "question",
	.missing = ERR_QUESTION_NOT_FOUND,
	.letters = ASK_LOWER "_",
	.max = 64,
	.alone = true,
};

/* ---- answer -------------------------------------------------------------------------------- */

static const struct option_row answer_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "text", .letter = 't', .arg = "TEXT",
		   .member = "free_text", .doc = "Answer with this text."),
	ASK_OPTION(lists[0], OPTION_LIST, "set", .letter = 's', .arg = "NAME=VALUE",
		   .doc = "Value of a form field. May be repeated."),
	HELP_ROW(struct ask_options),
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

/* The question says which fields there are. */
static int answer_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct option_list *set = &((const struct ask_options *)in->options)->lists[0];
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	const struct json_val *schema;
	char path[160];

	if (set->n == 0)
		return 0;
	if (hub_ask_path(&questions, path, sizeof(path), in->operands[0], "", e) < 0 ||
	    !(l = hub_link_open(e)) || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
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

static const struct verb prompts_answer_verb = {
	.name = "prompts answer",
	.usage = "[OPTION...] ID [CHOICE]",
	.doc = "Answer a question; the first answer is final.",
	ASK(answer_table, .of = &questions, .method = "POST", .more = "/answer",
	    .operands = { NULL, "option_id" }, .write = answer_write),
	.min_operands = 1,
	.max_operands = 2,
};

/* ---- the other words ------------------------------------------------------------------------- */

static const struct option_row ls_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "all", .letter = 'a', .member = "state", .on = "all",
		   .doc = "Also list those that have ended."),
	ASK_END,
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

static void question_cell(struct table *t, const struct json_val *v)
{
	table_short(t, prompt_text(v), 200);
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List questions that wait for an answer.",                  \
	.page = "holt-prompts",                                                                    \
	ASK(ls_table, .of = &questions, .list = "prompts",                                         \
	    ASK_COLUMNS({ "ID", "request_id" }, { "STATE", "state" }, { "KIND", "kind" },          \
			{ "WHO", "principal" }, { "EXPIRES", "expires_at" },                       \
			{ "QUESTION", .cell = question_cell }))

static const struct verb prompts_ls_verb = { .name = "prompts ls", LIST };

static const struct verb prompts_show_verb = {
	.name = "prompts show",
	.usage = "ID",
	.doc = "Print a question as JSON.",
	ASK(verb_bare, .of = &questions, .json = true),
	.min_operands = 1,
};

static const struct verb prompts_cancel_verb = {
	.name = "prompts cancel",
	.usage = "ID...",
	.doc = "Cancel questions, so that nobody can answer them.",
	ASK(verb_bare, .of = &questions, .method = "POST", .more = "/cancel", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

static int watch_show(const struct json_val *v, const char *name, struct err *e)
{
	static const char *const line[] = { "request_id", "state", "kind", "principal", NULL };

	return inbox_show(v, line, prompt_text(v));
}

static const struct verb prompts_watch_verb = {
	.name = "prompts watch",
	.usage = "[OPTION...]",
	.doc = "Show questions, and each change of them.",
	INBOX_WATCH(.of = &questions, .list = "prompts", .next = "cursor", .show = watch_show),
};

static const struct verb *const words[] = { &prompts_ls_verb,	  &prompts_show_verb,
					    &prompts_answer_verb, &prompts_cancel_verb,
					    &prompts_watch_verb,  NULL };

const struct verb prompts_verb = { .name = "prompts", LIST, .words = words };
