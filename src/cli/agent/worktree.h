#pragma once
/*
 * A branch that an agent works on in a git worktree beside the folder, so that the folder is left
 * as it is. What the agent changes there is hostile: git of the host never reads it by the
 * configuration of that repository, but by a repository of Holt's own (cli/ws/apply.h), which also
 * has the files of the start.
 */
#include <limits.h>

#include "base/err.h"

/* The worktree of the branch of the repository at folder, FOLDER-BRANCH; both are made where they
 * are missing. */
int agent_worktree_make(const char *folder, const char *branch, char ret[PATH_MAX],
			struct err *e) MUST_USE;
