#include "op/workspace.h"

#include "base/when.h"
#include "op/ops.h"
#include "op/page.h"

const char *const workspace_mode_names[WORKSPACE_MODES] = {
	[WORKSPACE_WRITE] = "write", [WORKSPACE_COPY] = "copy"
};

static const struct field view_fields[] = {
	FIELD(struct workspace_view, workspace, .flags = FIELD_REQUIRED,
	      .doc = "Name of the workspace."),
	FIELD(struct workspace_view, revision, .flags = FIELD_REQUIRED,
	      .doc = "Newest revision: a hash of its files and history."),
	FIELD(struct workspace_view, created_at, .flags = FIELD_REQUIRED,
	      .doc = "When it was created, RFC 3339."),
	FIELD(struct workspace_view, changed_at, .flags = FIELD_REQUIRED,
	      .doc = "When its newest revision was made, RFC 3339."),
	FIELD(struct workspace_view, sandbox,
	      .doc = "The sandbox that writes to it; absent: none."),
	FIELD(struct workspace_view, files, .flags = FIELD_REQUIRED,
	      .doc = "Number of files, directories and links."),
	FIELD(struct workspace_view, bytes, .flags = FIELD_REQUIRED,
	      .doc = "Size of its files in bytes."),
};
const struct field_table workspace_view_table = FIELD_TABLE(struct workspace_view, view_fields);

/* Its texts live as long as the call. */
static int workspace_view(struct call *c, const struct workspace *w, struct workspace_view *ret,
			  struct err *e)
{
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);
	char *changed = arena_alloc(call_arena(c), WHEN_MAX, e);
	struct workspace_info i;

	if (!created || !changed)
		return -1;
	workspace_info(w, &i);
	when_text(created, i.created_ms);
	when_text(changed, i.changed_ms);
	*ret = (struct workspace_view){
		.workspace = i.name,
		.revision = i.tip,
		.created_at = str_of(created),
		.changed_at = str_of(changed),
		.sandbox = i.sandbox,
		.files = i.files,
		.bytes = i.bytes,
	};
	return 0;
}

struct workspaces *call_workspaces_kept(struct call *c, struct err *e)
{
	struct workspaces *all = call_workspaces(c);

	if (!all)
		err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder keeps workspaces");
	return all;
}

struct workspace *call_workspace(struct call *c, struct str name, struct err *e)
{
	struct workspaces *all = call_workspaces_kept(c, e);
	struct workspace *w = all ? workspaces_get(all, call_owner(c), name) : NULL;
	struct workspace_info i = { .seq = 0 };

	if (w || !all)
		return w;
	while ((w = workspaces_next(all, i.seq))) {
		workspace_info(w, &i);
		if (str_eq(i.name, name) && call_sees_owner(c, i.owner))
			return w;
	}
	workspaces_unknown(name, e);
	return NULL;
}

void workspace_answer(void *call, struct workspace *w, const struct err *err)
{
	struct workspace_view view;
	struct err e = ERR_INIT;

	if (err)
		call_fail(call, err);
	else if (workspace_view(call, w, &view, &e) < 0)
		call_fail(call, &e);
	else
		call_answer(call, &view);
}

/* ---- workspace.create, workspace.get, workspace.delete --------------------------------------- */

struct workspace_request {
	struct str workspace;
};
static const struct field one_fields[] = { WORKSPACE_NAME_ROW(struct workspace_request) };
static const struct field_table one_table = FIELD_TABLE(struct workspace_request, one_fields);

static void workspace_create_run(struct call *c, const void *request)
{
	const struct workspace_request *q = request;
	struct err e = ERR_INIT;
	struct workspaces *all = call_workspaces_kept(c, &e);

	if (all)
		workspace_create_start(all, q->workspace, call_owner(c), workspace_answer, c);
	else
		call_fail(c, &e);
}

const struct op workspace_create_op = {
	.action = "workspace.create",
	.doc = "Creates an empty workspace: files that outlive sandboxes, kept as revisions.",
	.effect = OP_WRITE,
	.flags = OP_LIFECYCLE,
	.request = &one_table,
	.result = &workspace_view_table,
	.run = workspace_create_run,
};

static void workspace_get_run(struct call *c, const void *request)
{
	const struct workspace_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (w)
		workspace_answer(c, w, NULL);
	else
		call_fail(c, &e);
}

const struct op workspace_get_op = {
	.action = "workspace.get",
	.doc = "Returns one workspace.",
	.effect = OP_READ,
	.request = &one_table,
	.result = &workspace_view_table,
	.run = workspace_get_run,
};

static const struct field deleted_fields[] = {
	FIELD(struct workspace_deleted, status, .flags = FIELD_REQUIRED, .doc = "Always deleted."),
	FIELD(struct workspace_deleted, workspace, .flags = FIELD_REQUIRED,
	      .doc = "Name of the workspace."),
};
static const struct field_table deleted_table = FIELD_TABLE(struct workspace_deleted,
							    deleted_fields);

