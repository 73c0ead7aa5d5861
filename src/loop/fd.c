#include "loop/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

int loop_fd_unblock(int *fd, struct err *e)
{
	int flags = fcntl(*fd, F_GETFL);
	struct stat st;
	char path[32];
	int anew = -1;

	if (flags < 0)
		return err_sys(e, errno, "read the flags of a descriptor");
	if (flags & O_NONBLOCK)
		return 0;
	if (fstat(*fd, &st) == 0 && (S_ISFIFO(st.st_mode) || isatty(*fd))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
		anew = open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	}
	if (anew >= 0) {
		close_fd(fd);
		*fd = anew;
		return 0;
	}
	if (fcntl(*fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_sys(e, errno, "set the flags of a descriptor");
	return 0;
}
