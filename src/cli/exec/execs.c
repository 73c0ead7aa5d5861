/* `holt execs`: lists the execs of a sandbox, running and ended. */
#include "cli/link/link.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"

enum { COMMAND_SHOWN = 60 };

struct execs_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct execs_options),
	HELP_ROW(struct execs_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static void execs_row(struct table *t, const struct json_val *x)
{
	table_str(t, json_str(json_get(x, "exec_id")));
	table_str(t, json_str(json_get(x, "state")));
	table_number(t, json_get(x, "exit_code"), 1, 0);
	table_number(t, json_get(x, "next_offset"), 1, 0);
	table_short(t, json_str(json_get(x, "command")), COMMAND_SHOWN);
}

static int execs_list(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free) struct table *t = NULL;
	struct json_iter it;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/execs", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_root(doc), e);
	t = TABLE(e, "EXEC", "STATE", ">EXIT", ">BYTES", "COMMAND");
	if (!t)
		return -1;
	it = json_iter(json_root(doc));
	while (json_next(&it))
		execs_row(t, it.val);
	table_print(t);
	return 0;
}

static int execs_run(const struct verb_input *in)
{
	const struct execs_options *o = in->options;
	struct err e = ERR_INIT;

	return execs_list(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e)
									     : 0;
}

const struct verb execs_verb = {
	.name = "execs",
	.usage = "[OPTION...] NAME",
	.doc = "List the execs of a sandbox, newest first.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct execs_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = execs_run,
};
