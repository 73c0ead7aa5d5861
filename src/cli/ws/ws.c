/* `holt ws`: workspaces of the hub. Without a subcommand it lists them. */
#include "cli/ws/ws.h"

#include "cli/common/safe.h"

enum { SHORT_ID = 12 };

const struct ask_noun workspaces = {
	.path = "/v1/workspaces",
	.noun = "workspace",
	.missing = ERR_WORKSPACE_NOT_FOUND,
	.letters = ASK_LETTERS,
	.max = 200,
};

#define MESSAGE_ROW(doc_)                                                                          \
	ASK_OPTION(texts[0], OPTION_TEXT, "message", .letter = 'm', .arg = "TEXT",                 \
		   .member = "message", .doc = (doc_))

/* ---- ls, create, rm -------------------------------------------------------------------------- */

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List workspaces: files that outlive sandboxes.",           \
	.page = "holt-ws",                                                                         \
	ASK(verb_output, .of = &workspaces, .more = "?limit=1000", .next = "next_cursor",          \
	    .after = "cursor", .list = "workspaces",                                               \
	    ASK_COLUMNS({ "NAME", "workspace" },                                                   \
			{ "REVISION", "revision", .cut = SHORT_ID, .id = true },                   \
			{ ">FILES", "files", .unit = 1 }, { ">KiB", "bytes", .unit = 1024 },       \
			{ "CHANGED", "changed_at" }, { "SANDBOX", "sandbox" }))

static const struct verb ws_ls_verb = { .name = "ws ls", LIST };

static const struct verb ws_create_verb = {
	.name = "ws create",
	.usage = "[OPTION...] NAME",
	.doc = "Make an empty workspace, and print its name.",
	ASK(verb_output, .of = &workspaces, .method = "POST", .operands = { "name" },
	    .prints = "workspace"),
	.min_operands = 1,
};

static const struct verb ws_rm_verb = {
	.name = "ws rm",
	.usage = "NAME...",
	.doc = "Delete workspaces with their revisions; forks of them stay.",
	ASK(verb_bare, .of = &workspaces, .method = "DELETE", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

/* ---- attach, commit -------------------------------------------------------------------------- */

static const struct option_row attach_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "copy", .member = "mode", .on = "copy",
		   .doc = "Do not keep the sandbox's changes. Others may write meanwhile."),
	ASK_END,
};
static const struct option_table attach_options = OPTION_TABLE(attach_rows, .mixed = true);

static const struct verb ws_attach_verb = {
	.name = "ws attach",
	.usage = "[OPTION...] NAME SANDBOX",
	.doc = "Show its files at /workspace of a sandbox; print that path.",
	.more = "Nothing may run in the sandbox, and its /workspace must be empty. What it\n"
		"changes there becomes a revision when it ends.",
	ASK(attach_options, .of = &workspaces, .method = "POST", .more = "/attach",
	    .operands = { NULL, "sandbox" }, .prints = "path"),
	.min_operands = 2,
};

static const struct option_row commit_rows[] = {
	MESSAGE_ROW("Description of the revision."),
	ASK_END,
};
static const struct option_table commit_options = OPTION_TABLE(commit_rows, .mixed = true);

static const struct verb ws_commit_verb = {
	.name = "ws commit",
	.usage = "[OPTION...] NAME",
	.doc = "Make a revision of its sandbox's changes; print its id.",
	.more = "The sandbox stands still meanwhile and goes on.",
	ASK(commit_options, .of = &workspaces, .method = "POST", .more = "/commit",
	    .prints = "revision"),
	.min_operands = 1,
};

/* ---- log, diff ------------------------------------------------------------------------------- */

static const struct option_row log_rows[] = {
	ASK_OPTION(counts[0], OPTION_COUNT, "lines", .letter = 'n', .arg = "N",
		   .doc = "Only the newest N revisions."),
	ASK_END,
};
static const struct option_table log_options = OPTION_TABLE(log_rows, .mixed = true);

static const struct verb ws_log_verb = {
	.name = "ws log",
	.usage = "[OPTION...] NAME",
	.doc = "List its revisions, the newest first.",
	ASK(log_options, .of = &workspaces, .more = "/log?limit=1000", .next = "next_cursor",
	    .after = "cursor", .first = true, .list = "revisions",
	    ASK_COLUMNS({ ">NO.", "number", .unit = 1 },
			{ "REVISION", "revision", .cut = SHORT_ID, .id = true },
			{ "MADE", "created_at" }, { ">FILES", "files", .unit = 1 },
			{ ">KiB", "bytes", .unit = 1024 }, { ">LEFT OUT", "left_out", .unit = 1 },
			{ "SANDBOX", "sandbox" }, { "MESSAGE", "message", .cut = 60 })),
	.min_operands = 1,
};

