#include "door/mcp/tools.h"

#include "door/mcp/common.h"

struct move_params {
	struct str sandbox, path, to;
};
static const struct field move_fields[] = {
	SANDBOX_ROW(struct move_params),
	PATH_ROW(struct move_params, path, "The file or directory."),
	PATH_ROW(struct move_params, to, "Its new path, in a directory that is there."),
};
static const struct field_table move_input = FIELD_TABLE(struct move_params, move_fields);

static void on_moved(void *arg, const struct err *err)
{
	const struct tool_wait *w = arg;
	const struct move_params *p = w->params;
	const struct path_result r = { p->sandbox, p->to };

	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, &r);
}

static void run(struct call *c, const void *params)
{
	const struct move_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = call_sandbox(c, p->sandbox, &e);
	struct tool_wait *w;

	if (!sb)
		call_fail(c, &e);
	else if ((w = tool_wait(c, params)))
		file_move_start(sb, p->path, p->to, on_moved, w);
}

const struct tool sandbox_move_file_tool = {
	.op =
		&(const struct op){
			.action = "files.move",
			.effect = OP_WRITE,
			.flags = OP_REPLACES,
			.request = &move_input,
			.target = OP_TARGET(struct move_params, sandbox),
			.result = &path_result_table,
			.run = run,
		},
	.name = "sandbox_move_file",
	.title = "Move a file",
	.doc = "Moves or renames a file or directory of a sandbox; a file at the new path is replaced.",
	.says = "Moved {path} to {to} in sandbox {sandbox}",
};
