#include "door/mcp/tools.h"
#include "op/code/code.h"
#include "op/ops.h"

static int add_line(struct buf *to, const struct code_line *l, struct err *e)
{
	const char *level = l->level == CODE_WARN  ? "[warn] "
			  : l->level == CODE_ERROR ? "[error] "
						   : "";

	return buf_addf(to, e, "%s", level) < 0 || buf_add(to, l->text.p, l->text.n, e) < 0 ||
			       buf_add(to, "\n", 1, e) < 0
		     ? -1
		     : 0;
}

static int add_error(struct buf *to, const struct code_error *x, struct err *e)
{
	if (buf_addf(to, e, "%.*s: %.*s", STR_ARG(x->name), STR_ARG(x->message)) < 0)
		return -1;
	if (x->has_limit && buf_addf(to, e, " [limit: %s]", code_limit_names[x->limit]) < 0)
		return -1;
	if (x->has_place && buf_addf(to, e, " (line %u, column %u)", x->line, x->column) < 0)
		return -1;
	return x->stack.n ? buf_addf(to, e, "\n%.*s", STR_ARG(x->stack)) : 0;
}

static int execute_text(const void *result, struct buf *to, struct err *e)
{
	const struct code_answer *a = result;

	for (size_t i = 0; i < a->console.n; i++) {
		if (add_line(to, &a->console.p[i], e) < 0)
			return -1;
	}
	if (a->has_error)
		return add_error(to, &a->error, e);
	return buf_add(to, "=> ", 3, e) < 0 ? -1
	     : a->value.n		    ? buf_add(to, a->value.p, a->value.n, e)
					    : buf_addf(to, e, "undefined");
}

static bool execute_failed(const void *result)
{
	return !((const struct code_answer *)result)->ok;
}

#define A struct code_answer
static const struct field facts_fields[] = {
	FIELD(A, ok, .doc = "False: the code has failed."),
	FIELD(A, calls, .doc = "Number of module functions that it called."),
	FIELD(A, duration_ms, .doc = "How long it took, in milliseconds."),
};
#undef A
static const struct field_table facts = FIELD_TABLE(struct code_answer, facts_fields);

static const struct op_member members[] = {
	{ "code", .doc = "Script or ES module." },
	{ "wall_ms", .doc = "Time limit." },
	{ "heap_mb", .in = OP_HIDDEN },
	{ "stack_kb", .in = OP_HIDDEN },
	{ "output_kb", .in = OP_HIDDEN },
	{ "max_calls", .in = OP_HIDDEN },
	{ "check", .in = OP_HIDDEN },
	{ "profiles", .doc = "Profile names." },
};

const struct tool execute_javascript_tool = {
	.op = &code_execute_op,
	.name = "execute_javascript",
	.title = "Run JavaScript",
	.doc = "Runs JavaScript or TypeScript in a sandbox and shows what it printed and returned, "
	       "or the value of its last statement or default export. Modules' functions are "
	       "async. No files or network.",
	.members = OP_MEMBERS(members),
	.text = execute_text,
	.failed = execute_failed,
	.facts = &facts,
	.asks = true,
};
