/*
 * The directory of the last entry stays open, since archives are sorted by directory; removing
 * anything closes it. What this layer has made or whited out is remembered as 64-bit hashes of
 * (inode of the directory, name) under a secret key. An accidental collision is practically
 * impossible, and a deliberate one would only make the layer be refused.
 */
#include "base/folder.h"
#include "box/archive/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PATH_BYTES = 4000, DEPTH_MAX = 200, SEEN_FIRST = 4096 };

struct tree {
	int root;
	unsigned root_depth;
	struct tree_limits limits;
	struct tree_count count;
	/* made by this layer; a power of two, 0 is free */
	uint64_t *seen, key;
	size_t seen_n, seen_cap;
	/* the directory of the last entry */
	int dir; /* -1: none */
	uint64_t ino;
	char dir_path[PATH_BYTES + 1];
};

/* The destination of an entry; dir is borrowed from the tree. */
struct place {
	int dir;
	uint64_t ino;
	const char *name;
};

/* ---- what this layer has made ---------------------------------------------------------------- */

static uint64_t hash_of(const struct tree *t, uint64_t ino, const char *name)
{
	uint64_t h = t->key ^ (ino * 0x9e3779b97f4a7c15u);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 0x100000001b3u;
	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9u;
	h ^= h >> 32;
	return h ? h : 1;
}

static uint64_t *slot_of(uint64_t *table, size_t cap, uint64_t h)
{
	size_t at = h & (cap - 1);

	while (table[at] && table[at] != h)
		at = (at + 1) & (cap - 1);
	return &table[at];
}

static bool is_ours(const struct tree *t, uint64_t ino, const char *name)
{
	return *slot_of(t->seen, t->seen_cap, hash_of(t, ino, name)) != 0;
}

static int grow_seen(struct tree *t, struct err *e)
{
	size_t cap = t->seen_cap * 2;
	uint64_t *bigger = calloc(cap, sizeof(*bigger));

	if (!bigger)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < t->seen_cap; i++) {
		if (t->seen[i])
			*slot_of(bigger, cap, t->seen[i]) = t->seen[i];
	}
	free(t->seen);
	t->seen = bigger;
	t->seen_cap = cap;
	return 0;
}

/* Counts one more entry, and remembers it. */
static int add_entry(struct tree *t, uint64_t ino, const char *name, struct err *e)
{
	uint64_t h = hash_of(t, ino, name);

	if (t->count.entries >= t->limits.entries)
		return err_set(e, ERR_TOO_LARGE, "more than %llu files and directories",
			       (unsigned long long)t->limits.entries);
	if (t->seen_n * 2 >= t->seen_cap && grow_seen(t, e) < 0)
		return -1;
	t->count.entries++;
	t->seen_n++;
	*slot_of(t->seen, t->seen_cap, h) = h;
	return 0;
}

/* ---- the tree -------------------------------------------------------------------------------- */

int tree_open(int root, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
					   RESOLVE_NO_XDEV };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* The depth of an open directory; -1 with errno. */
static int depth_of(int fd)
{
	char path[64], at[PATH_MAX];
	int depth = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, at, sizeof(at));
	if (n < 0 || (size_t)n == sizeof(at)) {
		errno = n < 0 ? errno : ENAMETOOLONG;
		return -1;
	}
	for (ssize_t i = 0; i < n; i++)
		depth += at[i] == '/';
	return depth;
}

struct tree *tree_new(int root, const struct tree_limits *limits, const struct tree_count *count,
		      struct err *e)
{
	AUTO(tree_free) struct tree *t = calloc(1, sizeof(*t));
	int depth = depth_of(root);

	if (depth < 0) {
		err_sys(e, errno, "find where the image goes");
		return NULL;
	}
	if (t) {
		t->root = root;
		t->root_depth = (unsigned)depth;
		t->dir = -1;
		t->limits = *limits;
		t->count = *count;
		t->seen_cap = SEEN_FIRST;
		t->seen = calloc(t->seen_cap, sizeof(*t->seen));
	}
	if (!t || !t->seen || getrandom(&t->key, sizeof(t->key), 0) != sizeof(t->key)) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	return take_ptr(t);
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	close_fd(&t->dir);
	free(t->seen);
	free(t);
}

