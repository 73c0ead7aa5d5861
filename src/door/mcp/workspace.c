/* The set `workspace`: files that outlive sandboxes. */
#include "door/mcp/common.h"
#include "door/mcp/tools.h"
#include "op/ops.h"
#include "op/workspace.h"

static const struct op_member by_name[] = {
	{ "workspace", .as = "name", .doc = "Name: letters, digits, _ and -." },
};

static const struct field made_fields[] = {
	FIELD_NAMED(struct workspace_view, workspace, "name", .flags = FIELD_REQUIRED,
		    .doc = "Name of the workspace."),
	FIELD(struct workspace_view, revision, .flags = FIELD_REQUIRED,
	      .doc = "Its newest revision."),
};
static const struct field_table made_table = FIELD_TABLE(struct workspace_view, made_fields);

const struct tool workspace_create_tool = {
	.op = &workspace_create_op,
	.members = OP_MEMBERS(by_name),
	.output = &made_table,
	.name = "workspace_create",
	.title = "Create a workspace",
	.doc = "Makes an empty workspace: files that outlive sandboxes.",
	.says = "Created workspace {workspace}",
};

static const struct op_member list_members[] = {
	{ "limit", .in = OP_HIDDEN },
	{ "cursor", .doc = "next_cursor of the previous page." },
};

const struct tool workspace_list_tool = {
	.op = &workspace_list_op,
	.members = OP_MEMBERS(list_members),
	.name = "workspace_list",
	.title = "List workspaces",
	.doc = "Lists workspaces, with the sandbox that writes to each.",
};

static const struct op_member attach_members[] = {
	TOOL_SANDBOX,
	{ "workspace", .doc = "Workspace name." },
};

const struct tool workspace_attach_tool = {
	.op = &workspace_attach_op,
	.members = OP_MEMBERS(attach_members),
	.name = "workspace_attach",
	.title = "Attach a workspace",
	.doc = "Shows a workspace's files at /workspace of a new sandbox. What changes there is "
	       "kept as a revision when the sandbox is terminated.",
	.says = "Workspace {workspace} is at /workspace of sandbox {sandbox}",
};

static const struct field deleted_fields[] = {
	FIELD_NAMED(struct workspace_deleted, workspace, "name", .flags = FIELD_REQUIRED,
		    .doc = "Name of the workspace."),
	FIELD(struct workspace_deleted, status, .flags = FIELD_REQUIRED, .doc = "Always deleted."),
};
static const struct field_table deleted_table = FIELD_TABLE(struct workspace_deleted,
							    deleted_fields);

const struct tool workspace_delete_tool = {
	.op = &workspace_delete_op,
	.members = OP_MEMBERS(by_name),
	.output = &deleted_table,
	.name = "workspace_delete",
	.title = "Delete a workspace",
	.doc = "Deletes a workspace with its files and history.",
	.says = "Deleted workspace {workspace}",
};

static const struct op_member log_members[] = {
	{ "workspace", .doc = "Workspace name." },
	{ "limit", .doc = "Revisions at most." },
	{ "cursor", .doc = "next_cursor of the previous page." },
};

const struct tool workspace_log_tool = {
	.op = &workspace_log_op,
	.members = OP_MEMBERS(log_members),
	.name = "workspace_log",
	.title = "Workspace history",
	.doc = "Lists a workspace's revisions, the newest first, each with its message, time and "
	       "size.",
};

static const struct op_member diff_members[] = {
	{ "workspace", .doc = "Workspace name." },
	{ "from", .doc = "Revision, or its first digits. Default: the one before `to`." },
	{ "to", .doc = "Default: the newest." },
	{ "content", .doc = "Also show the lines that changed." },
	{ "renames", .in = OP_HIDDEN },
	{ "live", .doc = "Compare the current files with the newest revision." },
};

const struct tool workspace_diff_tool = {
	.op = &workspace_diff_op,
	.members = OP_MEMBERS(diff_members),
	.name = "workspace_diff",
	.title = "Compare revisions",
	.doc = "Lists the paths that two revisions of a workspace differ in.",
};

static const struct op_member revert_members[] = {
	{ "workspace", .doc = "Workspace name." },
	{ "revision", .doc = "Revision whose files to take, or its first digits." },
};

const struct tool workspace_revert_tool = {
	.op = &workspace_revert_op,
	.members = OP_MEMBERS(revert_members),
	.name = "workspace_revert",
	.title = "Revert a workspace",
	.doc = "Gives a workspace the files of an earlier revision, as a new revision. Nothing of "
	       "the history is lost.",
	.output = &made_table,
	.says = "Workspace {workspace} has those files, as a new revision",
};

static const struct op_member fork_members[] = {
	{ "workspace", .doc = "Workspace to fork." },
	{ "fork", .as = "name", .doc = "Name of the new workspace." },
	{ "revision", .doc = "Revision to start with. Default: the newest." },
};

const struct tool workspace_fork_tool = {
	.op = &workspace_fork_op,
	.members = OP_MEMBERS(fork_members),
	.name = "workspace_fork",
	.title = "Fork a workspace",
	.doc = "Makes a workspace with the files and history of another one.",
	.output = &made_table,
	.says = "Created workspace {fork}",
};
