/* sandbox_snapshot and sandbox_restore: files that outlive their sandbox, and new sandboxes with
 * them. */
#include "door/mcp/tools.h"

#include "door/mcp/common.h"
#include "op/sandbox_view.h"
#include "op/snapshot.h"

static const struct op_member take_members[] = {
	TOOL_SANDBOX,
	{ "ttl_seconds", .doc = "Deletes it then; never if absent." },
};

static const struct field taken_fields[] = {
	FIELD(struct snapshot_view, snapshot, .flags = FIELD_REQUIRED,
	      .doc = "Id for sandbox_restore."),
	FIELD_NAMED(struct snapshot_view, source, "sandbox", .flags = FIELD_REQUIRED,
		    .doc = "Sandbox it was taken from."),
	FIELD(struct snapshot_view, digest, .flags = FIELD_REQUIRED,
	      .doc = "SHA-256 of its archive."),
	FIELD(struct snapshot_view, bytes, .flags = FIELD_REQUIRED, .doc = "Size of its archive."),
};
static const struct field_table take_output = FIELD_TABLE(struct snapshot_view, taken_fields);

const struct tool sandbox_snapshot_tool = {
	.op = &snapshot_take_op,
	.members = OP_MEMBERS(take_members),
	.output = &take_output,
	.name = "sandbox_snapshot",
	.title = "Take a snapshot",
	.doc = "Keeps the files of a sandbox as they are now, beyond its end.",
	.says = "Snapshot {snapshot}",
};

static const struct op_member restore_members[] = {
	{ "snapshot", .doc = "Snapshot id." },
	{ "replicas", .in = OP_HIDDEN },
	{ "id", .in = OP_HIDDEN },
	{ "ids", .in = OP_HIDDEN },
	{ "labels", .in = OP_HIDDEN },
};

static const struct field restored_fields[] = {
	FIELD_NAMED(struct sandboxes_view, first, "sandbox", .flags = FIELD_REQUIRED,
		    .doc = "Id of the sandbox."),
	FIELD_NAMED_ENUM(struct sandboxes_view, first_state, "state", hub_sandbox_state_names,
			 .flags = FIELD_REQUIRED, .doc = "State of the sandbox."),
};
static const struct field_table restore_output = FIELD_TABLE(struct sandboxes_view,
							     restored_fields);

const struct tool sandbox_restore_tool = {
	.op = &snapshot_restore_op,
	.members = OP_MEMBERS(restore_members),
	.output = &restore_output,
	.name = "sandbox_restore",
	.title = "Restore a snapshot",
	.doc = "Makes a sandbox with the files of a snapshot, and returns its id.",
	.says = "Created sandbox {sandbox}",
};
