#include "cli/common/verb.h"

static int version_run(const struct verb_input *in, struct err *e)
{
	printf("holt %s\n", HOLT_VERSION);
	return 0;
}

const struct verb version_verb = {
	.name = "version",
	.usage = "",
	.doc = "Print the version.",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.run = version_run,
};
