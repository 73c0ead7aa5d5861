#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"

enum { LINKS_MAX = 40 };

/* One step from the path that begins at `from`. */
static int path_step(struct buf *to, size_t from, bool absolute, struct str name, struct err *e)
{
	struct str so_far = { to->p + from, to->n - from };
	size_t last = so_far.n;

	if (name.n == 0 || str_is(name, "."))
		return 0;
	while (last > 0 && so_far.p[last - 1] != '/')
		last--;
	if (str_is(name, "..") && so_far.n > 0 &&
	    !str_is((struct str){ so_far.p + last, so_far.n - last }, "..")) {
		to->n = from + (last > 0 ? last - 1 : 0);
		return 0;
	}
	if (absolute && str_is(name, ".."))
		return 0;
	if ((absolute || so_far.n > 0) && buf_add(to, "/", 1, e) < 0)
		return -1;
	return buf_add(to, name.p, name.n, e);
}

static int path_steps(struct buf *to, size_t from, bool absolute, struct str path, struct err *e)
{
	while (path.n > 0) {
		const char *slash = memchr(path.p, '/', path.n);
		size_t n = slash ? (size_t)(slash - path.p) : path.n;

		if (path_step(to, from, absolute, (struct str){ path.p, n }, e) < 0)
			return -1;
		n += slash != NULL;
		path = (struct str){ path.p + n, path.n - n };
	}
	return 0;
}

int path_spell(struct str base, struct str said, struct buf *to, struct err *e)
{
	bool whole = str_starts(said, "/"), absolute = whole || str_starts(base, "/");
	size_t from = to->n;

	if ((!whole && path_steps(to, from, absolute, base, e) < 0) ||
	    path_steps(to, from, absolute, said, e) < 0)
		return -1;
	return to->n > from ? 0 : buf_add(to, absolute ? "/" : ".", 1, e);
}

int path_make(const char *path, struct err *e)
{
	char part[PATH_MAX];

	for (const char *end = path; *end;) {
		end = strchrnul(end + 1, '/');
		if (snprintf(part, sizeof(part), "%.*s", (int)(end - path), path) >= PATH_MAX)
			return err_set(e, ERR_INVALID, "the path of Holt's folder is too long");
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return err_sys(e, errno, "make %.120s", part);
	}
	return 0;
}

int path_of_fd(int fd, char ret[PATH_MAX])
{
	char self[64];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, ret, PATH_MAX);
	if (n == PATH_MAX)
		errno = ENAMETOOLONG;
	if (n < 0 || n == PATH_MAX)
		return -1;
	ret[n] = '\0';
	return 0;
}

static int open_plain(const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Whether what stands at the n bytes of path stands in a folder that we may write. */
static bool is_writable(const char *path, size_t n)
{
	char folder[PATH_MAX];

	while (n > 0 && path[n - 1] != '/')
		n--;
	snprintf(folder, sizeof(folder), "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
	return faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) == 0;
}

/* Puts where the first link of the path leads into its place; *refused is its name where that may
 * not be. */
static int follow_first(char path[PATH_MAX], char refused[PATH_MAX])
{
	char part[PATH_MAX], real[PATH_MAX], rest[PATH_MAX];
	struct stat st;

	for (size_t n = 0; path[n];) {
		n += strspn(path + n, "/");
		n += strcspn(path + n, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, path);
		if (lstat(part, &st) < 0)
			return -1;
		if (!S_ISLNK(st.st_mode))
			continue;
		if (is_writable(path, n)) {
			memcpy(refused, part, sizeof(part));
			errno = ELOOP;
			return -1;
		}
		if (!realpath(part, real))
			return -1;
		memcpy(rest, path + n, strlen(path + n) + 1);
		if ((size_t)snprintf(path, PATH_MAX, "%s%s", real, rest) < PATH_MAX)
			return 0;
		errno = ENAMETOOLONG;
		return -1;
	}
	return 0; /* it has gone meanwhile */
}

int path_resolve(const char *path, char ret[PATH_MAX])
{
	char at[PATH_MAX];

	if ((size_t)snprintf(at, sizeof(at), "%s", path) >= sizeof(at)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (int i = 0; i < LINKS_MAX; i++) {
		autoclose int fd = open_plain(at);

		if (fd >= 0)
			return path_of_fd(fd, ret);
		if (errno != ELOOP || follow_first(at, ret) < 0)
			return -1;
	}
	memcpy(ret, at, sizeof(at));
	errno = ELOOP;
	return -1;
}
