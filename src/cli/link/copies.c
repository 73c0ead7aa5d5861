#include "cli/link/copies.h"

#include "cli/common/safe.h"

static const struct option_row rows[] = {
	OPTION(struct copies_options, names, OPTION_LIST, "name", .letter = 'n', .arg = "NAME",
	       .doc = "Name of a copy; by default the hub makes one. May be repeated, once per "
		      "copy."),
	OPTION(struct copies_options, count, OPTION_COUNT, "count", .letter = 'c', .arg = "N",
	       .min = 1, .max = 64, .doc = "Number of copies; 1 by default."),
	LABEL_ROW(struct copies_options),
	OUTPUT_ROW(struct copies_options),
	HELP_ROW(struct copies_options),
};
const struct option_table copies_options = OPTION_TABLE(rows, .mixed = true);

static int write_body(const struct copies_options *o, struct json_writer *w, struct err *e)
{
	json_write_object(w);
	json_write_key(w, o->names.n ? "ids" : "count");
	if (o->names.n) {
		json_write_array(w);
		for (size_t i = 0; i < o->names.n; i++)
			json_write_text(w, o->names.p[i]);
		json_write_array_end(w);
	} else {
		json_write_uint(w, o->count ? o->count : 1);
	}
	if (o->labels.n && hub_link_labels(w, &o->labels, e) < 0)
		return -1;
	json_write_object_end(w);
	return json_write_done(w, e);
}

static int ask(const struct copies_options *o, const char *path, struct err *e)
{
	AUTO(hub_link_close) struct hub_link *l = NULL;
	AUTO(json_free) struct json_doc *doc = NULL;
	autobuf struct buf text = BUF_INIT(HUB_BODY_MAX);
	struct json_writer w = json_writer(&text);
	const struct json_val *all;
	struct json_iter it;

	if (write_body(o, &w, e) < 0)
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

int copies_run(const struct verb_input *in, const struct ask_noun *of, const char *more)
{
	const struct copies_options *o = in->options;
	struct err e = ERR_INIT;
	char path[256];

	if (o->names.n && o->count && o->count != o->names.n) {
		err_set(&e, ERR_INVALID, "--count says another number than there are names");
		return cli_wrong_usage(in->verb, &e);
	}
	if (hub_ask_path(of, path, sizeof(path), in->operands[0], more, &e) < 0 ||
	    ask(o, path, &e) < 0)
		return hub_link_fail(&e);
	return 0;
}
