#include "hub/workspace/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "hub/workspace/id_set.h"

enum { FEW = 64, DEPTH_MAX = 4096 };

/* ---- folders --------------------------------------------------------------------------------- */

int folder_open(int dir, const char *name, struct err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make a folder of workspaces");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open a folder of workspaces");
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(e, ERR_DENIED,
			       "the folder of workspaces must be yours, and nobody else may read "
			       "or write it (chmod 700)");
	return take_fd(&fd);
}

/* Depth-first, by one descriptor for each level: trees are bounded in depth (limits.h). */
static int clear_at(int dir, unsigned depth)
{
	autofolder struct folder f = folder_at(dir, ".");
	int more;

	if (depth >= DEPTH_MAX)
		return -1;
	fchmod(dir, 0700);
	while ((more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		autoclose int sub = -1;

		if (unlinkat(dir, name, 0) == 0)
			continue;
		if (errno != EISDIR && errno != EPERM)
			return -1;
		(void)!fchmodat(dir, name, 0700, 0); /* no link; openat() tells of it */
		sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0 || clear_at(sub, depth + 1) < 0 ||
		    unlinkat(dir, name, AT_REMOVEDIR) < 0)
			return -1;
	}
	return more;
}

int folder_clear(int dir, const char *name, bool itself, struct err *e)
{
	autoclose int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || clear_at(fd, 0) < 0 || (itself && unlinkat(dir, name, AT_REMOVEDIR) < 0))
		return err_sys(e, errno, "clear a folder of workspaces");
	return 0;
}

