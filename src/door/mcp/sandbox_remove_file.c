#include "door/mcp/tools.h"

#include "door/mcp/common.h"

struct remove_params {
	struct str sandbox, path;
	bool recursive;
};
static const struct field remove_fields[] = {
	SANDBOX_ROW(struct remove_params),
	PATH_ROW(struct remove_params, path, "The file, symlink or directory."),
	FIELD(struct remove_params, recursive, .def = DEFAULT_BOOL(false),
	      .doc = "A directory with all that is in it; else only an empty one."),
};
static const struct field_table remove_input = FIELD_TABLE(struct remove_params, remove_fields);

static void on_removed(void *arg, const struct err *err)
{
	const struct tool_wait *w = arg;
	const struct remove_params *p = w->params;
	const struct path_result r = { p->sandbox, p->path };

	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, &r);
}

static void run(struct call *c, const void *params)
{
	const struct remove_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);
	struct tool_wait *w;

	if (!sb)
		call_fail(c, &e);
	else if ((w = tool_wait(c, params)))
		file_remove_start(sb, p->path, p->recursive, on_removed, w);
}

const struct tool sandbox_remove_file_tool = {
	.op =
		&(const struct op){
			.action = "files.remove",
			.effect = OP_DESTROY,
			.request = &remove_input,
			.target = OP_TARGET(struct remove_params, sandbox),
			.result = &path_result_table,
			.run = run,
		},
	.name = "sandbox_remove_file",
	.title = "Remove a file",
	.doc = "Removes a file or directory of a sandbox for good.",
	.says = "Removed {path} from sandbox {sandbox}",
};
