#include "door/mcp/tools.h"

#include "op/page.h"
#include "op/sandbox_view.h"

static const struct op_member members[] = {
	{ "state", .doc = "Only this state." },
	{ "limit", .min = 1, .def = DEFAULT_INT(100) },
	{ "after", .doc = "The previous next_after." },
	{ "cursor", .in = OP_HIDDEN },
	{ "label", .in = OP_HIDDEN },
};

static const struct field entry_fields[] = {
	VIEW_ID("sandbox", "Its id."),
	VIEW_STATE,
	VIEW_TEMPLATE("template"),
	VIEW_SOURCE,
	VIEW_CREATED,
	VIEW_LABELS,
};
static const struct field_table entry_table = FIELD_TABLE(struct sandbox_view, entry_fields);
static const struct field list_fields[] = {
	VIEWS_ROW(entry_table, "In order of creation."),
	FIELD(struct sandboxes_view, next_after, .has = FIELD_HAS(struct sandboxes_view, has_next),
	      .doc = "Value of after for the next page; absent on the last."),
};
static const struct field_table list_output = FIELD_TABLE(struct sandboxes_view, list_fields);

const struct tool sandbox_list_tool = {
	.op = &sandbox_list_op,
	.members = OP_MEMBERS(members),
	.output = &list_output,
	.name = "sandbox_list",
	.title = "List sandboxes",
	.doc = "Lists the sandboxes of this server, page by page.",
};
