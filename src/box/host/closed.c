#include "box/host/closed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"

int closed_init(struct closed *c, const char *const *paths, size_t n, struct err *e)
{
	*c = (struct closed){ .n = 0 };
	if (n > CLOSED_MAX)
		return err_set(e, ERR_BUG, "more than %d folders are closed", CLOSED_MAX);
	for (; c->n < n; c->n++) {
		c->paths[c->n] = strdup(paths[c->n]);
		if (!c->paths[c->n]) {
			closed_fini(c);
			return err_set(e, ERR_LIMIT, "out of memory");
		}
	}
	return 0;
}

void closed_fini(struct closed *c)
{
	while (c->n)
		free(c->paths[--c->n]);
}

/* Cuts the last name off; false: nothing is above it. */
static bool go_up(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || !path[1])
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* The real path of the nearest of those above it that is there; *ret_there: it is itself. */
static int find_nearest(const char *path, char ret[PATH_MAX], bool *ret_there)
{
	char at[PATH_MAX];

	if (strlen(path) >= sizeof(at))
		return -1;
	strcpy(at, path);
	*ret_there = true;
	while (!realpath(at, ret)) {
		*ret_there = false;
		if (!go_up(at))
			return -1;
	}
	return 0;
}

/* Whether a real path is a file or folder, or stands in it: by what they are, since a folder can have several names. */
static bool stands_in(const char *path, const struct stat *folder)
{
	char at[PATH_MAX];
	struct stat st;

	strcpy(at, path);
	do {
		if (stat(at, &st) == 0 && st.st_dev == folder->st_dev &&
		    st.st_ino == folder->st_ino)
			return true;
	} while (go_up(at));
	return false;
}

/* What can't be looked at is closed. */
static bool meets(const char *closed, const char *host, const struct stat *host_is)
{
	char nearest[PATH_MAX];
	struct stat st;
	bool there;

	if (find_nearest(closed, nearest, &there) < 0 || stat(nearest, &st) < 0)
		return true;
	return stands_in(nearest, host_is) || (there && stands_in(host, &st));
}

int closed_check(const struct closed *c, const char *host, struct err *e)
{
	char real[PATH_MAX];
	struct stat st;

	if (!realpath(host, real) || stat(real, &st) < 0)
		return 0;
	for (size_t i = 0; i < c->n; i++) {
		if (meets(c->paths[i], real, &st))
			return err_set(e, ERR_DENIED,
				       "%.200s holds, or is held by, a folder of Holt itself "
				       "(its token, registry, sockets), which no sandbox is given",
				       host);
	}
	return 0;
}
