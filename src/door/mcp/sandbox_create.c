#include "door/mcp/tools.h"

#include "op/sandbox_view.h"

static const struct op_member members[] = {
	{ "template", .as = "pool", .presence = OP_REQUIRED,
	  .doc = "Template. \"host\" is always there: this machine's programs, read-only." },
	{ "memory_mb", .doc = "MiB; 1024 if absent." },
	{ "disk_mb", .doc = "MiB of it for files; 512 if absent." },
	{ "pids", .doc = "Processes and threads; 512 if absent." },
	{ "cpus", .doc = "Such as 0.5 or 2; all if absent." },
	{ "open_files", .in = OP_HIDDEN },
	{ "user", .doc = "root: uid 0, as apt needs." },
	{ "debug", .doc = "Allow gdb and strace." },
	{ "env", .doc = "Environment." },
	{ "cwd", .doc = "Start directory; /workspace if absent." },
	{ "ttl_seconds", .min = 1, .doc = "Seconds to live; no end if absent." },
	{ "labels", .doc = "Key-value labels." },
	{ "volumes", .doc = "Folders of the host, where allowed." },
	{ "secrets", .in = OP_HIDDEN },
	{ "modules", .in = OP_HIDDEN },
	{ "network", .table = &network_grant_table, .doc = "Default: none." },
	{ "workspace", .in = OP_HIDDEN },
	{ "workspace_mode", .in = OP_HIDDEN },
	{ "id", .in = OP_HIDDEN },
	{ "limits", .in = OP_HIDDEN },
	{ "idle_seconds", .in = OP_HIDDEN },
	{ "retention", .in = OP_HIDDEN },
	{ "profiles", .in = OP_HIDDEN },
};

static const struct field create_fields[] = {
	VIEW_ID("sandbox", "Id for the other tools; who knows it can use the sandbox."),
	VIEW_TEMPLATE("template"),
	VIEW_TIER,
	VIEW_LIMITS,
	VIEW_USER,
	VIEW_DEBUG,
	VIEW_FROM_POOL,
	VIEW_TTL("ttl_seconds"),
};
static const struct field_table create_output = FIELD_TABLE(struct sandbox_view, create_fields);

const struct tool sandbox_create_tool = {
	.op = &sandbox_create_op,
	.members = OP_MEMBERS(members),
	.output = &create_output,
	.name = "sandbox_create",
	.title = "Create a sandbox",
	.doc = "Makes a sandbox, an isolated Linux system. It lasts until "
	       "sandbox_terminate, its ttl_seconds or the server's end.",
	.says = "Created sandbox {sandbox}",
};
