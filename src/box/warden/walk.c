/*
 * A sandbox's changes to its template, as a stream. Compares the layers, which tell what was
 * touched, so that a large template costs nothing, and the merged view, which tells the result. Of
 * the kernel's marks (whiteouts, opaque and renamed directories, in either form) this code only
 * needs to know whether a directory has any: such a directory is taken whole.
 *
 *	walk_level	the names in a layer, each once; or, without layers, all names
 *	visit		the change of one name: removed, a file, a directory
 *
 * The tree is hostile, its place is not: every step uses descriptors and follows no link; depth is
 * limited by the length of a path, memory by links.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "base/mem.h"
#include "box/wire/file_types.h"
#include "box/archive/links.h"
#include "box/archive/tar.h"
#include "box/archive/template_host.h"
#include "box/warden/internal.h"

enum { BUFFER = 128 * 1024 };

struct walk {
	enum wm_write_what what;
	int out;
	uint32_t uid, n_ids;
	uint64_t bytes_left;
	struct links links;
	size_t path_n, n; /* bytes used of path, and of buffer */
	char path[TAR_PATH_MAX]; /* path below the top, without a leading '/'; "" is the top */
	char buffer[BUFFER];
};

/* One directory, in all views of it. */
struct level {
	int merged;
	int template; /* -1: the template has no such directory, or nothing of it is visible */
	const int *layers;
	size_t n_layers; /* 0: all of merged is compared */
};

static int walk_level(struct walk *k, const struct level *l);

/* ---- the stream ------------------------------------------------------------------------------ */

static int walk_flush(struct walk *k)
{
	size_t n = k->n;

	k->n = 0;
	return fd_write(k->out, k->buffer, n) < 0 ? errno : 0;
}

static int walk_put(struct walk *k, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		size_t part = n < BUFFER - k->n ? n : BUFFER - k->n;
		int errnum;

		memcpy(k->buffer + k->n, at, part);
		k->n += part;
		at += part;
		n -= part;
		errnum = k->n == BUFFER ? walk_flush(k) : 0;
		if (errnum)
			return errnum;
	}
	return 0;
}

static int put_zeros(struct walk *k, uint64_t n)
{
	static const char zeros[4096];
	int errnum = 0;

	for (; n > 0 && !errnum; n -= n < sizeof(zeros) ? n : sizeof(zeros))
		errnum = walk_put(k, zeros, n < sizeof(zeros) ? (size_t)n : sizeof(zeros));
	return errnum;
}

static int put_entry(struct walk *k, const struct tar_entry *e)
{
	char head[TAR_HEAD_MAX];
	size_t n = tar_head(e, head);

	return n ? walk_put(k, head, n) : ENAMETOOLONG;
}

static int put_name(struct walk *k, enum diff diff, enum file_type type)
{
	const char head[3] = { (char)diff, (char)type, '/' };
	int errnum = walk_put(k, head, sizeof(head));

	return errnum ? errnum : walk_put(k, k->path, k->path_n + 1);
}

