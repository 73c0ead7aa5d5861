#include "cli/hub/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "cli/common/home.h"

enum { LOOK_US = 200000 };

struct logs_options {
	struct verb_options common;
	bool follow;
};

static const struct option_row rows[] = {
	OPTION(struct logs_options, follow, OPTION_FLAG, "follow", .letter = 'f',
	       .doc = "Continue until interrupted."),
	HELP_ROW(struct logs_options),
};
static const struct option_table options = OPTION_TABLE(rows, .mixed = true);

static int logs_run(const struct verb_input *in, struct err *e)
{
	const bool follow = ((const struct logs_options *)in->options)->follow;
	char path[PATH_MAX], piece[16 << 10];
	autoclose int fd = -1;
	ssize_t n;

	if (home_file("hub.log", path, e) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_PATH_NOT_FOUND, "no hub has started by itself here");
	if (fd < 0)
		return err_sys(e, errno, "open %.120s", path);
	while ((n = read(fd, piece, sizeof(piece))) > 0 || follow) {
		if (n < 0)
			break;
		if (n == 0)
			usleep(LOOK_US);
		else if (fd_write(STDOUT_FILENO, piece, (size_t)n) < 0)
			return err_sys(e, errno, "standard output");
	}
	return n < 0 ? err_sys(e, errno, "read %.120s", path) : 0;
}

const struct verb hub_logs_verb = {
	.name = "hub logs",
	.usage = "[OPTION...]",
	.doc = "Print the log of hubs that were started automatically.",
	.more = "One that you start writes to its standard error; a service manager keeps that.",
	.options = &options,
	.size = sizeof(struct logs_options),
	.run = logs_run,
};
