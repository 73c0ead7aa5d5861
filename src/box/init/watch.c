/*
 * Changes below a directory, by inotify(7), which watches single directories: with `recursive` each
 * directory has a watch of its own, and each new one gets one. Files that were made in it before
 * that are reported as created, maybe twice.
 *
 * If the hub does not read, this process waits, and the kernel's queue, which has a limit,
 * overflows: that is reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "box/archive/tar_tree.h"
#include "box/wire/file_types.h"
#include "box/init/internal.h"

enum {
	WATCHES_MAX = 8192,
	SLOTS = 1024,
	OUT_BYTES = 64 * 1024,
	IN_BYTES = 64 * 1024,
	LOOK_MS = 500
};

#define WANTED                                                                                     \
	(IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |             \
	 IN_EXCL_UNLINK | IN_ONLYDIR)

struct watched {
	struct watched *next;
	int number;
	char path[]; /* path below the top; "" is the top */
};

static struct {
	int inotify, out;
	bool recursive;
	dev_t device;
	int top;
	struct tree_failure *f;
	struct watched *slots[SLOTS];
	size_t n_watched;
	size_t n;
	char buffer[OUT_BYTES];
	/* The last move of a temporary name to its place. */
	uint32_t placed;
	enum change_kind placed_as;
} w INIT_LARGE;

static int watch_fail(enum tree_what what, int errnum)
{
	*w.f = (struct tree_failure){ .what = what, .errnum = errnum };
	return -1;
}

/* ---- out ------------------------------------------------------------------------------------- */

static int flush(void)
{
	size_t n = w.n;

	w.n = 0;
	return fd_write(w.out, w.buffer, n) < 0 ? watch_fail(TREE_GONE, 0) : 0;
}

static int watch_tell(enum change_kind kind, uint32_t cookie, bool is_directory, const char *path)
{
	const struct im_change c = { kind, cookie, is_directory, (uint32_t)strlen(path) };

	if (w.n + sizeof(c) + c.path_len > sizeof(w.buffer) && flush() < 0)
		return -1;
	memcpy(w.buffer + w.n, &c, sizeof(c));
	memcpy(w.buffer + w.n + sizeof(c), path, c.path_len);
	w.n += sizeof(c) + c.path_len;
	return 0;
}

/* ---- names that are not told of ------------------------------------------------------------- */

/* A temporary name that init writes to: it then replaces an old file or becomes a new one. */
static bool is_temporary(const char *name, enum change_kind *ret_as)
{
	const char *end = name + strlen(TREE_TEMP_FRONT);

	if (strncmp(name, TREE_TEMP_FRONT, strlen(TREE_TEMP_FRONT)) != 0)
		return false;
	end += strspn(end, "0123456789");
	*ret_as = strcmp(end, TREE_TEMP_OLD) == 0 ? CHANGE_MODIFIED : CHANGE_CREATED;
	return *ret_as == CHANGE_MODIFIED || strcmp(end, TREE_TEMP_NEW) == 0;
}

/* The kernel names a file of O_TMPFILE "#" and its inode. No entry has that name, unless somebody
 * made one. */
static bool is_nameless(const struct inotify_event *ev, const char *path)
{
	size_t digits = ev->name[0] == '#' ? strspn(ev->name + 1, "0123456789") : 0;
	bool is_new = ev->mask & ~(uint32_t)(IN_MODIFY | IN_ATTRIB);
	struct stat st;

	return digits > 0 && !ev->name[1 + digits] && !is_new &&
	       fstatat(w.top, path, &st, AT_SYMLINK_NOFOLLOW) < 0;
}

/* ---- watches --------------------------------------------------------------------------------- */

static struct watched **watch_find(int number)
{
	struct watched **at = &w.slots[(unsigned)number % SLOTS];

