/* `holt ps`: what runs in a sandbox of the hub. */
#include <inttypes.h>

#include "cli/link/link.h"
#include "cli/common/safe.h"
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

static uint64_t number(const struct json_val *process, const char *name)
{
	uint64_t u = 0;

	json_uint64(json_get(process, name), &u);
	return u;
}

static void print_row(const struct json_val *p)
{
	uint64_t cpu_ms = number(p, "cpu_ms");

	printf("%7" PRIu64 " %7" PRIu64 "  ", number(p, "pid"), number(p, "parent"));
	safe_line(stdout, json_str(json_get(p, "state")));
	printf("  %6" PRIu64 ".%02" PRIu64 " %9" PRIu64 " %9" PRIu64 "  ", cpu_ms / 1000,
	       cpu_ms % 1000 / 10, number(p, "memory_bytes") >> 10, number(p, "age_ms") / 1000);
	safe_line(stdout, json_str(json_get(p, "command")));
	putchar('\n');
}

static void print_rows(const struct json_val *answer)
{
	struct json_iter it = json_iter(json_get(answer, "processes"));

	printf("%7s %7s  %s  %9s %9s %9s  %s\n", "PID", "PARENT", "S", "CPU s", "MEM KiB", "AGE s",
	       "COMMAND");
	while (json_next(&it))
		print_row(it.val);
	if (json_bool(json_get(answer, "truncated")))
		fputs("holt: there are more processes than these\n", stderr);
}

static int list(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/processes", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_get(json_root(doc), "processes"), e);
	print_rows(json_root(doc));
	return 0;
}

static int run(const struct verb_input *in)
{
	const struct ps_options *o = in->options;
	struct err e = ERR_INIT;

	return list(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ps_verb = {
	.name = "ps",
	.usage = "[OPTION...] NAME",
	.doc = "List what runs in a sandbox of the hub.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ps_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = run,
};
