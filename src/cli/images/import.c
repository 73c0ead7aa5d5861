#include <stdio.h>

#include "cli/images/store.h"

struct import_options {
	struct verb_options common;
	uint32_t output;
	const char *ref;
	uint64_t bytes;
	uint32_t entries;
};

static const struct option_row rows[] = {
	OPTION(struct import_options, ref, OPTION_TEXT, "ref", .arg = "NAME",
	       .doc = "Image to import, by name or digest, if the archive has several."),
	OPTION(struct import_options, bytes, OPTION_SIZE, "max-size", .arg = "SIZE", .min = 1,
	       .max = 1ull << 44, .doc = "Maximum unpacked size; 16G by default."),
	OPTION(struct import_options, entries, OPTION_COUNT, "max-files", .arg = "N", .min = 1,
	       .max = 100000000,
	       .doc = "Maximum number of files and directories; 2000000 by default."),
	OUTPUT_ROW(struct import_options),
	HELP_ROW(struct import_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int import_run(const struct verb_input *in, struct err *e)
{
	const struct import_options *o = in->options;
	const struct image_import spec = {
		.source = in->operands[0],
		.name = str_of(in->operands[1]),
		.ref = str_of(o->ref),
		.limits = { .bytes = o->bytes, .entries = o->entries },
	};
	AUTO(images_close) struct images *s = image_cli_open(e);
	autoimage struct image i = { .record = { .bytes = 0 } };
	char name[IMAGE_NAME_MAX + 1];

	if (!s || images_import(s, &spec, &i, name, e) < 0)
		return -1;
	return image_cli_tell(s, &i, name, o->output == OUTPUT_JSON, e);
}

const struct verb images_import_verb = {
	.name = "images import",
	.usage = "[OPTION...] SOURCE [NAME[:TAG]]",
	.doc = "Make an image from an archive or a directory.",
	.more = "SOURCE is a directory (an OCI layout, or else the root of a file system), an\n"
		"archive of either, what docker save or docker export writes, or - for an\n"
		"archive on standard input.",
	.options = &options,
	.size = sizeof(struct import_options),
	.min_operands = 1,
	.max_operands = 2,
	.run = import_run,
};
