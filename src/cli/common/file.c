#include "cli/common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

enum { PIECE = 4096 };

int file_read_fd(int fd, const char *name, struct buf *to, struct err *e)
{
	ssize_t n;

	do {
		char *at = buf_reserve(to, PIECE, e);

		if (!at)
			return e->code == ERR_TOO_LARGE
				     ? err_set(e, ERR_TOO_LARGE, "%.120s is too large", name)
				     : -1;
		n = read(fd, at, PIECE);
		if (n < 0 && errno != EINTR)
			return err_sys(e, errno, "read %.120s", name);
		buf_advance(to, n > 0 ? (size_t)n : 0);
	} while (n != 0);
	return 0;
}

int file_read(const char *path, struct buf *to, struct err *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_sys(e, errno, "open %.120s", path);
	return file_read_fd(fd, path, to, e);
}

int file_write_fd(int fd, const char *name, struct str bytes, struct err *e)
{
	return fd_write(fd, bytes.p, bytes.n) < 0 ? err_sys(e, errno, "write %.120s", name) : 0;
}
