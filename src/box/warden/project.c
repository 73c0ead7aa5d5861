#include "box/warden/project.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/wire/project.h"

static_assert(ARRAY_LEN(project_entries) <= 64, "a bit of struct project for each");

/* Tells what another warden made, which was killed, from what the user has: nobody else sets the
 * sticky bit on such a thing. File systems without modes don't tell. */
enum { MADE_DIRECTORY = 01555, MADE_WRITABLE = 01755, MADE_FILE = 01444 };

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

static int make_socket(int parent, const char *name)
{
	return mknodat(parent, name, S_IFSOCK | MADE_FILE, 0);
}

/* mkdir(2) leaves the sticky bit to the file system. By now the name may be that of something else,
 * which a sandbox has put there. */
static int make_directory(int parent, const char *name, mode_t mode)
{
	autoclose int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, mode & 0777) < 0)
		return -1;
	fd = open_entry(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_uid != geteuid() || st.st_mode & 0222 & ~mode) { /* it may have less, by an ACL */
		errno = EEXIST;
		return -1;
	}
	return fchmod(fd, mode);
}

static bool is_made_directory(const struct project_entry *n)
{
	return n->missing == BECOMES_DIRECTORY || n->missing == BECOMES_WRITABLE;
}

static mode_t directory_mode(const struct project_entry *n)
{
	return n->missing == BECOMES_WRITABLE ? MADE_WRITABLE : MADE_DIRECTORY;
}

