/* `holt diff`: lists what a sandbox of the hub has changed against its template. */
#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/verb.h"

struct diff_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct diff_options),
	HELP_ROW(struct diff_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* "A /path", as other tools print it: added, changed, deleted. */
static void diff_print_row(const struct json_val *v)
{
	struct str change = json_str(json_get(v, "change"));

	printf("%c ", str_is(change, "added") ? 'A' : str_is(change, "changed") ? 'C' : 'D');
	safe_line(stdout, json_str(json_get(v, "path")));
	putchar('\n');
}

static int diff_show(const char *name, bool json, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct json_iter it;
	char path[256];

	if (hub_link_path(path, sizeof(path), name, "/diff", e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (json)
		return hub_link_print(json_get(json_root(doc), "changes"), e);
	it = json_iter(json_get(json_root(doc), "changes"));
	while (json_next(&it))
		diff_print_row(it.val);
	if (json_bool(json_get(json_root(doc), "truncated")))
		fputs("holt: there are more changes than these\n", stderr);
	return 0;
}

static int diff_run(const struct verb_input *in)
{
	const struct diff_options *o = in->options;
	struct err e = ERR_INIT;

	return diff_show(in->operands[0], o->output == OUTPUT_JSON, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb diff_verb = {
	.name = "diff",
	.usage = "[OPTION...] NAME",
	.doc = "List the changes of a sandbox against its template.",
	.more = "Each path has A, C or D before it: added, changed or deleted.",
	.page = "holt-snapshot",
	.options = &options,
	.size = sizeof(struct diff_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = diff_run,
};