	while (*at && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

static void watch_forget(struct watched **at)
{
	struct watched *old = *at;

	*at = old->next;
	free(old);
	w.n_watched--;
}

/* A directory was moved or removed with all below it: its watches would report wrong paths. */
static void forget_below(const char *path)
{
	size_t n = strlen(path);

	for (size_t i = 0; i < SLOTS; i++) {
		struct watched **at = &w.slots[i];

		while (*at) {
			const char *p = (*at)->path;

			if (strncmp(p, path, n) != 0 || (p[n] && p[n] != '/')) {
				at = &(*at)->next;
				continue;
			}
			inotify_rm_watch(w.inotify, (*at)->number);
			watch_forget(at);
		}
	}
}

static int add_watch(int dir, const char *path)
{
	size_t n = strlen(path) + 1;
	struct watched **at, *new;
	char self[64];
	int number;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", dir);
	number = w.n_watched < WATCHES_MAX ? inotify_add_watch(w.inotify, self, WANTED) : -1;
	if (number < 0)
		return w.n_watched == WATCHES_MAX || errno == ENOSPC
			     ? watch_fail(TREE_MANY, 0)
			     : watch_fail(TREE_SYSTEM, errno);
	at = watch_find(number);
	if (*at)
		watch_forget(at); /* it was moved here */
	at = watch_find(number);
	new = malloc(sizeof(*new) + n);
	if (!new)
		return watch_fail(TREE_SYSTEM, ENOMEM);
	*new = (struct watched){ NULL, number };
	memcpy(new->path, path, n);
	*at = new;
	w.n_watched++;
	return 0;
}

static int watch_join(char to[TAR_PATH_MAX], const char *path, const char *name)
{
	return snprintf(to, TAR_PATH_MAX, "%s%s%s", path, *path ? "/" : "", name) < TAR_PATH_MAX
		     ? 0
		     : -1;
}

static int add_tree(int dir, const char *path, bool is_new, int depth);

/* Handles one entry of a directory: ignores what is too deep or removed. */
static int add_entry(int dir, const char *path, const char *name, bool is_new, int depth)
{
	char below[TAR_PATH_MAX];
	enum change_kind as;
	struct stat st;
	int fd;

	if (is_temporary(name, &as) || watch_join(below, path, name) < 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (is_new && watch_tell(CHANGE_CREATED, 0, S_ISDIR(st.st_mode), below) < 0)
		return -1;
	if (!w.recursive || !S_ISDIR(st.st_mode) || depth == TREE_DEPTH_MAX)
		return 0;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && st.st_dev == w.device)
		return add_tree(fd, below, is_new, depth + 1);
	close(fd);
	return 0;
}

/* Takes over dir. Adds the watch before it reads the directory, so that nothing is missed. */
static int add_tree(int dir, const char *path, bool is_new, int depth)
{
	struct folder f = folder_take(dir);
	int rc = f.errnum ? watch_fail(TREE_SYSTEM, f.errnum) : add_watch(dir, path), more = 0;

	while (rc == 0 && (w.recursive || is_new) && (more = folder_next(&f)) > 0)
		rc = add_entry(folder_fd(&f), path, f.entry->d_name, is_new, depth);
	folder_end(&f);
	return more < 0 ? watch_fail(TREE_SYSTEM, f.errnum) : rc;
}

/* Adds a new directory. Opens it from the top, part by part, without following links. */
static int open_new(const char *path)
{
	int at = dup(w.top);
	char part[TAR_PATH_MAX];
	struct stat st;

	while (at >= 0 && *path) {
		size_t n = strcspn(path, "/");
		int next;

		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		next = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += n + (path[n] == '/');
	}
	if (at >= 0 && (fstat(at, &st) < 0 || st.st_dev != w.device)) {
		close(at);
		at = -1;
	}
	return at;
}

/* ---- events ---------------------------------------------------------------------------------- */

static const struct {
	uint32_t bit;
	enum change_kind kind;
} kinds[] = {
	{ IN_CREATE, CHANGE_CREATED },	      { IN_MODIFY, CHANGE_MODIFIED },
	{ IN_ATTRIB, CHANGE_ATTRIBUTES },     { IN_DELETE, CHANGE_REMOVED },
	{ IN_MOVED_FROM, CHANGE_MOVED_FROM }, { IN_MOVED_TO, CHANGE_MOVED_TO },
};

/* Updates the watches for a directory that was added or removed. */
static int watch_follow(uint32_t mask, const char *path)
{
	int dir, depth = 1;

	if (!w.recursive || !(mask & IN_ISDIR))
		return 0;
	if (mask & IN_MOVED_FROM)
		forget_below(path);
	if (!(mask & (IN_CREATE | IN_MOVED_TO)))
		return 0;
	dir = open_new(path);
	for (const char *at = path; (at = strchr(at, '/')); at++)
		depth++;
	return dir < 0 ? 0 : add_tree(dir, path, true, depth);
}

/* 1: nothing else is reported for it; 0: it is an event like others. */
static int take_hidden(const struct inotify_event *ev, const char *path)
{
	enum change_kind as;

	if (is_temporary(ev->name, &as)) {
		if (ev->mask & IN_MOVED_FROM) {
			w.placed = ev->cookie;
			w.placed_as = as;
		}
		return 1;
	}
	if ((ev->mask & IN_MOVED_TO) && ev->cookie == w.placed)
		return watch_tell(w.placed_as, 0, false, path) < 0 ? -1 : 1;
	return is_nameless(ev, path);
}

static int take_event(const struct inotify_event *ev)
{
	struct watched **at;
	char path[TAR_PATH_MAX];
	int hidden;

	if (ev->mask & IN_Q_OVERFLOW)
		return watch_tell(CHANGE_OVERFLOW, 0, false, "");
	at = watch_find(ev->wd);
	if (!*at)
		return 0;
	if (ev->mask & IN_IGNORED) {
		watch_forget(at);
		return 0;
	}
	if (watch_join(path, (*at)->path, ev->len ? ev->name : "") < 0 || !ev->len)
		return 0; /* an event on a directory itself, which its parent reports */
	hidden = take_hidden(ev, path);
	if (hidden != 0)
		return hidden < 0 ? -1 : 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if ((ev->mask & kinds[i].bit) &&
		    watch_tell(kinds[i].kind, ev->cookie, ev->mask & IN_ISDIR, path) < 0)
			return -1;
	}
	return watch_follow(ev->mask, path);
}

static int take_events(void)
{
	static char bytes[IN_BYTES] INIT_LARGE __attribute__((aligned(8)));
	ssize_t n = read(w.inotify, bytes, sizeof(bytes));
	int rc = 0;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : watch_fail(TREE_SYSTEM, errno);
	for (char *at = bytes; rc == 0 && at < bytes + n;) {
		const struct inotify_event *ev = (const struct inotify_event *)at;

		rc = take_event(ev);
		at += sizeof(*ev) + ev->len;
	}
	return rc;
}

void init_watch(int dir, bool recursive, int out, struct tree_failure *f)
{
	struct pollfd wait_for[2];
	struct stat st;
	int rc, top = dup(dir);

	w.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	w.out = out;
	w.recursive = recursive;
	w.top = dir;
	w.f = f;
	if (w.inotify < 0 || top < 0 || fstat(dir, &st) < 0) {
		watch_fail(TREE_SYSTEM, errno);
		return;
	}
	w.device = st.st_dev;
	rc = add_tree(top, "", false, 0) < 0 || watch_tell(CHANGE_READY, 0, false, "") < 0
		   ? -1
		   : flush();
	/* for inotify an open directory still exists, so this is checked */
	wait_for[0] = (struct pollfd){ .fd = w.inotify, .events = POLLIN };
	wait_for[1] = (struct pollfd){ .fd = out }; /* reports an error, once nobody reads */
	while (rc == 0) {
		int n = poll(wait_for, 2, LOOK_MS);

		if (n < 0)
			continue;
		rc = wait_for[1].revents ? watch_fail(TREE_GONE, 0) : take_events();
		if (rc == 0 && n == 0 && fstat(dir, &st) == 0 && st.st_nlink == 0)
			rc = 1;
		if (rc >= 0 && w.n > 0 && flush() < 0)
			rc = -1;
	}
	if (rc > 0 && watch_tell(CHANGE_ENDED, 0, true, "") == 0)
		flush();
}
