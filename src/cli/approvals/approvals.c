/* `holt approvals`: what waits for a person. Without a subcommand it lists that. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"
#include "cli/link/link.h"

enum { BODY_MAX = 64 << 10, NAMES_MAX = 1024, PATH_SIZE = 128, SHORT = 200, LINE = 1000 };
#define APPROVALS "/v1/approvals"

static int approval_path(char *ret, size_t size, const char *id, struct err *e)
{
	size_t n = strlen(id);

	if (n == 0 || n > 64 || strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n)
		return err_set(e, ERR_APPROVAL_NOT_FOUND, "no request has the id \"%.80s\"", id);
	snprintf(ret, size, APPROVALS "/%s", id);
	return 0;
}

static int approval_ask_hub(struct hub_link *l, const char *method, const char *id, struct str body,
			    struct json_doc **ret, struct err *e)
{
	char path[PATH_SIZE];

	if (approval_path(path, sizeof(path), id, e) < 0)
		return -1;
	if (hub_link_ask(l, method, path, body, ret, e) == 0)
		return 0;
	if (e->code == ERR_SANDBOX_NOT_FOUND) /* the only not_found that the link knows */
		e->code = ERR_APPROVAL_NOT_FOUND;
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

static int approvals_ls(const struct ls_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free)
	struct table *t = TABLE(e, "ID", "STATE", "SCOPE", "WHO", "ACTION", "CREATED", "ARGUMENTS");
	const char *path = o->all ? APPROVALS "?all=true" : APPROVALS;
	struct json_iter it;

	if (!l || !t || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_get(json_root(doc), "approvals"), e);
	it = json_iter(json_get(json_root(doc), "approvals"));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "id")));
		table_str(t, json_str(json_get(it.val, "state")));
		table_str(t, json_str(json_get(it.val, "scope")));
		table_str(t, json_str(json_get(it.val, "principal")));
		table_str(t, json_str(json_get(it.val, "action")));
		table_str(t, json_str(json_get(it.val, "created_at")));
		table_short(t, json_str(json_get(it.val, "arguments")), SHORT);
	}
	table_print(t);
	return 0;
}

static int approvals_ls_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return approvals_ls(in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List what waits for a person's approval.",                 \
	.page = "holt-approvals", .options = &ls_table, .size = sizeof(struct ls_options),         \
	.usage_exit = 2, .run = approvals_ls_run

static const struct verb approvals_ls_verb = { .name = "approvals ls", LIST };

/* ---- show ---------------------------------------------------------------------------------- */

struct bare_options {
	struct verb_options common;
};

static const struct option_row bare_rows[] = { HELP_ROW(struct bare_options) };
static const struct option_table bare_table = OPTION_TABLE(bare_rows, .mixed = true);

static int approvals_show_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!l || approval_ask_hub(l, "GET", in->operands[0], STR_NONE, &doc, &e) < 0 ||
	    hub_link_print(json_root(doc), &e) < 0)
		return hub_link_fail(&e);
	return 0;
}

static const struct verb approvals_show_verb = {
	.name = "approvals show",
	.usage = "ID",
	.doc = "Print a request for approval as JSON.",
	.page = "holt-approvals",
	.options = &bare_table,
	.size = sizeof(struct bare_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = approvals_show_run,
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

static int approval_decide(struct hub_link *l, const char *id, const struct decision *d,
			   struct err *e)
{
	autobuf struct buf body = BUF_INIT(BODY_MAX);
	struct json_writer w = json_writer(&body);

	json_write_object(&w);
	hub_link_text(&w, "decision", d->decision);
	hub_link_text(&w, "scope", d->scope);
	if (d->pattern && d->pattern->n && approval_write_pattern(&w, d->pattern, e) < 0)
		return -1;
	json_write_object_end(&w);
	return json_write_done(&w, e) < 0
		     ? -1
		     : approval_ask_hub(l, "POST", id, buf_str(&body), NULL, e);
}

/* Continues after a failure; the exit status is that of the first one. */
static int approvals_decide(const struct verb_input *in, const struct decision *d)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = approval_decide(l, in->operands[i], d, &e) < 0 ? hub_link_fail(&e) : 0;

		status = status ? status : failed;
	}
	return status;
}

