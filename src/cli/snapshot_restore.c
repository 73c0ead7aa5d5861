/* `holt snapshot restore`: new sandboxes with the files of a snapshot. */
#include "cli/safe.h"
#include "cli/snapshot.h"

struct restore_options {
	struct verb_options common;
	struct option_list names;
	uint32_t count, output;
};

static const struct option_row rows[] = {
	OPTION(struct restore_options, names, OPTION_LIST, "name", .letter = 'n', .arg = "NAME",
	       .doc = "What to call a sandbox; one is made for it if not said. May be repeated: a "
		      "sandbox for each."),
	OPTION(struct restore_options, count, OPTION_COUNT, "count", .letter = 'c', .arg = "N",
	       .min = 1, .max = 1000, .doc = "How many; 1 if not said."),
	OUTPUT_ROW(struct restore_options),
	HELP_ROW(struct restore_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int restore(const struct verb_input *in, struct err *e)
{
	const struct restore_options *o = in->options;
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	const struct json_val *all;
	struct json_iter it;
	char path[256];

	json_write_object(&w);
	hub_link_names(&w, &o->names, o->count);
	json_write_object_end(&w);
	if (json_write_done(&w, e) < 0 ||
	    snapshot_path(path, sizeof(path), in->operands[0], "/restore", e) < 0)
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
	const struct restore_options *o = in->options;
	struct err e = ERR_INIT;

	if (o->names.n && o->count && o->count != o->names.n) {
		err_set(&e, ERR_INVALID, "--count says another number than there are names");
		return cli_wrong_usage(in->verb, &e);
	}
	return restore(in, &e) < 0 ? hub_link_fail(&e) : 0;
}

const struct verb snapshot_restore_verb = {
	.name = "snapshot restore",
	.usage = "[OPTION...] ID",
	.doc = "Make sandboxes of a snapshot, and print their names.",
	.more = "All are made, or none.",
	.page = "holt-snapshot",
	.options = &options,
	.size = sizeof(struct restore_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = run,
};
