#include "box/warden/held_find.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "box/archive/mount.h"
#include "box/wire/project.h"

/* Many have hundreds of submodules. Each path is a mount. */
enum { HELD_MAX = 4096, LINKS_MAX = 40, STEPS_MAX = 100000 };

/* A directory that is made: as its owner may fill it meanwhile, it is like any other but for the
 * sticky bit, by which one that a killed warden has left is known. */
enum { MADE_DIRECTORY = 01755, MADE_FILE = 01444 };

int held_open(int dir, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.mode = mode,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* ---- the list ------------------------------------------------------------------------------ */

static struct held_path *held_get(const struct held *h, const char *path)
{
	for (uint32_t i = 0; i < h->n; i++) {
		if (strcmp(h->v[i].path, path) == 0)
			return &h->v[i];
	}
	return NULL;
}

static int held_push(struct finder *f, const char *path, enum held_how how, uint64_t made)
{
	struct held *h = f->held;
	struct held_path *p = held_get(h, path);

	if (p) {
		if (p->how == HELD_PINNED)
			p->how = how; /* which may be the same */
		if (made)
			p->made = made;
		return 0;
	}
	if (h->n == HELD_MAX)
		return err_set(
			f->e, ERR_DENIED,
			"this folder has more than %d files and folders that git of the host "
			"acts on; rw-all gives it without protecting them",
			HELD_MAX);
	if (h->n == h->room) {
		uint32_t room = h->room ? 2 * h->room : 16;

		p = realloc(h->v, room * sizeof(*p));
		if (!p)
			return err_set(f->e, ERR_LIMIT, "out of memory");
		h->v = p;
		h->room = room;
	}
	p = &h->v[h->n];
	*p = (struct held_path){ .path = strdup(path), .how = how, .made = made, .watch = -1 };
	if (!p->path)
		return err_set(f->e, ERR_LIMIT, "out of memory");
	h->n++;
	return 0;
}

static bool is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* Whether the fixed list keeps it in its place. */
static bool is_listed(const struct finder *f, const char *path)
{
	for (uint32_t i = 0; i < f->held->n; i++) {
		if (f->held->v[i].how == HELD_OPEN && is_in(path, f->held->v[i].path))
			return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];
		const char *listed = n->bare || n->of_home ? NULL
							   : project_path(n, f->from->is_git);

		if (listed && (n->open ? strcmp(path, listed) == 0 : is_in(path, listed)))
			return true;
	}
	return false;
}

int held_add(struct finder *f, const char *path, enum held_how how, uint64_t made)
{
	char above[WIRE_PATH_MAX];

	for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(at - path), path);
		if (!is_listed(f, above) && held_push(f, above, HELD_PINNED, 0) < 0)
			return -1;
	}
	return held_push(f, path, how, made);
}

void held_free(struct held *h)
{
	for (uint32_t i = 0; i < h->n; i++)
		free(h->v[i].path);
	free(h->v);
	*h = (struct held){ .v = NULL };
}

bool held_has(const struct held *h, int watch, const char *name)
{
	for (uint32_t i = 0; i < h->n; i++) {
		const char *slash = strrchr(h->v[i].path, '/');

		if (h->v[i].watch == watch && strcmp(slash ? slash + 1 : h->v[i].path, name) == 0)
			return true;
	}
	return false;
}

/* ---- where a path leads -------------------------------------------------------------------- */

struct walk {
	char done[WIRE_PATH_MAX]; /* below the folder; "": the folder itself */
	char rest[WIRE_PATH_MAX];
	unsigned links;
	bool holds; /* what is on the way is held */
	enum missing missing;
};

/* The part of an absolute path that is below a folder; NULL: it is not. */
static const char *below(const char *path, const char *folder)
{
	for (;;) {
		size_t n;

		path += strspn(path, "/");
		folder += strspn(folder, "/");
		if (path[0] == '.' && (path[1] == '/' || !path[1])) {
			path++;
			continue;
		}
		n = strcspn(folder, "/");
		if (!n)
			return path;
		if (strcspn(path, "/") != n || strncmp(path, folder, n) != 0)
			return NULL;
		path += n;
		folder += n;
	}
}

int held_fail(struct err *e, const char *what)
{
	bool full = errno == ENOSPC || errno == EDQUOT;

	err_sys(e, errno, "keep %.100s as it is", what);
	if (!full)
		return -1;
	e->code = ERR_STORE_FULL;
	return err_wrap(e, "the file system of the folder that is given is full");
}

