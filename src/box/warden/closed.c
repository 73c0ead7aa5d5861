#include "box/warden/closed.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/wire/state.h"

/* More levels than any path has; a deeper tree counts as closed. */
enum { LEVELS_MAX = 4096 };

static int open_below(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = RESOLVE_NO_MAGICLINKS | resolve };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

int closed_open(int root, const char *path, int *ret_fd, int *ret_dir)
{
	const char *name = strrchr(path, '/');
	char above[WIRE_PATH_MAX];
	autoclose int dir = -1;
	autoclose int fd = -1;

	if (!name || strlen(path) >= sizeof(above)) {
		errno = name ? ENAMETOOLONG : EINVAL;
		return -1;
	}
	memcpy(above, path, (size_t)(name - path) + 1);
	above[name - path + 1] = '\0';
	dir = open_below(root, above, O_DIRECTORY, RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	fd = dir < 0 ? -1
		     : open_below(dir, name[1] ? name + 1 : ".", 0,
				  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return -1;
	*ret_fd = take_fd(&fd);
	*ret_dir = take_fd(&dir);
	return 0;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

enum { MET_NONE = -1, MET_UNKNOWN = -2 };

/* Which of n folders the directory dir is, or is below, the nearest first: its place, or MET_NONE.
 * Compares inodes, since a folder can have several names. A sandbox that has part of the way up
 * can't mislead this check: it starts at the open directory, and a folder that is moved meanwhile
 * stays within the tree of the one who moved it. */
static int met_first(int dir, const struct stat *what, int n)
{
	autoclose int at = open_below(dir, ".", O_DIRECTORY, 0);
	struct stat top, st;

	if (stat("/", &top) < 0)
		return MET_UNKNOWN;
	for (int level = 0; level < LEVELS_MAX; level++) {
		int above;

		if (at < 0 || fstat(at, &st) < 0)
			return MET_UNKNOWN;
		for (int i = 0; i < n; i++) {
			if (is_same(&st, &what[i]))
				return i;
		}
		if (is_same(&st, &top))
			return MET_NONE;
		above = open_below(at, "..", O_DIRECTORY, 0);
		close(at);
		at = above;
	}
	return MET_UNKNOWN;
}

/* Also where that can't be told. */
static bool stands_in(int dir, const struct stat *what)
{
	return met_first(dir, what, 1) != MET_NONE;
}

/* Opens the nearest directory at or above a path; *ret_there: it is the path's own. */
static int open_nearest(int root, const char *path, bool *ret_there)
{
	char at[WIRE_PATH_MAX];
	int fd;

	memcpy(at, path, sizeof(at));
	*ret_there = true;
	while ((fd = open_below(root, at, O_DIRECTORY, RESOLVE_IN_ROOT)) < 0 && at[0] && at[1]) {
		char *slash = strrchr(at, '/');

		*ret_there = false;
		slash[slash == at] = '\0';
	}
	return fd;
}

/* Whether what is asked for stands below the folder of state in the folder `closed`, which is at
 * path; not where it is another name of either, or is below such a name. */
static bool is_state(const char *path, int root, const struct closed_asked *a,
		     const struct stat *asked, const struct stat *closed)
{
	char at[WIRE_PATH_MAX + sizeof("/" BOX_STATE)];
	autoclose int fd = -1;
	struct stat either[2] = { [1] = *closed };

	snprintf(at, sizeof(at), "%s/" BOX_STATE, path);
	fd = open_below(root, at, O_DIRECTORY | O_NOFOLLOW, RESOLVE_IN_ROOT);
	return fd >= 0 && fstat(fd, &either[0]) == 0 && !is_same(asked, &either[0]) &&
	       !is_same(asked, &either[1]) && met_first(a->dir, either, 2) == 0;
}

/* Whether `path` forbids to give what is asked for, whose status is `asked`. */
static bool meets(const char *path, int root, const struct closed_asked *a,
		  const struct stat *asked)
{
	bool there;
	autoclose int nearest = open_nearest(root, path, &there);
	autoclose int itself = open_below(root, path, 0, RESOLVE_IN_ROOT);
	struct stat st;

	/* A file may have other names. */
	if (itself >= 0 && (fstat(itself, &st) < 0 || is_same(&st, asked)))
		return true;
	if (nearest < 0 || fstat(nearest, &st) < 0 || stands_in(nearest, asked))
		return true;
	return there && stands_in(S_ISDIR(asked->st_mode) ? a->fd : a->dir, &st) &&
	       !(a->state && is_state(path, root, a, asked, &st));
}

int closed_check(const char paths[WIRE_CLOSED_MAX][WIRE_PATH_MAX], int root,
		 const struct closed_asked *a, struct err *e)
{
	struct stat asked;

	if (fstat(a->fd, &asked) < 0)
		return err_sys(e, errno, "look at what is to be mounted");
	for (int i = 0; i < WIRE_CLOSED_MAX; i++) {
		if (paths[i][0] && meets(paths[i], root, a, &asked))
			return err_set(e, ERR_DENIED,
				       "it holds, or is held by, a folder of Holt itself (its "
				       "token, registry, sockets) or its configuration, "
				       "which no sandbox is given");
	}
	return 0;
}
