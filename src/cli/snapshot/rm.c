#include "cli/snapshot/snapshot.h"

struct rm_options {
	struct verb_options common;
};

static const struct option_row rows[] = { HELP_ROW(struct rm_options) };
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

enum { IDS_MAX = 1024 };

static int remove_one(struct hub_link *l, const char *id, struct err *e)
{
	char path[256];

	return snapshot_path(path, sizeof(path), id, "", e) < 0
		     ? -1
		     : hub_link_ask(l, "DELETE", path, STR_NONE, NULL, e);
}

/* Continues after a failure; the exit status is that of the first one. */
static int rm_run(const struct verb_input *in)
{
	struct err e = ERR_INIT;
	AUTO(hub_link_close) struct hub_link *l = hub_link_open(&e);
	int status = l ? 0 : hub_link_fail(&e);

	for (int i = 0; l && i < in->n_operands; i++) {
		int failed = remove_one(l, in->operands[i], &e) < 0 ? hub_link_fail(&e) : 0;

		status = status ? status : failed;
	}
	return status;
}

const struct verb snapshot_rm_verb = {
	.name = "snapshot rm",
	.usage = "ID...",
	.doc = "Delete snapshots; sandboxes made from them stay.",
	.page = "holt-snapshot",
	.options = &options,
	.size = sizeof(struct rm_options),
	.min_operands = 1,
	.max_operands = IDS_MAX,
	.usage_exit = 2,
	.run = rm_run,
};
