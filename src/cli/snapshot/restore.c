/* `holt snapshot restore`: creates sandboxes with the files of a snapshot. */
#include "cli/link/copies.h"
#include "cli/snapshot/snapshot.h"

static int restore_run(const struct verb_input *in)
{
	return copies_run(in, snapshot_path, "/restore");
}

const struct verb snapshot_restore_verb = {
	.name = "snapshot restore",
	.usage = "[OPTION...] ID",
	.doc = "Make sandboxes from a snapshot, and print their names.",
	.more = "Either all are made or none.",
	.page = "holt-snapshot",
	.options = &copies_options,
	.size = sizeof(struct copies_options),
	.min_operands = 1,
	.max_operands = 1,
	.usage_exit = 2,
	.run = restore_run,
};
