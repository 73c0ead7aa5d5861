/*
 * Unpacking: see tar_tree.h.
 *
 * Each entry is made in its directory, which is opened component by component without following
 * links. The directory of the last entry stays open, since the next entry is mostly in it. An entry
 * replaces what has its name: the old entry is unlinked, and the new one is created exclusively.
 *
 * An exact archive's files are written without a name, where the file system has that, and then
 * take the place of the old ones. So whoever looks, also after a crash, sees one or the other.
 *
 * What is mounted on an entry, or above it, is never entered, nor emptied by a whiteout. That is an
 * error, or the entry is skipped (pass_mounts): then the mount is a folder of the host that a
 * sandbox has again. Where something was mounted that is not any more, its place may be missing.
 *
 * Changes in a directory change its time, and its mode may forbid changes. So both are set when the
 * archive leaves the directory. The directories that it is in are kept as one path and the lengths
 * of its prefixes.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "box/archive/mount.h"
#include "box/archive/tar_tree.h"

enum { HOLE = 4096, MODE_MASK = 01777, TEMPS_MAX = 1000 };

static int fail_at(struct tar_unpack *u, enum tree_what what, int errnum, const char *path)
{
	u->failure = (struct tree_failure){ .what = what, .errnum = errnum };
	snprintf(u->failure.path, sizeof(u->failure.path), "%.*s", TREE_PATH_MAX - 1, path);
	return -1;
}

static int tar_unpack_fail(struct tar_unpack *u, enum tree_what what, int errnum)
{
	return fail_at(u, what, errnum, u->reader.path);
}

static int fail_on_mount(struct tar_unpack *u)
{
	u->mounted = true;
	return tar_unpack_fail(u, TREE_OUTSIDE, 0);
}

static void close_at(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- directories --------------------------------------------------------------------------- */

/* Moves one component down from *at, which is closed unless it is the top. */
static int step_down(struct tar_unpack *u, int *at, const char *name, bool make)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int next = openat(*at, name, flags), errnum;
	struct stat st;

	if (next < 0 && errno == ENOENT && make &&
	    (mkdirat(*at, name, 0755) == 0 || errno == EEXIST))
		next = openat(*at, name, flags);
	errnum = errno;
	if (*at != u->top)
		close(*at);
	*at = next;
	if (next < 0)
		return errnum == ENOTDIR || errnum == ELOOP
			     ? tar_unpack_fail(u, TREE_OUTSIDE, 0)
			     : tar_unpack_fail(u, TREE_SYSTEM, errnum);
	if (fstat(next, &st) == 0 && st.st_dev == u->device)
		return 0;
	close_at(at);
	return fail_on_mount(u);
}

/* Opens the directory at a clean path of n bytes; the caller closes it unless it is u->top. -1 with
 * the failure. */
static int open_directory(struct tar_unpack *u, const char *path, size_t n, bool make)
{
	char name[TAR_PATH_MAX];
	int at = u->top;

	for (size_t from = 0, to; from < n; from = to + 1) {
		const char *slash = memchr(path + from, '/', n - from);

		to = slash ? (size_t)(slash - path) : n;
		snprintf(name, sizeof(name), "%.*s", (int)(to - from), path + from);
		if (step_down(u, &at, name, make) < 0)
			return -1;
	}
	return at;
}

/* Opens the directory that holds a clean path, and returns its last component; -1. It stays
 * open. */
static int enter_parent(struct tar_unpack *u, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	*ret_name = slash ? slash + 1 : path;
	if (u->parent >= 0 && strlen(u->path) == n && memcmp(u->path, path, n) == 0)
		return u->parent;
	if (u->parent != u->top)
		close_at(&u->parent);
	u->parent = open_directory(u, path, n, true);
	if (u->parent < 0)
		return -1;
	memcpy(u->path, path, n);
	u->path[n] = '\0';
	return u->parent;
}

static void forget_parent(struct tar_unpack *u)
{
	if (u->parent != u->top)
		close_at(&u->parent);
	u->parent = -1;
}

static struct timespec times_of(int64_t s, uint32_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)s, .tv_nsec = (long)ns };
}

