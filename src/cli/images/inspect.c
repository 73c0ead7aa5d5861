#include "cli/images/store.h"

static int inspect_run(const struct verb_input *in, struct err *e)
{
	const struct verb_output *o = in->options;
	AUTO(images_close) struct images *s = image_cli_open(e);
	autoimage struct image i = { .record = { .bytes = 0 } };

	if (!s || images_find(s, str_of(in->operands[0]), &i, e) < 0)
		return -1;
	return image_cli_tell(s, &i, NULL, o->output == OUTPUT_JSON, e);
}

const struct verb images_inspect_verb = {
	.name = "images inspect",
	.usage = "[OPTION...] NAME",
	.doc = "Show an image, and how programs run in it.",
	.options = &verb_output,
	.size = sizeof(struct verb_output),
	.min_operands = 1,
	.run = inspect_run,
};
