/* `holt snapshot`: saved files of the hub's sandboxes. Without a subcommand it lists them.
 * `holt diff`: what a sandbox has changed. */
#include "cli/snapshot/snapshot.h"

#include "cli/common/safe.h"
#include "cli/link/copies.h"

const struct ask_noun snapshots = {
	.path = "/v1/snapshots",
	.noun = "snapshot",
	.missing = ERR_SNAPSHOT_NOT_FOUND,
	.letters = ASK_LETTERS,
	.max = 200,
};

/* ---- ls, rm -------------------------------------------------------------------------------- */

#define LIST                                                                                       \
	.usage = "[OPTION...]", .doc = "List the snapshots that the hub keeps.",                   \
	.page = "holt-snapshot",                                                                   \
	ASK(verb_output, .of = &snapshots, .more = "?limit=1000", .next = "next_cursor",           \
	    .after = "cursor", .list = "snapshots",                                                \
	    ASK_COLUMNS({ "ID", "id" }, { ">KiB", "bytes", .unit = 1024 },                         \
			{ "CREATED", "created_at" }, { "TEMPLATE", "template_id" },                \
			{ "SOURCE", "source" }, { "NAME", "name" }))

static const struct verb snapshot_ls_verb = { .name = "snapshot ls", LIST };

static const struct verb snapshot_rm_verb = {
	.name = "snapshot rm",
	.usage = "ID...",
	.doc = "Delete snapshots; sandboxes made from them stay.",
	ASK(verb_bare, .of = &snapshots, .method = "DELETE", .each = true),
	.min_operands = 1,
	.max_operands = ASK_NAMES_MAX,
};

/* ---- create, restore ----------------------------------------------------------------------- */

static const struct option_row create_rows[] = {
	ASK_OPTION(texts[0], OPTION_TEXT, "name", .letter = 'n', .arg = "TEXT", .member = "name",
		   .doc = "A name for people."),
	ASK_OPTION(times[0], OPTION_SECONDS, "ttl", .arg = "TIME", .min = 1000,
		   .member = "ttl_seconds", .doc = "Delete it after this time; by default never."),
	ASK_END,
};
static const struct option_table create_options = OPTION_TABLE(create_rows, .mixed = true);

static const struct verb snapshot_create_verb = {
	.name = "snapshot create",
	.usage = "[OPTION...] NAME",
	.doc = "Keep the files of a sandbox, and print the snapshot's id.",
	.more = "The sandbox is frozen meanwhile.",
	ASK(create_options, .of = &ask_sandbox, .method = "POST", .more = "/snapshots",
	    .prints = "id"),
	.min_operands = 1,
};

static const struct verb snapshot_restore_verb = {
	.name = "snapshot restore",
	.usage = "[OPTION...] ID",
	.doc = "Make sandboxes from a snapshot, and print their names.",
	.more = "Either all are made or none.",
	ASK_COPIES(.of = &snapshots, .more = "/restore"),
	.min_operands = 1,
};

extern const struct verb snapshot_export_verb, snapshot_import_verb;

static const struct verb *const words[] = {
	&snapshot_ls_verb,
	&snapshot_create_verb,
	&snapshot_restore_verb,
	&snapshot_rm_verb,
	&snapshot_export_verb,
	&snapshot_import_verb,
	NULL,
};

const struct verb snapshot_verb = { .name = "snapshot", LIST, .words = words };

/* ---- diff ---------------------------------------------------------------------------------- */

/* "A /path", as other tools print it: added, changed, deleted. */
static int diff_row(const struct json_val *v, const char *name, struct err *e)
{
	struct str change = json_str(json_get(v, "change"));

	printf("%c ", str_is(change, "added") ? 'A' : str_is(change, "changed") ? 'C' : 'D');
	safe_puts(stdout, json_str(json_get(v, "path")));
	return 0;
}

const struct verb diff_verb = {
	.name = "diff",
	.usage = "[OPTION...] NAME",
	.doc = "List the changes of a sandbox against its template.",
	.more = "Each path has A, C or D before it: added, changed or deleted.",
	.page = "holt-snapshot",
	ASK(verb_output, .of = &ask_sandbox, .more = "/diff", .list = "changes", .show = diff_row),
	.min_operands = 1,
};
