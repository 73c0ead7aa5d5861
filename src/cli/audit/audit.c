/* `holt audit`: what was done, by whom, and whether the log of it is whole. By itself it tells the
 * last records. */
#include "cli/audit/audit.h"

#include <fcntl.h>

#include "cli/common/home.h"

int audit_dir(struct err *e)
{
	char path[PATH_MAX];
	int fd;

	if (home_where("audit", path, e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return errno == ENOENT ? err_set(e, ERR_PATH_NOT_FOUND, "there is no audit log")
			       : err_sys(e, errno, "the audit log");
}

static int audit_run(const struct verb_input *in)
{
	return audit_tail_verb.run(&(struct verb_input){
		.cli = in->cli, .verb = &audit_tail_verb, .options = audit_tail_verb.defaults });
}

struct audit_options {
	struct verb_options common;
};
static const struct option_row rows[] = {
	HELP_ROW(struct audit_options),
};
static const struct option_table options = OPTION_TABLE(rows);

static const struct verb *const words[] = { &audit_tail_verb, &audit_show_verb, &audit_verify_verb,
					    NULL };

const struct verb audit_verb = {
	.name = "audit",
	.usage = "[OPTION...]",
	.doc = "Show what was done, and whether the audit log is complete.",
	.page = "holt-audit",
	.options = &options,
	.size = sizeof(struct audit_options),
	.usage_exit = 125,
	.run = audit_run,
	.words = words,
};
