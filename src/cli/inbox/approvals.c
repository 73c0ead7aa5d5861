/* `holt approvals`: what waits for a person. Without a subcommand it lists that. */
#include "cli/inbox/inbox.h"

enum { BODY_MAX = 64 << 10 };

static struct str approval_text(const struct json_val *v)
{
	return json_str(json_get(v, "arguments"));
}

static const char *const headings[] = { "ID",	  "STATE",   "SCOPE",	  "WHO",
					"ACTION", "CREATED", "ARGUMENTS", NULL };
static const char *const columns[] = { "id",	 "state",      "scope", "principal",
				       "action", "created_at", NULL };
static const char *const line[] = { "id", "state", "principal", "action", NULL };

static const struct inbox approvals = {
	.path = "/v1/approvals",
	.all = "?all=true",
	.list = "approvals",
	.cursor = "rev",
	.noun = "request",
	.missing = ERR_APPROVAL_NOT_FOUND,
	.headings = headings,
	.members = columns,
	.line = line,
	.text = approval_text,
};

/* ---- approve and deny ---------------------------------------------------------------------- */

struct decision {
	const char *decision, *scope;
	const struct option_list *pattern; /* NULL: none */
};

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

static int approval_write(struct buf *to, const struct decision *d, struct err *e)
{
	struct json_writer w = json_writer(to);

	json_write_object(&w);
	hub_link_text(&w, "decision", d->decision);
	hub_link_text(&w, "scope", d->scope);
	if (d->pattern && d->pattern->n && approval_write_pattern(&w, d->pattern, e) < 0)
		return -1;
	json_write_object_end(&w);
	return json_write_done(&w, e);
}

static int approvals_decide(const struct verb_input *in, const struct decision *d)
{
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct err e = ERR_INIT;

	return approval_write(&body, d, &e) < 0 ? hub_link_fail(&e)
						: inbox_each(&approvals, in, "", buf_str(&body));
}

struct approve_options {
	struct verb_options common;
	bool always, conversation;
	struct option_list allow;
};

static const struct option_row approve_rows[] = {
	OPTION(struct approve_options, always, OPTION_FLAG, "always",
	       .doc = "Allow such calls from now on, without asking."),
	OPTION(struct approve_options, conversation, OPTION_FLAG, "conversation",
	       .doc = "Allow such calls until the conversation ends, for a day at most."),
	OPTION(struct approve_options, allow, OPTION_LIST, "allow", .arg = "POINTER=TEXT",
	       .doc = "With one of these: such calls may differ in the argument at this JSON "
		      "pointer, if it matches TEXT, where * stands for any text without another "
		      "shell command. May be repeated."),
	HELP_ROW(struct approve_options),
};
static const struct option_table approve_table = OPTION_TABLE(approve_rows, .mixed = true);

static int approvals_approve_run(const struct verb_input *in)
{
	const struct approve_options *o = in->options;

	const struct decision d = {
		.decision = "approve",
		.scope = o->always	 ? "always"
		       : o->conversation ? "conversation"
					 : NULL,
		.pattern = &o->allow,
	};

	return approvals_decide(in, &d);
}

static const struct verb approvals_approve_verb = {
	.name = "approvals approve",
	.usage = "[OPTION...] ID...",
	.doc = "Approve calls that wait for approval.",
	.page = "holt-approvals",
	.options = &approve_table,
	.size = sizeof(struct approve_options),
	.min_operands = 1,
	.max_operands = INBOX_NAMES_MAX,
	.usage_exit = 2,
	.run = approvals_approve_run,
};

struct deny_options {
	struct verb_options common;
	bool revoke;
};

static const struct option_row deny_rows[] = {
	OPTION(struct deny_options, revoke, OPTION_FLAG, "revoke",
	       .doc = "Withdraw approvals that are still valid."),
	HELP_ROW(struct deny_options),
};
static const struct option_table deny_table = OPTION_TABLE(deny_rows, .mixed = true);

static int approvals_deny_run(const struct verb_input *in)
{
	const struct deny_options *o = in->options;

	return approvals_decide(in,
				&(struct decision){ .decision = o->revoke ? "revoke" : "deny" });
}

static const struct verb approvals_deny_verb = {
	.name = "approvals deny",
	.usage = "[--revoke] ID...",
	.doc = "Deny calls that wait for approval.",
	.page = "holt-approvals",
	.options = &deny_table,
	.size = sizeof(struct deny_options),
	.min_operands = 1,
	.max_operands = INBOX_NAMES_MAX,
	.usage_exit = 2,
	.run = approvals_deny_run,
};

/* ---- the other words ------------------------------------------------------------------------- */

static int approvals_ls_run(const struct verb_input *in)
{
	return inbox_ls(&approvals, in);
}

static int approvals_show_run(const struct verb_input *in)
{
	return inbox_show(&approvals, in);
}

static int approvals_watch_run(const struct verb_input *in)
{
	return inbox_watch(&approvals, in);
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List calls that wait for approval.",                       \
	.page = "holt-approvals", INBOX_OPTIONS(ls), .run = approvals_ls_run

static const struct verb approvals_ls_verb = { .name = "approvals ls", LIST };
static const struct verb approvals_show_verb = {
	.name = "approvals show",
	.usage = "ID",
	.doc = "Print a request for approval as JSON.",
	.page = "holt-approvals",
	INBOX_OPTIONS(bare),
	.min_operands = 1,
	.max_operands = 1,
	.run = approvals_show_run,
};
static const struct verb approvals_watch_verb = {
	.name = "approvals watch",
	.usage = "[OPTION...]",
	.doc = "Show requests for approval, and each change of them.",
	.page = "holt-approvals",
	INBOX_OPTIONS(watch),
	.run = approvals_watch_run,
};

static const struct verb *const words[] = { &approvals_ls_verb,	     &approvals_show_verb,
					    &approvals_approve_verb, &approvals_deny_verb,
					    &approvals_watch_verb,   NULL };

const struct verb approvals_verb = { .name = "approvals", LIST, .words = words };
