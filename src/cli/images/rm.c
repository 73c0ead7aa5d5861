#include "cli/images/store.h"

enum { NAMES_MAX = 256 };

/* Continues after a failure; the exit status is that of the first one. */
static int rm_run(const struct verb_input *in, struct err *e)
{
	AUTO(images_close) struct images *s = image_cli_open(e);
	int status = s ? 0 : -1;

	for (int i = 0; s && i < in->n_operands; i++) {
		int failed = images_remove(s, str_of(in->operands[i]), e) < 0 ? cli_fail(e) : 0;

		status = status ? status : failed;
	}
	return status;
}

const struct verb images_rm_verb = {
	.name = "images rm",
	.usage = "NAME...",
	.doc = "Remove names of images, and images without another name.",
	.more = "A digest removes the image with all its names. An image that sandboxes use,\n"
		"stopped ones too, or that snapshots are of, stays.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.min_operands = 1,
	.max_operands = NAMES_MAX,
	.run = rm_run,
};