const struct tree_count *tree_count(const struct tree *t)
{
	return &t->count;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The path without "." and double slashes, "" for the root; -1 if it is invalid. */
static int tree_clean(struct str path, char ret[PATH_BYTES + 1], struct err *e)
{
	size_t n = 0;

	if (path.n == 0)
		return err_set(e, ERR_IMAGE, "a path has no bytes");
	if (path.n > PATH_BYTES)
		return err_set(e, ERR_TREE_DEEP, "%.*s…: a path over %d bytes", STR_CUT(path, 60),
			       PATH_BYTES);
	if (path.p[0] == '/')
		return err_set(e, ERR_IMAGE, "%.*s: an absolute path", STR_CUT(path, 100));
	for (size_t at = 0; at < path.n;) {
		const char *from = path.p + at;
		const char *slash = memchr(from, '/', path.n - at);
		struct str part = { from, slash ? (size_t)(slash - from) : path.n - at };

		at += part.n + 1;
		if (part.n == 0 || str_is(part, "."))
			continue;
		if (str_is(part, "..") || memchr(part.p, 0, part.n))
			return err_set(e, ERR_IMAGE, "%.*s: a path with \"..\"",
				       STR_CUT(path, 100));
		if (part.n > NAME_MAX)
			return err_set(e, ERR_IMAGE, "%.*s…: a name over %d bytes",
				       STR_CUT(part, 100), NAME_MAX);
		if (n > 0)
			ret[n++] = '/';
		memcpy(ret + n, part.p, part.n);
		n += part.n;
	}
	ret[n] = '\0';
	return (int)n;
}

static int bad_way(const char *path, int errnum, struct err *e)
{
	if (errnum == EEXIST || errnum == ENOENT)
		return err_set(e, ERR_IMAGE, "%.100s: through a link that leads nowhere", path);
	if (errnum == ENOTDIR || errnum == ELOOP || errnum == EXDEV)
		return err_set(e, ERR_IMAGE, "%.100s: through what is no directory", path);
	return err_sys(e, errnum, "enter %.100s", path);
}

static int too_deep(const char *path, struct err *e)
{
	return err_set(e, ERR_TREE_DEEP, "%.60s…: over %d directories inside each other", path,
		       DEPTH_MAX);
}

/* Whether an open directory is at least n below the root; true if that is unknown. */
static bool is_below(const struct tree *t, int fd, unsigned n)
{
	int depth = depth_of(fd);

	return depth < 0 || (unsigned)depth >= t->root_depth + n;
}

static int inode_of(int fd, uint64_t *ret_ino)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	*ret_ino = st.st_ino;
	return 0;
}

/* Makes the missing directories of the path. Checks each depth first: a directory that is too deep
 * could not be removed later. */
