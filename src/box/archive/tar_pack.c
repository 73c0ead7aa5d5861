/*
 * Packing: see tar_tree.h. All directories from the top down stay open, so that nobody can swap in
 * a link above. A file with several names is packed once; its other names become links to it
 * (links.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/folder.h"
#include "box/archive/links.h"
#include "box/archive/tar_tree.h"

enum { OUT_BYTES = 64 * 1024, LINKS_BYTES_MAX = 32 << 20 };

struct pack {
	const struct tar_pack_opts *o;
	struct tree_failure *f;
	int out;
	dev_t device;
	uint64_t entries, bytes;
	char path[TAR_PATH_MAX +
		  /* path in the archive, path_n bytes; "" for a top without a name */
		  1];
	size_t path_n;
	int depth;
	struct links links;
	size_t n; /* in buffer */
	char buffer[OUT_BYTES];
};

static int tar_pack_fail(struct pack *k, enum tree_what what, int errnum)
{
	*k->f = (struct tree_failure){ .what = what, .errnum = errnum };
	snprintf(k->f->path, sizeof(k->f->path), "%.*s", TREE_PATH_MAX - 1, k->path);
	return -1;
}

/* ---- out ----------------------------------------------------------------------------------- */

static int tar_pack_flush(struct pack *k)
{
	size_t n = k->n;

	k->n = 0;
	if (fd_write(k->out, k->buffer, n) == 0)
		return 0;
	return errno == EPIPE ? tar_pack_fail(k, TREE_GONE, 0)
			      : tar_pack_fail(k, TREE_SYSTEM, errno);
}

static int room(struct pack *k, size_t n)
{
	return k->n + n > sizeof(k->buffer) ? tar_pack_flush(k) : 0;
}

static int put_zeros(struct pack *k, uint64_t n)
{
	while (n > 0) {
		size_t some;

		if (k->n == sizeof(k->buffer) && tar_pack_flush(k) < 0)
			return -1;
		some = sizeof(k->buffer) - k->n;
		some = n < some ? (size_t)n : some;
		memset(k->buffer + k->n, 0, some);
		k->n += some;
		n -= some;
	}
	return 0;
}

static int put_head(struct pack *k, enum tar_type type, const struct stat *st, const char *link)
{
	const struct tar_entry e = {
		.type = type,
		.mode = st->st_mode & 01777,
		.size = type == TAR_FILE ? (uint64_t)st->st_size : 0,
		.mtime = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.path = k->path_n ? k->path : ".",
		.link = link,
	};
	size_t n;

	if (++k->entries > TREE_ENTRIES_MAX)
		return tar_pack_fail(k, TREE_MANY, 0);
	k->bytes += e.size;
	if (e.size > TREE_BYTES_MAX || k->bytes > TREE_BYTES_MAX)
		return tar_pack_fail(k, TREE_LARGE, 0);
	if (room(k, TAR_HEAD_MAX) < 0)
		return -1;
	n = tar_head(&e, k->buffer + k->n);
	k->n += n;
	return n ? 0 : tar_pack_fail(k, TREE_DEEP, 0);
}

/* ---- files --------------------------------------------------------------------------------- */

/* Exactly as many bytes as the header says: a file that has shrunk is filled with zeros. */
static int put_content(struct pack *k, int fd, uint64_t size)
{
	uint64_t left = size;

	while (left > 0) {
		size_t some;
		ssize_t n;

		if (k->n == sizeof(k->buffer) && tar_pack_flush(k) < 0)
			return -1;
		some = sizeof(k->buffer) - k->n;
		n = read(fd, k->buffer + k->n, left < some ? (size_t)left : some);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tar_pack_fail(k, TREE_SYSTEM, errno);
		if (n == 0)
			break;
		k->n += (size_t)n;
		left -= (uint64_t)n;
	}
	return put_zeros(k, left + tar_padding(size));
}

/* Counts what an archive doesn't hold, and keeps the first names. */
static int pack_nothing(struct pack *k)
{
	struct tree_failure *f = k->f;
	size_t n = strlen(f->path);

	f->left_out++;
	if (n == 0 || n + k->path_n + sizeof(", ") <= sizeof(f->path))
		snprintf(f->path + n, sizeof(f->path) - n, "%s%s", n ? ", " : "", k->path);
	return 0;
}

/* If it has gone or changed its type meanwhile, it is left out. */
static bool vanished(int errnum)
{
	return errnum == ENOENT || errnum == ELOOP || errnum == ENOTDIR || errnum == ENXIO;
}

/* fd is taken. */
static int pack_file(struct pack *k, int fd, const struct stat *st)
{
	const char *same = st->st_nlink > 1 ? links_first(&k->links, st, k->path) : NULL;
	int rc = put_head(k, same ? TAR_HARDLINK : TAR_FILE, st, same ? same : "");

	if (rc == 0 && !same)
		rc = put_content(k, fd, (uint64_t)st->st_size);
	close(fd);
	return rc;
}

