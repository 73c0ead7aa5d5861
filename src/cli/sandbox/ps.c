/* `holt ps`: lists the processes of a sandbox of the hub. */
#include "cli/link/link.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"

struct ps_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct ps_options),
	HELP_ROW(struct ps_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static void ps_row(struct table *t, const struct json_val *p)
{
	table_number(t, json_get(p, "pid"), 1, 0);
	table_number(t, json_get(p, "parent"), 1, 0);
	table_str(t, json_str(json_get(p, "state")));
	table_number(t, json_get(p, "cpu_ms"), 1000, 2);
	table_number(t, json_get(p, "memory_bytes"), 1 << 10, 0);
	table_number(t, json_get(p, "age_ms"), 1000, 0);
	table_str(t, json_str(json_get(p, "command")));
}

static int ps_list(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free) struct table *t = NULL;
	struct json_iter it;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/processes", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_get(json_root(doc), "processes"), e);
	t = TABLE(e, ">PID", ">PARENT", "S", ">CPU s", ">MEM KiB", ">AGE s", "COMMAND");
	if (!t)
		return -1;
	it = json_iter(json_get(json_root(doc), "processes"));
	while (json_next(&it))
		ps_row(t, it.val);
	table_print(t);
	if (json_bool(json_get(json_root(doc), "truncated")))
		fputs("holt: there are more processes than these\n", stderr);
	return 0;
}

static int ps_run(const struct verb_input *in)
{
	const struct ps_options *o = in->options;
	struct err e = ERR_INIT;

	return ps_list(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ps_verb = {
	.name = "ps",
	.usage = "[OPTION...] NAME",
	.doc = "List the processes in a sandbox of the hub.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ps_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = ps_run,
};