/* An owner before a mode: another owner takes bits of the mode away. 0 or an errno. */
static int set_file(const struct tar_unpack *u, int fd, const struct tree_left *l)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   times_of(l->mtime, l->mtime_ns) };

	if (u->o.owners && fchown(fd, l->uid, l->gid) < 0)
		return errno;
	return futimens(fd, times) < 0 ||
			       fchmod(fd, l->mode & (u->o.owners ? 07777 : MODE_MASK)) < 0
		     ? errno
		     : 0;
}

/* Sets mode and time of the innermost directory, if it still exists and is ours. */
static int tar_unpack_leave(struct tar_unpack *u)
{
	const struct tree_left *l = &u->left[--u->n_left];
	int fd = open_directory(u, u->at, l->n, false), errnum;

	if (fd < 0) {
		u->failure = (struct tree_failure){ .what = TREE_FINE };
		return 0;
	}
	errnum = set_file(u, fd, l);
	if (fd != u->top)
		close(fd);
	return errnum && errnum != EPERM ? fail_at(u, TREE_SYSTEM, errnum, u->at) : 0;
}

/* Leaves all directories that do not contain path. A directory that is named again is left
 * first. */
static int leave_others(struct tar_unpack *u, const char *path, bool directory)
{
	while (u->n_left > 0) {
		size_t n = u->left[u->n_left - 1].n;
		bool inside = n == 0 ||
			      (strncmp(u->at, path, n) == 0 && (path[n] == '/' || path[n] == '\0'));

		if (inside && !(directory && path[n] == '\0'))
			return 0;
		if (tar_unpack_leave(u) < 0)
			return -1;
	}
	return 0;
}

/* ---- what is in the way -------------------------------------------------------------------- */

static int tar_unpack_empty(struct tar_unpack *u, int fd, int depth);

/* Removes the entry of that name with its contents. What is mounted stays, with what it stands
 * in. */
static int remove_all(struct tar_unpack *u, int dir, const char *name, int depth)
{
	int fd, errnum;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	errnum = errno;
	if (mount_stands_on(dir, name)) {
		u->mounted = true;
		return u->o.pass_mounts ? 0 : tar_unpack_fail(u, TREE_OUTSIDE, 0);
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return tar_unpack_fail(u, TREE_SYSTEM, errnum == EISDIR ? errno : errnum);
	if (depth == TREE_DEPTH_MAX) {
		close(fd);
		return tar_unpack_fail(u, TREE_DEEP, 0);
	}
	if (tar_unpack_empty(u, fd, depth + 1) < 0)
		return -1;
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || u->mounted)
		return 0;
	return tar_unpack_fail(u, TREE_SYSTEM, errno);
}

/* Removes all entries of a directory; takes fd. */
static int tar_unpack_empty(struct tar_unpack *u, int fd, int depth)
{
	struct folder f = folder_take(fd);
	int rc = 0, more = 0;

	while (rc == 0 && (more = folder_next(&f)) > 0)
		rc = remove_all(u, folder_fd(&f), f.entry->d_name, depth);
	folder_end(&f);
	return more < 0 ? tar_unpack_fail(u, TREE_SYSTEM, f.errnum) : rc;
}

/* Makes room for an entry that is not a directory. */
static int unlink_old(struct tar_unpack *u, int dir, const char *name)
{
	int errnum;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	errnum = errno;
	if (mount_stands_on(dir, name))
		return fail_on_mount(u);
	if (errnum != EISDIR)
		return tar_unpack_fail(u, TREE_SYSTEM, errnum);
	if (!u->o.changes)
		return tar_unpack_fail(u, TREE_OCCUPIED, 0);
	return remove_all(u, dir, name, 0) < 0 ? -1 : u->mounted ? fail_on_mount(u) : 0;
}

/* Removes a file, or a directory that is empty. */
static int remove_one(struct tar_unpack *u, int dir, const char *name)
{
	int errnum;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	errnum = errno;
	if (mount_stands_on(dir, name))
		return 0;
	if (errnum != EISDIR)
		return tar_unpack_fail(u, TREE_SYSTEM, errnum);
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOTEMPTY || errno == EEXIST
		     ? 0
		     : tar_unpack_fail(u, TREE_SYSTEM, errno);
}

