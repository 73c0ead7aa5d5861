/* `holt fork`: copies a sandbox of the hub; all copies show the same instant. */
#include "cli/link/copies.h"

static int fork_run(const struct verb_input *in)
{
	return copies_run(in, hub_link_path, "/fork");
}

const struct verb fork_verb = {
	.name = "fork",
	.usage = "[OPTION...] NAME",
	.doc = "Copy a sandbox of the hub, and print the copies' names.",
	.more = "A copy has the files as they are now, and its own processes; all are made,\n"
		"or none.",
	.page = "holt-sandbox",
	.options = &copies_options,
	.size = sizeof(struct copies_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = fork_run,
};
