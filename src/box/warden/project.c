#include "box/warden/project.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/wire/project.h"

static_assert(ARRAY_LEN(project_entries) <= 32, "a bit of struct project for each");

/* Tells what another warden made, which was killed, from what the user has: nobody else sets the
 * sticky bit on such a thing. File systems without modes don't tell. */
enum { MADE_DIRECTORY = 01555, MADE_FILE = 01444 };

enum { LOCK_TRIES = 20, LOCK_PAUSE_NS = 500 * 1000, TEXT_MAX = 8 };

static int open_entry(int dir, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.mode = mode,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

static bool is_repository(int dir)
{
	return faccessat(dir, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The directory that an entry is in, and its last name there. */
static int open_parent(int dir, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char above[64];

	*ret_name = slash ? slash + 1 : path;
	snprintf(above, sizeof(above), "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
	return open_entry(dir, above, O_PATH | O_DIRECTORY, 0);
}

/* ---- what is made -------------------------------------------------------------------------- */

static int make_file(int parent, const char *name, const char *text)
{
	autoclose int fd = open_entry(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0444);
	ssize_t n = (ssize_t)strlen(text);

	return fd < 0 || write(fd, text, (size_t)n) != n || fchmod(fd, MADE_FILE) < 0 ? -1 : 0;
}

static int make_directory(int parent, const char *name)
{
	/* mkdir(2) leaves the sticky bit to the file system */
	if (mkdirat(parent, name, 0555) < 0 || fchmodat(parent, name, MADE_DIRECTORY, 0) < 0)
		return -1;
	return 0;
}

static int make_entry(int dir, const struct project_entry *n, const struct stat *owner,
		      bool *ret_made)
{
	const char *name;
	autoclose int parent = open_parent(dir, n->path, &name);

	*ret_made = false;
	if (parent < 0)
		return errno == ENOTDIR || errno == ENOENT ? 0
							   : -1; /* .git is a file: a worktree */
	if (strchr(n->path, '/') && !is_repository(parent))
		return 0; /* all of it is read-only */
	if ((n->missing == BECOMES_FILE ? make_file(parent, name, n->text)
					: make_directory(parent, name)) < 0)
		return errno == EEXIST || errno == EROFS ? 0 : -1;
	*ret_made = true;
	(void)!fchownat(parent, name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW);
	return 0;
}

static bool looks_made(int parent, const char *name, const struct project_entry *n,
		       const struct stat *st)
{
	char text[TEXT_MAX];
	autoclose int fd = -1;
	ssize_t got;

	if (n->missing == BECOMES_DIRECTORY)
		return S_ISDIR(st->st_mode) && (st->st_mode & 07777) == MADE_DIRECTORY;
	if (!S_ISREG(st->st_mode) || (st->st_mode & 07777) != MADE_FILE)
		return false;
	fd = open_entry(parent, name, O_RDONLY | O_NONBLOCK, 0);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return got == (ssize_t)strlen(n->text) && memcmp(text, n->text, (size_t)got) == 0;
}

static void remove_entry(int dir, const struct project_entry *n, bool made)
{
	const char *name;
	autoclose int parent = open_parent(dir, n->path, &name);
	struct stat st;

	/* a directory with something in it stays */
	if (parent >= 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (made || looks_made(parent, name, n, &st)))
		unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
}

/* ---- the folder ---------------------------------------------------------------------------- */

/* *ret_home: it has what a home has. */
static int check_entries(int dir, bool *ret_home, struct err *e)
{
	*ret_home = false;
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];
		const char *name;
		autoclose int parent = open_parent(dir, n->path, &name);
		struct stat st;

		if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISLNK(st.st_mode))
			return err_set(e, ERR_DENIED,
				       "%s in this folder is a link, which a sandbox that may "
				       "write the folder could replace; rw-all gives it so",
				       n->path);
		*ret_home |= n->of_home;
	}
	return 0;
}

/* A sandbox can lock its folder, too, so nothing waits for long. */
static int lock_folder(int fd)
{
	const struct timespec pause = { .tv_nsec = LOCK_PAUSE_NS };

	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(fd, LOCK_SH | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -1;
		nanosleep(&pause, NULL); /* another warden removes what it has made */
	}
	return -1;
}

int project_hold(struct project *p, int dir, const struct stat *st, struct err *e)
{
	int lock = open_entry(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	bool is_home, made;

	if (lock < 0)
		return err_sys(e, errno, "open the folder");
	*p = (struct project){ .lock = lock };
	if (lock_folder(lock) < 0)
		return err_set(e, ERR_CONFLICT, "another program has locked this folder");
	if (check_entries(lock, &is_home, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];

		if (n->missing == STAYS_MISSING || (n->of_home && !is_home))
			continue;
		if (make_entry(lock, n, st, &made) < 0)
			return err_sys(e, errno, "keep %s as it is", n->path);
		p->made |= (uint32_t)made << i;
	}
	return 0;
}

void project_release(struct project *p)
{
	if (p->lock >= 0 && flock(p->lock, LOCK_EX | LOCK_NB) == 0) {
		for (size_t i = ARRAY_LEN(project_entries); i-- > 0;) {
			if (project_entries[i].missing != STAYS_MISSING)
				remove_entry(p->lock, &project_entries[i], p->made >> i & 1);
		}
	}
	close_fd(&p->lock);
}

int project_seal(int tree)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		autoclose int at = open_entry(tree, project_entries[i].path, O_PATH | O_NOFOLLOW,
					      0);
		autoclose int copy = -1;
		struct stat st;

		if (at < 0 && (errno == ENOENT || errno == ENOTDIR))
			continue;
		copy = at < 0 || fstat(at, &st) < 0 ? -1 : mount_copy(at, "", true);
		if (copy < 0)
			return -1;
		if (!(project_entries[i].open && S_ISDIR(st.st_mode) && is_repository(at)) &&
		    mount_setattr_tree(copy, MOUNT_ATTR_RDONLY, -1) < 0)
			return -1;
		if (mount_attach(copy, at, "") < 0)
			return -1;
	}
	return 0;
}
