#include "cli/images/store.h"

struct inspect_options {
	struct verb_options common;
	uint32_t output;
};

static const struct option_row rows[] = {
	OUTPUT_ROW(struct inspect_options),
	HELP_ROW(struct inspect_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

enum { JSON_MAX = 16 << 20 };

static int inspect(const struct verb_input *in, struct err *e)
{
	const struct inspect_options *o = in->options;
	AUTO(images_close) struct images *s = image_cli_open(e);
	autobuf struct buf text = BUF_INIT(JSON_MAX);
	autodoc struct image_doc doc = { NULL, NULL };
	autoimage struct image i = { .record = { .bytes = 0 } };
	struct json_writer w = json_writer(&text);
	struct image_names names;

	if (!s || images_find(s, str_of(in->operands[0]), &i, e) < 0 ||
	    images_names(s, &doc, &names, e) < 0)
		return -1;
	if (o->output != OUTPUT_JSON) {
		image_cli_show(&i, &names);
		return 0;
	}
	return image_cli_json(&i, &names, &w, e) < 0 ? -1 : image_cli_print(&w, e);
}

static int inspect_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;

	return inspect(in, &e) < 0 ? cli_fail(&e) : 0;
}

const struct verb images_inspect_verb = {
	.name = "images inspect",
	.usage = "[OPTION...] NAME",
	.doc = "Show an image, and how programs run in it.",
	.page = "holt-images",
	.options = &options,
	.size = sizeof(struct inspect_options),
	.min_operands = 1,
	.max_operands = 1,
	.run = inspect_run,
};
