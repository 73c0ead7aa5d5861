#include "door/mcp/tools.h"

#include "hub/sandbox/snapshots.h"
#include "door/mcp/common.h"

enum { LIMIT_MAX = 5000, LIMIT_DEFAULT = 500 };

struct diff_params {
	struct str sandbox;
	uint32_t limit;
};
static const struct field diff_fields[] = {
	SANDBOX_ROW(struct diff_params),
	FIELD(struct diff_params, limit, .min = 1, .max = LIMIT_MAX,
	      .def = DEFAULT_INT(LIMIT_DEFAULT), .doc = "Paths at most."),
};
static const struct field_table diff_input = FIELD_TABLE(struct diff_params, diff_fields);

static const struct field change_fields[] = {
	FIELD_ENUM(struct snapshot_change, change, snapshot_change_names, .flags = FIELD_REQUIRED,
		   .doc = "What became of the path."),
	FIELD(struct snapshot_change, path, .flags = FIELD_REQUIRED, .doc = "From the root."),
};
static const struct field_table change_table = FIELD_TABLE(struct snapshot_change, change_fields);

struct diff_result {
	struct {
		const struct snapshot_change *p;
		size_t n;
	} changes;
	bool truncated;
};
static const struct field result_fields[] = {
	FIELD_OBJECTS(struct diff_result, changes, change_table, .flags = FIELD_REQUIRED,
		      .doc = "By path."),
	FIELD(struct diff_result, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more than these."),
};
static const struct field_table diff_output = FIELD_TABLE(struct diff_result, result_fields);

static void on_diff(void *arg, const struct snapshot_change *changes, size_t n, bool truncated,
		    const struct err *err)
{
	const struct tool_wait *w = arg;
	const struct diff_params *p = w->params;
	const struct diff_result r = { { changes, n < p->limit ? n : p->limit },
				       truncated || n > p->limit };

	if (err)
		call_fail(w->call, err);
	else
		call_answer(w->call, &r);
}

static void run(struct call *c, const void *params)
{
	const struct diff_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);
	struct tool_wait *w;

	if (!l)
		call_fail(c, &e);
	else if ((w = tool_wait(c, params)))
		snapshot_diff_start(l, on_diff, w);
}

const struct tool sandbox_diff_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.diff",
			.effect = OP_READ,
			.request = &diff_input,
			.target = OP_TARGET(struct diff_params, sandbox),
			.result = &diff_output,
			.run = run,
		},
	.name = "sandbox_diff",
	.title = "What has changed",
	.doc = "Lists the paths that a sandbox has added, changed and removed against its template.",
};