int held_too_long(struct finder *f)
{
	return err_set(f->e, ERR_DENIED,
		       "this repository's configuration is too long to be looked through; rw-all "
		       "gives the folder without that");
}

/* Bounds the time that lookups take. */
static int take_step(struct finder *f)
{
	return ++f->steps <= STEPS_MAX ? 0 : held_too_long(f);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether an absolute path leads into the folder by another name than its own. */
static int leads_in(struct finder *f, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct stat top, st, was = { .st_ino = 0 };
	char at[WIRE_PATH_MAX];
	autoclose int fd = -1;

	snprintf(at, sizeof(at), "%s", path);
	while ((fd = (int)syscall(SYS_openat2, f->from->root, at, &how, sizeof(how))) < 0) {
		char *slash = strrchr(at, '/');

		if (!slash || slash == at)
			return 0;
		*slash = '\0';
		if (take_step(f) < 0)
			return -1;
	}
	if (fstat(f->from->top, &top) < 0)
		return 1;
	/* a folder that is its own parent is the host's root */
	for (; fd >= 0 && fstat(fd, &st) == 0 && !is_same(&st, &was); was = st) {
		int above;

		if (is_same(&st, &top))
			return 1;
		if (take_step(f) < 0)
			return -1;
		above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close_fd(&fd);
		fd = above;
	}
	return 0;
}

/* 1: what is left is below the folder now; 0: it is outside. */
static int walk_from_root(struct finder *f, struct walk *w, const char *path)
{
	const char *inside = below(path, f->from->host);
	int leads = inside ? 0 : leads_in(f, path);
	char rest[WIRE_PATH_MAX];

	if (leads < 0)
		return -1;
	if (leads)
		return err_set(
			f->e, ERR_DENIED,
			"%s of this repository names something in this folder by a path that "
			"leads there by another name, which a sandbox that may write the "
			"folder could replace; rw-all gives it so",
			f->why);
	if (!inside)
		return 0;
	snprintf(rest, sizeof(rest), "%s", inside);
	memcpy(w->rest, rest, sizeof(rest));
	w->done[0] = '\0';
	return 1;
}

/* ~/REST, where the home is any folder above this one, or this one if it has what a home has. */
static int walk_from_home(struct finder *f, struct walk *w, const char *path)
{
	const char *rest = strchrnul(path, '/');
	const char *host = f->from->host;

	for (const char *at = host; at; at = strchr(at + 1, '/')) {
		size_t n = strlen(at);

		if (n > 1 && strncmp(rest, at, n) == 0 && (rest[n] == '/' || !rest[n])) {
			snprintf(w->rest, sizeof(w->rest), "%s", rest + n);
			return 1;
		}
	}
	if (!f->from->is_home)
		return 0;
	snprintf(w->rest, sizeof(w->rest), "%s", rest);
	return 1;
}

/* Puts path before what is left. 0: it leads out of the folder. */
static int walk_to(struct finder *f, struct walk *w, const char *base, const char *path)
{
	char whole[2 * WIRE_PATH_MAX + 2];

	if (*path == '/')
		snprintf(whole, sizeof(whole), "%s/%s", path, w->rest);
	else
		snprintf(whole, sizeof(whole), "%s/%s/%s", base, path, w->rest);
	if (strlen(whole) >= WIRE_PATH_MAX)
		return 0; /* nobody can open it */
	return walk_from_root(f, w, whole);
}

/* 0: it leads out of the folder. */
static int walk_up(struct finder *f, struct walk *w)
{
	char *slash = strrchr(w->done, '/');
	char above[WIRE_PATH_MAX];

	if (!w->done[0]) {
		snprintf(above, sizeof(above), "%s", f->from->host);
		slash = strrchr(above, '/');
		if (slash)
			*slash = '\0';
		return walk_to(f, w, above, ".");
	}
	*(slash ? slash : w->done) = '\0';
	return 1;
}

static int walk_link(struct finder *f, struct walk *w, int fd, const char *path)
{
	char target[WIRE_PATH_MAX], dir[2 * WIRE_PATH_MAX + 2];
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n <= 0)
		return 0;
	if (++w->links > LINKS_MAX)
		return 0; /* as for any program of the host */
	if (w->holds && held_add(f, path, HELD_SEALED, 0) < 0)
		return -1;
	target[n] = '\0';
	snprintf(dir, sizeof(dir), "%s/%s", f->from->host, w->done);
	return walk_to(f, w, dir, target);
}

