/* `holt execs`: what was run in a sandbox of the hub, and what of it still runs. */
#include <inttypes.h>

#include "cli/link/link.h"
#include "cli/common/safe.h"
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

static void print_row(const struct json_val *x)
{
	struct str state = json_str(json_get(x, "state"));
	uint64_t bytes = 0;
	int64_t code;

	json_uint64(json_get(x, "next_offset"), &bytes);
	printf("%-37.*s  %-9.*s  ", STR_ARG(json_str(json_get(x, "exec_id"))), STR_ARG(state));
	if (json_int64(json_get(x, "exit_code"), &code))
		printf("%4" PRId64, code);
	else
		printf("%4s", "-");
	printf("  %12" PRIu64 "  ", bytes);
	safe_short(stdout, json_str(json_get(x, "command")), COMMAND_SHOWN);
	putchar('\n');
}

static int list(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/execs", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_root(doc), e);
	printf("%-37s  %-9s  %4s  %12s  %s\n", "EXEC", "STATE", "EXIT", "BYTES", "COMMAND");
	it = json_iter(json_root(doc));
	while (json_next(&it))
		print_row(it.val);
	return 0;
}

static int run(const struct verb_input *in)
{
	const struct execs_options *o = in->options;
	struct err e = ERR_INIT;

	return list(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb execs_verb = {
	.name = "execs",
	.usage = "[OPTION...] NAME",
	.doc = "List what was run in a sandbox, the newest first.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct execs_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = run,
};
