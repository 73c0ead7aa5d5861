#include "box/warden/project.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/archive/tar_tree.h"
#include "box/warden/held_find.h"
#include "box/warden/internal.h"
#include "box/wire/project.h"

static_assert(ARRAY_LEN(project_entries) <= 64, "a bit of struct project for each");

/* Tells what another warden made, which was killed, from what the user has: nobody else sets the
 * sticky bit on such a thing. File systems without modes don't tell. */
enum { MADE_DIRECTORY = 01755, MADE_FILE = 01444, MADE_BARRIER = TREE_BARRIER };

enum { LOCK_TRIES = 20, LOCK_PAUSE_NS = 500 * 1000, TEXT_MAX = 8 };

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
	return held_open(dir, above, O_PATH | O_DIRECTORY, 0);
}

/* ---- what is made -------------------------------------------------------------------------- */

static int make_file(int parent, const char *name, const char *text)
{
	autoclose int fd = held_open(parent, name, O_WRONLY | O_CREAT | O_EXCL, 0444);
	ssize_t n = (ssize_t)strlen(text);

	return fd < 0 || write(fd, text, (size_t)n) != n || fchmod(fd, MADE_FILE) < 0 ? -1 : 0;
}

/* mkdir(2) leaves the sticky bit to the file system. By now the name may be that of something else,
 * which a sandbox has put there. */
static int make_directory(int parent, const char *name, mode_t mode)
{
	autoclose int fd = -1;
	struct stat st;

	if (mkdirat(parent, name, mode & 0777) < 0)
		return -1;
	fd = held_open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (st.st_uid != geteuid()) {
		errno = EEXIST;
		return -1;
	}
	return fchmod(fd, mode);
}

/* In a user namespace of the user's own, its root is that user. */
static int make_barrier(int parent, const char *name, const struct stat *owner)
{
	struct stat st;

	if (owner->st_uid != 0 || warden.host.rootless) {
		if (make_directory(parent, name, MADE_BARRIER) < 0 ||
		    fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
		if (!(st.st_mode & 0111))
			return 0;
		unlinkat(parent, name, AT_REMOVEDIR); /* this file system keeps no modes */
	}
	return mknodat(parent, name, S_IFSOCK | MADE_FILE, 0);
}

/* again: somebody may have removed the HEAD, too. */
static int make_entry(struct project *p, const struct project_entry *n, const char *path,
		      const struct held_from *from, bool again, bool *ret_made)
{
	const char *name;
	autoclose int parent = open_parent(p->lock, path, &name);
	struct stat st;
	int failed;

	*ret_made = false;
	if (parent < 0) /* .git is a file, as in a worktree, or a link */
		return errno == ENOTDIR || errno == ENOENT || errno == ELOOP ? 0 : -1;
	if (!again && strchr(path, '/') && !is_repository(parent))
		return 0; /* all of it is read-only */
	if (n->missing == STAYS_MISSING || (!again && !held_is_needed(from, ".", n)))
		return 0;
	if (n->missing == BECOMES_FILE)
		failed = make_file(parent, name, n->text);
	else if (n->missing == BECOMES_BARRIER)
		failed = make_barrier(parent, name, from->owner);
	else
		failed = make_directory(parent, name, MADE_DIRECTORY);
	if (failed < 0)
		return errno == EEXIST || errno == EROFS ? 0 : -1;
	*ret_made = true;
	p->modeless |= fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		       !(st.st_mode & S_ISVTX);
	(void)!fchownat(parent, name, from->owner->st_uid, from->owner->st_gid,
			AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* sure: by this warden, so the mode need not tell. */
static bool looks_made(int parent, const char *name, const struct project_entry *n, bool sure)
{
	char text[TEXT_MAX];
	autoclose int fd = -1;
	struct stat st;
	mode_t mode;
	ssize_t got;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	mode = st.st_mode & 07777;
	if (n->missing == BECOMES_DIRECTORY)
		return S_ISDIR(st.st_mode) && (sure || mode == MADE_DIRECTORY);
	if (n->missing == BECOMES_BARRIER)
		return S_ISDIR(st.st_mode)
			     ? (mode | S_ISVTX) == MADE_BARRIER
			     : S_ISSOCK(st.st_mode) && (sure || (mode | S_ISVTX) == MADE_FILE);
	if (!S_ISREG(st.st_mode) || (!sure && mode != MADE_FILE))
		return false;
	fd = held_open(parent, name, O_RDONLY | O_NONBLOCK, 0);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text));
	return got == (ssize_t)strlen(n->text) && memcmp(text, n->text, (size_t)got) == 0;
}

static void remove_entry(const struct project *p, size_t i)
{
	const struct project_entry *n = &project_entries[i];
	const char *path = project_path(n, p->is_git), *name;
	/* a directory that the host has put in its place meanwhile is the host's */
	bool sure = p->made >> i & 1 && (n->missing != BECOMES_DIRECTORY || p->modeless);
	autoclose int parent = -1;

	if (!path || n->missing == STAYS_MISSING)
		return;
	parent = open_parent(p->lock, path, &name);
	if (parent < 0 || !looks_made(parent, name, n, sure))
		return;
	if (n->missing != BECOMES_DIRECTORY && unlinkat(parent, name, 0) == 0)
		return;
	/* a directory with something in it stays, and is then its owner's */
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno == ENOTEMPTY)
		(void)!fchmodat(parent, name, MADE_DIRECTORY & 0777, 0);
}

