#include "door/mcp/tools.h"

#include "door/mcp/common.h"
#include "op/sandbox_view.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "usage", .def = DEFAULT_BOOL(true), .doc = "Measure usage." },
};

static const struct field get_fields[] = {
	VIEW_ID("sandbox", "Its id."),
	VIEW_STATE,
	VIEW_CAUSE,
	VIEW_TEMPLATE("template"),
	VIEW_SOURCE,
	VIEW_CREATED,
	VIEW_USER,
	VIEW_DEBUG,
	VIEW_LABELS,
	VIEW_GENERATION,
	VIEW_TTL_LEFT,
	VIEW_VOLUMES,
	VIEW_USAGE,
};
static const struct field_table get_output = FIELD_TABLE(struct sandbox_view, get_fields);

const struct tool sandbox_get_tool = {
	.op = &sandbox_get_op,
	.members = OP_MEMBERS(members),
	.output = &get_output,
	.name = "sandbox_get",
	.title = "Look at a sandbox",
	.doc = "Returns the state, remaining time and usage of a sandbox.",
};
