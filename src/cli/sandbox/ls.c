/* `holt ls`: the sandboxes of the hub. */
#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"

struct ls_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

enum { NAME_WIDTH = 24, TEMPLATE_WIDTH = 16 };

/* Padded, since what is escaped is longer than its bytes: names are ASCII, so this is seldom. */
static void print_cell(struct str text, size_t width)
{
	safe_line(stdout, text);
	printf("%*s  ", text.n < width ? (int)(width - text.n) : 0, "");
}

static void print_rows(const struct json_val *all)
{
	struct json_iter it = json_iter(all);

	printf("%-*s  %-*s  %-10s  %s\n", NAME_WIDTH, "NAME", TEMPLATE_WIDTH, "TEMPLATE", "STATE",
	       "CREATED");
	while (json_next(&it)) {
		print_cell(json_str(json_get(it.val, "id")), NAME_WIDTH);
		print_cell(json_str(json_get(it.val, "template_id")), TEMPLATE_WIDTH);
		print_cell(json_str(json_get(it.val, "state")), 10);
		safe_line(stdout, json_str(json_get(it.val, "created_at")));
		putchar('\n');
	}
}

static int list(bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(e);
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!l || hub_link_ask(l, "GET", "/v1/sandboxes", STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_root(doc), e);
	print_rows(json_root(doc));
	return 0;
}

static int run(const struct verb_input *in)
{
	const struct ls_options *o = in->options;
	struct err e = ERR_INIT;

	return list(o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb ls_verb = {
	.name = "ls",
	.usage = "[OPTION...]",
	.doc = "List the sandboxes of the hub.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct ls_options),
	.usage_exit = 2,
	.run = run,
};
