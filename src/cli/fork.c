/* `holt fork`: copies of a sandbox of the hub, all of one instant. */
#include "cli/hub_link.h"
#include "cli/safe.h"
#include "cli/verb.h"

struct fork_options {
	struct verb_options common;
	struct option_list names;
	uint32_t count, output;
};

static const struct option_row rows[] = {
	OPTION(struct fork_options, names, OPTION_LIST, "name", .letter = 'n', .arg = "NAME",
	       .doc = "What to call a copy; one is made for it if not said. May be repeated: a copy "
		      "for each."),
	OPTION(struct fork_options, count, OPTION_COUNT, "count", .letter = 'c', .arg = "N",
	       .min = 1, .max = 1000, .doc = "How many; 1 if not said."),
	OUTPUT_ROW(struct fork_options),
	HELP_ROW(struct fork_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int write_body(const struct fork_options *o, struct json_writer *w, struct err *e)
{
	json_write_object(w);
	hub_link_names(w, &o->names, o->count);
	json_write_object_end(w);
	return json_write_done(w, e);
}

static int copy(const struct verb_input *in, struct err *e)
{
	const struct fork_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	const struct json_val *all;
	struct json_iter it;
	char path[256];

	if (hub_link_path(path, sizeof(path), in->operands[0], "/fork", e) < 0 ||
	    write_body(o, &w, e) < 0)
		return -1;
	l = hub_link_open(e);
	if (!l || hub_link_ask(l, "POST", path, buf_str(&text), &doc, e) < 0)
		return -1;
	all = json_get(json_root(doc), "sandboxes");
	if (o->output == OUTPUT_JSON)
		return hub_link_print(all, e);
	it = json_iter(all);
	while (json_next(&it)) {
		safe_line(stdout, json_str(json_get(it.val, "id")));
		putchar('\n');
	}
	return 0;
}

static int run(const struct verb_input *in)
{
	const struct fork_options *o = in->options;
	struct err e = ERR_INIT;

	if (o->names.n && o->count && o->count != o->names.n) {
		err_set(&e, ERR_INVALID, "--count says another number than there are names");
		return cli_wrong_usage(in->verb, &e);
	}
	return copy(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb fork_verb = {
	.name = "fork",
	.usage = "[OPTION...] NAME",
	.doc = "Copy a sandbox of the hub, and print the copies' names.",
	.more = "A copy has the files as they are now, and its own processes; all are made,\n"
		"or none.",
	.page = "holt-sandbox",
	.options = &options,
	.size = sizeof(struct fork_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = run,
};
