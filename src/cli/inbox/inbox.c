/* `holt inbox`: questions and requests for approval, which wait for a person. Without a subcommand
 * it lists them. */
#include "cli/link/ask.h"

#include <stdio.h>
#include <string.h>

#include "cli/common/safe.h"

enum { QUESTION_CUT = 200, LINE_CUT = 1000, INDENT = 2 };

static const struct ask_noun inbox_entry = {
	.path = "/api/prompts",
	.noun = "question or request for approval",
	.missing = ERR_QUESTION_NOT_FOUND,
	.letters = ASK_LOWER "_",
	.max = 64,
	.alone = true,
};
static const struct ask_noun inbox_approval = {
	.path = "/v1/approvals",
	.noun = "request for approval",
	.missing = ERR_APPROVAL_NOT_FOUND,
	.letters = ASK_LOWER "_",
	.max = 64,
	.alone = true,
};

/* ---- lists --------------------------------------------------------------------------------- */

/* The question; of a request for approval, as much of the arguments of its call as fits, too. */
static struct str inbox_text(const struct json_val *v, char *room, size_t size)
{
	const struct json_val *approval = json_get(v, "approval");
	struct str text = json_str(json_get(v, "question")), title = json_str(json_get(v, "title"));
	int n;

	if (!approval && str_is(json_str(json_get(v, "origin")), "acp") && title.n) {
		n = snprintf(room, size, "%.*s: \"%.*s\"", STR_CUT(title, size),
			     STR_CUT(text, size));
		return (struct str){ room, (size_t)n < size ? (size_t)n : size - 1 };
	}
	if (!approval)
		return text.n ? text : title;
	n = snprintf(room, size, "%.*s %.*s", STR_CUT(text, size),
		     STR_CUT(json_str(json_get(approval, "arguments")), size));
	return (struct str){ room, (size_t)n < size ? (size_t)n : size - 1 };
}

static void inbox_cell(struct table *t, const struct json_val *v)
{
	char room[2 * QUESTION_CUT];

	table_short(t, inbox_text(v, room, sizeof(room)), QUESTION_CUT);
}

static const struct option_row ls_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "all", .letter = 'a', .member = "state", .on = "all",
		   .doc = "Also list those that have ended."),
	ASK_END,
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List what waits for a person: questions and calls.",       \
	.page = "holt-inbox",                                                                      \
	ASK(ls_table, .of = &inbox_entry, .list = "prompts",                                       \
	    ASK_COLUMNS({ "ID", "request_id" }, { "STATE", "state" }, { "KIND", "kind" },          \
			{ "WHO", "principal" }, { "EXPIRES", "expires_at" },                       \
			{ "QUESTION", .cell = inbox_cell }))

static const struct verb inbox_ls_verb = { .name = "inbox ls", LIST };

static int watch_show(const struct json_val *v, const char *name, struct err *e)
{
	static const char *const members[] = { "request_id", "state", "kind", "principal" };
	char room[2 * LINE_CUT];

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		safe_line(stdout, json_str(json_get(v, members[i])));
		fputs("  ", stdout);
	}
	safe_short(stdout, inbox_text(v, room, sizeof(room)), LINE_CUT);
	putchar('\n');
	return 0;
}

/* First what waits, then each change, until the hub ends. */
static const struct verb inbox_watch_verb = {
	.name = "inbox watch",
	.usage = "[OPTION...]",
	.doc = "Show what waits for a person, and each change of it.",
	ASK(verb_output, .of = &inbox_entry, .list = "prompts", .next = "cursor",
	    .after = "wait_seconds=60&after", .endless = true, .lines = true, .show = watch_show),
};

static const struct option_row approvals_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "all", .letter = 'a', .member = "all",
		   .doc = "Also list those that have ended."),
	ASK_END,
};
static const struct option_table approvals_table = OPTION_TABLE(approvals_rows, .mixed = true);

static const struct verb inbox_approvals_verb = {
	.name = "inbox approvals",
	.usage = "[OPTION...]",
	.doc = "List requests, and approvals that are still valid.",
	ASK(approvals_table, .of = &inbox_approval, .list = "approvals",
	    ASK_COLUMNS({ "ID", "id" }, { "STATE", "state" }, { "SCOPE", "scope" },
			{ "WHO", "principal" }, { "ACTION", "action" }, { "CREATED", "created_at" },
			{ "ARGUMENTS", "arguments", .cut = QUESTION_CUT })),
};

/* ---- show ---------------------------------------------------------------------------------- */

/* A text of several lines stands below its name, each indented, so that none looks like another
 * member. */
static void show_text(struct str s, int indent)
{
	bool block = s.n && memchr(s.p, '\n', s.n);

	if (!block)
		putchar(' ');
	while (s.n) {
		const char *end = memchr(s.p, '\n', s.n);
		size_t n = end ? (size_t)(end - s.p) : s.n;

		if (block)
			printf("\n%*s", indent, "");
		safe_line(stdout, (struct str){ s.p, n });
		n += end != NULL;
		s = (struct str){ s.p + n, s.n - n };
	}
}

