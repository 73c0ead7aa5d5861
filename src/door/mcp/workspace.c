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
		    .doc = "Its name."),
	FIELD(struct workspace_view, revision, .flags = FIELD_REQUIRED,
	      .doc = "Its first revision, which is empty."),
};
static const struct field_table made_table = FIELD_TABLE(struct workspace_view, made_fields);

const struct tool workspace_create_tool = {
	.op = &workspace_create_op,
	.members = OP_MEMBERS(by_name),
	.output = &made_table,
	.name = "workspace_create",
	.title = "Create a workspace",
	.doc = "Makes an empty workspace: files that outlive sandboxes.",
	.says = "Created workspace {name}",
};

static const struct op_member list_members[] = {
	{ "limit", .in = OP_HIDDEN },
	{ "cursor", .doc = "next_cursor of the page before." },
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
		    .doc = "Its name."),
	FIELD(struct workspace_deleted, status, .flags = FIELD_REQUIRED, .doc = "deleted"),
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
	.says = "Deleted workspace {name}",
};