/* Writes an empty file with a special name, beside the current path or below it. */
static int put_mark(struct walk *k, const char *mark, const char *name, size_t dir_n)
{
	char path[TAR_PATH_MAX + 16];
	const struct tar_entry e = { .type = TAR_FILE, .mode = 0600, .path = path, .link = "" };
	int n = snprintf(path, sizeof(path), "%.*s%s%s%s", (int)dir_n, k->path, dir_n ? "/" : "",
			 mark, name);

	return n < TAR_PATH_MAX ? put_entry(k, &e) : ENAMETOOLONG;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static int push(struct walk *k, const char *name)
{
	size_t n = strlen(name), slash = k->path_n > 0;

	if (k->path_n + slash + n >= sizeof(k->path) - 1)
		return ENAMETOOLONG;
	if (slash)
		k->path[k->path_n++] = '/';
	memcpy(k->path + k->path_n, name, n + 1);
	k->path_n += n;
	return 0;
}

/* ---- what is there --------------------------------------------------------------------------- */

static enum file_type type_of(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? FILE_REGULAR
	     : S_ISDIR(st->st_mode) ? FILE_DIRECTORY
	     : S_ISLNK(st->st_mode) ? FILE_SYMLINK
				    : FILE_OTHER;
}

static bool is_of_sandbox(const struct walk *k, const struct stat *st)
{
	return st->st_uid >= k->uid && st->st_uid - k->uid < k->n_ids;
}

/* 1: it exists, 0: it does not, negative: an errno. */
static int walk_look(int dir, const char *name, struct stat *st)
{
	if (dir < 0)
		return 0;
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ? 0 : -errno;
}

static int open_dir(int dir, const char *name)
{
	return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Whether the directory is made in every sandbox, and is in no template. */
static bool is_made(const struct walk *k)
{
	for (size_t i = 0; i < template_host_n_owned; i++) {
		if (strcmp(k->path, template_host_owned[i].path + 1) == 0)
			return true;
	}
	return false;
}

/* Whether a copy still equals its original. */
static bool is_same(const struct stat *st, const struct stat *was)
{
	if (st->st_mode != was->st_mode)
		return false;
	return S_ISDIR(st->st_mode) ||
	       (st->st_size == was->st_size && st->st_mtim.tv_sec == was->st_mtim.tv_sec &&
		st->st_mtim.tv_nsec == was->st_mtim.tv_nsec);
}

/* Whether a directory has a mark of the kernel: lower layers don't show through, or are somewhere
 * else. */
static bool has_mark(int dir)
{
	static const char *const marks[] = { "trusted.overlay.opaque", "trusted.overlay.redirect",
					     "user.overlay.opaque", "user.overlay.redirect" };

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		if (fgetxattr(dir, marks[i], NULL, 0) >= 0)
			return true;
	}
	return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* A file that became shorter meanwhile is filled up with zeros: the header has told its size. */
static int put_content(struct walk *k, int fd, uint64_t size)
{
	int errnum = walk_flush(k);

	for (uint64_t left = size; left > 0 && !errnum;) {
		ssize_t n = read(fd, k->buffer, left < BUFFER ? (size_t)left : BUFFER);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno;
		if (n == 0)
			return put_zeros(k, left + tar_padding(size));
		errnum = fd_write(k->out, k->buffer, (size_t)n) < 0 ? errno : 0;
		left -= (uint64_t)n;
	}
	return errnum ? errnum : put_zeros(k, tar_padding(size));
}

static int put_file(struct walk *k, int dir, const char *name, struct tar_entry *e)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	int errnum;

	if (fd < 0 || fstat(fd, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		return EBUSY; /* impossible while the sandbox stands still */
	e->size = (uint64_t)st.st_size;
	if (e->size > k->bytes_left)
		return EFBIG;
	k->bytes_left -= e->size;
	errnum = put_entry(k, e);
	return errnum ? errnum : put_content(k, fd, e->size);
}

static int put_symlink(struct walk *k, int dir, const char *name, struct tar_entry e)
{
	char target[TAR_PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno;
	target[n] = '\0';
	e.link = target;
	return n > 0 ? put_entry(k, &e) : 0;
}

/* Ids that are not the sandbox's become nobody. */
static uint32_t inner_id(const struct walk *k, uint32_t id)
{
	return id >= k->uid && id - k->uid < k->n_ids ? id - k->uid : k->n_ids == 1 ? 0 : 65534;
}

static struct tar_entry entry_of(const struct walk *k, enum tar_type type, const struct stat *st)
{
	return (struct tar_entry){
		.type = type,
		.mode = st->st_mode & 07777,
		.uid = inner_id(k, st->st_uid),
		.gid = inner_id(k, st->st_gid),
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.path = k->path,
		.link = "",
	};
}

/* Leaves out sockets, pipes and devices, and files that are named like a mark. */
static int put_in_archive(struct walk *k, int dir, const char *name, const struct stat *st)
{
	struct tar_entry e = entry_of(k, S_ISLNK(st->st_mode) ? TAR_SYMLINK : TAR_FILE, st);
	const char *first;

	if (type_of(st) == FILE_OTHER)
		return 0;
	first = st->st_nlink > 1 ? links_first(&k->links, st, k->path) : NULL;
	if (first) {
		e.type = TAR_HARDLINK;
		e.link = first;
		return put_entry(k, &e);
	}
	return e.type == TAR_SYMLINK ? put_symlink(k, dir, name, e) : put_file(k, dir, name, &e);
}

static int visit_file(struct walk *k, const struct level *l, const char *name,
		      const struct stat *st, const struct stat *was)
{
	if (k->what == WM_WRITE_TAR)
		return put_in_archive(k, l->merged, name, st);
	if (was && l->n_layers == 0 && is_same(st, was))
		return 0;
	return put_name(k, was ? DIFF_CHANGED : DIFF_ADDED, type_of(st));
}

static int removed(struct walk *k, const char *name, const struct stat *was)
{
	const char *slash = memrchr(k->path, '/', k->path_n);

	if (k->what == WM_WRITE_TAR)
		return put_mark(k, DIFF_GONE, name, slash ? (size_t)(slash - k->path) : 0);
	return put_name(k, DIFF_REMOVED, type_of(was));
}

/* ---- directories ----------------------------------------------------------------------------- */

/* Opens the directory in the layers that have it, down to the one that hides the rest: then *cut is
 * set. */
static int open_layers(const struct level *l, const char *name, int *layers, size_t *n, bool *cut)
{
	struct stat st;

	for (size_t i = 0; i < l->n_layers && !*cut; i++) {
		int there = walk_look(l->layers[i], name, &st);

		if (there < 0)
			return -there;
		if (there && !S_ISDIR(st.st_mode)) {
			*cut = true;
		} else if (there) {
			layers[*n] = open_dir(l->layers[i], name);
			if (layers[*n] < 0)
				return errno;
			*cut = has_mark(layers[(*n)++]);
		}
	}
	return 0;
}

/* First with a mode that allows to make its contents, and behind them with its own mode. */
static int put_dir(struct walk *k, const struct stat *st, bool behind)
{
	struct tar_entry e = entry_of(k, TAR_DIRECTORY, st);

	if (!behind)
		e.mode |= 0700;
	return put_entry(k, &e);
}

static int begin_dir(struct walk *k, const struct stat *st, const struct stat *was, bool hides)
{
	int errnum = 0;

	if (k->what == WM_WRITE_NAMES) {
		if (was ? is_same(st, was) : is_made(k))
			return 0;
		return put_name(k, was ? DIFF_CHANGED : DIFF_ADDED, FILE_DIRECTORY);
	}
	if (is_of_sandbox(k, st))
		errnum = put_dir(k, st, false);
	if (!errnum && hides)
		errnum = put_mark(k, DIFF_OPAQUE, "", k->path_n);
	return errnum;
}

static int visit_dir(struct walk *k, const struct level *l, const char *name, const struct stat *st,
		     const struct stat *was)
{
	int *layers = l->n_layers ? calloc(l->n_layers, sizeof(*layers)) : NULL;
	struct level sub = { open_dir(l->merged, name), -1, layers, 0 };
	bool cut = false, in_template = was && S_ISDIR(was->st_mode);
	int errnum = sub.merged < 0 || (l->n_layers && !layers) ? errno : 0;

	if (!errnum)
		errnum = open_layers(l, name, layers, &sub.n_layers, &cut);
	if (!errnum && in_template && (!cut || k->what == WM_WRITE_NAMES)) {
		sub.template = open_dir(l->template, name);
		errnum = sub.template <0 ? errno : 0;
	}
	if (!errnum)
		errnum = begin_dir(k, st, in_template ? was : NULL, in_template && cut);
	if (!errnum) {
		struct level whole = { sub.merged, sub.template, NULL, 0 };

		errnum = walk_level(k, cut ? &whole : &sub);
	}
	if (!errnum && k->what == WM_WRITE_TAR && is_of_sandbox(k, st))
		errnum = put_dir(k, st, true);
	for (size_t i = 0; i < sub.n_layers; i++)
		close(layers[i]);
	close_fd(&sub.template);
	close_fd(&sub.merged);
	free(layers);
	return errnum;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int walk_judge(struct walk *k, const struct level *l, const char *name)
{
	struct stat st, was;
	int there = walk_look(l->merged, name, &st), known = walk_look(l->template, name, &was);
	int errnum = 0;

	if (there < 0 || known < 0)
		return there < 0 ? -there : -known;
	if (!there)
		return known ? removed(k, name, &was) : 0;
	if (known && (st.st_mode & S_IFMT) != (was.st_mode & S_IFMT)) {
		errnum = removed(k, name, &was);
		known = 0;
	}
	if (errnum)
		return errnum;
	if (S_ISDIR(st.st_mode))
		return visit_dir(k, l, name, &st, known ? &was : NULL);
	return is_of_sandbox(k, &st) ? visit_file(k, l, name, &st, known ? &was : NULL) : 0;
}

static int visit(struct walk *k, const struct level *l, const char *name)
{
	size_t above = k->path_n;
	int errnum;

	if (k->what == WM_WRITE_TAR && strncmp(name, DIFF_GONE, strlen(DIFF_GONE)) == 0)
		return 0;
	errnum = push(k, name);
	if (!errnum)
		errnum = walk_judge(k, l, name);
	k->path_n = above;
	k->path[above] = '\0';
	return errnum;
}

/* Whether one of the first n layers has this name, so that it was visited. */
static bool in_layers(const struct level *l, size_t n, const char *name)
{
	struct stat st;

	for (size_t i = 0; i < n; i++) {
		if (walk_look(l->layers[i], name, &st) > 0)
			return true;
	}
	return false;
}

/* Visits each name in the open directory `of`, except those in the first n layers, or with skip >=
 * 0 in that directory. */
static int visit_all(struct walk *k, const struct level *l, int of, size_t n, int skip)
{
	struct folder f = folder_at(of, ".");
	int errnum = 0, more = 0;
	struct stat st;

	while (!errnum && (more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;

		if (!in_layers(l, n, name) && walk_look(skip, name, &st) <= 0)
			errnum = visit(k, l, name);
	}
	folder_end(&f);
	return more < 0 ? f.errnum : errnum;
}

static int walk_level(struct walk *k, const struct level *l)
{
	int errnum = 0;

	for (size_t i = 0; i < l->n_layers && !errnum; i++)
		errnum = visit_all(k, l, l->layers[i], i, -1);
	if (l->n_layers)
		return errnum;
	errnum = visit_all(k, l, l->merged, 0, -1);
	if (!errnum && l->template >= 0)
		errnum = visit_all(k, l, l->template, 0, l->merged); /* removed names */
	return errnum;
}

int walk_changes(const struct walk_from *from, enum wm_write_what what, int out)
{
	static struct walk k;
	const struct level top = { from->merged, from->template, from->layers, from->n_layers };
	int errnum;

	k.what = what;
	k.out = out;
	k.uid = from->uid;
	k.n_ids = from->n_ids;
	k.bytes_left = from->bytes_max;
	k.links.bytes_max = LINKS_FOR_DISK(from->bytes_max);
	errnum = from->only ? visit(&k, &top, from->only) : walk_level(&k, &top);
	return errnum ? errnum : walk_flush(&k);
}
