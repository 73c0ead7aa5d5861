/* `holt ws log`, `diff`, `revert`, `fork`. */
#include <inttypes.h>

#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/ws/ws.h"

enum { SHORT_ID = 12 };

/* ---- log ------------------------------------------------------------------------------------- */

struct log_options {
	struct verb_options common;
	uint32_t lines, output;
};

static const struct option_row log_rows[] = {
	OPTION(struct log_options, lines, OPTION_COUNT, "lines", .letter = 'n', .arg = "N",
	       .doc = "Only the newest N revisions."),
	OUTPUT_ROW(struct log_options),
	HELP_ROW(struct log_options),
};
static const struct option_table log_options = OPTION_TABLE(log_rows, .mixed = true);

static void log_row(struct table *t, const struct json_val *r)
{
	struct str id = json_str(json_get(r, "revision"));

	table_number(t, json_get(r, "number"), 1, 0);
	table_str(t, (struct str){ id.p, id.n < SHORT_ID ? id.n : SHORT_ID });
	table_str(t, json_str(json_get(r, "created_at")));
	table_number(t, json_get(r, "files"), 1, 0);
	table_number(t, json_get(r, "bytes"), 1024, 0);
	table_number(t, json_get(r, "left_out"), 1, 0);
	table_str(t, json_str(json_get(r, "sandbox")));
	table_short(t, json_str(json_get(r, "message")), 60);
}