/* ---- the folder ---------------------------------------------------------------------------- */

static bool has_directory(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_mode & 07777) != MADE_BARRIER;
}

/* Whether it has what a home has. */
static bool is_home(int dir)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];

		if (n->of_home && faccessat(dir, n->path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

/* By a name that is there in small letters. */
static bool folds_case(int dir, bool is_git)
{
	struct stat small, large;

	return fstatat(dir, is_git ? "commondir" : ".git", &small, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstatat(dir, is_git ? "COMMONDIR" : ".GIT", &large, AT_SYMLINK_NOFOLLOW) == 0 &&
	       small.st_ino == large.st_ino;
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
static int hold_entry(struct project *p, size_t i, const struct held_from *from, bool again)
{
	const struct project_entry *n = &project_entries[i];
	const char *path = project_path(n, p->is_git), *name;
	const uint64_t bit = UINT64_C(1) << i;
	bool made = false;
	autoclose int parent = -1;

	if (!path || (n->otherwise && p->kept & bit >> 1))
		return 0;
	if (make_entry(p, n, path, from, again, &made) < 0)
		return -1;
	if (made)
		p->made |= bit;
	parent = open_parent(p->lock, path, &name);
	if (parent >= 0 && faccessat(parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (!n->bare || looks_made(parent, name, n, made)))
		p->kept |= bit;
	return 0;
}

static int hold_entries(struct project *p, const struct held_from *from, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (project_entries[i].of_home && !from->is_home)
			continue;
		if (hold_entry(p, i, from, false) == 0)
			continue;
		if (project_entries[i].missing == BECOMES_BARRIER && errno != ENOSPC)
			return err_set(e, ERR_UNSUPPORTED,
				       "this file system makes no socket (%s), without which a "
				       "sandbox could make the folder a repository whose "
				       "configuration git obeys; rw-all gives it so",
				       strerror(errno));
		return held_fail(e, project_entries[i].path);
	}
	return 0;
}

/* first: makes what is missing of the fixed list. */
static int project_look(struct project *p, bool first, struct err *e)
{
	autoclose int root = open("/h", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char home[WIRE_PATH_MAX];
	struct stat st;
	const struct held_from from = {
		.top = p->lock,
		.root = root,
		.host = p->of.host,
		.home = home,
		.is_git = p->is_git,
		.is_home = !p->is_git && is_home(p->lock),
		.owner = &st,
		.has = p->of.has,
		.data = p->of.data,
	};

	if (root < 0 || fstat(p->lock, &st) < 0)
		return err_sys(e, errno, "look at the folder");
	held_find_home(root, &st, home);
	if (first && hold_entries(p, &from, e) < 0)
		return -1;
	if (p->is_git && !held_has_worktree(&from))
		return err_set(e, ERR_DENIED,
			       "this folder has refs and objects, so a sandbox that may write it "
			       "could make it a repository whose configuration git obeys; rw-all "
			       "gives it so");
	return held_find(&p->held, &from, e);
}

int project_look_again(struct project *p, struct err *e)
{
	return project_look(p, false, e);
}

int project_hold(struct project *p, int dir, struct err *e)
{
	p->lock = held_open(dir, ".", O_RDONLY | O_DIRECTORY, 0);
	if (p->lock < 0)
		return err_sys(e, errno, "open the folder");
	if (lock_folder(p->lock) < 0)
		return err_set(e, ERR_CONFLICT, "another program has locked this folder");
	p->is_git = has_directory(p->lock, "refs") && has_directory(p->lock, "objects");
	if (project_look(p, true, e) < 0)
		return -1;
	p->folds = folds_case(p->lock, p->is_git);
	p->repositories = left_repositories(p->lock);
	p->hidden = left_hidden(p, p->lock);
	clock_gettime(CLOCK_REALTIME_COARSE, &p->since); /* as file systems have it */
	return 0;
}

bool project_is_state(const char *path)
{
	const char *slash = strrchr(path, '/');

	for (size_t i = 0; slash && i < ARRAY_LEN(project_entries); i++) {
		if (project_entries[i].state && strcmp(slash + 1, project_entries[i].path) == 0)
			return true;
	}
	return false;
}

bool project_is_new(const struct project *p, const struct stat *st)
{
	return st->st_ctim.tv_sec > p->since.tv_sec ||
	       (st->st_ctim.tv_sec == p->since.tv_sec && st->st_ctim.tv_nsec >= p->since.tv_nsec);
}

int project_hold_again(struct project *p)
{
	struct stat st;
	const struct held_from from = { .owner = &st };

	if (fstat(p->lock, &st) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (p->kept >> i & 1 && hold_entry(p, i, &from, true) < 0)
			return -1;
	}
	return 0;
}

bool project_is_removed(const struct project *p)
{
	struct stat st;

	return fstat(p->lock, &st) == 0 && st.st_nlink == 0;
}

bool project_keeps(const struct project *p, bool in_git, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const char *path = project_path(&project_entries[i], p->is_git);
		const char *slash = path ? strchr(path, '/') : NULL;

		if (p->kept >> i & 1 && path && in_git == (slash != NULL) &&
		    (p->folds ? strcasecmp : strcmp)(slash ? slash + 1 : path, name) == 0)
			return true;
	}
	return false;
}

void project_release(struct project *p)
{
	if (p->lock >= 0 && flock(p->lock, LOCK_EX | LOCK_NB) == 0) {
		for (size_t i = ARRAY_LEN(project_entries); i-- > 0;)
			remove_entry(p, i);
		held_remove(&p->held, p->lock);
	}
	if (p->lock >= 0)
		flock(p->lock, LOCK_UN); /* a process that was just forked may have it, too */
	held_free(&p->held);
	close_fd(&p->lock);
	close_fd(&p->tree);
}

/* Whether the .git at dir is a repository of which nothing is missing that is sealed by itself. One
 * that the host has put there since may have less. */
static bool may_open(int dir, uint64_t kept)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];
		const char *name = project_path(n, true);

		if (name &&
		    (!(kept >> i & 1) || faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0))
			return false;
	}
	return is_repository(dir);
}

static int seal_entry(int tree, const struct project *p, size_t i, bool again)
{
	const struct project_entry *n = &project_entries[i];
	const char *path = project_path(n, p->is_git);
	autoclose int at = path ? held_open(tree, path, O_PATH | O_NOFOLLOW, 0) : -1;
	autoclose int copy = -1;
	struct stat st;

	if (!path)
		return 0;
	if (at < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
	if (again && mount_stands_on(at, ""))
		return 0;
	if (fstat(at, &st) < 0)
		return -1;
	/* a link is sealed itself, and by held.h what it leads to */
	copy = mount_copy(at, "", true);
	if (copy < 0)
		return -1;
	if (!(n->open && S_ISDIR(st.st_mode) && may_open(at, p->kept)) &&
	    mount_setattr_tree(copy, MOUNT_ATTR_RDONLY, -1) < 0)
		return -1;
	/* The host has replaced it meanwhile, which the watch tells. */
	return mount_attach(copy, at, "") == 0 || errno == ENOENT ? 0 : -1;
}

int project_seal(const struct project *p, int tree, bool again)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		if (p->kept >> i & 1 && seal_entry(tree, p, i, again) < 0)
			return -1;
	}
	return held_seal(&p->held, tree, again);
}

/* Sealed names stay read-only. */
static int bar_open_entries(const struct project *p, bool bar)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];
		autoclose int at = -1;

		if (!n->open || !(p->kept >> i & 1))
			continue;
		at = held_open(p->tree, n->path, O_PATH | O_NOFOLLOW, 0);
		if (at >= 0 && mount_stands_on(at, "") && (bar || may_open(at, p->kept)) &&
		    mount_set_readonly(at, bar) < 0)
			return -1;
	}
	return 0;
}

int project_bar(struct project *p, bool bar)
{
	if (!bar && !p->barred)
		return 0;
	p->barred = true; /* or a part of it */
	if (mount_set_readonly(p->tree, bar) < 0 || bar_open_entries(p, bar) < 0 ||
	    held_bar(&p->held, p->tree, bar) < 0)
		return -1;
	p->barred = bar;
	return 0;
}
