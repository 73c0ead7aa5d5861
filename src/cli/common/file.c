#include "cli/common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
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

/* The folder of a file. */
static int folder_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", n ? (int)n : 1, n ? path : ".");
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int file_beside(const char *path, char ret_new[PATH_MAX], int *ret_folder, struct err *e)
{
	autoclose int folder = folder_open(path), fd = -1;

	if (folder < 0)
		return err_sys(e, errno, "open the folder of %.120s", path);
	/* A disk without such locks has them for nobody. */
	if (flock(folder, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT, "%.120s is being changed: try again", path);
	if (snprintf(ret_new, PATH_MAX, "%s.holt-new", path) >= PATH_MAX)
		return err_set(e, ERR_INVALID, "the path is too long");
	unlink(ret_new);
	fd = open(ret_new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, errno, "write beside %.120s", path);
	*ret_folder = take_fd(&folder);
	return take_fd(&fd);
}
