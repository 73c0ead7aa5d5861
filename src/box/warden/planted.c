/*
 * Links that a sandbox makes in the project's git directory. Git makes none there but writes
 * through them: with .git/COMMIT_EDITMSG as a link to a file of the home, the next `git commit` of
 * the host writes the sandbox's text into that file. A pipe holds git until somebody reads it.
 * Either is taken away at once, by the watch of seals.c, wherever git opens files that may exist:
 * in each directory but those of objects, whose files it makes anew (O_EXCL) and renames. There
 * the end of the sandbox removes it (left.c). Nothing of the user's is lost: neither has content.
 *
 * A directory may come with all that is in it, so each that comes is looked through. Where events
 * may be missing, or are too many, all is looked through again. A git directory that is too large
 * for that is one that a sandbox may not write.
 *
 * Between the making of a link and its removal git of the host may still follow it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/held_find.h"
#include "box/warden/internal.h"

enum {
	DIRS_MAX = 2048,
	ENTRIES_MAX = 1 << 17,
	DEPTH_MAX = 64,
	DIR_PATH_MAX = 1024,
	COME_MAX = 256, /* directories of one read of events that are not looked through with all */
	PAUSE_RATIO = 4, /* a sandbox can make as many as it likes, and others are served, too */
	PLANTED_TOLD_MAX = 20,
};

/* Directories that git and its extensions make in a git directory, but those that are sealed. One
 * that is given as a folder itself may have others, such as worktrees in a bare repository. */
static const char *const git_names[] = {
	"NOTES_MERGE_WORKTREE",
	"annex",
	"common",
	"info",
	"lfs",
	"logs",
	"lost-found",
	"objects",
	"rebase-apply",
	"rebase-merge",
	"refs",
	"reftable",
	"rr-cache",
	"sequencer",
	"svn",
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

static bool planted_is_top(const struct project *p, const char *path)
{
	return strcmp(path, p->is_git ? "." : ".git") == 0;
}

static void planted_look(struct project *p, int dir, const char *path, const char *name)
{
	char target[WIRE_PATH_MAX];

	/* what is sealed is the host's */
	if ((planted_is_top(p, path) && project_keeps(p, !p->is_git, name)) ||
	    !planted_take(p, dir, name, target))
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

/* ---- the directories ------------------------------------------------------------------------- */

/* Where one with that watch is in the table, or would be. */
static uint32_t planted_at(const struct project *p, int wd)
{
	uint32_t from = 0, to = p->n_git_dirs;

	while (from < to) {
		uint32_t at = (from + to) / 2;

		if (p->git_dirs[at].wd < wd)
			from = at + 1;
		else
			to = at;
	}
	return from;
}

static struct planted_dir *planted_get(const struct project *p, int wd)
{
	uint32_t at = planted_at(p, wd);

	return at < p->n_git_dirs && p->git_dirs[at].wd == wd ? &p->git_dirs[at] : NULL;
}

bool planted_has_watch(const struct project *p, int wd)
{
	return planted_get(p, wd) != NULL;
}

/* It may be there under another path: it was moved since. -1 with errno. */
static int planted_put(struct project *p, int wd, size_t base, const char *path)
{
	struct planted_dir *d = planted_get(p, wd), *v;
	uint32_t n = p->n_git_dirs, at = planted_at(p, wd);
	char *copy = d && strcmp(d->path, path) == 0 ? d->path : strdup(path);

	if (!copy)
		return -1;
	if (d && d->path != copy)
		free(d->path);
	if (!d && (n & (n - 1)) == 0) { /* there is room for a power of two */
		v = realloc(p->git_dirs, (n ? 2 * n : 1) * sizeof(*v));
		if (!v) {
			free(copy);
			return -1;
		}
		p->git_dirs = v;
	}
	if (!d) {
		d = &p->git_dirs[at];
		memmove(d + 1, d, (n - at) * sizeof(*d));
		p->n_git_dirs++;
	}
	*d = (struct planted_dir){ .wd = wd, .base = base, .path = copy };
	return 0;
}

/* Drops the watches of a table that p had, but those that it has again. */
static void planted_drop(const struct project *p, struct planted_dir *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		seals_drop(p, v[i].wd);
		free(v[i].path);
	}
	free(v);
}

bool planted_is_gits(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_LEN(git_names) && strcmp(git_names[i], name) != 0)
		i++;
	return i < ARRAY_LEN(git_names);
}

/* Whether a directory in that of the path needs no watch: only the host can write it, or git makes
 * each file in it anew. */
static bool planted_leaves_out(const struct project *p, size_t base, const char *path,
			       const char *name)
{
	const char *below = path + base;
	char whole[DIR_PATH_MAX + NAME_MAX + 2];
	bool known = !p->is_git || !planted_is_top(p, path);

	if (strcmp(below, "/objects") == 0)
		return strcmp(name, "info") != 0 && strcmp(name, "pack") != 0;
	if (strcmp(below, "/lfs/objects") == 0 || strcmp(below, "/annex/objects") == 0)
		return true;
	if (*below)
		return false;
	snprintf(whole, sizeof(whole), "%s/%s", path, name);
	for (uint32_t i = 0; i < p->held.n; i++) {
		if (p->held.v[i].how == HELD_SEALED && strcmp(p->held.v[i].path, whole) == 0)
			return true;
	}
	return !(known || planted_is_gits(name)) ||
	       (planted_is_top(p, path) && project_keeps(p, !p->is_git, name));
}

struct search {
	struct project *p;
	size_t base; /* as in struct planted_dir */
	unsigned dirs, entries;
};

static int search_directory(struct search *s, int parent, const char *name, const char *path);

