/* workspace.log, .diff, .revert, .fork: the revisions of a workspace. */
#include "base/when.h"
#include "op/ops.h"
#include "op/page.h"
#include "op/workspace.h"

/* ---- workspace.log --------------------------------------------------------------------------- */

struct log_request {
	struct str workspace;
	uint32_t limit;
	struct str cursor;
};
static const struct field log_fields[] = {
	WORKSPACE_NAME_ROW(struct log_request),
	FIELD(struct log_request, limit, .min = 1, .max = PAGE_MAX,
	      .def = DEFAULT_INT(PAGE_DEFAULT), .doc = "Maximum number of revisions to return."),
	CURSOR_ROW(struct log_request),
};
static const struct field_table log_table = FIELD_TABLE(struct log_request, log_fields);

#define T struct workspace_log_entry
static const struct field entry_fields[] = {
	FIELD(T, number, .flags = FIELD_REQUIRED, .doc = "Number of the revision, from 1."),
	FIELD(T, revision, .flags = FIELD_REQUIRED, .doc = "Hash of its files and history."),
	FIELD(T, parent, .doc = "The revision before it; absent: it is the first one."),
	FIELD(T, created_at, .flags = FIELD_REQUIRED, .doc = "When it was made, RFC 3339."),
	FIELD(T, sandbox, .doc = "The sandbox that made the changes."),
	FIELD(T, message, .doc = "Message: what was done."),
	FIELD(T, files, .flags = FIELD_REQUIRED, .doc = "Number of files, directories and links."),
	FIELD(T, bytes, .flags = FIELD_REQUIRED, .doc = "Size of its files in bytes."),
	FIELD(T, left_out, .has = FIELD_HAS(T, has_left_out),
	      .doc = "Number of files that it does not have, because they hold credentials."),
};
#undef T
static const struct field_table entry_table = FIELD_TABLE(struct workspace_log_entry, entry_fields);

static const struct field log_view_fields[] = {
	FIELD(struct workspace_log_view, workspace, .flags = FIELD_REQUIRED,
	      .doc = "Name of the workspace."),
	FIELD_OBJECTS(struct workspace_log_view, revisions, entry_table, .flags = FIELD_REQUIRED,
		      .doc = "The newest first."),
	NEXT_CURSOR_ROW(struct workspace_log_view),
};
static const struct field_table log_view_table = FIELD_TABLE(struct workspace_log_view,
							     log_view_fields);

struct logging {
	struct arena *arena;
	struct workspace_log_view *view;
};

/* A copy in the call's memory; of none: none. */
static int keep_text(struct arena *a, struct str from, struct str *to, struct err *e)
{
	const char *copy = from.p ? arena_dup(a, from, e) : NULL;

	*to = copy ? (struct str){ copy, from.n } : STR_NONE;
	return from.p && !copy ? -1 : 0;
}

static int log_one(void *arg, const struct workspace_revision *r, struct err *e)
{
	const struct logging *l = arg;
	struct workspace_log_entry *to = &l->view->revisions.p[l->view->revisions.n++];
	char *created = arena_alloc(l->arena, WHEN_MAX, e);

	if (!created)
		return -1;
	when_text(created, r->created_ms);
	*to = (struct workspace_log_entry){ .number = r->number,
					    .created_at = str_of(created),
					    .files = r->files,
					    .bytes = r->bytes,
					    .has_left_out = r->left_out > 0,
					    .left_out = r->left_out };
	return keep_text(l->arena, r->id, &to->revision, e) < 0 ||
			       keep_text(l->arena, r->parent, &to->parent, e) < 0 ||
			       keep_text(l->arena, r->source, &to->sandbox, e) < 0 ||
			       keep_text(l->arena, r->message, &to->message, e) < 0
		     ? -1
		     : 0;
}

static int log_page(struct call *c, const struct log_request *q, const struct workspace *w,
		    struct workspace_log_view *view, char cursor[CURSOR_MAX], struct err *e)
{
	struct logging l = { call_arena(c), view };
	uint64_t below = UINT64_MAX, last;