static void workspace_delete_run(struct call *c, const void *request)
{
	const struct workspace_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (!w || workspace_delete(w, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &(struct workspace_deleted){ q->workspace, STR_LIT("deleted") });
}

const struct op workspace_delete_op = {
	.action = "workspace.delete",
	.doc = "Deletes a workspace with its revisions, except those that a fork of it "
	       "has. Data that nothing else needs is removed from the disk soon "
	       "afterwards.",
	.effect = OP_DESTROY,
	.flags = OP_LIFECYCLE,
	.request = &one_table,
	.result = &deleted_table,
	.run = workspace_delete_run,
};

/* ---- workspace.list -------------------------------------------------------------------------- */

struct list_request {
	uint32_t limit;
	struct str cursor;
};
static const struct field list_fields[] = {
	FIELD(struct list_request, limit, .min = 1, .max = PAGE_MAX,
	      .def = DEFAULT_INT(PAGE_DEFAULT), .doc = "Maximum number of workspaces to return."),
	CURSOR_ROW(struct list_request),
};
static const struct field_table list_table = FIELD_TABLE(struct list_request, list_fields);

static const struct field page_fields[] = {
	FIELD_OBJECTS(struct workspaces_view, workspaces, workspace_view_table,
		      .flags = FIELD_REQUIRED, .doc = "In order of creation."),
	NEXT_CURSOR_ROW(struct workspaces_view),
};
static const struct field_table page_table = FIELD_TABLE(struct workspaces_view, page_fields);

/* The next one that the principal may know of. */
static struct workspace *next_seen(struct call *c, struct workspaces *all, uint64_t *after)
{
	struct workspace_info i = { .seq = *after };
	struct workspace *w;

	while ((w = workspaces_next(all, i.seq))) {
		workspace_info(w, &i);
		if (call_sees_owner(c, i.owner))
			break;
	}
	*after = i.seq;
	return w;
}

static void workspace_list_run(struct call *c, const void *request)
{
	const struct list_request *q = request;
	struct err e = ERR_INIT;
	struct workspaces *all = call_workspaces_kept(c, &e);
	struct workspace_view *views = arena_array(call_arena(c), q->limit, sizeof(*views), &e);
	struct workspaces_view page = { .workspaces = { views, 0 }, .next_cursor = STR_NONE };
	char cursor[CURSOR_MAX];
	uint64_t after = 0, last = 0;
	struct workspace *w;
	int failed = !all || !views || (q->cursor.p && cursor_read(q->cursor, &after, &e) < 0);

	while (!failed && (last = after, w = next_seen(c, all, &after))) {
		if (page.workspaces.n == q->limit) {
			cursor_text(cursor, last);
			page.next_cursor = str_of(cursor);
			break;
		}
		failed = workspace_view(c, w, &views[page.workspaces.n++], &e) < 0;
	}
	if (failed)
		call_fail(c, &e);
	else
		call_answer(c, &page);
}

const struct op workspace_list_op = {
	.action = "workspace.list",
	.doc = "Lists workspaces.",
	.effect = OP_READ,
	.request = &list_table,
	.result = &page_table,
	.run = workspace_list_run,
};

/* ---- workspace.attach ------------------------------------------------------------------------ */

struct attach_request {
	struct str sandbox, workspace;
	enum workspace_mode mode;
};
static const struct field attach_fields[] = {
	OP_SANDBOX_ROW(struct attach_request),
	WORKSPACE_NAME_ROW(struct attach_request),
	FIELD_ENUM(struct attach_request, mode, workspace_mode_names,
		   .def = DEFAULT_ENUM(WORKSPACE_WRITE),
		   .doc = "write: its changes become a revision when it ends; one sandbox at a "
			  "time can write. copy: they are not kept."),
};
static const struct field_table attach_table = FIELD_TABLE(struct attach_request, attach_fields);

static const struct field attached_fields[] = {
	FIELD(struct workspace_attached, sandbox, .flags = FIELD_REQUIRED,
	      .doc = "Id of the sandbox."),
	FIELD(struct workspace_attached, workspace, .flags = FIELD_REQUIRED,
	      .doc = "Name of the workspace."),
	FIELD(struct workspace_attached, revision, .flags = FIELD_REQUIRED,
	      .doc = "Revision that it starts with."),
	FIELD(struct workspace_attached, path, .flags = FIELD_REQUIRED,
	      .doc = "Where the files are in the sandbox."),
	FIELD_ENUM(struct workspace_attached, mode, workspace_mode_names, .flags = FIELD_REQUIRED,
		   .doc = "The mode that was asked for."),
};
static const struct field_table attached_table = FIELD_TABLE(struct workspace_attached,
							     attached_fields);

static void attach_on_done(void *arg, struct workspace *w, const struct err *err)
{
	struct call *c = arg;
	const struct attach_request *q = call_request(c);
	struct workspace_info i;

	if (err) {
		call_fail(c, err);
		return;
	}
	workspace_info(w, &i);
	call_answer(c, &(struct workspace_attached){ .workspace = i.name,
						     .revision = i.tip,
						     .sandbox = q->sandbox,
						     .path = STR_LIT("/workspace"),
						     .mode = q->mode });
}

/* The operator sees every workspace, and must not mix files of two owners by mistake. */
static int attach_check_owners(struct call *c, const struct hub_sandbox *l,
			       const struct workspace *w, struct err *e)
{
	struct hub_sandbox_info sandbox;
	struct workspace_info workspace;

	hub_sandbox_info(l, &sandbox);
	workspace_info(w, &workspace);
	if (str_eq(sandbox.owner, workspace.owner) || str_eq(sandbox.owner, call_owner(c)))
		return 0;
	return err_set(e, ERR_DENIED, "sandbox %.*s and workspace %.*s belong to different owners",
		       STR_ARG(sandbox.id), STR_ARG(workspace.name));
}

static void workspace_attach_run(struct call *c, const void *request)
{
	const struct attach_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);
	struct workspace *w = l ? call_workspace(c, q->workspace, &e) : NULL;

	if (w && attach_check_owners(c, l, w, &e) == 0)
		workspace_attach_start(w, l, q->mode == WORKSPACE_WRITE, attach_on_done, c);
	else
		call_fail(c, &e);
}