struct approve_options {
	struct verb_options common;
	bool always, conversation;
	struct option_list allow;
};

static const struct option_row approve_rows[] = {
	OPTION(struct approve_options, always, OPTION_FLAG, "always",
	       .doc = "Such calls may go from now on, without asking."),
	OPTION(struct approve_options, conversation, OPTION_FLAG, "conversation",
	       .doc = "The same, while the conversation lasts from which it came."),
	OPTION(struct approve_options, allow, OPTION_LIST, "allow", .arg = "POINTER=TEXT",
	       .doc = "Such calls may have other arguments there: a * in the text stands for "
		      "anything without another command. May be repeated."),
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
	.doc = "Let calls go that wait for a person.",
	.page = "holt-approvals",
	.options = &approve_table,
	.size = sizeof(struct approve_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = approvals_approve_run,
};

struct deny_options {
	struct verb_options common;
	bool revoke;
};

static const struct option_row deny_rows[] = {
	OPTION(struct deny_options, revoke, OPTION_FLAG, "revoke",
	       .doc = "Take back approvals that still hold."),
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
	.doc = "Refuse calls that wait for a person.",
	.page = "holt-approvals",
	.options = &deny_table,
	.size = sizeof(struct deny_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.usage_exit = 2,
	.run = approvals_deny_run,
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

static void approvals_print_line(const struct json_val *v)
{
	static const char *const members[] = { "id", "state", "principal", "action" };

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		safe_line(stdout, json_str(json_get(v, members[i])));
		fputs("  ", stdout);
	}
	safe_short(stdout, json_str(json_get(v, "arguments")), LINE);
	putchar('\n');
}

static int approvals_print_all(const struct json_val *list, bool json, struct err *e)
{
	struct json_iter it = json_iter(list);

	while (json_next(&it)) {
		if (!json)
			approvals_print_line(it.val);
		else if (hub_link_print(it.val, e) < 0)
			return -1;
	}
	return fflush(stdout) == 0 ? 0 : err_set(e, ERR_IO, "standard output is closed");
}

/* First what waits, then each change. */
static int approvals_watch(struct hub_link *l, bool json, struct err *e)
{
	char path[PATH_SIZE] = APPROVALS;

	for (;;) {
		AUTO(json_free) struct json_doc *doc = NULL;
		uint64_t rev = 0;

		if (hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0 ||
		    approvals_print_all(json_get(json_root(doc), "approvals"), json, e) < 0)
			return -1;
		json_uint64(json_get(json_root(doc), "rev"), &rev);
		snprintf(path, sizeof(path), APPROVALS "?wait_seconds=60&after=%" PRIu64, rev);
	}
}

static int approvals_watch_run(const struct verb_input *in)
{
	const struct watch_options *o = in->options;
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);

	if (l)
		approvals_watch(l, o->output == OUTPUT_JSON, &e);
	return hub_link_fail(&e);
}

static const struct verb approvals_watch_verb = {
	.name = "approvals watch",
	.usage = "[OPTION...]",
	.doc = "Show what waits for an approval, and each change of it.",
	.page = "holt-approvals",
	.options = &watch_table,
	.size = sizeof(struct watch_options),
	.usage_exit = 2,
	.run = approvals_watch_run,
};

static const struct verb *const words[] = { &approvals_ls_verb,	     &approvals_show_verb,
					    &approvals_approve_verb, &approvals_deny_verb,
					    &approvals_watch_verb,   NULL };

const struct verb approvals_verb = { .name = "approvals", LIST, .words = words };