/* Handles ".wh.NAME" and ".wh..wh..opq"; other names with ".wh..wh." are ignored. True if it was
 * one of these. */
static bool take_whiteout(struct tar_unpack *u, int dir, const char *name, int *ret)
{
	int fd;

	if (!u->o.changes || strncmp(name, ".wh.", 4) != 0)
		return false;
	if (strcmp(name, ".wh..wh..opq") == 0) {
		fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		*ret = fd < 0 ? tar_unpack_fail(u, TREE_SYSTEM, errno) : tar_unpack_empty(u, fd, 0);
	} else if (strncmp(name, ".wh..wh.", 8) == 0) {
		*ret = 0;
	} else if (!name[4] || strcmp(name + 4, ".") == 0 || strcmp(name + 4, "..") == 0) {
		*ret = tar_unpack_fail(u, TREE_OUTSIDE, 0);
	} else {
		*ret = u->o.exact ? remove_one(u, dir, name + 4) : remove_all(u, dir, name + 4, 0);
	}
	return true;
}

/* ---- in place of the old one --------------------------------------------------------------- */

/* tries: of this file, first 0. False, errno EEXIST: so many names are taken. */
static bool next_temp(struct tar_unpack *u, bool replaces, unsigned *tries)
{
	snprintf(u->temp, sizeof(u->temp), TREE_TEMP_FRONT "%u%s", ++u->temps,
		 replaces ? TREE_TEMP_OLD : TREE_TEMP_NEW);
	errno = EEXIST;
	return ++*tries <= TEMPS_MAX;
}

/* Moves what has the temporary name to its place. */
static int place_temp(struct tar_unpack *u, int dir, const char *name)
{
	int errnum;

	if (renameat(dir, u->temp, dir, name) == 0) {
		u->temp[0] = '\0';
		return 0;
	}
	errnum = errno;
	if (mount_stands_on(dir, name))
		return fail_on_mount(u);
	return errnum == EISDIR ? tar_unpack_fail(u, TREE_OCCUPIED, 0)
				: tar_unpack_fail(u, TREE_SYSTEM, errnum);
}

/* Whether files take their places when they are whole, so that one that ends in the middle leaves
 * the old one as it is. Changes go to a tree that nobody uses yet, unless they are exact. */
static bool is_beside(const struct tar_unpack *u)
{
	return u->o.exact || !u->o.changes;
}