static int sync_one(void *arg, int dir, const struct dirent *entry)
{
	autoclose int fd = openat(dir, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -1 : fsync(fd);
}

/* Makes what was written to the files of a folder durable: each by itself, or, if there are many,
 * the whole file system. */
static int folder_sync(int dir, size_t n_files, struct err *e)
{
	if ((n_files > FEW ? syncfs(dir) : folder_each(dir, ".", sync_one, NULL)) < 0)
		return err_sys(e, errno, "write to the disk of workspaces");
	return 0;
}

/* ---- objects --------------------------------------------------------------------------------- */

#define NEW "new"
enum { OBJECT_PATH = BLAKE2B_HEX + 2 }; /* "xx/" and 62 digits */

static void object_path(const struct object_id *id, char ret[OBJECT_PATH])
{
	char hex[BLAKE2B_HEX + 1];

	blake2b_hex(id->b, hex);
	snprintf(ret, OBJECT_PATH, "%.2s/%s", hex, hex + 2);
}

int objects_open(struct objects *o, int dir, struct err *e)
{
	*o = (struct objects){ .dir = -1, .new = -1, .left = UINT64_MAX };
	o->dir = folder_open(dir, "objects", e);
	if (o->dir >= 0)
		o->new = folder_open(dir, NEW, e);
	if (o->new >= 0 && folder_clear(o->new, ".", false, e) == 0)
		return 0;
	objects_close(o);
	return -1;
}

void objects_close(struct objects *o)
{
	close_fd(&o->dir);
	close_fd(&o->new);
}

int objects_begin(struct objects *o, struct err *e)
{
	o->added = (struct object_count){ 0 };
	o->left = UINT64_MAX;
	return folder_clear(o->new, ".", false, e);
}

/* Whether it is there already. One of another length is damaged, and written anew. */
static bool is_there(int dir, const char *path, size_t n)
{
	struct stat st;

	return fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == n;
}

static int write_new(const struct objects *o, const char *name, char kind, struct str bytes)
{
	autoclose int fd = openat(o->new, name,
				  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 || fd_write(fd, &kind, 1) < 0 || fd_write(fd, bytes.p, bytes.n) < 0 ? -1 : 0;
}

int objects_put(struct objects *o, enum object_kind kind, struct str bytes, struct object_id *ret,
		struct err *e)
{
	char hex[BLAKE2B_HEX + 1], path[OBJECT_PATH];

	if (bytes.n > OBJECT_MAX)
		return err_set(e, ERR_TOO_LARGE,
			       "a directory or file of the workspace is too large");
	blake2b((char)kind, bytes.p, bytes.n, ret->b);
	object_path(ret, path);
	blake2b_hex(ret->b, hex);
	if (o->marked && id_set_add(o->marked, ret, e) < 0)
		return -1;
	if (is_there(o->dir, path, bytes.n + 1) || is_there(o->new, hex, bytes.n + 1))
		return 0;
	if (bytes.n >= o->left || o->added.bytes > o->left - bytes.n - 1)
		return err_set(e, ERR_STORAGE_FULL,
			       "what workspaces and their snapshots keep would be more than the "
			       "operator's configuration allows (storage.objects_mb)");
	if (write_new(o, hex, (char)kind, bytes) < 0)
		return err_sys(e, errno, "write an object");
	o->added.n++;
	o->added.bytes += bytes.n + 1;
	return 0;
}

static int name_one(void *arg, int dir_new, const struct dirent *entry)
{
	const struct objects *o = arg;
	const char *hex = entry->d_name;
	char folder[3], path[OBJECT_PATH];
	struct object_id id;
	autoclose int dir = -1;

	if (blake2b_of_hex(hex, strlen(hex), id.b) < 0)
		return unlinkat(o->new, hex, 0);
	object_path(&id, path);
	snprintf(folder, sizeof(folder), "%.2s", path);
	if (mkdirat(o->dir, folder, 0700) < 0 && errno != EEXIST)
		return -1;
	if (renameat(o->new, hex, o->dir, path) < 0)
		return -1;
	if (o->added.n > FEW)
		return 0;
	dir = openat(o->dir, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return dir < 0 ? -1 : fsync(dir);
}

/* A name that was not seen would be an object that a revision needs and that is cleared away. */
static int name_all(struct objects *o)
{
	if (folder_each(o->new, ".", name_one, o) < 0)
		return -1;
	return o->added.n <= FEW ? fsync(o->dir) : syncfs(o->dir);
}

int objects_commit(struct objects *o, struct err *e)
{
	if (!o->added.n)
		return 0;
	if (folder_sync(o->new, o->added.n, e) < 0)
		return -1;
	return name_all(o) < 0 ? err_sys(e, errno, "keep the objects of a workspace") : 0;
}

int objects_get(const struct objects *o, enum object_kind kind, const struct object_id *id,
		struct buf *to, struct err *e)
{
	char hex[BLAKE2B_HEX + 1], path[OBJECT_PATH];
	struct object_id is;
	autoclose int fd = -1;
	struct stat st;
	char *at;

	object_path(id, path);
	blake2b_hex(id->b, hex);
	fd = openat(o->dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		fd = openat(o->new, hex, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT
			     ? err_set(e, ERR_WORKSPACE, "an object of the workspace is missing")
			     : err_sys(e, errno, "open an object");
	to->n = 0;
	if (fstat(fd, &st) < 0)
		return err_sys(e, errno, "read an object");
	if (!S_ISREG(st.st_mode) || st.st_size < 1 || st.st_size > (off_t)OBJECT_MAX + 1)
		return err_set(e, ERR_WORKSPACE, "an object of the workspace is damaged");
	at = buf_reserve(to, (size_t)st.st_size, e);
	if (!at)
		return -1;
	if (fd_read(fd, at, (size_t)st.st_size) < 0)
		return err_set(e, ERR_WORKSPACE, "an object of the workspace is damaged");
	buf_advance(to, (size_t)st.st_size);
	blake2b(to->p[0], to->p + 1, to->n - 1, is.b);
	if (to->p[0] != (char)kind || memcmp(is.b, id->b, sizeof(is.b)) != 0)
		return err_set(e, ERR_WORKSPACE, "an object of the workspace is damaged");
	buf_drop(to, 1);
	return 0;
}

int objects_each(const struct objects *o, unsigned folder, objects_each_fn f, void *arg,
		 struct err *e)
{
	autofolder struct folder of = FOLDER_NONE;
	int result = 0, more = 0;
	char name[3];

	snprintf(name, sizeof(name), "%02x", folder & 255);
	of = folder_at(o->dir, name);
	while (result == 0 && (more = folder_next(&of)) > 0) {
		char hex[BLAKE2B_HEX + 8];
		struct object_id id;
		struct stat st;

		snprintf(hex, sizeof(hex), "%s%.66s", name, of.entry->d_name);
		if (blake2b_of_hex(hex, strlen(hex), id.b) == 0 &&
		    fstatat(folder_fd(&of), of.entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			result = f(arg, &id, (uint64_t)st.st_size, e);
	}
	if (more < 0 && of.errnum != ENOENT)
		return err_sys(e, of.errnum, "list the objects");
	return result;
}

int objects_remove(const struct objects *o, const struct object_id *id, struct err *e)
{
	char path[OBJECT_PATH];

	object_path(id, path);
	if (unlinkat(o->dir, path, 0) < 0 && errno != ENOENT)
		return err_sys(e, errno, "remove an object");
	return 0;
}