/* again: somebody may have removed the HEAD, too. */
static int make_entry(int dir, const struct project_entry *n, const struct stat *owner, bool again,
		      bool *ret_made)
{
	const char *name;
	autoclose int parent = open_parent(dir, n->path, &name);
	int failed;

	*ret_made = false;
	if (parent < 0)
		return errno == ENOTDIR || errno == ENOENT ? 0
							   : -1; /* .git is a file: a worktree */
	if (!again && strchr(n->path, '/') && !is_repository(parent))
		return 0; /* all of it is read-only */
	if (n->missing == BECOMES_FILE)
		failed = make_file(parent, name, n->text);
	else if (n->missing == BECOMES_SOCKET)
		failed = make_socket(parent, name);
	else
		failed = make_directory(parent, name, directory_mode(n));
	if (failed < 0)
		return errno == EEXIST || errno == EROFS ? 0 : -1;
	*ret_made = true;
	(void)!fchownat(parent, name, owner->st_uid, owner->st_gid, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* made: by this warden, so only what the host has put in its place is something else. */
static bool looks_made(int parent, const char *name, const struct project_entry *n, bool made)
{
	char text[TEXT_MAX];
	autoclose int fd = -1;
	struct stat st;
	mode_t mode;
	ssize_t got;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	mode = st.st_mode & 07777;
	if (is_made_directory(n))
		return S_ISDIR(st.st_mode) && (made || mode == directory_mode(n));
	if (n->missing == BECOMES_SOCKET)
		return S_ISSOCK(st.st_mode) && (made || (mode | S_ISVTX) == MADE_FILE);
	if (!S_ISREG(st.st_mode) || (!made && mode != MADE_FILE))
		return false;
	fd = open_entry(parent, name, O_RDONLY | O_NONBLOCK, 0);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return got == (ssize_t)strlen(n->text) && memcmp(text, n->text, (size_t)got) == 0;
}

static void remove_entry(int dir, const struct project_entry *n, bool made)
{
	const char *name;
	autoclose int parent = open_parent(dir, n->path, &name);

	/* a directory with something in it stays */
	if (parent >= 0 && looks_made(parent, name, n, made))
		unlinkat(parent, name, is_made_directory(n) ? AT_REMOVEDIR : 0);
}

/* ---- the folder ---------------------------------------------------------------------------- */

static bool has_directory(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

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
	if (has_directory(dir, "refs") && has_directory(dir, "objects"))
		return err_set(e, ERR_DENIED,
			       "this folder has refs and objects, so a sandbox that may write it "
			       "could make it a repository whose configuration git obeys; rw-all "
			       "gives it so");
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

/* Makes it where it is missing. An entry is kept that is there then. */
static int hold_entry(struct project *p, size_t i, const struct stat *owner, bool again)
{
	const struct project_entry *n = &project_entries[i];
	const uint64_t bit = UINT64_C(1) << i;
	bool made = false;
	const char *name;
	autoclose int parent = -1;

	if (n->otherwise && p->kept & bit >> 1)
		return 0;
	if (make_entry(p->lock, n, owner, again, &made) < 0)
		return -1;
	if (made)
		p->made |= bit;
	parent = open_parent(p->lock, n->path, &name);
	if (parent >= 0 && faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (!n->bare || looks_made(parent, name, n, made)))
		p->kept |= bit;
	return 0;
}

int project_hold(struct project *p, int dir, const struct stat *st, struct err *e)
{
	int lock = open_entry(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	bool is_home;

	if (lock < 0)
		return err_sys(e, errno, "open the folder");
	*p = PROJECT_INIT;
	p->lock = lock;
	if (lock_folder(lock) < 0)
		return err_set(e, ERR_CONFLICT, "another program has locked this folder");
	if (check_entries(lock, &is_home, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (project_entries[i].of_home && !is_home)
			continue;
		if (hold_entry(p, i, st, false) == 0)
			continue;
		if (project_entries[i].missing == BECOMES_SOCKET && errno != ENOSPC)
			return err_set(e, ERR_UNSUPPORTED,
				       "this file system makes no socket (%s), without which a "
				       "sandbox could make the folder a repository whose "
				       "configuration git obeys; rw-all gives it so",
				       strerror(errno));
		return err_sys(e, errno, "keep %s as it is", project_entries[i].path);
	}
	return 0;
}

int project_hold_again(struct project *p)
{
	struct stat st;

	if (fstat(p->lock, &st) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (p->kept >> i & 1 && hold_entry(p, i, &st, true) < 0)
			return -1;
	}
	return 0;
}

bool project_keeps(const struct project *p, bool in_git, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const char *path = project_entries[i].path;
		const char *slash = strchr(path, '/');

		/* some file systems ignore case */
		if (p->kept >> i & 1 && in_git == (slash != NULL) &&
		    strcasecmp(slash ? slash + 1 : path, name) == 0)
			return true;
	}
	return false;
}

void project_release(struct project *p)
{
	if (p->lock >= 0 && flock(p->lock, LOCK_EX | LOCK_NB) == 0) {
		for (size_t i = ARRAY_LEN(project_entries); i-- > 0;)
			remove_entry(p->lock, &project_entries[i], p->made >> i & 1);
	}
	close_fd(&p->lock);
	close_fd(&p->tree);
}

/* Whether the .git at dir is a repository of which nothing is missing that is sealed by itself. One
 * that the host has put there since may have less. */
static bool may_open(int dir, uint64_t kept)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];
		const char *slash = strchr(n->path, '/');

		if (slash &&
		    (!(kept >> i & 1) || faccessat(dir, slash + 1, F_OK, AT_SYMLINK_NOFOLLOW) < 0))
			return false;
	}
	return is_repository(dir);
}

static int seal_entry(int tree, const struct project_entry *n, uint64_t kept, bool again)
{
	autoclose int at = open_entry(tree, n->path, O_PATH | O_NOFOLLOW, 0);
	autoclose int copy = -1;
	struct stat st;

	if (at < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	if (again && mount_stands_on(at, ""))
		return 0;
	if (fstat(at, &st) < 0)
		return -1;
	if (S_ISLNK(st.st_mode)) {
		errno = ELOOP; /* what it leads to could be written */
		return -1;
	}
	copy = mount_copy(at, "", true);
	if (copy < 0)
		return -1;
	if (!(n->open && S_ISDIR(st.st_mode) && may_open(at, kept)) &&
	    mount_setattr_tree(copy, MOUNT_ATTR_RDONLY, -1) < 0)
		return -1;
	/* The host has replaced it meanwhile, which the watch tells. */
	return mount_attach(copy, at, "") == 0 || errno == ENOENT ? 0 : -1;
}

int project_seal(int tree, uint64_t kept, bool again)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (kept >> i & 1 && seal_entry(tree, &project_entries[i], kept, again) < 0)
			return -1;
	}
	return 0;
}