static bool is_last(const struct walk *w)
{
	return w->rest[strspn(w->rest, "/")] == '\0';
}

/* Its owner may fill a directory that was made; then it stays. */
static int make_at(int parent, const char *name, bool is_dir, const struct stat *owner,
		   uint64_t *ret_made)
{
	autoclose int fd = -1;
	struct stat st;

	if (is_dir && mkdirat(parent, name, 0755) < 0)
		return errno == EEXIST ? 0 : -1;
	fd = held_open(parent, name, is_dir ? O_RDONLY | O_DIRECTORY : O_WRONLY | O_CREAT | O_EXCL,
		       is_dir ? 0 : MADE_FILE & 0777);
	if (fd < 0 || fstat(fd, &st) < 0)
		return !is_dir && errno == EEXIST ? 0 : -1;
	if (st.st_uid != geteuid()) { /* somebody has put something else there */
		errno = EEXIST;
		return -1;
	}
	if (fchmod(fd, is_dir ? MADE_DIRECTORY : MADE_FILE) < 0)
		return -1;
	(void)!fchown(fd, owner->st_uid, owner->st_gid);
	*ret_made = st.st_ino;
	return 0;
}

int held_make(struct finder *f, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	char above[WIRE_PATH_MAX] = ".";
	autoclose int parent = -1;
	uint64_t made = 0;

	if (slash)
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
	parent = held_open(f->from->top, above, O_PATH | O_DIRECTORY, 0);
	if (parent < 0 ||
	    make_at(parent, slash ? slash + 1 : path, is_dir, f->from->owner, &made) < 0) {
		if (errno == EROFS)
			return 0;
		return held_fail(f->e, path);
	}
	return held_add(f, path, HELD_SEALED, made);
}

static int walk_hold(struct finder *f, const struct walk *w, const char *path,
		     const struct stat *st, enum held_how how)
{
	bool left = how == HELD_SEALED &&
		    ((S_ISDIR(st->st_mode) && (st->st_mode & 07777) == MADE_DIRECTORY) ||
		     (S_ISREG(st->st_mode) && (st->st_mode & 07777) == MADE_FILE));

	return w->holds ? held_add(f, path, how, left ? st->st_ino : 0) : 0;
}

static enum place place_of(int top, const char *path)
{
	autoclose int fd = held_open(top, path, O_RDONLY | O_DIRECTORY, 0);
	char room[1024];
	long n;

	/* "." and ".." take 24 bytes each, and are part of what is told first */
	n = fd < 0 ? -1 : syscall(SYS_getdents64, fd, room, sizeof(room));
	return n >= 0 && n <= 48 ? PLACE_DIRECTORY : PLACE_FULL;
}

/* All of the path is done. */
static int walk_ends(struct finder *f, const struct walk *w)
{
	if (!w->holds)
		return 0;
	if (!w->done[0])
		return err_set(f->e, ERR_DENIED,
			       "%s of this repository names the folder itself, which a sandbox "
			       "that may write it could change; rw-all gives it so",
			       f->why);
	return held_add(f, w->done, HELD_SEALED, 0);
}

/* 1: go on; else it ends with *ret. */
static int walk_name(struct finder *f, struct walk *w, const char *name, enum place *ret)
{
	char path[WIRE_PATH_MAX];
	autoclose int fd = -1;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s%s%s", w->done, w->done[0] ? "/" : "", name) >=
	    (int)sizeof(path))
		return 0;
	fd = held_open(f->from->top, path, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0) {
		if (errno != ENOENT)
			return 0;
		*ret = PLACE_MISSING;
		if (!w->holds || !w->missing)
			return 0;
		return held_make(f, path, w->missing == MISSING_DIRECTORY || !is_last(w));
	}
	if (S_ISLNK(st.st_mode))
		return walk_link(f, w, fd, path);
	if (is_last(w) || !S_ISDIR(st.st_mode)) {
		*ret = S_ISDIR(st.st_mode) ? place_of(f->from->top, path) : PLACE_FILE;
		return walk_hold(f, w, path, &st, HELD_SEALED);
	}
	memcpy(w->done, path, sizeof(path));
	return walk_hold(f, w, path, &st, HELD_PINNED) < 0 ? -1 : 1;
}