/* "A path", as `holt diff` has it. */
static int diff_row(const struct json_val *v, const char *name, struct err *e)
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
	return 0;
}

static const struct option_row diff_rows[] = {
	ASK_OPTION(flags[0], OPTION_FLAG, "live", .member = "live",
		   .doc = "Compare with the current files of the sandbox that writes to it."),
	ASK_OPTION(flags[1], OPTION_FLAG, "no-renames", .member = "renames", .on = "false",
		   .doc = "Show renamed files as deleted and added."),
	ASK_OPTION(flags[2], OPTION_FLAG, "patch", .letter = 'p', .member = "content",
		   .doc = "Also print what changed in text files."),
	ASK_END,
};
static const struct option_table diff_options = OPTION_TABLE(diff_rows, .mixed = true);

static const struct verb ws_diff_verb = {
	.name = "ws diff",
	.usage = "[OPTION...] NAME [FROM [TO]]",
	.doc = "List the changes between two of its revisions.",
	.more = "FROM and TO are revisions or their first digits. Without TO it is the newest,\n"
		"without FROM the one before TO. Each path has A, C, D or R before it: added,\n"
		"changed, deleted or renamed.",
	ASK(diff_options, .of = &workspaces, .more = "/diff?limit=50000",
	    .operands = { NULL, "from", "to" }, .list = "changes", .whole = true, .show = diff_row),
	.min_operands = 1,
	.max_operands = 3,
};

/* ---- revert, fork ---------------------------------------------------------------------------- */

static const struct option_row revert_rows[] = {
	MESSAGE_ROW("Description of the new revision."),
	ASK_END,
};
static const struct option_table revert_options = OPTION_TABLE(revert_rows, .mixed = true);

static const struct verb ws_revert_verb = {
	.name = "ws revert",
	.usage = "[OPTION...] NAME REVISION",
	.doc = "Make a revision with an earlier one's files; print its id.",
	.more = "No revision goes away. No sandbox may write to the workspace meanwhile.",
	ASK(revert_options, .of = &workspaces, .method = "POST", .more = "/revert",
	    .operands = { NULL, "revision" }, .prints = "revision"),
	.min_operands = 2,
};

static const struct option_row fork_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "revision", .letter = 'r', .arg = "REVISION",
		   .member = "revision", .doc = "Revision to start from; by default the newest."),
	ASK_END,
};
static const struct option_table fork_options = OPTION_TABLE(fork_rows, .mixed = true);

static const struct verb ws_fork_verb = {
	.name = "ws fork",
	.usage = "[OPTION...] NAME NEW",
	.doc = "Copy a workspace with its history; print the new name.",
	ASK(fork_options, .of = &workspaces, .method = "POST", .more = "/fork",
	    .operands = { NULL, "fork" }, .prints = "workspace"),
	.min_operands = 2,
};

/* ---- gc -------------------------------------------------------------------------------------- */

static const struct ask_noun garbage = { .path = "/v1/workspaces-garbage" };

static int gc_show(const struct json_val *v, const char *name, struct err *e)
{
	printf("Removed %.0f objects (%.0f KiB); %.0f (%.0f KiB) are in use\n",
	       json_real(json_get(v, "removed")), json_real(json_get(v, "removed_bytes")) / 1024,
	       json_real(json_get(v, "kept")), json_real(json_get(v, "kept_bytes")) / 1024);
	return 0;
}

static const struct verb ws_gc_verb = {
	.name = "ws gc",
	.usage = "[OPTION...]",
	.doc = "Remove from the disk what no revision needs.",
	.more = "This also happens by itself, soon after a workspace was deleted.",
	ASK(verb_output, .of = &garbage, .method = "DELETE", .show = gc_show),
};

static const struct verb *const words[] = {
	&ws_ls_verb,	 &ws_create_verb, &ws_attach_verb, &ws_commit_verb, &ws_log_verb,
	&ws_diff_verb,	 &ws_revert_verb, &ws_fork_verb,   &ws_rm_verb,	    &ws_import_verb,
	&ws_export_verb, &ws_gc_verb,	  &ws_verify_verb, &ws_apply_verb,  NULL,
};

const struct verb ws_verb = { .name = "ws", LIST, .words = words };
