/* Holds the names of the fixed list, and worktrees; see held.h. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/folder.h"
#include "base/mem.h"
#include "box/warden/held_find.h"
#include "box/wire/project.h"

enum { WORKTREES_MAX = 256 };

static bool is_link(int dir, const char *path)
{
	autoclose int fd = held_open(dir, path, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Targets of links on the list are sealed like the names themselves. */
static int hold_links(struct finder *f)
{
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];
		const char *path = project_path(n, f->from->is_git);

		if (!path || n->bare || !is_link(f->from->top, path))
			continue;
		snprintf(f->base, sizeof(f->base), "%s", f->from->host);
		f->why = n->path;
		if (held_path(f, path, MISSING_DIRECTORY) < 0)
			return -1;
	}
	return 0;
}

/* Calls fn with the path below the folder of each directory in dir. */
static int each_directory(struct finder *f, const char *dir,
			  int (*fn)(struct finder *f, const char *path))
{
	int fd = held_open(f->from->top, dir, O_RDONLY | O_DIRECTORY, 0);
	autofolder struct folder d = folder_take(fd);
	unsigned n = 0;
	int rc = 0, more = 0;

	if (fd < 0)
		return 0;
	while (rc == 0 && (more = folder_next(&d)) > 0) {
		unsigned char type = d.entry->d_type;
		char path[WIRE_PATH_MAX];

		snprintf(path, sizeof(path), "%.2000s/%s", dir, d.entry->d_name);
		if (d.entry->d_name[0] == '.' || is_link(f->from->top, path) ||
		    (type != DT_DIR && type != DT_UNKNOWN))
			continue;
		rc = n++ < WORKTREES_MAX
			   ? fn(f, path)
			   : err_set(f->e, ERR_DENIED,
				     "this folder has more than %d worktrees; rw-all gives it "
				     "without protecting them",
				     WORKTREES_MAX);
	}
	return more < 0 ? err_sys(f->e, d.errnum, "list worktrees") : rc;
}

/* The list for a worktree within the folder. */
static int hold_inner(struct finder *f, const char *path)
{
	char inner[WIRE_PATH_MAX];

	if (held_add(f, path, HELD_OPEN, 0) < 0)
		return -1;
	snprintf(f->base, sizeof(f->base), "%s", f->from->host);
	for (size_t i = 0; i < ARRAY_LEN(project_entries); i++) {
		const struct project_entry *n = &project_entries[i];

		if (strchr(n->path, '/') || n->of_home || n->bare)
			continue;
		snprintf(inner, sizeof(inner), "%.3000s/%s", path, n->path);
		f->why = n->path;
		if (held_path(f, inner,
			      held_is_needed(f->from, path, n) ? MISSING_DIRECTORY
							       : MISSING_NOTHING) < 0)
			return -1;
	}
	return 0;
}

static int is_worktree(struct finder *f, const char *path)
{
	char top[WIRE_PATH_MAX];

	return held_worktree_of(f, path, top) && f->from->has(f->from->data, top);
}

bool held_has_worktree(const struct held_from *from)
{
	struct err ignored = ERR_INIT;
	struct finder f = { .from = from, .e = &ignored };

	return held_is_named(&f) || each_directory(&f, "worktrees", is_worktree) > 0;
}

/* One of a repository's, if the sandbox has the files of it. Git's links both ways tell. */
static int hold_worktree(struct finder *f, const char *path)
{
	static const char *const sealed[] = { "commondir", "gitdir" };
	char at[WIRE_PATH_MAX], top[WIRE_PATH_MAX], dir[WIRE_PATH_MAX];

	if (!held_worktree_of(f, path, top) || !f->from->has(f->from->data, top))
		return 0;
	if (held_add(f, path, HELD_OPEN, 0) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(sealed); i++) {
		snprintf(at, sizeof(at), "%.3000s/%s", path, sealed[i]);
		if (held_add(f, at, HELD_SEALED, 0) < 0)
			return -1;
	}
	snprintf(at, sizeof(at), "%.3000s/config.worktree", path);
	if (held_make(f, at, false) < 0)
		return -1;
	snprintf(at, sizeof(at), "%.3000s/modules", path);
	if (held_make(f, at, true) < 0)
		return -1;
	snprintf(f->base, sizeof(f->base), "%s", top); /* its own .git, if it is in the folder */
	f->why = "a worktree";
	if (held_path(f, ".git", MISSING_NOTHING) < 0)
		return -1;
	snprintf(dir, sizeof(dir), "%.1000s/%.3000s", f->from->host, path);
	return held_find_git(f, top, dir, 0);
}

/* Mercurial's configuration, where the folder is a repository of it. */
static int hold_mercurial(struct finder *f)
{
	static const char *const paths[] = { ".hg/hgrc", ".hg/hgrc-not-shared", ".hg/requires" };

	snprintf(f->base, sizeof(f->base), "%s", f->from->host);
	f->why = ".hg";
	if (held_place(f, ".hg") != PLACE_FULL)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		if (held_path(f, paths[i], MISSING_FILE) < 0)
			return -1;
	}
	return 0;
}

int held_find(struct held *h, const struct held_from *from, struct err *e)
{
	struct finder f = { .from = from, .held = h, .e = e };
	char dir[WIRE_PATH_MAX];

	if (hold_links(&f) < 0)
		return -1;
	if (!from->is_git &&
	    (hold_mercurial(&f) < 0 || each_directory(&f, ".claude/worktrees", hold_inner) < 0))
		return -1;
	if (from->is_git)
		snprintf(dir, sizeof(dir), "%s", from->host);
	else if (!held_git_dir(&f, from->host, dir))
		dir[0] = '\0';
	if (held_find_git(&f, from->host, dir, 0) < 0 || held_find_above(&f) < 0)
		return -1;
	return each_directory(&f, from->is_git ? "worktrees" : ".git/worktrees", hold_worktree);
}
