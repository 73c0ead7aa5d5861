/* `holt prompts`: what people are asked. Without a subcommand it lists what waits for an answer. */
#include "cli/inbox/inbox.h"

enum { BODY_MAX = 128 << 10 };

static struct str prompt_text(const struct json_val *v)
{
	struct str question = json_str(json_get(v, "question"));

	return question.n ? question : json_str(json_get(v, "title"));
}

static const char *const headings[] = { "ID", "STATE", "KIND", "WHO", "EXPIRES", "QUESTION", NULL };
static const char *const columns[] = { "request_id", "state",	   "kind",
				       "principal",  "expires_at", NULL };
static const char *const line[] = { "request_id", "state", "kind", "principal", NULL };

static const struct inbox prompts = {
	.path = "/api/prompts",
	.all = "?state=all",
	.list = "prompts",
	.cursor = "cursor",
	.noun = "question",
	.missing = ERR_QUESTION_NOT_FOUND,
	.headings = headings,
	.members = columns,
	.line = line,
	.text = prompt_text,
};

/* ---- answer -------------------------------------------------------------------------------- */

struct answer_options {
	struct verb_options common;
	const char *text;
	struct option_list set;
};

static const struct option_row answer_rows[] = {
	OPTION(struct answer_options, text, OPTION_TEXT, "text", .letter = 't', .arg = "TEXT",
	       .doc = "Answer with this text."),
	OPTION(struct answer_options, set, OPTION_LIST, "set", .letter = 's', .arg = "NAME=VALUE",
	       .doc = "Value of a form field. May be repeated."),
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
	if (inbox_ask(&prompts, l, "GET", id, "", STR_NONE, &doc, e) < 0)
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
		     : inbox_ask(&prompts, l, "POST", id, "/answer", buf_str(&body), NULL, e);
}

static int prompts_answer_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return prompts_answer(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

static const struct verb prompts_answer_verb = {
	.name = "prompts answer",
	.usage = "[OPTION...] ID [CHOICE]",
	.doc = "Answer a question; the first answer is final.",
	.page = "holt-prompts",
	.options = &answer_table,
	.size = sizeof(struct answer_options),
	.min_operands = 1,
	.max_operands = 2,
	.usage_exit = 2,
	.run = prompts_answer_run,
};

/* ---- the other words ------------------------------------------------------------------------- */

static int prompts_ls_run(const struct verb_input *in)
{
	return inbox_ls(&prompts, in);
}

static int prompts_show_run(const struct verb_input *in)
{
	return inbox_show(&prompts, in);
}

static int prompts_cancel_run(const struct verb_input *in)
{
	return inbox_each(&prompts, in, "/cancel", STR_LIT("{}"));
}

static int prompts_watch_run(const struct verb_input *in)
{
	return inbox_watch(&prompts, in);
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List questions that wait for an answer.",                  \
	.page = "holt-prompts", INBOX_OPTIONS(ls), .run = prompts_ls_run

static const struct verb prompts_ls_verb = { .name = "prompts ls", LIST };
static const struct verb prompts_show_verb = {
	.name = "prompts show",
	.usage = "ID",
	.doc = "Print a question as JSON.",
	.page = "holt-prompts",
	INBOX_OPTIONS(bare),
	.min_operands = 1,
	.max_operands = 1,
	.run = prompts_show_run,
};
static const struct verb prompts_cancel_verb = {
	.name = "prompts cancel",
	.usage = "ID...",
	.doc = "Cancel questions, so that nobody can answer them.",
	.page = "holt-prompts",
	INBOX_OPTIONS(bare),
	.min_operands = 1,
	.max_operands = INBOX_NAMES_MAX,
	.run = prompts_cancel_run,
};
static const struct verb prompts_watch_verb = {
	.name = "prompts watch",
	.usage = "[OPTION...]",
	.doc = "Show questions, and each change of them.",
	.page = "holt-prompts",
	INBOX_OPTIONS(watch),
	.run = prompts_watch_run,
};

static const struct verb *const words[] = { &prompts_ls_verb,	  &prompts_show_verb,
					    &prompts_answer_verb, &prompts_cancel_verb,
					    &prompts_watch_verb,  NULL };

const struct verb prompts_verb = { .name = "prompts", LIST, .words = words };
