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

static int audit_run(const struct verb_input *in, struct err *e)
{
	const struct verb_input tail = { .cli = in->cli,
					 .verb = &audit_tail_verb,
					 .options = audit_tail_verb.defaults };

	return audit_tail_verb.run(&tail, e);
}

static const struct verb *const words[] = { &audit_tail_verb, &audit_show_verb, &audit_verify_verb,
					    NULL };

const struct verb audit_verb = {
	.name = "audit",
	.usage = "[OPTION...]",
	.doc = "Show what was done, and whether the audit log is complete.",
	.page = "holt-audit",
	.options = &verb_bare,
	.size = sizeof(struct verb_options),
	.usage_exit = 125,
	.run = audit_run,
	.words = words,
};
