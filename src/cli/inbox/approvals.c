/* `holt approvals`: what waits for a person. Without a subcommand it lists that. */
#include "cli/inbox/inbox.h"

#include <stdio.h>

#include "cli/common/safe.h"

static const struct ask_noun requests = {
	.path = "/v1/approvals",
	.noun = "request for approval",
	.missing = ERR_APPROVAL_NOT_FOUND,
	.letters = ASK_LOWER "_",
	.max = 64,
	.alone = true,
};

/* ---- approve and deny ---------------------------------------------------------------------- */

/* Members of POINTER=TEXT. */
static int approval_write_pattern(struct json_writer *w, const struct option_list *l, struct err *e)
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

static int approval_write(const struct verb_input *in, struct json_writer *w, struct err *e)
{
	const struct ask_options *o = in->options;

	hub_link_text(w, "decision", "approve");
	hub_link_text(w, "scope", o->flags[0] ? "always" : o->flags[1] ? "conversation" : NULL);
	return o->lists[0].n ? approval_write_pattern(w, &o->lists[0], e) : 0;
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

static const struct verb approvals_approve_verb = {
	.name = "approvals approve",
	.usage = "[OPTION...] ID...",
	.doc = "Approve calls that wait for approval.",
	ASK(approve_table, .of = &requests, .method = "POST", .each = true,
	    .write = approval_write),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

static const struct option_row deny_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "revoke", .member = "decision", .on = "revoke",
		   .off = "deny", .doc = "Withdraw approvals that are still valid."),
	HELP_ROW(struct ask_options),
};
static const struct option_table deny_table = OPTION_TABLE(deny_rows, .mixed = true);

static const struct verb approvals_deny_verb = {
	.name = "approvals deny",
	.usage = "[--revoke] ID...",
	.doc = "Deny calls that wait for approval.",
	ASK(deny_table, .of = &requests, .method = "POST", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

/* ---- the other words ------------------------------------------------------------------------- */

static const struct option_row ls_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "all", .letter = 'a', .member = "all",
		   .doc = "Also list those that have ended."),
	ASK_END,
};
static const struct option_table ls_table = OPTION_TABLE(ls_rows, .mixed = true);

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List calls that wait for approval.",                       \
	.page = "holt-approvals",                                                                  \
	ASK(ls_table, .of = &requests, .list = "approvals",                                        \
	    ASK_COLUMNS({ "ID", "id" }, { "STATE", "state" }, { "SCOPE", "scope" },                \
			{ "WHO", "principal" }, { "ACTION", "action" },                            \
			{ "CREATED", "created_at" }, { "ARGUMENTS", "arguments", .cut = 200 }))

static const struct verb approvals_ls_verb = { .name = "approvals ls", LIST };

enum { STEP = 2 };

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

static int show_members(const struct json_val *v, int indent, struct err *e);

static int show_value(const struct json_val *v, int indent, struct err *e)
{
	int rc = 0;

	if (json_type(v) == JSON_OBJECT && json_len(v) > 0) {
		putchar('\n');
		return show_members(v, indent, e);
	}
	if (json_type(v) == JSON_STR) {
		show_text(json_str(v), indent);
	} else {
		putchar(' ');
		rc = safe_json(stdout, v, e);
	}
	putchar('\n');
	return rc;
}

/* The arguments are JSON in a text; where they are cut they are none. */
static int show_members(const struct json_val *v, int indent, struct err *e)
{
	struct json_iter it = json_iter(v);
	int rc = 0;

	while (rc == 0 && json_next(&it)) {
		bool call = !indent && str_is(it.key, "arguments");
		AUTO(json_free)
		struct json_doc *doc = call ? json_parse(json_str(it.val), NULL, e) : NULL;

		printf("%*s", indent, "");
		safe_line(stdout, it.key);
		putchar(':');
		rc = show_value(doc ? json_root(doc) : it.val, indent + STEP, e);
	}
	return rc;
}

static int approval_show(const struct json_val *v, const char *name, struct err *e)
{
	return show_members(v, 0, e);
}

static const struct verb approvals_show_verb = {
	.name = "approvals show",
	.usage = "[OPTION...] ID",
	.doc = "Print a request for approval.",
	ASK(verb_output, .of = &requests, .show = approval_show),
	.min_operands = 1,
};

static int watch_show(const struct json_val *v, const char *name, struct err *e)
{
	static const char *const line[] = { "id", "state", "principal", "action", NULL };

	return inbox_show(v, line, json_str(json_get(v, "arguments")));
}

static const struct verb approvals_watch_verb = {
	.name = "approvals watch",
	.usage = "[OPTION...]",
	.doc = "Show requests for approval, and each change of them.",
	INBOX_WATCH(.of = &requests, .list = "approvals", .next = "rev", .show = watch_show),
};

static const struct verb *const words[] = { &approvals_ls_verb,	     &approvals_show_verb,
					    &approvals_approve_verb, &approvals_deny_verb,
					    &approvals_watch_verb,   NULL };

const struct verb approvals_verb = { .name = "approvals", LIST, .words = words };
