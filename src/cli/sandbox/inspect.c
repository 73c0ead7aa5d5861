/* `holt inspect`: prints everything the hub knows about a sandbox, as JSON. */
#include "cli/link/link.h"
#include "cli/common/verb.h"

struct inspect_options {
	struct verb_options common;
};

static const struct option_row rows[] = { HELP_ROW(struct inspect_options) };
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int inspect(const char *name, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "", e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	return hub_link_print(json_root(doc), e);
}

static int run_inspect(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return inspect(in->operands[0], &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb inspect_verb = {
	.name = "inspect",
	.usage = "NAME",
	.doc = "Print everything about a sandbox of the hub, as JSON.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct inspect_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = run_inspect,
};
