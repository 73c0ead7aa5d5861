/* `holt mcp search`. */
#include "cli/common/safe.h"
#include "cli/common/table.h"
#include "cli/modules/modules.h"

enum { URL_MAX = 4096, WORDS_MAX = 256 };

struct search_options {
	struct verb_options common;
	uint32_t output, limit;
};

static const struct option_row rows[] = {
	OPTION(struct search_options, limit, OPTION_COUNT, "limit", .letter = 'n', .arg = "COUNT",
	       .min = 1, .max = 50, .doc = "Maximum number of tools; 10 by default."),
	OUTPUT_ROW(struct search_options),
	HELP_ROW(struct search_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int search_path(const struct verb_input *in, char ret[URL_MAX], struct err *e)
{
	const struct search_options *o = in->options;
	autobuf struct buf words = BUF_INIT(WORDS_MAX);
	char limit[16];

	for (int i = 0; i < in->n_operands; i++) {
		if (buf_addf(&words, e, "%s%s", i ? " " : "", in->operands[i]) < 0)
			return err_wrap(e, "the words");
	}
	snprintf(ret, URL_MAX, "/v1/tools");
	snprintf(limit, sizeof(limit), "%u", o->limit);
	return hub_link_query(ret, URL_MAX, "query", words.p, e) < 0 ||
			       (o->limit && hub_link_query(ret, URL_MAX, "limit", limit, e) < 0)
		     ? -1
		     : 0;
}

static int search(const struct verb_input *in, struct err *e)
{
	const struct search_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	AUTO(table_free) struct table *t = TABLE(e, "MODULE", "TOOL", "CALLS", "DESCRIPTION");
	char path[URL_MAX];
	struct json_iter it;

	if (!t || search_path(in, path, e) < 0 || !(l = hub_link_open(e)) ||
	    hub_link_ask(l, "GET", path, STR_NONE, &doc, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return hub_link_print(json_root(doc), e);
	it = json_iter(json_get(json_root(doc), "tools"));
	while (json_next(&it)) {
		table_str(t, json_str(json_get(it.val, "module")));
		table_str(t, json_str(json_get(it.val, "name")));
		table_str(t, json_str(json_get(it.val, "approval")));
		table_short(t, json_str(json_get(it.val, "description")), 80);
	}
	table_print(t);
	return 0;
}

static int search_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return search(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb mcp_search_verb = {
	.name = "mcp search",
	.usage = "[OPTION...] WORD...",
	.doc = "Search the approved tools of all modules, best match first.",
	.page = "holt-mcp-modules",
	.options = &options,
	.size = sizeof(struct search_options),
	.min_operands = 1,
	.max_operands = 16,
	.usage_exit = 2,
	.run = search_run,
};