/* -1 with errno. */
static int open_beside(struct tar_unpack *u, int dir)
{
	int fd = openat(dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	unsigned tries = 0;

	u->temp[0] = '\0';
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	while (fd < 0 && next_temp(u, true, &tries)) {
		fd = openat(dir, u->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
		if (fd < 0 && errno != EEXIST)
			return -1;
	}
	return fd;
}

/* Gives the file the owner of the one whose place it takes. */
static int keep_owner(const struct tar_unpack *u, const struct stat *old)
{
	struct stat st;

	if (fstat(u->file, &st) < 0)
		return -1;
	return st.st_uid == old->st_uid && st.st_gid == old->st_gid
		     ? 0
		     : fchown(u->file, old->st_uid, old->st_gid);
}

static void drop_temp(struct tar_unpack *u)
{
	if (u->temp[0])
		unlinkat(u->parent, u->temp, 0);
	u->temp[0] = '\0';
}

static int name_temp(struct tar_unpack *u, bool replaces)
{
	unsigned tries = 0;
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", u->file);
	while (next_temp(u, replaces, &tries)) {
		if (linkat(AT_FDCWD, self, u->parent, u->temp, AT_SYMLINK_FOLLOW) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	u->temp[0] = '\0';
	return -1;
}

/* The file is whole, and u->parent still its directory. */
static int place_file(struct tar_unpack *u)
{
	const char *slash = strrchr(u->reader.path, '/');
	const char *name = slash ? slash + 1 : u->reader.path;
	struct stat old;
	bool replaces = fstatat(u->parent, name, &old, AT_SYMLINK_NOFOLLOW) == 0;

	if (u->o.exact && replaces && S_ISREG(old.st_mode) && keep_owner(u, &old) < 0)
		return tar_unpack_fail(u, TREE_OWNER, errno);
	if (!u->temp[0] && name_temp(u, replaces) < 0)
		return tar_unpack_fail(u, TREE_SYSTEM, errno);
	return place_temp(u, u->parent, name);
}

/* ---- entries ------------------------------------------------------------------------------- */

static int make_file(struct tar_unpack *u, int dir, const char *name)
{
	u->hole = false;
	if (is_beside(u))
		u->file = open_beside(u, dir);
	else if (unlink_old(u, dir, name) < 0)
		return -1;
	else
		u->file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				 0600);
	return u->file < 0 ? tar_unpack_fail(u, TREE_SYSTEM, errno) : 0;
}

/* With u->o.exact beside the place of the link, under the temporary name. */
static int name_symlink(struct tar_unpack *u, int dir, const char *name, const char *to)
{
	unsigned tries = 0;
	struct stat old;

	if (!u->o.exact)
		return unlink_old(u, dir, name) < 0  ? -1
		     : symlinkat(to, dir, name) == 0 ? 0
						     : tar_unpack_fail(u, TREE_SYSTEM, errno);
	while (next_temp(u, fstatat(dir, name, &old, AT_SYMLINK_NOFOLLOW) == 0, &tries)) {
		if (symlinkat(to, dir, u->temp) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	u->temp[0] = '\0';
	return tar_unpack_fail(u, TREE_SYSTEM, errno);
}

static int make_symlink(struct tar_unpack *u, int dir, const char *name, const struct tar_entry *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   times_of(e->mtime, e->mtime_ns) };
	const char *as = u->o.exact ? u->temp : name;

	if (name_symlink(u, dir, name, e->link) < 0)
		return -1;
	if (u->o.owners && fchownat(dir, as, e->uid, e->gid, AT_SYMLINK_NOFOLLOW) < 0)
		return tar_unpack_fail(u, TREE_SYSTEM, errno);
	utimensat(dir, as, times, AT_SYMLINK_NOFOLLOW); /* not every file system supports times */
	if (!u->o.exact || place_temp(u, dir, name) == 0)
		return 0;
	drop_temp(u);
	return -1;
}

/* Makes a hard link to a file below the top that is not a symbolic link. */
static int link_to(struct tar_unpack *u, int from, const char *old, int dir, const char *name)
{
	struct stat a, b;

	if (fstatat(from, old, &a, AT_SYMLINK_NOFOLLOW) < 0)
		return tar_unpack_fail(u, TREE_SYSTEM, errno);
	if (!S_ISREG(a.st_mode))
		return tar_unpack_fail(u, TREE_OUTSIDE, 0);
	if (fstatat(dir, name, &b, AT_SYMLINK_NOFOLLOW) == 0 && b.st_ino == a.st_ino &&
	    b.st_dev == a.st_dev)
		return 0;
	if (unlink_old(u, dir, name) < 0)
		return -1;
	return linkat(from, old, dir, name, 0) < 0 ? tar_unpack_fail(u, TREE_SYSTEM, errno) : 0;
}

static int make_hardlink(struct tar_unpack *u, int dir, const char *name)
{
	const char *slash, *old = u->reader.link;
	int from, rc;

	if (!tar_path_clean(u->reader.link) || strcmp(old, ".") == 0)
		return tar_unpack_fail(u, TREE_OUTSIDE, 0);
	slash = strrchr(old, '/');
	from = open_directory(u, old, slash ? (size_t)(slash - old) : 0, false);
	if (from < 0)
		return -1;
	rc = link_to(u, from, slash ? slash + 1 : old, dir, name);
	if (from != u->top)
		close(from);
	return rc;
}

/* An existing directory may forbid changes inside. It gets its final mode when the archive leaves
 * it. */
static void open_up(int dir, const char *name, const struct stat *st)
{
	int fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char self[64];

	if (fd < 0)
		return;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	chmod(self, (st->st_mode & MODE_MASK) | 0700); /* if it is ours */
	close(fd);
}

/* The entry may exist, as a directory. */
static int make_directory(struct tar_unpack *u, int dir, const char *name,
			  const struct tar_entry *e)
{
	struct stat st;
	int rc = mkdirat(dir, name, (e->mode & MODE_MASK) | 0700);

	if (rc < 0 && errno == EEXIST && u->o.changes &&
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode)) {
		if (unlink_old(u, dir, name) < 0)
			return -1;
		rc = mkdirat(dir, name, (e->mode & MODE_MASK) | 0700);
	}
	if (rc < 0 && errno != EEXIST)
		return tar_unpack_fail(u, TREE_SYSTEM, errno);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return tar_unpack_fail(u, TREE_SYSTEM, errno);
	if (!S_ISDIR(st.st_mode))
		return tar_unpack_fail(u, TREE_OCCUPIED, 0);
	if (st.st_dev != u->device)
		return fail_on_mount(u);
	if ((st.st_mode & 0700) != 0700)
		open_up(dir, name, &st);
	return 0;
}

static struct tree_left left_of(const struct tar_entry *e, size_t n)
{
	return (struct tree_left){ n, e->mode, e->uid, e->gid, e->mtime_ns, e->mtime };
}

/* Remembers mode and time until the archive leaves the directory. Beyond the limit they are not
 * set. */
static void remember(struct tar_unpack *u, const char *path, const struct tar_entry *e)
{
	size_t n = strlen(path);

	if (u->n_left == TREE_PARTS_MAX)
		return;
	memcpy(u->at, path, n);
	u->at[n] = '\0';
	u->left[u->n_left++] = left_of(e, n);
}

static int make_entry(struct tar_unpack *u, const char *path, const struct tar_entry *e)
{
	const char *name;
	int dir = enter_parent(u, path, &name), rc;

	if (dir < 0)
		return -1;
	if (take_whiteout(u, dir, name, &rc)) {
		forget_parent(u); /* it may be gone too */
		return rc;
	}
	switch (e->type) {
	case TAR_FILE:
		return make_file(u, dir, name);
	case TAR_SYMLINK:
		return make_symlink(u, dir, name, e);
	case TAR_HARDLINK:
		return make_hardlink(u, dir, name);
	case TAR_DIRECTORY:
		rc = make_directory(u, dir, name, e);
		if (rc == 0)
			remember(u, path, e);
		return rc;
	}
	return tar_unpack_fail(u, TREE_KIND, 0);
}

/* The last entry could not be made where nobody in its sandbox could have made it. So it is the
 * place of a mount, or above one, which nothing that is restored needs. */
static bool was_for_mount(const struct tar_unpack *u)
{
	const struct tar_entry *e = &u->reader.entry;

	return u->o.changes && !u->o.exact && u->failure.what == TREE_SYSTEM &&
	       u->failure.errnum == EACCES &&
	       (e->type == TAR_DIRECTORY || (e->type == TAR_FILE && e->size == 0));
}

static int take_entry(struct tar_unpack *u)
{
	const struct tar_entry *e = &u->reader.entry;
	bool directory = e->type == TAR_DIRECTORY;
	const char *path = u->reader.path;
	bool top;

	if (++u->entries > TREE_ENTRIES_MAX)
		return tar_unpack_fail(u, TREE_MANY, 0);
	u->bytes += e->size;
	if (e->size > TREE_BYTES_MAX || u->bytes > TREE_BYTES_MAX)
		return tar_unpack_fail(u, TREE_LARGE, 0);
	if (u->o.as && (u->entries > 1 || e->type != TAR_FILE))
		return tar_unpack_fail(u, TREE_KIND, 0);
	if (u->o.as)
		snprintf(u->reader.path, sizeof(u->reader.path), "%s", u->o.as);
	if (!tar_path_clean(u->reader.path))
		return tar_unpack_fail(u, TREE_OUTSIDE, 0);
	top = strcmp(path, ".") == 0;
	if (top && !directory)
		return tar_unpack_fail(u, TREE_OCCUPIED, 0);
	if (leave_others(u, top ? "" : path, directory) < 0)
		return -1;
	u->mounted = false;
	if (!top && make_entry(u, path, e) < 0) {
		if (!(u->mounted && u->o.pass_mounts) && !was_for_mount(u))
			return -1;
		u->failure = (struct tree_failure){ .what = TREE_FINE };
	}
	if (top && !u->o.keep_top)
		remember(u, "", e);
	if (!top && u->o.on_entry)
		u->o.on_entry(u->o.arg, path);
	return 0;
}

/* ---- content ------------------------------------------------------------------------------- */

/* How zeros are skipped depends on the split into pieces; the file's content does not. */
static int write_content(struct tar_unpack *u, const char *p, size_t n)
{
	while (n > 0 && u->file >= 0) {
		size_t some = u->o.skip_zeros && n > HOLE ? HOLE : n;
		int rc;

		u->hole = u->o.skip_zeros && tar_is_zero(p, some);
		rc = u->hole ? (lseek(u->file, (off_t)some, SEEK_CUR) < 0 ? -1 : 0)
			     : fd_write(u->file, p, some);
		if (rc < 0)
			return tar_unpack_fail(u, TREE_SYSTEM, errno);
		p += some;
		n -= some;
	}
	return 0;
}

static int end_file(struct tar_unpack *u)
{
	const struct tar_entry *e = &u->reader.entry;
	const struct tree_left left = left_of(e, 0);
	int rc = 0, errnum;

	if (u->file < 0) /* a whiteout makes no file */
		return 0;
	if (u->hole && ftruncate(u->file, (off_t)e->size) < 0)
		rc = tar_unpack_fail(u, TREE_SYSTEM, errno);
	errnum = rc == 0 ? set_file(u, u->file, &left) : 0;
	if (errnum)
		rc = tar_unpack_fail(u, TREE_SYSTEM, errnum);
	if (is_beside(u) && rc == 0)
		rc = place_file(u);
	drop_temp(u);
	close_at(&u->file);
	return rc;
}

/* ---- all of it ----------------------------------------------------------------------------- */

int tar_unpack_init(struct tar_unpack *u, int top, const struct tar_unpack_opts *o)
{
	struct stat st;

	u->failure = (struct tree_failure){ .what = TREE_FINE };
	u->entries = u->bytes = 0;
	u->o = *o;
	u->top = top;
	u->parent = u->file = -1;
	u->n_left = 0;
	u->path[0] = u->at[0] = u->temp[0] = '\0';
	u->temps = 0;
	tar_reader_init(&u->reader);
	if (fstat(top, &st) < 0)
		return tar_unpack_fail(u, TREE_SYSTEM, errno);
	u->device = st.st_dev;
	return 0;
}

static int bad_archive(struct tar_unpack *u, enum tar_why why)
{
	tar_unpack_fail(u, TREE_ARCHIVE, 0);
	u->failure.why = why;
	return -1;
}

static int take_event(struct tar_unpack *u, enum tar_event ev)
{
	switch (ev) {
	case TAR_ENTRY:
		return take_entry(u);
	case TAR_CONTENT:
		return write_content(u, u->reader.content, u->reader.content_n);
	case TAR_ENTRY_END:
		return end_file(u);
	case TAR_PASSED:
		return tar_unpack_fail(u, TREE_KIND, 0);
	case TAR_BAD:
		return bad_archive(u, u->reader.why);
	case TAR_MORE:
	case TAR_END:
		break;
	}
	return 0;
}

int tar_unpack_take(struct tar_unpack *u, const char *p, size_t n)
{
	enum tar_event ev;

	do {
		ev = tar_read(&u->reader, &p, &n);
		if (take_event(u, ev) < 0)
			return -1;
	} while (ev != TAR_MORE);
	return 0;
}

int tar_unpack_end(struct tar_unpack *u, bool whole)
{
	enum tar_why why = tar_reader_end(&u->reader);
	int rc = u->failure.what ? -1 : 0;

	drop_temp(u);
	close_at(&u->file);
	while (rc == 0 && u->n_left > 0)
		rc = tar_unpack_leave(u);
	forget_parent(u);
	if (rc == 0 && whole && why)
		rc = bad_archive(u, why);
	return rc;
}