/* A page after the other; as JSON one array. */
static int log_show(const char *name, uint32_t lines, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	autobuf struct buf text = BUF_INIT(HUB_ANSWER_MAX);
	AUTO(table_free)
	struct table *t = TABLE(e, ">NO.", "REVISION", "MADE", ">FILES", ">KiB", ">LEFT OUT",
				"SANDBOX", "MESSAGE");
	struct json_writer w = json_writer(&text);
	char path[WS_PATH_MAX], more[64] = "/log?limit=1000";
	uint32_t n = 0;
	struct str cursor;

	l = t ? hub_link_open(e) : NULL;
	if (!l)
		return -1;
	json_write_array(&w);
	do {
		AUTO(json_free) struct json_doc *doc = NULL;
		struct json_iter it;

		if (ws_path(path, name, more, e) < 0 ||
		    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
			return -1;
		it = json_iter(json_get(json_root(doc), "revisions"));
		while ((!lines || n < lines) && json_next(&it)) {
			n++;
			if (json)
				json_write_val(&w, it.val);
			else
				log_row(t, it.val);
		}
		cursor = json_str(json_get(json_root(doc), "next_cursor"));
		snprintf(more, sizeof(more), "/log?limit=1000&cursor=%.*s", STR_CUT(cursor, 24));
	} while (cursor.p && (!lines || n < lines));
	json_write_array_end(&w);
	if (!json) {
		table_print(t);
		return 0;
	}
	if (json_write_done(&w, e) < 0)
		return -1;
	safe_json_text(stdout, buf_str(&text));
	putchar('\n');
	return 0;
}

static int log_run(const struct verb_input *in)
{
	const struct log_options *o = in->options;
	struct err e = ERR_INIT;

	return log_show(in->operands[0], o->lines, o->output == OUTPUT_JSON, &e) < 0
		     ? hub_link_fail(&e)
		     : 0;
}

const struct verb ws_log_verb = {
	.name = "ws log",
	.usage = "[OPTION...] NAME",
	.doc = "List its revisions, the newest first.",
	.page = "holt-ws",
	.options = &log_options,
	.size = sizeof(struct log_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = log_run,
};

/* ---- diff ------------------------------------------------------------------------------------ */

struct diff_options {
	struct verb_options common;
	bool patch, no_renames, live;
	uint32_t output;
};

static const struct option_row diff_rows[] = {
	OPTION(struct diff_options, live, OPTION_FLAG, "live",
	       .doc = "Compare with the current files of the sandbox that writes to it."),
	OPTION(struct diff_options, no_renames, OPTION_FLAG, "no-renames",
	       .doc = "Show renamed files as deleted and added."),
	OPTION(struct diff_options, patch, OPTION_FLAG, "patch", .letter = 'p',
	       .doc = "Also print what changed in text files."),
	OUTPUT_ROW(struct diff_options),
	HELP_ROW(struct diff_options),
};
static const struct option_table diff_options = OPTION_TABLE(diff_rows, .mixed = true);

/* "A path", as `holt diff` has it. */
static void diff_print(const struct json_val *v)
{
	struct str change = json_str(json_get(v, "change")), text = json_str(json_get(v, "text"));
	struct str before = json_str(json_get(v, "path_before"));

	printf("%c ", str_is(change, "added")	  ? 'A'
		      : str_is(change, "changed") ? 'C'
		      : str_is(change, "renamed") ? 'R'
						  : 'D');
	if (before.p) {
		safe_line(stdout, before);
		fputs(" -> ", stdout);
	}
	safe_line(stdout, json_str(json_get(v, "path")));
	puts(json_bool(json_get(v, "binary")) ? " (binary)" : "");
	safe_text(stdout, text, 0);
	if (json_bool(json_get(v, "cut")))
		puts("... more is not shown");
}

static int diff_show(char **operands, int n, const struct diff_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;
	char path[WS_PATH_MAX];

	if (ws_path(path, operands[0], "/diff?limit=50000", e) < 0 ||
	    (n > 1 && hub_link_query(path, sizeof(path), "from", operands[1], e) < 0) ||
	    (n > 2 && hub_link_query(path, sizeof(path), "to", operands[2], e) < 0) ||
	    (o->live && hub_link_query(path, sizeof(path), "live", "true", e) < 0) ||
	    (o->no_renames && hub_link_query(path, sizeof(path), "renames", "false", e) < 0) ||
	    (o->patch && hub_link_query(path, sizeof(path), "content", "true", e) < 0))
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	it = json_iter(json_get(json_root(doc), "changes"));
	while (json_next(&it))
		diff_print(it.val);
	if (json_bool(json_get(json_root(doc), "truncated")))
		fputs("holt: there are more changes than these\n", stderr);
	return 0;
}

static int diff_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return diff_show(in->operands, in->n_operands, in->options, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ws_diff_verb = {
	.name = "ws diff",
	.usage = "[OPTION...] NAME [FROM [TO]]",
	.doc = "List the changes between two of its revisions.",
	.more = "FROM and TO are revisions or their first digits. Without TO it is the newest,\n"
		"without FROM the one before TO. Each path has A, C, D or R before it: added,\n"
		"changed, deleted or renamed.",
	.page = "holt-ws",
	.options = &diff_options,
	.size = sizeof(struct diff_options),
	.min_operands = 1,
	.max_operands = 3,
	.usage_exit = 2,
	.run = diff_run,
};

/* ---- revert ---------------------------------------------------------------------------------- */

struct revert_options {
	struct verb_options common;
	const char *message;
	uint32_t output;
};

static const struct option_row revert_rows[] = {
	OPTION(struct revert_options, message, OPTION_TEXT, "message", .letter = 'm', .arg = "TEXT",
	       .doc = "Description of the new revision."),
	OUTPUT_ROW(struct revert_options),
	HELP_ROW(struct revert_options),
};
static const struct option_table revert_options = OPTION_TABLE(revert_rows, .mixed = true);

static int revert_run(const struct verb_input *in)
{
	const struct revert_options *o = in->options;
	const struct ws_ask a = {
		.name = in->operands[0],
		.more = "/revert",
		.members = { { "revision", in->operands[1] }, { "message", o->message } },
		.prints = "revision",
		.json = o->output == OUTPUT_JSON,
	};

	return ws_ask(&a);
}

const struct verb ws_revert_verb = {
	.name = "ws revert",
	.usage = "[OPTION...] NAME REVISION",
	.doc = "Make a revision with an earlier one's files; print its id.",
	.more = "No revision goes away. No sandbox may write to the workspace meanwhile.",
	.page = "holt-ws",
	.options = &revert_options,
	.size = sizeof(struct revert_options),
	.min_operands = 2,
	.max_operands = 2,
	.usage_exit = 2,
	.run = revert_run,
};

/* ---- fork ------------------------------------------------------------------------------------ */

struct fork_options {
	struct verb_options common;
	const char *revision;
	uint32_t output;
};

static const struct option_row fork_rows[] = {
	OPTION(struct fork_options, revision, OPTION_TEXT, "revision", .letter = 'r',
	       .arg = "REVISION", .doc = "Revision to start from; by default the newest."),
	OUTPUT_ROW(struct fork_options),
	HELP_ROW(struct fork_options),
};
static const struct option_table fork_options = OPTION_TABLE(fork_rows, .mixed = true);

static int fork_run(const struct verb_input *in)
{
	const struct fork_options *o = in->options;
	const struct ws_ask a = {
		.name = in->operands[0],
		.more = "/fork",
		.members = { { "fork", in->operands[1] }, { "revision", o->revision } },
		.prints = "workspace",
		.json = o->output == OUTPUT_JSON,
	};

	return ws_ask(&a);
}

const struct verb ws_fork_verb = {
	.name = "ws fork",
	.usage = "[OPTION...] NAME NEW",
	.doc = "Copy a workspace with its history; print the new name.",
	.page = "holt-ws",
	.options = &fork_options,
	.size = sizeof(struct fork_options),
	.min_operands = 2,
	.max_operands = 2,
	.usage_exit = 2,
	.run = fork_run,
};