/* The arguments of a call are JSON in a text; where they are cut they are none. */
static int show_members(const struct json_val *v, int indent, struct err *e)
{
	struct json_iter it = json_iter(v);

	while (json_next(&it)) {
		bool call = !indent && str_is(it.key, "arguments");
		AUTO(json_free)
		struct json_doc *doc = call ? json_parse(json_str(it.val), NULL, e) : NULL;
		const struct json_val *value = doc ? json_root(doc) : it.val;

		printf("%*s", indent, "");
		safe_line(stdout, it.key);
		putchar(':');
		if (json_type(value) == JSON_OBJECT && json_len(value) > 0) {
			putchar('\n');
			if (show_members(value, indent + INDENT, e) < 0)
				return -1;
			continue;
		}
		if (json_type(value) == JSON_STR) {
			show_text(json_str(value), indent + INDENT);
		} else {
			putchar(' ');
			if (safe_json(stdout, value, e) < 0)
				return -1;
		}
		putchar('\n');
	}
	return 0;
}

static int inbox_show(const struct json_val *v, const char *name, struct err *e)
{
	const struct json_val *approval = json_get(v, "approval");

	return show_members(approval ? approval : v, 0, e);
}

static const struct verb inbox_show_verb = {
	.name = "inbox show",
	.usage = "[OPTION...] ID",
	.doc = "Print a question or a request for approval.",
	ASK(verb_output, .of = &inbox_entry, .show = inbox_show),
	.min_operands = 1,
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
	if (hub_ask_path(&inbox_entry, path, sizeof(path), in->operands[0], "", e) < 0 ||
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

static const struct verb inbox_answer_verb = {
	.name = "inbox answer",
	.usage = "[OPTION...] ID [CHOICE]",
	.doc = "Answer a question; the first answer is final.",
	ASK(answer_table, .of = &inbox_entry, .method = "POST", .more = "/answer",
	    .operands = { NULL, "option_id" }, .write = answer_write),
	.min_operands = 1,
	.max_operands = 2,
};

/* ---- approve, deny, revoke, cancel --------------------------------------------------------- */

/* Members of POINTER=TEXT. */
static int decision_write_pattern(struct json_writer *w, const struct option_list *l, struct err *e)
{
	json_write_name(w, "pattern");
	json_write_object(w);
	for (size_t i = 0; i < l->n; i++) {
		const char *text = l->p[i], *eq = strchr(text, '=');

		if (text[0] != '/' || !eq)
			return err_set(e, ERR_INVALID, "--allow takes POINTER=TEXT, not \"%.80s\"",
				       text);
		json_write_key_str(w, (struct str){ text, (size_t)(eq - text) });
		json_write_text(w, eq + 1);
	}
	json_write_object_end(w);
	return 0;
}

/* The last word of the verb is the decision. */
static int decision_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct ask_options *o = in->options;

	hub_link_text(w, "decision", strchr(in->verb->name, ' ') + 1);
	hub_link_text(w, "scope", o->flags[0] ? "always" : o->flags[1] ? "conversation" : NULL);
	return o->lists[0].n ? decision_write_pattern(w, &o->lists[0], e) : 0;
}

static const struct option_row approve_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "always",
		   .doc = "Allow such calls from now on, without asking."),
	ASK_OPTION(flags[1], OPTION_FLAG, "conversation",
		   .doc = "Allow such calls until the conversation ends, for a day at most."),
	ASK_OPTION(
		lists[0], OPTION_LIST, "allow", .arg = "POINTER=TEXT",
		.doc = "With one of these: such calls may differ in the argument at this JSON "
		       "pointer, if it matches TEXT, where * stands for any text without another "
		       "shell command. May be repeated."),
	HELP_ROW(struct ask_options),
};
static const struct option_table approve_table = OPTION_TABLE(approve_rows, .mixed = true);

#define EACH(word, usage_, doc_, options_, ...)                                                    \
	static const struct verb inbox_##word##_verb = {                                           \
		.name = "inbox " #word,                                                            \
		.usage = usage_ "ID...",                                                           \
		.doc = doc_,                                                                       \
		ASK(options_, .method = "POST", .each = true, __VA_ARGS__),                        \
		.min_operands = 1,                                                                 \
		.max_operands = ASK_NAMES_MAX,                                                     \
	}

EACH(approve, "[OPTION...] ", "Approve calls that wait for approval.", approve_table,
     .of = &inbox_approval, .write = decision_write);
EACH(deny, "", "Deny calls that wait for approval.", verb_bare, .of = &inbox_approval,
     .write = decision_write);
EACH(revoke, "", "Withdraw approvals that are still valid.", verb_bare, .of = &inbox_approval,
     .write = decision_write);
EACH(cancel, "", "Cancel questions, so that nobody can answer them.", verb_bare, .of = &inbox_entry,
     .more = "/cancel");

static const struct verb *const words[] = {
	&inbox_ls_verb,	       &inbox_show_verb,
	&inbox_answer_verb,    &inbox_approve_verb,
	&inbox_deny_verb,      &inbox_cancel_verb,
	&inbox_approvals_verb, &inbox_revoke_verb,
	&inbox_watch_verb,     NULL,
};

const struct verb inbox_verb = { .name = "inbox", LIST, .words = words };
