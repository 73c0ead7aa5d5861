/*
 * Links that a sandbox makes in the project's git directory. Git makes none there but writes
 * through them: with .git/COMMIT_EDITMSG as a link to a file of the home, the next `git commit` of
 * the host writes the sandbox's text into that file. A pipe holds git until somebody reads it.
 * Either is taken away: at once where git writes the most, by the watch of seals.c, and elsewhere
 * when the sandbox ends (left.c). Nothing of the user's is lost, as neither has content.
 *
 * Between the making of a link and its removal git of the host may still follow it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/held_find.h"
#include "box/warden/internal.h"

enum { GIT_DIRS = 64, SCAN_MAX = 1000, PLANTED_TOLD_MAX = 20 };

/* The watched directories of a repository, and of each of its worktrees that the sandbox has. */
static const char *const dirs[] = {
	"",
	"/info",
	"/logs",
	"/logs/refs",
	"/logs/refs/heads",
	"/logs/refs/remotes",
	"/objects/info",
	"/refs",
	"/refs/heads",
	"/refs/remotes",
	"/refs/tags",
};

/* HEAD as git had it before it had symbolic references (core.preferSymlinkRefs). */
static bool planted_is_head(const char *name, const char *target)
{
	return strcmp(name, "HEAD") == 0 && strncmp(target, "refs/", 5) == 0 &&
	       !strstr(target, "..");
}

bool planted_is(int dir, const char *name, struct stat *st)
{
	return fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (S_ISLNK(st->st_mode) || S_ISFIFO(st->st_mode));
}

bool planted_take(const struct project *p, int dir, const char *name,
		  char ret_target[WIRE_PATH_MAX])
{
	struct stat st;
	ssize_t n;

	ret_target[0] = '\0';
	if (!planted_is(dir, name, &st) || !project_is_new(p, &st))
		return false;
	n = S_ISLNK(st.st_mode) ? readlinkat(dir, name, ret_target, WIRE_PATH_MAX - 1) : 0;
	ret_target[n > 0 ? n : 0] = '\0';
	return !planted_is_head(name, ret_target) && unlinkat(dir, name, 0) == 0;
}

static void planted_look(struct project *p, int dir, const char *path, const char *name)
{
	bool top = strcmp(path, p->is_git ? "." : ".git") == 0;
	char target[WIRE_PATH_MAX];

	/* what is sealed is the host's */
	if ((top && project_keeps(p, !p->is_git, name)) || !planted_take(p, dir, name, target))
		return;
	if (p->planted == PLANTED_TOLD_MAX)
		log_warn("%.200s: more links that a sandbox makes in the git directory are removed "
			 "and not told",
			 p->of.host);
	if (p->planted++ < PLANTED_TOLD_MAX)
		log_warn("%.200s/%.200s/%.200s was made by a sandbox, and is removed: git would "
			 "have written through it%s%.200s",
			 p->of.host, path, name, *target ? " to " : "", target);
}

/* Looks at what was there before the watch. The number is bounded: a sandbox may make many. */
static void planted_scan(struct project *p, int dir, const char *path)
{
	autofolder struct folder f = folder_at(dir, ".");

	for (unsigned n = 0; n < SCAN_MAX && folder_next(&f) > 0; n++) {
		if (f.entry->d_type == DT_LNK || f.entry->d_type == DT_FIFO ||
		    f.entry->d_type == DT_UNKNOWN)
			planted_look(p, dir, path, f.entry->d_name);
	}
}

static void planted_watch_below(struct project *p, size_t *at, const char *base)
{
	for (size_t i = 0; i < ARRAY_LEN(dirs) && *at < GIT_DIRS; i++) {
		struct planted_dir *d = &p->git_dirs[(*at)++];
		autoclose int dir = -1;
		int was = d->wd;

		if (snprintf(d->path, sizeof(d->path), "%s%s", base, dirs[i]) >=
		    (int)sizeof(d->path))
			continue;
		dir = held_open(p->lock, d->path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		d->wd = dir < 0 ? -1 : seals_add(dir, ".");
		if (was >= 0 && was != d->wd)
			seals_drop(p, was);
		if (d->wd >= 0 && d->wd != was)
			planted_scan(p, dir, d->path);
	}
}

void planted_watch(struct project *p)
{
	size_t at = 0;

	if (!p->git_dirs) {
		p->git_dirs = calloc(GIT_DIRS, sizeof(*p->git_dirs));
		for (size_t i = 0; p->git_dirs && i < GIT_DIRS; i++)
			p->git_dirs[i].wd = -1;
	}
	if (!p->git_dirs)
		return; /* what is there is still removed at the end */
	planted_watch_below(p, &at, p->is_git ? "." : ".git");
	for (uint32_t i = 0; i < p->held.n; i++) {
		if (p->held.v[i].how == HELD_OPEN &&
		    (p->is_git || strncmp(p->held.v[i].path, ".git/", 5) == 0))
			planted_watch_below(p, &at, p->held.v[i].path);
	}
}

static struct planted_dir *planted_get(const struct project *p, int wd)
{
	for (size_t i = 0; p->git_dirs && i < GIT_DIRS; i++) {
		if (p->git_dirs[i].wd == wd)
			return &p->git_dirs[i];
	}
	return NULL;
}

bool planted_has_watch(const struct project *p, int wd)
{
	return planted_get(p, wd) != NULL;
}

void planted_forget(struct project *p)
{
	for (size_t i = 0; p->git_dirs && i < GIT_DIRS; i++) {
		int wd = p->git_dirs[i].wd;

		p->git_dirs[i].wd = -1;
		if (wd >= 0)
			seals_drop(p, wd);
	}
	free(p->git_dirs);
	p->git_dirs = NULL;
}

bool planted_note(struct project *p, int wd, const char *name)
{
	const struct planted_dir *d = planted_get(p, wd);
	autoclose int dir = d ? held_open(p->lock, d->path, O_PATH | O_DIRECTORY, 0) : -1;
	struct stat st;

	if (dir < 0)
		return false;
	planted_look(p, dir, d->path, name);
	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}