static int make_way(struct tree *t, const char *path, struct err *e)
{
	autoclose int above = tree_open(t->root, ".", O_PATH | O_DIRECTORY);
	char part[PATH_BYTES + 1];
	uint64_t ino;

	for (const char *at = path, *end; *at; at = *end ? end + 1 : end) {
		int there;

		end = strchrnul(at, '/');
		snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
		there = tree_open(t->root, part, O_PATH | O_DIRECTORY);
		if (there < 0 && errno == ENOENT) {
			snprintf(part, sizeof(part), "%.*s", (int)(end - at), at);
			if (is_below(t, above, DEPTH_MAX))
				return too_deep(path, e);
			if (inode_of(above, &ino) < 0 || mkdirat(above, part, 0755) < 0)
				return bad_way(path, errno, e);
			if (add_entry(t, ino, part, e) < 0)
				return -1;
			there = openat(above, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		if (there < 0)
			return bad_way(path, errno, e);
		close_fd(&above);
		above = there;
	}
	return 0;
}

/* Makes this the current directory for entries. */
static int go_to(struct tree *t, const char *path, bool make, struct err *e)
{
	const char *at = *path ? path : ".";

	close_fd(&t->dir);
	t->dir = tree_open(t->root, at, O_PATH | O_DIRECTORY);
	if (t->dir < 0 && errno == ENOENT && make) {
		if (make_way(t, path, e) < 0)
			return -1;
		t->dir = tree_open(t->root, at, O_PATH | O_DIRECTORY);
	}
	if (t->dir < 0 && !make && errno == ENOENT)
		return err_set(e, ERR_PATH_NOT_FOUND, "%.100s is not there", path);
	if (t->dir < 0)
		return bad_way(path, errno, e);
	if (is_below(t, t->dir, DEPTH_MAX + 1) || inode_of(t->dir, &t->ino) < 0) {
		close_fd(&t->dir);
		return too_deep(path, e);
	}
	snprintf(t->dir_path, sizeof(t->dir_path), "%s", path);
	return 0;
}

/* Splits the cleaned path into directory and name, and opens the directory. */
static int find_place(struct tree *t, char *path, bool make, struct place *ret, struct err *e)
{
	char *slash = strrchr(path, '/');
	const char *dir = slash ? path : "";

	if (slash)
		*slash = '\0';
	if ((t->dir < 0 || strcmp(dir, t->dir_path) != 0) && go_to(t, dir, make, e) < 0)
		return -1;
	*ret = (struct place){ t->dir, t->ino, slash ? slash + 1 : path };
	return 0;
}

/* ---- taking away ----------------------------------------------------------------------------- */

static int prune(struct tree *t, int dir, uint64_t ino, const char *name);

/* Removes what other layers put into a directory. 1: something is left. */
static int prune_below(struct tree *t, int dir, const char *name)
{
	autofolder struct folder f = folder_at(dir, name);
	int left = 0, more = 0;
	uint64_t ino;

	if (!f.d || inode_of(folder_fd(&f), &ino) < 0)
		return -1;
	while (left >= 0 && (more = folder_next(&f)) > 0) {
		int kept = prune(t, folder_fd(&f), ino, f.entry->d_name);

		left = kept < 0 ? -1 : left | kept;
	}
	return more < 0 ? -1 : left;
}

/* Removes an entry, except what this layer has made. 1: something is left; -1 with errno. */
static int prune(struct tree *t, int dir, uint64_t ino, const char *name)
{
	bool ours = is_ours(t, ino, name);
	struct stat st;
	int left;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(st.st_mode))
		return ours ? 1 : unlinkat(dir, name, 0);
	left = prune_below(t, dir, name);
	return left < 0 ? -1 : ours || left ? 1 : unlinkat(dir, name, AT_REMOVEDIR);
}

static int tree_remove_entry(void *arg, int dir, const struct dirent *entry)
{
	return tree_remove(dir, entry->d_name);
}

int tree_remove(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	return folder_each(dir, name, tree_remove_entry, NULL) < 0
		     ? -1
		     : unlinkat(dir, name, AT_REMOVEDIR);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int twice(const char *name, struct err *e)
{
	return err_set(e, ERR_IMAGE, "%.100s: a layer has it twice, and not as directories", name);
}

/* Finds the place of a new entry and clears it. 1: a directory exists, which a new one only
 * changes. */
static int make_place(struct tree *t, struct str path, bool is_dir, char text[PATH_BYTES + 1],
		      struct place *at, struct err *e)
{
	struct stat st;
	int left;

	left = tree_clean(path, text, e);
	if (left <= 0)
		return left < 0 ? -1
				: err_set(e, ERR_IMAGE, "an entry takes the place of the root");
	if (find_place(t, text, true, at, e) < 0)
		return -1;
	if (fstatat(at->dir, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return err_sys(e, errno, "look at %.100s", at->name);
		return add_entry(t, at->ino, at->name, e);
	}
	if (S_ISDIR(st.st_mode) && is_dir)
		return add_entry(t, at->ino, at->name, e) < 0 ? -1 : 1;
	if (is_ours(t, at->ino, at->name))
		return twice(at->name, e);
	left = prune(t, at->dir, at->ino, at->name);
	if (left < 0)
		return err_sys(e, errno, "replace %.100s", at->name);
	return left ? twice(at->name, e) : add_entry(t, at->ino, at->name, e);
}

/* The removed entry may be an ancestor of the open directory. */
static int tree_done(struct tree *t)
{
	close_fd(&t->dir);
	return 0;
}

int tree_dir(struct tree *t, struct str path, uint32_t mode, struct err *e)
{
	char text[PATH_BYTES + 1];
	autoclose int fd = -1;
	struct place at;
	int there = tree_clean(path, text, e);

	if (there <= 0)
		return there; /* the root is always ours */
	there = make_place(t, path, true, text, &at, e);
	if (there < 0)
		return -1;
	if (!there && mkdirat(at.dir, at.name, 0700) < 0)
		return err_sys(e, errno, "make the directory %.100s", at.name);
	fd = openat(at.dir, at.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, (mode & 01777) | 0700) < 0)
		return err_sys(e, errno, "make the directory %.100s", at.name);
	return 0;
}

int tree_file(struct tree *t, struct str path, uint32_t mode, uint64_t size, struct err *e)
{
	char text[PATH_BYTES + 1];
	autoclose int fd = -1;
	struct place at;

	if (size > t->limits.bytes - t->count.bytes)
		return err_set(e, ERR_TOO_LARGE, "its files have more than %llu bytes",
			       (unsigned long long)t->limits.bytes);
	if (make_place(t, path, false, text, &at, e) < 0)
		return -1;
	t->count.bytes += size;
	fd = openat(at.dir, at.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fchmod(fd, mode & 0777) < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, errno, "make the file %.100s", at.name);
	return take_fd(&fd);
}

int tree_symlink(struct tree *t, struct str path, struct str target, struct err *e)
{
	char text[PATH_BYTES + 1], to[PATH_BYTES + 1];
	struct place at;

	if (target.n == 0 || target.n > PATH_BYTES || memchr(target.p, 0, target.n))
		return err_set(e, ERR_IMAGE, "a symbolic link has 1 to %d bytes", PATH_BYTES);
	memcpy(to, target.p, target.n);
	to[target.n] = '\0';
	if (make_place(t, path, false, text, &at, e) < 0)
		return -1;
	if (symlinkat(to, at.dir, at.name) < 0)
		return err_sys(e, errno, "make the link %.100s", at.name);
	return tree_done(t);
}

int tree_link(struct tree *t, struct str path, struct str target, struct err *e)
{
	char text[PATH_BYTES + 1], from[PATH_BYTES + 1];
	autoclose int dir = -1;
	struct place at, old;
	struct stat st;
	int n = tree_clean(target, from, e);

	if (n <= 0)
		return n < 0 ? -1 : err_set(e, ERR_IMAGE, "a hard link to the root");
	if (find_place(t, from, false, &old, e) < 0 ||
	    fstatat(old.dir, old.name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, ERR_IMAGE, "%.*s: a hard link to what is not there",
			       STR_CUT(path, 100));
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return err_set(e, ERR_IMAGE, "%.*s: a hard link to no file", STR_CUT(path, 100));
	dir = fcntl(old.dir, F_DUPFD_CLOEXEC, 3); /* opening another directory closes that one */
	if (dir < 0)
		return err_sys(e, errno, "make the link %.100s", old.name);
	if (make_place(t, path, false, text, &at, e) < 0)
		return -1;
	if (linkat(dir, old.name, at.dir, at.name, 0) < 0)
		return errno == ENOENT ? twice(at.name, e) /* it was a link to what it replaces */
				       : err_sys(e, errno, "make the link %.100s", at.name);
	return tree_done(t);
}

/* A missing path needs no whiteout. */
static int forgive(struct err *e)
{
	if (e->code != ERR_PATH_NOT_FOUND)
		return -1;
	*e = ERR_INIT;
	return 0;
}

/* Whether this is the first whiteout of its kind in this layer, which counts as an entry: a
 * whiteout scans what it removes, and a second scan would find nothing. `what` is a name that no
 * file can have. -1 with *e. */
static int first_time(struct tree *t, uint64_t ino, const char *what, struct err *e)
{
	if (is_ours(t, ino, what))
		return 0;
	return add_entry(t, ino, what, e) < 0 ? -1 : 1;
}

int tree_whiteout(struct tree *t, struct str path, struct err *e)
{
	char text[PATH_BYTES + 1], what[PATH_BYTES + 2];
	struct place at;
	int n = tree_clean(path, text, e), first;

	if (n <= 0)
		return n < 0 ? -1 : err_set(e, ERR_IMAGE, "a whiteout of the root");
	if (find_place(t, text, false, &at, e) < 0)
		return forgive(e);
	snprintf(what, sizeof(what), "/%s", at.name);
	first = first_time(t, at.ino, what, e);
	if (first <= 0)
		return first;
	if (prune(t, at.dir, at.ino, at.name) < 0)
		return err_sys(e, errno, "remove %.100s", at.name);
	return tree_done(t);
}

int tree_opaque(struct tree *t, struct str path, struct err *e)
{
	char text[PATH_BYTES + 1];
	int first;

	if (tree_clean(path, text, e) < 0)
		return -1;
	if (go_to(t, text, false, e) < 0)
		return forgive(e);
	first = first_time(t, t->ino, "/", e);
	if (first <= 0)
		return first;
	if (prune_below(t, t->dir, ".") < 0)
		return err_sys(e, errno, "empty %.100s", text);
	return tree_done(t);
}
