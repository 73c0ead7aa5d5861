/*
 * Copies a directory into the tree. Names are sorted. The digest covers, for each entry, a line of
 * kind, mode, size and path with a NUL after it, then the contents or the link's target. Hard links
 * are preserved: the first name of a file is the file, its other names are links to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/folder.h"
#include "box/archive/internal.h"

enum { PATH_BYTES = 4000, NAMES_MAX = 1 << 20, BLOCK = 128 * 1024 };

/* Limits for files with several names. Beyond the first, which takes some megabytes, each name
 * becomes a file of its own. The second limits the names of one file, since the target's file
 * system may allow fewer than the source's (ext4: 65000). */
enum { LINKS_MAX = 1 << 15, LINK_SLOTS = 2 * LINKS_MAX, NAMES_OF_ONE = 32000 };

struct first_name {
	dev_t dev;
	ino_t ino;
	/* also identify a file, where inode numbers are not unique (FUSE, NFS) */
	off_t size;
	struct timespec mtime;
	unsigned names;
	char *path; /* owned; NULL: the slot is free */
};

struct copying {
	const struct unpack *u;
	struct tree *to;
	int root; /* open top if existing directories stay unchanged; else -1 */
	struct hash *digest;
	struct err *e;
	size_t n_links;
	struct first_name links[LINK_SLOTS];
	size_t n; /* of path */
	char path[PATH_BYTES + NAME_MAX + 2];
	char block[BLOCK];
};

static void copying_free(struct copying *c)
{
	for (size_t i = 0; c && i < LINK_SLOTS; i++)
		free(c->links[i].path);
	free(c);
}
AUTO_DEFINE(copying_free, struct copying)

static struct str path_of(const struct copying *c)
{
	return (struct str){ c->path, c->n };
}

static void unpack_copy_tell(struct copying *c, char kind, unsigned mode, uint64_t size)
{
	char head[64];
	int n = snprintf(head, sizeof(head), "%c %o %llu ", kind, mode, (unsigned long long)size);

	hash_add(c->digest, head, (size_t)n);
	hash_add(c->digest, c->path, c->n + 1);
}

static int copy_open(struct copying *c, int in, const struct stat *st)
{
	uint64_t left = (uint64_t)st->st_size;
	autoclose int out = -1;

	unpack_copy_tell(c, 'f', st->st_mode & 0777, left);
	out = tree_file(c->to, path_of(c), st->st_mode, left, c->e);
	if (out < 0)
		return -1;
	while (left > 0) {
		ssize_t n = read(in, c->block, left < BLOCK ? (size_t)left : BLOCK);

		if (n <= 0 || fd_write(out, c->block, (size_t)n) < 0)
			return err_sys(c->e, n == 0 ? EBUSY : errno, "copy %.100s", c->path);
		hash_add(c->digest, c->block, (size_t)n);
		left -= (uint64_t)n;
	}
	return unpack_set_time(out, st->st_mtime) < 0
		     ? err_sys(c->e, errno, "set the time of %.100s", c->path)
		     : 0;
}

static bool is_same(const struct first_name *l, const struct stat *st)
{
	return l->ino == st->st_ino && l->dev == st->st_dev && l->size == st->st_size &&
	       l->mtime.tv_sec == st->st_mtim.tv_sec && l->mtime.tv_nsec == st->st_mtim.tv_nsec;
}

static struct first_name *find_link(struct copying *c, const struct stat *st)
{
	size_t at = (size_t)(st->st_ino * 0x9e3779b97f4a7c15u >> 32) % LINK_SLOTS;

	while (c->links[at].path && !is_same(&c->links[at], st))
		at = (at + 1) % LINK_SLOTS;
	return &c->links[at];
}

/* 1: it is another name of a file that was copied. */
static int copy_name(struct copying *c, const struct stat *st)
{
	struct first_name *l = st->st_nlink > 1 ? find_link(c, st) : NULL;

	if (!l || (!l->path && c->n_links == LINKS_MAX))
		return 0;
	if (l->path && l->names < NAMES_OF_ONE) {
		l->names++;
		unpack_copy_tell(c, 'h', 0777, strlen(l->path));
		hash_add(c->digest, l->path, strlen(l->path));
		return tree_link(c->to, path_of(c), str_of(l->path), c->e) < 0 ? -1 : 1;
	}
	c->n_links += !l->path;
	free(l->path);
	*l = (struct first_name){ st->st_dev,  st->st_ino, st->st_size,
				  st->st_mtim, 1,	   strdup(c->path) };
	return l->path ? 0 : err_set(c->e, ERR_LIMIT, "out of memory");
}

static int copy_file(struct copying *c, int dir, const char *name)
{
	autoclose int in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int named;

	if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return err_sys(c->e, in < 0 ? errno : EINVAL, "open %.100s", c->path);
	named = copy_name(c, &st);
	return named ? (named < 0 ? -1 : 0) : copy_open(c, in, &st);
}

static int copy_link(struct copying *c, int dir, const char *name)
{
	char target[PATH_BYTES + 1];
	ssize_t n = readlinkat(dir, name, target, sizeof(target));

	if (n < 0)
		return err_sys(c->e, errno, "read the link %.100s", c->path);
	unpack_copy_tell(c, 'l', 0777, (uint64_t)n);
	hash_add(c->digest, target, (size_t)n);
	return tree_symlink(c->to, path_of(c), (struct str){ target, (size_t)n }, c->e);
}

static int copy_below(struct copying *c, int dir, const char *name);