const struct op workspace_attach_op = {
	.action = "workspace.attach",
	.doc = "Attaches a workspace's files at /workspace of a sandbox in which nothing runs yet.",
	.effect = OP_WRITE,
	.flags = OP_LIFECYCLE,
	.request = &attach_table,
	.target = OP_TARGET(struct attach_request, sandbox),
	.result = &attached_table,
	.run = workspace_attach_run,
};

/* ---- workspace.commit ------------------------------------------------------------------------ */

struct commit_request {
	struct str workspace, message;
};
static const struct field commit_fields[] = {
	WORKSPACE_NAME_ROW(struct commit_request),
	MESSAGE_ROW(struct commit_request),
};
static const struct field_table commit_table = FIELD_TABLE(struct commit_request, commit_fields);

static const struct field committed_fields[] = {
	FIELD(struct workspace_committed, workspace, .flags = FIELD_REQUIRED,
	      .doc = "Name of the workspace."),
	FIELD(struct workspace_committed, revision, .flags = FIELD_REQUIRED,
	      .doc = "Its newest revision."),
	FIELD(struct workspace_committed, changed, .flags = FIELD_REQUIRED,
	      .doc = "False: nothing has changed, so there is no new revision."),
	FIELD(struct workspace_committed, files, .flags = FIELD_REQUIRED,
	      .doc = "Number of files, directories and links."),
	FIELD(struct workspace_committed, bytes, .flags = FIELD_REQUIRED,
	      .doc = "Size of its files in bytes."),
	FIELD(struct workspace_committed, added_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Bytes of them that no earlier revision had."),
	FIELD(struct workspace_committed, left_out, .flags = FIELD_REQUIRED,
	      .doc = "Number of files that were left out because they hold credentials."),
	FIELD(struct workspace_committed, left_out_names,
	      .doc = "Names of the first files left out."),
};
const struct field_table workspace_committed_table = FIELD_TABLE(struct workspace_committed,
								 committed_fields);

struct workspace_committed workspace_committed(struct str workspace,
					       const struct workspace_commit *made)
{
	return (struct workspace_committed){
		.workspace = workspace,
		.revision = made->revision,
		.changed = made->changed,
		.files = made->files,
		.bytes = made->bytes,
		.added_bytes = made->added_bytes,
		.left_out = made->left_out,
		.left_out_names = made->left_out ? made->left_out_names : STR_NONE,
	};
}

static void commit_on_done(void *arg, const struct workspace_commit *made, const struct err *err)
{
	struct call *c = arg;
	const struct commit_request *q = call_request(c);
	struct workspace_committed view;

	if (err) {
		call_fail(c, err);
		return;
	}
	view = workspace_committed(q->workspace, made);
	call_answer(c, &view);
}

static void workspace_commit_run(struct call *c, const void *request)
{
	const struct commit_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (w)
		workspace_commit_start(w, q->message.p ? q->message : STR_LIT(""), commit_on_done,
				       c);
	else
		call_fail(c, &e);
}

const struct op workspace_commit_op = {
	.action = "workspace.commit",
	.doc = "Makes a revision of what the sandbox that writes to a workspace has "
	       "changed. The sandbox is paused meanwhile.",
	.effect = OP_WRITE,
	.flags = OP_LIFECYCLE,
	.request = &commit_table,
	.result = &workspace_committed_table,
	.run = workspace_commit_run,
};
