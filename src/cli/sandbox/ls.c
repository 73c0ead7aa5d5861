/* `holt ls`: the sandboxes of the hub. */
#include <stdio.h>

#include "cli/link/link.h"
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/common/verb.h"

enum { URL_MAX = 16 << 10, LABELS_SHOWN = 16 << 10 };

struct ls_options {
	struct verb_options common;
	struct option_list filters;
	bool quiet;
	uint32_t output;
};

static const struct option_row rows[] = {
	OPTION(struct ls_options, filters, OPTION_LIST, "filter", .letter = 'f',
	       .arg = "WHAT=VALUE",
	       .doc = "Only sandboxes with label=KEY, label=KEY=VALUE or state=STATE. May be "
		      "repeated."),
	OPTION(struct ls_options, quiet, OPTION_FLAG, "quiet", .letter = 'q',
	       .doc = "Print names only, one per line."),
	OUTPUT_ROW(struct ls_options),
	HELP_ROW(struct ls_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

/* Parameters of the route, which checks their values. */
static const char *const filters[] = { "label", "state" };

static int ls_filter(char url[URL_MAX], const char *text, struct err *e)
{
	size_t n = strcspn(text, "=");

	for (size_t i = 0; text[n] && i < ARRAY_LEN(filters); i++) {
		if (strlen(filters[i]) == n && memcmp(filters[i], text, n) == 0)
			return hub_link_query(url, URL_MAX, filters[i], text + n + 1, e);
	}
	return err_set(e, ERR_INVALID,
		       "--filter takes label=KEY, label=KEY=VALUE or state=STATE, not '%.80s'",
		       text);
}

static void ls_names(const struct json_val *all)
{
	struct json_iter it = json_iter(all);

	while (json_next(&it)) {
		safe_line(stdout, json_str(json_get(it.val, "id")));
		putchar('\n');
	}
}

/* "a=1,b=2" */
static int ls_labels(struct table *t, const struct json_val *labels, struct err *e)
{
	autobuf struct buf text = BUF_INIT(LABELS_SHOWN);
	struct json_iter it = json_iter(labels);

	while (json_next(&it)) {
		struct str value = json_str(it.val);

		if (buf_addf(&text, e, "%s%.*s%s%.*s", text.n ? "," : "", STR_ARG(it.key),
			     value.n ? "=" : "", STR_ARG(value)) < 0)
			return -1;
	}
	table_str(t, buf_str(&text));
	return 0;
}

static int ls_table(const struct json_val *all, struct err *e)
{
	AUTO(table_free)
	struct table *t = TABLE(e, "NAME", "TEMPLATE", "STATE", "CREATED", "LABELS");
	struct json_iter it = json_iter(all);

	if (!t)
		return -1;
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "id")));
		table_str(t, json_str(json_get(it.val, "template_id")));
		table_str(t, json_str(json_get(it.val, "state")));
		table_str(t, json_str(json_get(it.val, "created_at")));
		if (ls_labels(t, json_get(it.val, "labels"), e) < 0)
			return -1;
	}
	table_print(t);
	return 0;
}

static int ls_list(const struct ls_options *o, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	char url[URL_MAX] = "/v1/sandboxes";

	for (size_t i = 0; i < o->filters.n; i++) {
		if (ls_filter(url, o->filters.p[i], e) < 0)
			return -1;
	}
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "GET", url, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	if (!o->quiet)
		return ls_table(json_root(doc), e);
	ls_names(json_root(doc));
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
	.run = ls_run,
};