/* An existing directory stays unchanged. Links in its path are followed, the last part too. */
static int copy_dir(struct copying *c, uint32_t mode)
{
	autoclose int there = c->root < 0 ? -1 : tree_open(c->root, c->path, O_PATH | O_DIRECTORY);

	unpack_copy_tell(c, 'd', mode & 01777, 0);
	return there >= 0 ? 0 : tree_dir(c->to, path_of(c), mode, c->e);
}

/* Checks a path below against the patterns, as c->path in the folder that has them. */
static bool ask_ignore(const struct copying *c,
		       bool (*ask)(const struct ignore *g, struct str path))
{
	size_t above = c->u->at.n ? c->u->at.n + 1 : 0;
	struct str below = str_is(c->u->below, ".") ? STR_LIT("") : c->u->below;
	char path[PATH_MAX + sizeof(c->path)]; /* `below` was opened: it is shorter than PATH_MAX */
	int n = snprintf(path, sizeof(path), "%.*s%s%s", STR_ARG(below), below.n ? "/" : "",
			 c->path + above);

	return ask(c->u->ignore, (struct str){ path, (size_t)n });
}

static int copy_entry(struct copying *c, int dir, const char *name)
{
	bool left_out = c->u->ignore && ask_ignore(c, ignore_has);
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(c->e, errno, "look at %.100s", c->path);
	if (S_ISDIR(st.st_mode)) {
		/* one that is left out is still created if something in it is not */
		if (left_out && !ask_ignore(c, ignore_has_exceptions))
			return 0;
		if (!left_out && copy_dir(c, st.st_mode) < 0)
			return -1;
		return copy_below(c, dir, name);
	}
	if (left_out)
		return 0;
	if (S_ISREG(st.st_mode))
		return copy_file(c, dir, name);
	if (S_ISLNK(st.st_mode))
		return copy_link(c, dir, name);
	if (strncmp(c->path, "dev/", 4) == 0)
		return 0; /* below /dev every sandbox has its own */
	return err_set(c->e, ERR_IMAGE, "%.100s: neither a file nor a directory nor a link",
		       c->path);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char **p;
	size_t n, cap;
};

static int read_names(struct copying *c, int fd, struct names *ret)
{
	autofolder struct folder f = folder_take(fd);
	int rc = 0, found = 0;

	while (rc == 0 && (found = folder_next(&f)) > 0) {
		if (ret->n == ret->cap) {
			size_t cap = ret->cap ? ret->cap * 2 : 64;
			char **more = cap > NAMES_MAX ? NULL : realloc(ret->p, cap * sizeof(*more));

			if (!more) {
				rc = err_set(c->e, ERR_TOO_LARGE,
					     "%.100s: too many names in one directory", c->path);
				break;
			}
			ret->p = more;
			ret->cap = cap;
		}
		ret->p[ret->n] = strdup(f.entry->d_name);
		rc = ret->p[ret->n] ? 0 : err_set(c->e, ERR_LIMIT, "out of memory");
		ret->n += rc == 0;
	}
	if (found < 0)
		return err_sys(c->e, f.errnum, "read %.100s", c->path);
	if (rc == 0 && ret->n > 0)
		qsort(ret->p, ret->n, sizeof(*ret->p), by_name);
	return rc;
}

static int copy_names(struct copying *c, int dir, const struct names *names)
{
	const size_t above = c->n;

	for (size_t i = 0; i < names->n; i++) {
		if (above > PATH_BYTES)
			return err_set(c->e, ERR_TREE_DEEP, "%.60s…: a path over %d bytes", c->path,
				       PATH_BYTES);
		c->n = above + (size_t)snprintf(c->path + above, sizeof(c->path) - above, "%s%s",
						above ? "/" : "", names->p[i]);
		if (copy_entry(c, dir, names->p[i]) < 0)
			return -1;
	}
	c->path[above] = '\0';
	c->n = above;
	return 0;
}

static int copy_below(struct copying *c, int dir, const char *name)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int list = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	struct names names = { 0 };
	int rc;

	if (list < 0)
		return err_sys(c->e, errno, "open %.100s", c->path);
	rc = read_names(c, list, &names);
	if (rc == 0)
		rc = copy_names(c, fd, &names);
	for (size_t i = 0; i < names.n; i++)
		free(names.p[i]);
	free(names.p);
	return rc;
}

int unpack_copy(const struct unpack *u, struct tree *to, struct hash *digest, struct err *e)
{
	AUTO(copying_free) struct copying *c = calloc(1, sizeof(*c));
	struct stat st;

	if (!c)
		return err_set(e, ERR_LIMIT, "out of memory");
	c->u = u;
	c->to = to;
	c->root = u->merge ? u->to : -1;
	c->digest = digest;
	c->e = e;
	if (u->at.n > PATH_BYTES)
		return err_set(e, ERR_TREE_DEEP, "a path over %d bytes", PATH_BYTES);
	if (u->at.n)
		memcpy(c->path, u->at.p, u->at.n);
	c->n = u->at.n;
	if (fstat(u->from, &st) < 0)
		return err_sys(e, errno, "look at what is copied");
	if (u->mode)
		st.st_mode = (st.st_mode & S_IFMT) | u->mode;
	if (S_ISREG(st.st_mode))
		return copy_open(c, u->from, &st);
	if (c->n > 0 && copy_dir(c, st.st_mode) < 0)
		return -1;
	return copy_below(c, u->from, ".");
}
