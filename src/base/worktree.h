#pragma once
/* Worktrees of git (git-worktree(1)): a folder whose .git is a file. */
#include <limits.h>
#include <stdbool.h>

/* The git directory of the repository that the folder `top` (without links) is a worktree of, in
 * ret without links; false: it is none. Git's links both ways must agree, since whoever may write
 * the folder may have written its .git. */
bool worktree_common(const char *top, char ret[PATH_MAX]);
