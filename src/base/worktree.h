#pragma once
/* Folders whose .git is a file that names a repository elsewhere: worktrees (git-worktree(1)),
 * submodules, and those of `git init --separate-git-dir`. */
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* The git directory that git needs beside the folder `top` (without links), in ret without links:
 * that of the repository which top is a worktree of, or which names top as its core.worktree.
 * false: there is none. Git's links both ways must agree, since whoever may write the folder may
 * have written its .git. */
bool worktree_common(const char *top, char ret[PATH_MAX]);

enum { WORKTREE_WHY_MAX = 1024 };

/* A folder that a sandbox is given; all borrowed. */
struct worktree_given {
	const char *top; /* on the host, without links */
	struct str inside;
	/* whether the sandbox has that path of the host, at the same path */
	bool (*has)(const void *data, const char *path);
	const void *data;
};

/* Why git can't work on the folder inside, and what to do about it. false: no reason was found. */
bool worktree_explain(const struct worktree_given *g, char ret[WORKTREE_WHY_MAX]);
