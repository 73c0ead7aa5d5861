#include "door/mcp/tools.h"
#include "op/code/code.h"
#include "op/ops.h"

static int register_text(const void *result, struct buf *to, struct err *e)
{
	const struct code_registered *r = result;

	if (r->deleted)
		return buf_addf(to, e, "%.*s is deleted.", STR_ARG(r->module));
	if (buf_addf(to, e, "Code can import %.*s. It exports", STR_ARG(r->module)) < 0)
		return -1;
	for (size_t i = 0; i < r->exports.n; i++) {
		if (buf_addf(to, e, "%s %.*s", i ? "," : "", STR_ARG(r->exports.p[i])) < 0)
			return -1;
	}
	return buf_addf(to, e, r->exports.n ? "." : " nothing.");
}

static const struct field facts_fields[] = {
	FIELD(struct code_registered, module, .doc = "Name that code imports."),
};
static const struct field_table facts = FIELD_TABLE(struct code_registered, facts_fields);

static const struct op_member members[] = {
	{ "name", .doc = "Code imports ha:NAME." },
	{ "source", .doc = "ES module." },
};

const struct tool register_module_tool = {
	.op = &code_register_op,
	.other = &code_unregister_op,
	.other_if = "delete",
	.members = OP_MEMBERS(members),
	.name = "register_module",
	.title = "Register a module",
	.doc = "Stores a module for later code; replaces an older one of that name.",
	.text = register_text,
	.facts = &facts,
};
