#include "door/mcp/tools.h"

#include "hub/core/listing.h"
#include "door/mcp/common.h"

struct list_params {
	struct str sandbox, path;
};
static const struct field list_fields[] = {
	SANDBOX_ROW(struct list_params),
	FIELD(struct list_params, path, .min = 1, .max = TOOL_PATH_MAX, .def = DEFAULT_STR("."),
	      .doc = "Directory; the sandbox's working directory if absent."),
};
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_fields);

static void on_listed(void *arg, const struct file_entry *entries, size_t n, bool truncated,
		      const struct err *err)
{
	struct call *c = arg;
	struct err e = ERR_INIT;
	struct listing listing;

	if (err || listing_fill(call_arena(c), entries, n, truncated, &listing, &e) < 0)
		call_fail(c, err ? err : &e);
	else
		call_answer(c, &listing);
}

static void run(struct call *c, const void *params)
{
	const struct list_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);

	if (sb)
		file_list_start(sb, p->path, on_listed, c);
	else
		call_fail(c, &e);
}

const struct tool sandbox_list_files_tool = {
	.op =
		&(const struct op){
			.action = "files.list",
			.effect = OP_READ,
			.request = &list_input,
			.target = OP_TARGET(struct list_params, sandbox),
			.result = &listing_table,
			.run = run,
		},
	.name = "sandbox_list_files",
	.title = "List a directory",
	.doc = "Lists a directory of a sandbox, at most 1024 entries of it.",
};
