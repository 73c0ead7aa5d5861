#include <stdio.h>

#include "cli/images/store.h"

struct prune_options {
	struct verb_options common;
	uint32_t output;
	bool all;
};

static const struct option_row rows[] = {
	OPTION(struct prune_options, all, OPTION_FLAG, "all",
	       .doc = "Remove all cached steps of builds, however new."),
	OUTPUT_ROW(struct prune_options),
	HELP_ROW(struct prune_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static const struct field pruned_fields[] = {
	FIELD(struct images_pruned, images, .doc = "Removed images without a name."),
	FIELD(struct images_pruned, leftovers, .doc = "Removed remains of killed imports."),
	FIELD(struct images_pruned, steps, .doc = "Removed cached steps of builds."),
	FIELD(struct images_pruned, in_use, .doc = "Images that sandboxes use, not removed."),
};
static const struct field_table pruned_table = FIELD_TABLE(struct images_pruned, pruned_fields);

static void tell_image(const char *digest)
{
	fprintf(stderr, "holt: removed image %.12s, which has no name\n", digest);
}

static int prune_run(const struct verb_input *in, struct err *e)
{
	const struct prune_options *o = in->options;
	AUTO(images_close) struct images *s = image_cli_open(e);
	struct images_pruned pruned;

	if (!s || images_prune(s, o->all, tell_image, &pruned, e) < 0)
		return -1;
	if (o->output == OUTPUT_JSON)
		return cli_print_object(&pruned_table, &pruned, e);
	printf("removed: %u images without a name, %u leftovers, %u cached build steps; "
	       "in use: %u\n",
	       pruned.images, pruned.leftovers, pruned.steps, pruned.in_use);
	return 0;
}

const struct verb images_prune_verb = {
	.name = "images prune",
	.usage = "[OPTION...]",
	.doc = "Remove unnamed images, remains of imports, old build steps.",
	.options = &options,
	.size = sizeof(struct prune_options),
	.run = prune_run,
};
