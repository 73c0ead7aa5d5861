#include "door/mcp/tools.h"

#include "door/mcp/common.h"
#include "op/sandbox_view.h"

static const struct op_member members[] = {
	TOOL_SANDBOX,
	{ "replicas", .def = DEFAULT_INT(1), .doc = "Copies; all or none." },
	{ "id", .in = OP_HIDDEN },
	{ "ids", .in = OP_HIDDEN },
	{ "labels", .in = OP_HIDDEN },
	{ "pause_source", .in = OP_HIDDEN },
	{ "template", .in = OP_HIDDEN },
};

static const struct field fork_fields[] = {
	FIELD_NAMED(struct sandboxes_view, ids, "sandboxes", .flags = FIELD_REQUIRED,
		    .doc = "Ids of the copies."),
	FIELD_NAMED(struct sandboxes_view, made_ms, "milliseconds", .doc = "How long it took."),
};
static const struct field_table fork_output = FIELD_TABLE(struct sandboxes_view, fork_fields);

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct field_strs *ids = &((const struct sandboxes_view *)result)->ids;
	struct json_writer w = json_writer(to);

	json_write_array(&w);
	for (size_t i = 0; i < ids->n; i++)
		json_write_str(&w, ids->p[i]);
	json_write_array_end(&w);
	return json_write_done(&w, e);
}

const struct tool sandbox_fork_tool = {
	.op = &sandbox_fork_op,
	.members = OP_MEMBERS(members),
	.output = &fork_output,
	.name = "sandbox_fork",
	.title = "Fork a sandbox",
	.doc = "Copies a sandbox, its files, limits and environment at one instant, without "
	       "processes. Returns a JSON array of the new ids.",
	.text = text_of,
};