static int search_too_large(void)
{
	errno = E2BIG;
	return -1;
}

static bool search_is_deep(const char *path)
{
	unsigned depth = 0;

	for (const char *at = path; *at; at++)
		depth += *at == '/';
	return depth > DEPTH_MAX;
}

static int search_entry(struct search *s, int dir, const char *path, const struct dirent *one)
{
	char below[DIR_PATH_MAX];
	unsigned char type = one->d_type;
	struct stat st;

	if (s->entries++ == ENTRIES_MAX)
		return search_too_large();
	if (type == DT_UNKNOWN && fstatat(dir, one->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		type = IFTODT(st.st_mode);
	if (type == DT_LNK || type == DT_FIFO)
		planted_look(s->p, dir, path, one->d_name);
	if (type != DT_DIR || planted_leaves_out(s->p, s->base, path, one->d_name))
		return 0;
	if (snprintf(below, sizeof(below), "%s/%s", path, one->d_name) >= (int)sizeof(below))
		return search_too_large();
	return search_directory(s, dir, one->d_name, below);
}

/* Watches it before it looks through it, so that nothing can come in between. -1 with errno. */
static int search_directory(struct search *s, int parent, const char *name, const char *path)
{
	int fd = held_open(parent, name, O_RDONLY | O_DIRECTORY, 0);
	autofolder struct folder f = folder_take(fd);
	int wd, more = 0;

	/* It is gone, or moved, which the watch tells; or it is somebody else's. */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES
			     ? 0
			     : -1;
	if (s->dirs++ >= DIRS_MAX || search_is_deep(path))
		return search_too_large();
	wd = f.d ? seals_add(fd, ".") : -1;
	if (wd < 0 || planted_put(s->p, wd, s->base, path) < 0)
		return -1;
	while ((more = folder_next(&f)) > 0) {
		if (search_entry(s, fd, path, f.entry) < 0)
			return -1;
	}
	return more < 0 && errno != ENOENT ? -1 : 0;
}

/* base: of a repository, or of a worktree's part of one. */
static int search_base(struct search *s, const char *base)
{
	s->base = strlen(base);
	return search_directory(s, s->p->lock, base, base);
}

static int search_all(struct search *s)
{
	const struct project *p = s->p;
	int rc = search_base(s, p->is_git ? "." : ".git");

	for (uint32_t i = 0; rc == 0 && i < p->held.n; i++) {
		if (p->held.v[i].how == HELD_OPEN &&
		    (p->is_git || strncmp(p->held.v[i].path, ".git/", 5) == 0))
			rc = search_base(s, p->held.v[i].path);
	}
	return rc;
}

int planted_watch(struct project *p, struct err *e)
{
	struct search s = { .p = p };
	struct planted_dir *was = p->git_dirs;
	uint32_t n_was = p->n_git_dirs;
	int failed;

	p->git_dirs = NULL;
	p->n_git_dirs = 0;
	failed = search_all(&s) < 0 ? errno : 0;
	planted_drop(p, was, n_was);
	if (failed == E2BIG)
		return err_set(e, ERR_DENIED,
			       "the git directory has more than %d directories beside those of "
			       "objects, too many files there, or too long paths, so links through "
			       "which git of the host would write can't be looked for; remove what "
			       "git does not need there, or rw-all gives the folder without that",
			       DIRS_MAX);
	if (failed == ENOSPC)
		return err_set(e, ERR_LIMIT,
			       "the git directory can't be watched: no watch is left to the user "
			       "(sysctl fs.inotify.max_user_watches)");
	return failed ? err_sys(e, failed, "watch the git directory") : 0;
}

void planted_forget(struct project *p)
{
	struct planted_dir *was = p->git_dirs;
	uint32_t n_was = p->n_git_dirs;

	p->git_dirs = NULL;
	p->n_git_dirs = 0;
	planted_drop(p, was, n_was);
}

static void planted_note_dir(struct project *p, const struct planted_dir *d, const char *name)
{
	const unsigned from = DIRS_MAX - COME_MAX + p->git_come;
	struct search s = { .p = p, .base = d->base, .dirs = from };
	char path[DIR_PATH_MAX];

	if (p->git_come >= COME_MAX || planted_leaves_out(p, d->base, d->path, name))
		return;
	if (p->n_git_dirs >= DIRS_MAX ||
	    snprintf(path, sizeof(path), "%s/%s", d->path, name) >= (int)sizeof(path) ||
	    search_directory(&s, p->lock, path, path) < 0)
		p->git_come = COME_MAX;
	else
		p->git_come += s.dirs - from;
}

void planted_note(struct project *p, const struct inotify_event *v)
{
	const struct planted_dir *d = planted_get(p, v->wd);
	autoclose int dir = -1;

	if (!d || !v->len || !(v->mask & (IN_CREATE | IN_MOVED_TO)))
		return;
	if (v->mask & IN_ISDIR) {
		planted_note_dir(p, d, v->name);
		return;
	}
	dir = held_open(p->lock, d->path, O_PATH | O_DIRECTORY, 0);
	if (dir >= 0)
		planted_look(p, dir, d->path, v->name);
}

int planted_chores(struct project *p, uint64_t now, int *ret_wait)
{
	struct err ignored = ERR_INIT;
	int rc;

	*ret_wait = -1;
	if (p->git_come < COME_MAX) {
		p->git_come = 0;
		return 0;
	}
	if (now < p->git_again_at) {
		*ret_wait = (int)(p->git_again_at - now);
		return 0;
	}
	p->git_come = 0;
	rc = planted_watch(p, &ignored);
	p->git_again_at = clock_ms() + PAUSE_RATIO * (clock_ms() - now);
	return rc;
}