	view->revisions.p = arena_array(call_arena(c), q->limit, sizeof(*view->revisions.p), e);
	if (!view->revisions.p || (q->cursor.p && cursor_read(q->cursor, &below, e) < 0) ||
	    workspace_log(w, below, q->limit, log_one, &l, e) < 0)
		return -1;
	last = view->revisions.n ? view->revisions.p[view->revisions.n - 1].number : 1;
	if (last > 1) {
		cursor_text(cursor, last);
		view->next_cursor = str_of(cursor);
	}
	return 0;
}

static void workspace_log_run(struct call *c, const void *request)
{
	const struct log_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);
	struct workspace_log_view view = { .workspace = q->workspace, .next_cursor = STR_NONE };
	char cursor[CURSOR_MAX];

	if (!w || log_page(c, q, w, &view, cursor, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

const struct op workspace_log_op = {
	.action = "workspace.log",
	.doc = "Lists the revisions of a workspace, the newest first.",
	.effect = OP_READ,
	.request = &log_table,
	.result = &log_view_table,
	.run = workspace_log_run,
};

/* ---- workspace.diff -------------------------------------------------------------------------- */

struct diff_request {
	struct str workspace, from, to;
	bool content, renames, live;
	uint32_t limit;
};
static const struct field diff_fields[] = {
	WORKSPACE_NAME_ROW(struct diff_request),
	REVISION_ROW(struct diff_request, from,
		     .doc = "Revision, or its first digits; absent: the one before `to`."),
	REVISION_ROW(struct diff_request, to,
		     .doc = "Revision, or its first digits; absent: the newest."),
	FIELD(struct diff_request, content, .doc = "Include hunks of text files."),
	FIELD(struct diff_request, renames, .def = DEFAULT_BOOL(true),
	      .doc = "Report a file with the same contents at another path as renamed."),
	FIELD(struct diff_request, live,
	      .doc = "Instead of `to`: the current files of the sandbox that writes to the "
		     "workspace. `from` is then the newest revision by default."),
	FIELD(struct diff_request, limit, .min = 1, .max = WORKSPACE_CHANGES_MAX,
	      .def = DEFAULT_INT(1000), .doc = "Maximum number of paths to return."),
};
static const struct field_table diff_table = FIELD_TABLE(struct diff_request, diff_fields);

static const char *const type_names[] = {
	[FILE_REGULAR] = "file", [FILE_DIRECTORY] = "directory", [FILE_SYMLINK] = "symlink"
};

#define T struct workspace_change
static const struct field change_fields[] = {
	FIELD_ENUM(T, change, workspace_what_names, .flags = FIELD_REQUIRED,
		   .doc = "How the path changed."),
	FIELD_ENUM(T, type, type_names, .flags = FIELD_REQUIRED,
		   .doc = "Type of the file. If it changed, the path is listed as removed, then as "
			  "added."),
	FIELD(T, path, .flags = FIELD_REQUIRED, .doc = "Path in the workspace."),
	FIELD(T, path_bytes, .flags = FIELD_BYTES,
	      .doc = "Bytes of the path, if they are not UTF-8."),
	FIELD(T, path_before, .doc = "For a renamed file: its old path."),
	FIELD(T, path_before_bytes, .flags = FIELD_BYTES,
	      .doc = "Bytes of the old path, if they are not UTF-8."),
	FIELD(T, mode, .flags = FIELD_REQUIRED, .doc = "Permission bits now; 0: it was removed."),
	FIELD(T, mode_before, .flags = FIELD_REQUIRED,
	      .doc = "Permission bits before; 0: it was added."),
	FIELD(T, bytes, .flags = FIELD_REQUIRED, .doc = "Size now, in bytes."),
	FIELD(T, bytes_before, .flags = FIELD_REQUIRED, .doc = "Size before, in bytes."),
	FIELD(T, text, .doc = "Unified hunks, as in diff -u."),
	FIELD(T, binary, .flags = FIELD_REQUIRED, .doc = "Not a text file, so there are no hunks."),
	FIELD(T, cut, .flags = FIELD_REQUIRED,
	      .doc = "Some hunks are left out because there is too much text."),
};
#undef T
static const struct field_table change_table = FIELD_TABLE(struct workspace_change, change_fields);

static const struct field diff_view_fields[] = {
	FIELD(struct workspace_diff_view, workspace, .flags = FIELD_REQUIRED,
	      .doc = "Name of the workspace."),
	FIELD(struct workspace_diff_view, from, .flags = FIELD_REQUIRED,
	      .doc = "Revision that was compared."),
	FIELD(struct workspace_diff_view, to, .flags = FIELD_REQUIRED,
	      .doc = "Revision that it was compared with, or live."),
	FIELD_OBJECTS(struct workspace_diff_view, changes, change_table, .flags = FIELD_REQUIRED,
		      .doc = "Sorted by path."),
	FIELD(struct workspace_diff_view, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more paths."),
};
static const struct field_table diff_view_table = FIELD_TABLE(struct workspace_diff_view,
							      diff_view_fields);

static int diff_normalize(void *request, struct arena *a, struct err *e)
{
	const struct diff_request *q = request;

	return q->live && q->to.p ? err_set(e, ERR_INVALID, "to: live stands for it") : 0;
}

static void diff_on_done(void *arg, const struct workspace_diff *diff, const struct err *err)
{
	struct call *c = arg;
	const struct diff_request *q = call_request(c);

	if (err)
		call_fail(c, err);
	else
		call_answer(c, &(struct workspace_diff_view){ .workspace = q->workspace,
							      .from = diff->from,
							      .to = diff->to,
							      .changes = { diff->changes, diff->n },
							      .truncated = diff->truncated });
}

static void workspace_diff_run(struct call *c, const void *request)
{
	const struct diff_request *q = request;
	const struct workspace_diff_spec spec = { .from = q->from,
						  .to = q->to,
						  .text = q->content,
						  .renames = q->renames,
						  .live = q->live,
						  .limit = q->limit };
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (w)
		workspace_diff_start(w, &spec, diff_on_done, c);
	else
		call_fail(c, &e);
}

const struct op workspace_diff_op = {
	.action = "workspace.diff",
	.doc = "Lists what changed between two revisions of a workspace.",
	.effect = OP_READ,
	.request = &diff_table,
	.result = &diff_view_table,
	.normalize = diff_normalize,
	.run = workspace_diff_run,
};

/* ---- workspace.revert ------------------------------------------------------------------------ */

struct revert_request {
	struct str workspace, revision, message;
};
static const struct field revert_fields[] = {
	WORKSPACE_NAME_ROW(struct revert_request),
	REVISION_ROW(struct revert_request, revision, .flags = FIELD_REQUIRED,
		     .doc = "Revision whose files to take, or its first digits."),
	MESSAGE_ROW(struct revert_request),
};
static const struct field_table revert_table = FIELD_TABLE(struct revert_request, revert_fields);

static void workspace_revert_run(struct call *c, const void *request)
{
	const struct revert_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (w)
		workspace_revert_start(w, q->revision, q->message, workspace_answer, c);
	else
		call_fail(c, &e);
}

const struct op workspace_revert_op = {
	.action = "workspace.revert",
	.doc = "Makes a revision with the files of an earlier one. No revision is removed.",
	.effect = OP_WRITE,
	.flags = OP_LIFECYCLE,
	.request = &revert_table,
	.result = &workspace_view_table,
	.run = workspace_revert_run,
};

/* ---- workspace.fork -------------------------------------------------------------------------- */

struct fork_request {
	struct str workspace, fork, revision;
};
static const struct field fork_fields[] = {
	WORKSPACE_NAME_ROW(struct fork_request),
	FIELD(struct fork_request, fork, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Name of the new workspace."),
	REVISION_ROW(struct fork_request, revision,
		     .doc = "Revision to start with, or its first digits; absent: the newest."),
};
static const struct field_table fork_table = FIELD_TABLE(struct fork_request, fork_fields);

static void workspace_fork_run(struct call *c, const void *request)
{
	const struct fork_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (w)
		workspace_fork_start(w, q->revision, q->fork, call_owner(c), workspace_answer, c);
	else
		call_fail(c, &e);
}

const struct op workspace_fork_op = {
	.action = "workspace.fork",
	.doc = "Makes a workspace with the files and history of another one; both share "
	       "the stored data. It belongs to the caller.",
	.effect = OP_WRITE,
	.flags = OP_LIFECYCLE,
	.request = &fork_table,
	.result = &workspace_view_table,
	.run = workspace_fork_run,
};
