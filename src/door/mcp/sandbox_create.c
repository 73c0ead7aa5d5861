#include "door/mcp/tools.h"

#include "op/sandbox_view.h"

static const struct op_member members[] = {
	{ "template", .as = "pool", .presence = OP_REQUIRED,
	  .doc = "Template to make it from. \"host\" is always there: this machine's programs and "
		 "libraries, read-only, with an /etc of its own and an empty /workspace." },
	{ "ttl_seconds", .min = 1,
	  .doc = "Ends the sandbox this long after its creation; never if absent." },
	{ "id", .in = OP_HIDDEN },
	{ "network", .in = OP_HIDDEN },
	{ "limits", .in = OP_HIDDEN },
	{ "idle_seconds", .in = OP_HIDDEN },
	{ "retention", .in = OP_HIDDEN },
};

static const struct field create_fields[] = {
	VIEW_ID("sandbox", "Id for the other tools; who knows it can use the sandbox."),
	VIEW_TEMPLATE("template"),
	VIEW_TIER,
	VIEW_LIMITS,
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
	.doc = "Makes a new sandbox, a small isolated Linux system without a network, and returns "
	       "its id. Takes milliseconds. It lasts until sandbox_terminate, its ttl_seconds, or "
	       "the end of this server.",
	.says = "Created sandbox {sandbox}",
};
