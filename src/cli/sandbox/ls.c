/* `holt ls`: the sandboxes of the hub. */
#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"

struct ls_options {
	struct verb_options common;
	bool quiet;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct ls_options, quiet, OPTION_FLAG, "quiet", .letter = 'q',
	       .doc = "Print names only, one a line."),
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static void ls_names(const struct json_val *all)
{
	struct json_iter it = json_iter(all);

	while (json_next(&it)) {
		safe_line(stdout, json_str(json_get(it.val, "id")));
		putchar('\n');
	}
}

static int ls_list(const struct ls_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free) struct table *t = NULL;
	struct json_iter it;

	if (!l || hub_link_ask(l, "GET", "/v1/sandboxes", STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	if (o->quiet) {
		ls_names(json_root(doc));
		return 0;
	}
	t = TABLE(e, "NAME", "TEMPLATE", "STATE", "CREATED");
	if (!t)
		return -1;
	it = json_iter(json_root(doc));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "id")));
		table_str(t, json_str(json_get(it.val, "template_id")));
		table_str(t, json_str(json_get(it.val, "state")));
		table_str(t, json_str(json_get(it.val, "created_at")));
	}
	table_print(t);
	return 0;
}

static int ls_run(const struct verb_input *in)
{
	const struct ls_options *o = in->options;
	struct err e = ERR_INIT;

	if (o->quiet && o->output == OUTPUT_JSON) {
		err_set(&e, ERR_INVALID, "-q prints names, not JSON");
		return cli_wrong_usage(in->verb, &e);
	}
	return ls_list(o, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ls_verb = {
	.name = "ls",
	.usage = "[OPTION...]",
	.doc = "List the sandboxes of the hub.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ls_options),
	.usage_exit = 2,
	.run = ls_run,
};
