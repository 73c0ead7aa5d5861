/* snapshot_create, snapshot_list, snapshot_diff and snapshot_restore. */
#include <inttypes.h>

#include "door/mcp/tools.h"
#include "op/coding/snapshot.h"
#include "op/ops.h"

static int create_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_snapshot *r = result;

	if (buf_addf(to, e, "Snapshot %.*s has %" PRIu64 " files and folders, %" PRIu64 " bytes.",
		     STR_ARG(r->name), r->files, r->bytes) < 0)
		return -1;
	if (r->left_out && buf_addf(to, e, " %" PRIu64 " are left out", r->left_out) < 0)
		return -1;
	if (r->left_out && r->left_out_names.n &&
	    buf_addf(to, e, ": %.*s", STR_ARG(r->left_out_names)) < 0)
		return -1;
	if (r->left_out && buf_addf(to, e, ".") < 0)
		return -1;
	return r->gone.n ? buf_addf(to, e, " The oldest one, %.*s, was removed for it.",
				    STR_ARG(r->gone))
			 : 0;
}

const struct tool coding_snapshot_create_tool = {
	.op = &coding_snapshot_create_op,
	.name = "snapshot_create",
	.title = "Keep the files as they are",
	.doc = "Saves the workspace's files under a name, to compare with or go back "
	       "to. Leaves out .git and files with credentials.",
	.text = create_text,
};

static int list_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_snapshots *r = result;

	if (r->snapshots.n == 0)
		return buf_addf(to, e, "No snapshots.");
	for (size_t i = 0; i < r->snapshots.n; i++) {
		const struct coding_snapshot *s = &r->snapshots.p[i];

		if (buf_addf(to, e, "%.*s\t%.*s\t%" PRIu64 " files\t%" PRIu64 " bytes%s%.*s\n",
			     STR_ARG(s->name), STR_ARG(s->created_at), s->files, s->bytes,
			     s->description.n ? "\t" : "", STR_ARG(s->description)) < 0)
			return -1;
	}
	return 0;
}

const struct tool coding_snapshot_list_tool = {
	.op = &coding_snapshot_list_op,
	.name = "snapshot_list",
	.title = "List snapshots",
	.doc = "Lists the snapshots of the workspace, the newest first.",
	.text = list_text,
};

static int changes_text(const void *result, struct buf *to, struct err *e)
{
	const struct coding_changes *r = result;

	if (r->text.n)
		return buf_add(to, r->text.p, r->text.n, e);
	if (r->changed + r->added + r->removed)
		return 0;
	return r->times ? buf_addf(to, e, "No content differs, but the times of %" PRIu64 " files.",
				   r->times)
			: buf_addf(to, e, "Nothing differs.");
}

static int changes_note(const void *result, struct buf *to, struct err *e)
{
	const struct coding_changes *r = result;
	uint64_t n = r->changed + r->added + r->removed;

	return r->more ? buf_addf(to, e, "%" PRIu64 " differ, of which the first are shown.", n)
		       : 0;
}

#define R struct coding_changes
static const struct field facts_fields[] = {
	FIELD(R, changed, .doc = "Number of changed files, directories and links."),
	FIELD(R, added, .doc = "Number of added files, directories and links."),
	FIELD(R, removed, .doc = "Number of removed files, directories and links."),
	FIELD(R, times, .doc = "Number of files that differ only in their times."),
	FIELD(R, more, .doc = "The text is not complete."),
};
#undef R
static const struct field_table changes_facts = FIELD_TABLE(struct coding_changes, facts_fields);

const struct tool coding_snapshot_diff_tool = {
	.op = &coding_snapshot_diff_op,
	.name = "snapshot_diff",
	.title = "Compare with a snapshot",
	.doc = "Shows what has changed since a snapshot, or between two, as a unified diff.",
	.text = changes_text,
	.note = changes_note,
	.facts = &changes_facts,
};

const struct tool coding_snapshot_restore_tool = {
	.op = &coding_snapshot_restore_op,
	.name = "snapshot_restore",
	.title = "Go back to a snapshot",
	.doc = "Restores the workspace's files: content, modes, times and links; newer "
	       "files are removed. Reports what it changed.",
	.text = changes_text,
	.note = changes_note,
	.facts = &changes_facts,
};
