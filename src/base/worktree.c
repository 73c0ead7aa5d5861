#include "base/worktree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gitconf.h"
#include "base/mem.h"
#include "base/path.h"

/* All of a small file of git's, NUL-terminated. NULL: it can't be read. */
static char *read_text(const char *dir, const char *name, size_t *ret_n)
{
	char path[PATH_MAX];
	autofree char *text = NULL;
	autoclose int fd = -1;
	struct stat st;
	ssize_t n;

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return NULL;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > GITCONF_BYTES_MAX)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0)
		return NULL;
	text[n] = '\0';
	*ret_n = (size_t)n;
	return take_ptr(text);
}

/* A path that a file in dir names. With worktree.useRelativePaths it starts at that directory. */
static bool worktree_join(const char *dir, const char *path, char ret[PATH_MAX])
{
	return *path &&
	       snprintf(ret, PATH_MAX, *path == '/' ? "%.0s%s" : "%s/%s", dir, path) < PATH_MAX;
}

/* The path that follows `before` in the file's first line. */
static bool read_line(const char *dir, const char *name, const char *before, char ret[PATH_MAX],
		      bool *ret_relative)
{
	size_t skip = strlen(before), n;
	autofree char *text = read_text(dir, name, &n);

	if (!text || strncmp(text, before, skip) != 0)
		return false;
	text[strcspn(text, "\r\n")] = '\0';
	*ret_relative = text[skip] != '/';
	return worktree_join(dir, text + skip, ret);
}

static bool leads_to(const char *path, const char *top)
{
	char real[PATH_MAX];

	return path_resolve(path, real) == 0 && strcmp(real, top) == 0;
}

/* The common directory of the worktree `top`, whose git directory is real, COMMON/worktrees/NAME:
 * in real. */
static bool find_common(const char *top, char real[PATH_MAX])
{
	char back[PATH_MAX];
	bool ignored;
	char *slash;

	if (!read_line(real, "gitdir", "", back, &ignored))
		return false;
	slash = strrchr(back, '/');
	if (!slash || strcmp(slash, "/.git") != 0)
		return false;
	*slash = '\0';
	if (!leads_to(back, top))
		return false;
	slash = strrchr(real, '/');
	if (!slash)
		return false;
	*slash = '\0';
	slash = strrchr(real, '/');
	if (!slash || slash == real || strcmp(slash, "/worktrees") != 0)
		return false;
	*slash = '\0';
	return true;
}

static int worktree_on_variable(void *data, const char *key, char *value)
{
	if (strcmp(key, "core.worktree") == 0)
		snprintf(data, PATH_MAX, "%s", value);
	return 0;
}

/* Whether real is a repository whose configuration says that its files are in top. */
static bool is_of(const char *top, const char *real)
{
	static const char *const parts[] = { "HEAD", "objects", "refs" };
	char path[PATH_MAX], said[PATH_MAX] = "";
	autofree char *text = NULL;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (snprintf(path, sizeof(path), "%s/%s", real, parts[i]) >= (int)sizeof(path) ||
		    faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return false;
	}
	text = read_text(real, "config", &n);
	return text && gitconf_read((struct str){ text, n }, worktree_on_variable, said) == 0 &&
	       worktree_join(real, said, path) && leads_to(path, top);
}

/* The directory that the .git of top names, without links: they must not lead elsewhere behind the
 * look. */
static bool find_named(const char *top, char ret[PATH_MAX], bool *ret_relative)
{
	char dir[PATH_MAX];

	return read_line(top, ".git", "gitdir: ", dir, ret_relative) && path_resolve(dir, ret) == 0;
}

bool worktree_common(const char *top, char ret[PATH_MAX])
{
	char real[PATH_MAX];
	bool ignored;

	if (!find_named(top, real, &ignored) || (!is_of(top, real) && !find_common(top, real)))
		return false;
	memcpy(ret, real, strlen(real) + 1);
	return true;
}

static bool has_file(const char *dir, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* The first directory of objects that git of the host uses beside its own, and the sandbox lacks:
 * a sandbox may have written the file that names it, so none is given by that alone. */
static bool find_objects(const struct worktree_given *g, const char *git, char ret[PATH_MAX])
{
	char dir[PATH_MAX], path[PATH_MAX], *rest;
	autofree char *text = NULL;
	size_t n;

	if (snprintf(dir, sizeof(dir), "%s/objects", git) >= (int)sizeof(dir))
		return false;
	text = read_text(dir, "info/alternates", &n);
	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (*line != '#' && worktree_join(dir, line, path) &&
		    path_resolve(path, ret) == 0 && !g->has(g->data, ret))
			return true;
	}
	return false;
}

bool worktree_explain(const struct worktree_given *g, char ret[WORKTREE_WHY_MAX])
{
	char git[PATH_MAX], more[PATH_MAX];
	bool relative = false, is_file = find_named(g->top, git, &relative);
	bool known = is_file && worktree_common(g->top, more);

	if (!is_file && snprintf(git, sizeof(git), "%s/.git", g->top) >= (int)sizeof(git))
		return false;
	if (known)
		memcpy(git, more, sizeof(git));
	if (is_file && !g->has(g->data, git) && !known)
		snprintf(ret, WORKTREE_WHY_MAX,
			 "its repository, %.300s, comes along only if it names the folder: run %s "
			 "in the folder",
			 git,
			 has_file(git, "commondir") ? "git worktree repair"
						    : "git config core.worktree \"$PWD\"");
	else if (is_file && !g->has(g->data, git))
		snprintf(ret, WORKTREE_WHY_MAX,
			 "its repository, %.300s, is not given as well, at that path", git);
	else if (is_file && (relative || is_of(g->top, git)) && !str_is(g->inside, g->top))
		snprintf(ret, WORKTREE_WHY_MAX,
			 "its repository names its path on the host: give it at %.300s", g->top);
	else if (find_objects(g, git, more))
		snprintf(ret, WORKTREE_WHY_MAX,
			 "its repository has objects in %.300s: give that as well, read-only and "
			 "at that path, or run git repack -a -d and remove objects/info/alternates",
			 more);
	else
		return false;
	return true;
}