static int walk_step(struct finder *f, struct walk *w, enum place *ret)
{
	const char *at = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(at, "/");
	char name[WIRE_PATH_MAX];

	*ret = PLACE_OUTSIDE;
	if (take_step(f) < 0)
		return -1;
	snprintf(name, sizeof(name), "%.*s", (int)n, at);
	memmove(w->rest, at + n, strlen(at + n) + 1);
	if (!n) {
		*ret = PLACE_DIRECTORY;
		return walk_ends(f, w);
	}
	if (strcmp(name, ".") == 0)
		return 1;
	return strcmp(name, "..") == 0 ? walk_up(f, w) : walk_name(f, w, name, ret);
}

static int walk(struct finder *f, struct walk *w, const char *path, enum place *ret)
{
	int more = *path == '~' ? walk_from_home(f, w, path) : walk_to(f, w, f->base, path);

	*ret = PLACE_OUTSIDE;
	while (more > 0)
		more = walk_step(f, w, ret);
	return more;
}

enum place held_place(struct finder *f, const char *path)
{
	struct walk w = { .holds = false };
	struct err ignored = ERR_INIT, *e = f->e;
	enum place place;

	f->e = &ignored;
	/* what can't be looked at is refused when it is held */
	if (walk(f, &w, path, &place) < 0)
		place = PLACE_FILE;
	f->e = e;
	return place;
}

int held_path(struct finder *f, const char *path, enum missing missing)
{
	struct walk w = { .holds = true, .missing = missing };
	enum place place;

	return walk(f, &w, path, &place);
}

/* ---- what was made, and what is mounted ---------------------------------------------------- */

void held_remove(struct held *h, int top)
{
	for (uint32_t i = h->n; i-- > 0;) {
		const struct held_path *p = &h->v[i];
		const char *slash = strrchr(p->path, '/');
		char above[WIRE_PATH_MAX] = ".";
		autoclose int parent = -1;
		struct stat st;

		if (!p->made)
			continue;
		if (slash)
			snprintf(above, sizeof(above), "%.*s", (int)(slash - p->path), p->path);
		parent = held_open(top, above, O_PATH | O_DIRECTORY, 0);
		if (parent < 0 ||
		    fstatat(parent, slash ? slash + 1 : p->path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    st.st_ino != p->made || (S_ISREG(st.st_mode) && st.st_size > 0))
			continue;
		/* a directory with something in it stays */
		unlinkat(parent, slash ? slash + 1 : p->path,
			 S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	}
}

static int seal_path(int tree, const struct held_path *p, bool again)
{
	autoclose int at = held_open(tree, p->path, O_PATH | O_NOFOLLOW, 0);
	autoclose int copy = -1;

	if (at < 0) /* the host has removed it since, which the watch tells */
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
	if (again && mount_stands_on(at, ""))
		return 0;
	copy = mount_copy(at, "", true);
	if (copy < 0 ||
	    (p->how == HELD_SEALED && mount_setattr_tree(copy, MOUNT_ATTR_RDONLY, -1) < 0) ||
	    (p->how == HELD_OPEN && mount_set_readonly(copy, false) < 0))
		return -1;
	return mount_attach(copy, at, "") == 0 || errno == ENOENT ? 0 : -1;
}

int held_seal(const struct held *h, int tree, bool again)
{
	for (uint32_t i = 0; i < h->n; i++) {
		if (seal_path(tree, &h->v[i], again) < 0)
			return -1;
	}
	return 0;
}

int held_bar(struct held *h, int tree, bool bar)
{
	for (uint32_t i = 0; i < h->n; i++) {
		struct held_path *p = &h->v[i];
		autoclose int at = -1;
		struct statfs fs;

		if (p->how == HELD_SEALED || (!bar && !p->barred))
			continue;
		at = held_open(tree, p->path, O_PATH | O_NOFOLLOW, 0);
		if (at < 0 || !mount_stands_on(at, "") || fstatfs(at, &fs) < 0 ||
		    (bar && fs.f_flags & ST_RDONLY))
			continue;
		if (mount_set_readonly(at, bar) < 0)
			return -1;
		p->barred = bar;
	}
	return 0;
}
