#include "base/worktree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"

/* A small file of git's: the path that follows `before` in its first line. */
static bool read_line(const char *dir, const char *name, const char *before, char ret[PATH_MAX])
{
	size_t skip = strlen(before);
	char path[PATH_MAX], text[PATH_MAX];
	autoclose int fd = -1;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	if (strncmp(text, before, skip) != 0 || !text[skip])
		return false;
	/* with worktree.useRelativePaths it starts at the file's directory */
	return snprintf(ret, PATH_MAX, text[skip] == '/' ? "%.0s%s" : "%s/%s", dir, text + skip) <
	       PATH_MAX;
}

bool worktree_common(const char *top, char ret[PATH_MAX])
{
	char dir[PATH_MAX], back[PATH_MAX], real[PATH_MAX];
	char *slash;

	/* links first: they must not lead elsewhere behind the look */
	if (!read_line(top, ".git", "gitdir: ", dir) || path_resolve(dir, real) < 0 ||
	    !read_line(real, "gitdir", "", back))
		return false;
	slash = strrchr(back, '/');
	if (!slash || strcmp(slash, "/.git") != 0)
		return false;
	*slash = '\0';
	if (path_resolve(back, dir) < 0 || strcmp(dir, top) != 0)
		return false;
	slash = strrchr(real, '/'); /* COMMON/worktrees/NAME */
	if (!slash)
		return false;
	*slash = '\0';
	slash = strrchr(real, '/');
	if (!slash || slash == real || strcmp(slash, "/worktrees") != 0)
		return false;
	*slash = '\0';
	memcpy(ret, real, strlen(real) + 1);
	return true;
}