static int pack_link(struct pack *k, int dir, const char *name, const struct stat *st)
{
	char target[TAR_PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0 && (vanished(errno) || errno == EINVAL))
		return 0;
	if (n < 0)
		return tar_pack_fail(k, TREE_SYSTEM, errno);
	target[n] = '\0';
	return put_head(k, TAR_SYMLINK, st, target);
}

/* ---- directories --------------------------------------------------------------------------- */

static bool is_left_out(const struct pack *k, const char *name)
{
	for (size_t i = 0; k->depth == 1 && i < k->o->n_leave_out; i++) {
		if (strcmp(k->o->leave_out[i], name) == 0)
			return true;
	}
	return false;
}

static int pack_one(struct pack *k, int dir, const char *name);

/* All that is in it; takes fd. */
static int pack_inside(struct pack *k, int fd)
{
	struct folder f = folder_take(fd);
	size_t n = k->path_n;
	int rc = 0, found = 0;

	k->depth++;
	while (rc == 0 && (found = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;
		int more;

		if (is_left_out(k, name))
			continue;
		more = snprintf(k->path + n, sizeof(k->path) - n, "%s%s", n ? "/" : "", name);
		k->path_n = n + (size_t)more;
		rc = k->path_n >= TAR_PATH_MAX ? tar_pack_fail(k, TREE_DEEP, 0)
					       : pack_one(k, folder_fd(&f), name);
		k->path_n = n;
		k->path[n] = '\0';
	}
	k->depth--;
	if (found < 0)
		rc = tar_pack_fail(k, TREE_SYSTEM, f.errnum);
	folder_end(&f);
	return rc;
}

/* Takes over fd. A mount point is packed without its contents. */
static int pack_directory(struct pack *k, int fd, const struct stat *st)
{
	if (put_head(k, TAR_DIRECTORY, st, "") < 0 || st->st_dev != k->device) {
		close(fd);
		return k->f->what ? -1 : 0;
	}
	if (k->depth < TREE_DEPTH_MAX)
		return pack_inside(k, fd);
	close(fd);
	return tar_pack_fail(k, TREE_DEEP, 0);
}

/* The opened file is checked again, since the name may mean another one. */
static int pack_open(struct pack *k, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0) {
		int errnum = errno;

		close(fd);
		return tar_pack_fail(k, TREE_SYSTEM, errnum);
	}
	if (S_ISDIR(st.st_mode))
		return pack_directory(k, fd, &st);
	if (S_ISREG(st.st_mode))
		return pack_file(k, fd, &st);
	close(fd);
	return 0;
}

static int pack_one(struct pack *k, int dir, const char *name)
{
	struct stat st;
	int fd;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return vanished(errno) ? 0 : tar_pack_fail(k, TREE_SYSTEM, errno);
	if (S_ISLNK(st.st_mode))
		return pack_link(k, dir, name, &st);
	if (S_ISDIR(st.st_mode) && k->depth == 1 && (st.st_mode & 07777) == TREE_BARRIER)
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return pack_nothing(k);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd >= 0)
		return pack_open(k, fd);
	if (errno == EACCES && k->o->own && st.st_uid != geteuid())
		return S_ISDIR(st.st_mode) ? put_head(k, TAR_DIRECTORY, &st, "") : pack_nothing(k);
	return vanished(errno) ? 0 : tar_pack_fail(k, TREE_SYSTEM, errno);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int pack_all(struct pack *k, int top)
{
	struct stat st;

	if (fstat(top, &st) < 0) {
		int errnum = errno;

		close(top);
		return tar_pack_fail(k, TREE_SYSTEM, errnum);
	}
	k->device = st.st_dev;
	if (strcmp(k->o->name, ".") != 0) {
		k->path_n = (size_t)snprintf(k->path, sizeof(k->path), "%s", k->o->name);
		if (k->path_n >= TAR_PATH_MAX) {
			close(top);
			return tar_pack_fail(k, TREE_DEEP, 0);
		}
	}
	if (pack_open(k, top) < 0 || room(k, TAR_HEAD_MAX) < 0)
		return -1;
	if (k->f->left_out && k->o->own) {
		char text[TAR_COMMENT_MAX];

		snprintf(text, sizeof(text), "%u: %s", k->f->left_out, k->f->path);
		k->n += tar_comment(text, k->buffer + k->n);
	}
	return put_zeros(k, TAR_END_BYTES) < 0 ? -1 : tar_pack_flush(k);
}

int tar_pack(int dir, const char *name, const struct tar_pack_opts *o, int out,
	     struct tree_failure *f)
{
	struct pack *k = calloc(1, sizeof(*k));
	int top, rc;

	*f = (struct tree_failure){ .what = TREE_FINE };
	if (!k) {
		f->what = TREE_SYSTEM;
		f->errnum = ENOMEM;
		return -1;
	}
	k->o = o;
	k->f = f;
	k->out = out;
	k->links.bytes_max = LINKS_BYTES_MAX;
	top = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	rc = top < 0 ? tar_pack_fail(k, TREE_SYSTEM, errno) : pack_all(k, top);
	links_fini(&k->links);
	free(k);
	return rc;
}
