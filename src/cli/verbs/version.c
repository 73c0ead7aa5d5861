#include "cli/common/verb.h"

struct version_options {
	struct verb_options common;
};

static const struct option_row rows[] = { HELP_ROW(struct version_options) };
static const struct option_table options = OPTION_TABLE(rows);

static int version_run(const struct verb_input *in)
{
	printf("holt %s\n", HOLT_VERSION);
	return 0;
}

const struct verb version_verb = {
	.name = "version",
	.usage = "",
	.doc = "Print the version.",
	.options = &options,
	.size = sizeof(struct version_options),
	.usage_exit = 2,
	.run = version_run,
};
