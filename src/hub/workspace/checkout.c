#include "hub/workspace/checkout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"

#define NEW "new"
enum { SYNC_EACH = 64 };

struct making {
	const struct objects *objects;
	size_t written; /* files */
	char name[WORKSPACE_NAME_MAX + 1]; /* of the entry at hand */
	char link[WORKSPACE_PATH_MAX + 1];
};

static int checkout_dir(struct making *m, int to, const struct object_id *id, int like,
			const struct object_id *like_id, unsigned depth, struct err *e);

int checkouts_open(struct checkouts *c, const struct objects *o, int dir, struct err *e)
{
	*c = (struct checkouts){ .objects = o, .dir = folder_open(dir, "trees", e) };
	if (c->dir < 0)
		return -1;
	if (folder_clear(c->dir, NEW, true, e) == 0)
		return 0;
	checkouts_close(c);
	return -1;
}

void checkouts_close(struct checkouts *c)
{
	close_fd(&c->dir);
}

bool checkout_is_there(const struct checkouts *c, const struct object_id *tree)
{
	char name[BLAKE2B_HEX + 1];

	blake2b_hex(tree->b, name);
	return faccessat(c->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int write_bytes(void *arg, struct str bytes, struct err *e)
{
	const int *fd = arg;

	return fd_write(*fd, bytes.p, bytes.n) < 0 ? err_sys(e, errno, "write a file") : 0;
}

static void times_of(const struct tree_entry *t, struct timespec ret[2])
{
	ret[0] = ret[1] = (struct timespec){ .tv_sec = (time_t)t->mtime,
					     .tv_nsec = (long)t->mtime_ns };
}

static int checkout_file(struct making *m, int to, const struct tree_entry *t, struct err *e)
{
	autoclose int fd = openat(to, m->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct timespec times[2];

	times_of(t, times);
	if (fd < 0)
		return err_sys(e, errno, "make a file");
	if (tree_content(m->objects, t, write_bytes, &fd, e) < 0)
		return -1;
	if (fchmod(fd, t->mode) < 0 || futimens(fd, times) < 0 ||
	    (m->written < SYNC_EACH && fsync(fd) < 0))
		return err_sys(e, errno, "write a file");
	m->written++;
	return 0;
}

static int checkout_link(struct making *m, int to, const struct tree_entry *t, struct err *e)
{
	struct timespec times[2];

	times_of(t, times);
	snprintf(m->link, sizeof(m->link), "%.*s", STR_ARG(t->link));
	if (symlinkat(m->link, to, m->name) < 0 ||
	    utimensat(to, m->name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, errno, "make a link");
	return 0;
}

static int checkout_sub(struct making *m, int to, const struct tree_entry *t, int like,
			const struct tree_entry *was, unsigned depth, struct err *e)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	bool had = was && was->type == TREE_DIR && like >= 0;
	autoclose int there = had ? openat(like, m->name, flags) : -1;
	autoclose int sub = -1;
	struct timespec times[2];

	times_of(t, times);
	if (mkdirat(to, m->name, 0700) < 0 || (sub = openat(to, m->name, flags)) < 0)
		return err_sys(e, errno, "make a directory");
	if (checkout_dir(m, sub, &t->id, there, had ? &was->id : NULL, depth + 1, e) < 0)
		return -1;
	if (fchmod(sub, t->mode) < 0 || futimens(sub, times) < 0)
		return err_sys(e, errno, "make a directory");
	return 0;
}

/* Files of the earlier tree can't be linked if they have too many links, or their directory no
 * longer lets its owner in: then they are written. */
static int checkout_entry(struct making *m, int to, const struct tree_entry *t, int like,
			  const struct tree_entry *was, unsigned depth, struct err *e)
{
	snprintf(m->name, sizeof(m->name), "%.*s", STR_ARG(t->name));
	if (t->type == TREE_DIR)
		return checkout_sub(m, to, t, like, was, depth, e);
	if (t->type == TREE_LINK)
		return checkout_link(m, to, t, e);
	if (like >= 0 && was && tree_same(t, was) && t->mtime == was->mtime &&
	    t->mtime_ns == was->mtime_ns && linkat(like, m->name, to, m->name, 0) == 0)
		return 0;
	return checkout_file(m, to, t, e);
}

static int checkout_dir(struct making *m, int to, const struct object_id *id, int like,
			const struct object_id *like_id, unsigned depth, struct err *e)
{
	struct tree tree = { .n = 0 }, old = { .n = 0 };
	struct err ignored = ERR_INIT;
	int result = 0;

	if (depth > WORKSPACE_DEPTH_MAX)
		return err_set(e, ERR_WORKSPACE, "the tree of the workspace is too deep");
	result = tree_load(m->objects, id, &tree, e);
	if (result == 0 && like >= 0 && like_id &&
	    tree_load(m->objects, like_id, &old, &ignored) < 0)
		old.n = 0;
	for (size_t i = 0; result == 0 && i < tree.n; i++)
		result = checkout_entry(m, to, &tree.entries[i], like,
					old.n ? tree_find(&old, tree.entries[i].name) : NULL, depth,
					e);
	tree_fini(&tree);
	tree_fini(&old);
	return result;
}

static int make_new(const struct checkouts *c, int *ret_top, struct err *e)
{
	static const char *const dirs[] = { NEW, NEW "/root", NEW "/root/workspace" };

	if (folder_clear(c->dir, NEW, true, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		if (mkdirat(c->dir, dirs[i], 0700) < 0 || fchmodat(c->dir, dirs[i], 0755, 0) < 0)
			return err_sys(e, errno, "make a directory");
	}
	*ret_top = openat(c->dir, dirs[2], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_top < 0 ? err_sys(e, errno, "make a directory") : 0;
}

int checkout_make(const struct checkouts *c, const struct object_id *tree,
		  const struct object_id *like, struct err *e)
{
	struct making m = { .objects = c->objects };
	char name[BLAKE2B_HEX + 1], path[BLAKE2B_HEX + 32];
	autoclose int top = -1;
	autoclose int old = -1;

	if (checkout_is_there(c, tree))
		return 0;
	if (like) {
		blake2b_hex(like->b, name);
		snprintf(path, sizeof(path), "%s/root/workspace", name);
		old = openat(c->dir, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	}
	blake2b_hex(tree->b, name);
	if (make_new(c, &top, e) < 0 || checkout_dir(&m, top, tree, old, like, 0, e) < 0)
		return -1;
	/* the names in it may reach the disk later than this one: then it is made again */
	if (m.written > SYNC_EACH && syncfs(top) < 0)
		return err_sys(e, errno, "write to the disk of workspaces");
	if (renameat(c->dir, NEW, c->dir, name) < 0)
		return err_sys(e, errno, "keep the tree of a workspace");
	return 0;
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool is_wanted(const char *name, const struct object_id *wanted, size_t n)
{
	struct object_id id;

	if (blake2b_of_hex(name, strlen(name), id.b) < 0)
		return name[0] == '.';
	for (size_t i = 0; i < n; i++) {
		if (memcmp(&id, &wanted[i], sizeof(id)) == 0)
			return true;
	}
	return false;
}

/* Under another name first, so that what is being removed is never mounted. */
static int checkout_drop(const struct checkouts *c, const char *name, struct err *e)
{
	autoclose int fd = openat(c->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	if (folder_clear(c->dir, NEW, true, e) < 0)
		return -1;
	if (strcmp(name, NEW) != 0 && renameat(c->dir, name, c->dir, NEW) < 0)
		return err_sys(e, errno, "remove the tree of a workspace");
	return folder_clear(c->dir, NEW, true, e);
}

int checkouts_trim(const struct checkouts *c, const struct object_id *wanted, size_t n,
		   struct err *e)
{
	autofolder struct folder f = folder_at(c->dir, ".");
	int result = 0, more = 0;

	while (result == 0 && (more = folder_next(&f)) > 0) {
		if (!is_wanted(f.entry->d_name, wanted, n))
			result = checkout_drop(c, f.entry->d_name, e);
	}
	return more < 0 ? err_sys(e, f.errnum, "list the trees of workspaces") : result;
}
