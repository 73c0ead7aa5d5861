#include "cli/common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/id.h"
#include "cli/common/tidy.h"

#define BESIDE ".holt-"
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

/* ---- a file that comes whole or not at all ------------------------------------------------- */

/* A signal removes this one; NULL: nothing. */
static const struct file_out *volatile file_unfinished;

static void file_tidy(void)
{
	const struct file_out *o = file_unfinished;

	if (o)
		unlinkat(o->folder, o->beside, 0);
}

static int folder_open(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", n ? (int)n : 1, n ? path : ".");
	return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Removes what killed programs have left here. A program that lives holds a lock on its file. */
static void file_sweep(int folder)
{
	static const char ours[] = BESIDE "new-", hex[] = "0123456789abcdef";
	autofolder struct folder f = folder_at(folder, ".");

	while (folder_next(&f) > 0) {
		const char *name = f.entry->d_name;
		autoclose int fd = -1;

		if (strncmp(name, ours, sizeof(ours) - 1) != 0 ||
		    strlen(name) != sizeof(ours) - 1 + 32 ||
		    strspn(name + sizeof(ours) - 1, hex) != 32)
			continue;
		fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			unlinkat(folder, name, 0);
	}
}

/* 1: it is written in its place, which is no regular file, or has no name: a descriptor's.
 * ERR_CONFLICT: another took its name between two looks. */
static int file_out_find(struct file_out *o, const char *path, struct stat *ret, struct err *e)
{
	bool there = stat(path, ret) == 0;
	struct stat st;

	if (!there && errno != ENOENT)
		return err_sys(e, errno, "%.160s", path);
	if (snprintf(o->path, sizeof(o->path), "%s", path) >= (int)sizeof(o->path))
		return err_set(e, ERR_INVALID, "the name of the file is too long");
	o->is_new = !there;
	if (!there)
		return lstat(path, &st) < 0
			     ? 0
			     : err_set(e, ERR_INVALID,
				       "%.160s is a link to nothing: remove it first", path);
	if (S_ISREG(ret->st_mode) && realpath(path, o->path) && lstat(o->path, &st) == 0)
		return st.st_dev == ret->st_dev && st.st_ino == ret->st_ino
			     ? 0
			     : err_set(e, ERR_CONFLICT, "%.120s was changed meanwhile: try again",
				       path);
	snprintf(o->path, sizeof(o->path), "%s", path);
	return 1;
}

/* As the old one is. */
static int file_out_keep(const struct file_out *o, const struct stat *was)
{
	if (o->is_new)
		return 0;
	if (geteuid() == 0 && fchown(o->fd, was->st_uid, was->st_gid) < 0)
		return -1;
	return fchmod(o->fd, was->st_mode & 0777);
}

int file_out_open(struct file_out *o, const char *path, struct err *e)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	char id[ID_MAX];
	struct stat was;
	int in_place;

	*o = (struct file_out){ .fd = -1, .folder = -1 };
	if (strcmp(path, "-") == 0) {
		snprintf(o->path, sizeof(o->path), "standard output");
		o->fd = dup(STDOUT_FILENO);
		return o->fd < 0 ? err_sys(e, errno, "standard output") : 0;
	}
	in_place = file_out_find(o, path, &was, e);
	if (in_place < 0)
		return -1;
	if (in_place) {
		o->fd = open(path, S_ISREG(was.st_mode) ? flags | O_TRUNC : flags);
		return o->fd < 0 ? err_sys(e, errno, "%.160s", path) : 0;
	}
	id_make(id, "new");
	snprintf(o->beside, sizeof(o->beside), BESIDE "%s", id);
	o->folder = folder_open(o->path);
	if (o->folder >= 0) {
		file_sweep(o->folder);
		file_unfinished = o;
		tidy_set(file_tidy);
		o->fd = openat(o->folder, o->beside, flags | O_CREAT | O_EXCL, 0600);
	}
	if (o->fd >= 0)
		flock(o->fd, LOCK_EX); /* a disk without such locks has them for nobody */
	if (o->fd >= 0 && file_out_keep(o, &was) == 0)
		return 0;
	err_sys(e, errno, "write beside %.160s", path);
	return file_out_end(o, false, e);
}

int file_out_lock(const struct file_out *o, struct err *e)
{
	if (o->folder >= 0 && flock(o->folder, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT, "%.120s is being changed: try again", o->path);
	return 0;
}

static int file_out_name(const struct file_out *o, struct err *e)
{
	const char *slash = strrchr(o->path, '/'), *name = slash ? slash + 1 : o->path;
	int rc = fsync(o->fd);

	if (rc == 0)
		rc = renameat2(o->folder, o->beside, o->folder, name,
			       o->is_new ? RENAME_NOREPLACE : 0);
	if (rc < 0 && errno == EINVAL) /* the file system knows no such flag */
		rc = renameat(o->folder, o->beside, o->folder, name);
	if (rc < 0)
		return errno == EEXIST ? err_set(e, ERR_CONFLICT,
						 "%.120s was made meanwhile: try again", o->path)
				       : err_sys(e, errno, "write %.160s", o->path);
	/* Without it, a crash of the machine can bring the old file back, and no more. */
	fsync(o->folder);
	return 0;
}

int file_out_end(struct file_out *o, bool whole, struct err *e)
{
	int rc = whole ? 0 : -1;

	if (o->folder >= 0) {
		if (rc == 0)
			rc = file_out_name(o, e);
		if (rc < 0)
			unlinkat(o->folder, o->beside, 0);
		tidy_set(NULL);
		file_unfinished = NULL;
	}
	close_fd(&o->folder);
	close_fd(&o->fd);
	return rc;
}
