#pragma once
/*
 * Reads folders. readdir(3) gives NULL at the end and for an error alike, and a loop that takes one
 * for the other works with a list that is short: files are missing in a copy, or something is
 * deleted since nothing seems to need it. This is the only place that calls it
 * (scripts/check-layers).
 *
 *	autofolder struct folder f = folder_at(dir, "name");
 *	int more;
 *
 *	while ((more = folder_next(&f)) > 0)
 *		… f.entry->d_name …
 *	if (more < 0)
 *		return err_sys(e, f.errnum, "…");
 *
 * or, where the body does not need the function's own variables, folder_each().
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct folder {
	DIR *d; /* NULL: not open */
	const struct dirent *entry; /* valid until the next folder_next() */
	int errnum; /* of what failed */
};
#define FOLDER_NONE ((struct folder){ .d = NULL })
#define autofolder __attribute__((cleanup(folder_end)))

/* One that can't be opened fails with the first folder_next(). name "." reads dir itself, from its
 * start. A link is not followed. folder_end() in any case. */
static inline struct folder folder_at(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct folder f = { .d = fd < 0 ? NULL : fdopendir(fd) };

	if (f.d)
		return f;
	f.errnum = errno;
	if (fd >= 0)
		close(fd);
	return f;
}

/* Takes an open folder, which is closed in any case; it is read from where it is. */
static inline struct folder folder_take(int fd)
{
	struct folder f = { .d = fd < 0 ? NULL : fdopendir(fd) };

	f.errnum = f.d ? 0 : fd < 0 ? EBADF : errno;
	if (!f.d && fd >= 0)
		close(fd);
	return f;
}

/* The same for a path whose links are followed. */
static inline struct folder folder_of(const char *path)
{
	struct folder f = { .d = opendir(path) };

	f.errnum = f.d ? 0 : errno;
	return f;
}

/* 1 with f->entry, 0 at the end, -1 with errno and f->errnum. Leaves out "." and "..". A signal is
 * no error; a folder that is not open is one. */
static inline __attribute__((warn_unused_result)) int folder_next(struct folder *f)
{
	do {
		do {
			errno = 0;
			f->entry = f->d ? readdir(f->d) : NULL;
		} while (!f->entry && errno == EINTR);
	} while (f->entry &&
		 (strcmp(f->entry->d_name, ".") == 0 || strcmp(f->entry->d_name, "..") == 0));
	if (f->entry || (f->d && !errno))
		return f->entry ? 1 : 0;
	f->errnum = f->errnum ? f->errnum : errno ? errno : EBADF;
	errno = f->errnum;
	return -1;
}

static inline int folder_fd(const struct folder *f)
{
	return dirfd(f->d);
}

static inline void folder_end(struct folder *f)
{
	if (f->d)
		closedir(f->d);
	f->d = NULL;
}

/* Calls each for the entries of a folder in dir; what it returns if that is not 0, which ends it.
 * 0 at the end; -1 with errno where the folder can't be opened or read. */
static inline __attribute__((warn_unused_result)) int folder_each(
	int dir, const char *name, int (*each)(void *arg, int dir, const struct dirent *entry),
	void *arg)
{
	struct folder f = folder_at(dir, name);
	int rc = 0, more = 0;

	while (rc == 0 && (more = folder_next(&f)) > 0)
		rc = each(arg, folder_fd(&f), f.entry);
	folder_end(&f);
	if (more < 0)
		errno = f.errnum;
	return more < 0 ? -1 : rc;
}
