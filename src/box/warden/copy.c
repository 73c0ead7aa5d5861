/*
 * Copies a tree of a sandbox's files, for a fork of a busy one and for squashing layers. The files
 * are hostile, their place is not: both directories belong to the store, every step uses
 * descriptors and follows no link, and the copy stays within the limits of the layer that it is
 * made in.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/mem.h"
#include "box/archive/links.h"
#include "box/warden/internal.h"

enum { DEPTH_MAX = 4096, XATTR_NAMES_MAX = 16384, XATTR_VALUE_MAX = 65536 };

struct copy {
	struct links links;
	int top; /* top directory of the copy */
	int depth;
	int too_deep; /* number of levels that did not fit into path */
	char path[PATH_MAX]; /* path of the directory that is being copied; "" is the top */
};

static int copy_dir(struct copy *c, int from, int to);

/* Copies data only, so that holes stay holes. */
static int copy_data(int in, int out, off_t size)
{
	off_t at = 0, end;

	if (ftruncate(out, size) < 0)
		return errno;
	while (at < size) {
		at = lseek(in, at, SEEK_DATA);
		if (at < 0)
			return errno == ENXIO ? 0 : errno;
		end = lseek(in, at, SEEK_HOLE);
		if (end < 0 || lseek(in, at, SEEK_SET) < 0 || lseek(out, at, SEEK_SET) < 0)
			return errno;
		while (at < end) {
			ssize_t n = sendfile(out, in, NULL, (size_t)(end - at));

			if (n <= 0)
				return n < 0 ? errno : 0;
			at += n;
		}
	}
	return 0;
}

static int copy_xattrs(int in, int out)
{
	static char names[XATTR_NAMES_MAX], value[XATTR_VALUE_MAX];
	ssize_t n = flistxattr(in, names, sizeof(names));

	for (char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		ssize_t len = fgetxattr(in, name, value, sizeof(value));

		/* attributes that the kernel sets itself can't be set, and need not be */
		if (len >= 0 && fsetxattr(out, name, value, (size_t)len, 0) < 0 &&
		    errno != EOPNOTSUPP && errno != EPERM)
			return errno;
	}
	return n < 0 && errno != EOPNOTSUPP ? errno : 0;
}

/* Owner before mode: changing the owner clears bits of the mode. */
static int copy_owner(int dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (fchownat(dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	if (!S_ISLNK(st->st_mode) && fchmodat(dir, name, st->st_mode & 07777, 0) < 0)
		return errno;
	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW) < 0 ? errno : 0;
}

static int copy_regular(int from, int to, const char *name, const struct stat *st)
{
	autoclose int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	autoclose int out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int errnum;

	if (in < 0 || out < 0)
		return errno;
	errnum = copy_data(in, out, st->st_size);
	return errnum ? errnum : copy_xattrs(in, out);
}

static int copy_symlink(int from, int to, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno;
	target[n] = '\0';
	return symlinkat(target, to, name) < 0 ? errno : 0;
}

static int copy_subdir(struct copy *c, int from, int to, const char *name)
{
	int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), out;
	int errnum;
	size_t n;

	if (in < 0)
		return errno;
	if (c->depth == DEPTH_MAX || mkdirat(to, name, 0700) < 0) {
		errnum = c->depth == DEPTH_MAX ? ENAMETOOLONG : errno;
		close(in);
		return errnum;
	}
	out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	errnum = out < 0 ? errno : copy_xattrs(in, out);
	if (errnum) {
		close(in);
		close(out);
		return errnum;
	}
	n = strlen(c->path);
	if (n + strlen(name) + 1 < sizeof(c->path))
		sprintf(c->path + n, "%s/", name);
	else
		c->too_deep++;
	c->depth++;
	errnum = copy_dir(c, in, out);
	c->depth--;
	if (c->path[n])
		c->path[n] = '\0';
	else
		c->too_deep--;
	return errnum;
}

/* The path below the top where this file was copied to before; NULL: this is its first name. Names
 * in directories that are too deep for a path are not remembered: the file becomes several
 * files. */
static const char *first_name(struct copy *c, const struct stat *st, const char *name)
{
	char path[PATH_MAX];

	if (c->too_deep || strlen(c->path) + strlen(name) >= sizeof(path))
		return NULL;
	stpcpy(stpcpy(path, c->path), name);
	return links_first(&c->links, st, path);
}

static int copy_entry(struct copy *c, int from, int to, const char *name)
{
	const char *first;
	struct stat st;
	int errnum = 0;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno;
	if (!S_ISDIR(st.st_mode) && st.st_nlink > 1) {
		first = first_name(c, &st, name);
		if (first)
			return linkat(c->top, first, to, name, 0) < 0 ? errno : 0;
	}
	if (S_ISDIR(st.st_mode))
		errnum = copy_subdir(c, from, to, name);
	else if (S_ISREG(st.st_mode))
		errnum = copy_regular(from, to, name, &st);
	else if (S_ISLNK(st.st_mode))
		errnum = copy_symlink(from, to, name);
	else /* a pipe, a socket, or an overlay's mark of a removed file (device 0:0) */
		errnum = mknodat(to, name, st.st_mode, st.st_rdev) < 0 ? errno : 0;
	return errnum ? errnum : copy_owner(to, name, &st);
}

static int copy_dir(struct copy *c, int from, int to)
{
	struct folder f = folder_take(from);
	int errnum = 0, more = 0;

	while (!errnum && (more = folder_next(&f)) > 0)
		errnum = copy_entry(c, from, to, f.entry->d_name);
	folder_end(&f);
	close(to);
	return more < 0 ? f.errnum : errnum;
}

int copy_tree(int from, int to)
{
	static struct copy c;
	struct rlimit files;
	struct statvfs disk;

	/* two descriptors for each level of depth */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (fstatvfs(to, &disk) == 0)
		c.links.bytes_max = LINKS_FOR_DISK((uint64_t)disk.f_blocks * disk.f_frsize);
	c.top = fcntl(to, F_DUPFD_CLOEXEC, 0);
	return copy_dir(&c, from, to);
}
