#pragma once
/*
 * Project folders. In a folder of the host that a sandbox may write, some files and directories are
 * read by programs of the host, which then run what they say: hooks and configuration of git,
 * settings of editors and agents, profiles of shells. They stay as they are. Each is mounted on
 * itself read-only (sealed), so that it can neither be written, nor removed, nor renamed. Those
 * that do not exist yet are made for so long, as empty directories or sockets, which git does not
 * show, and removed behind the last sandbox that has the folder. Some the owner may fill meanwhile,
 * as `git worktree add` does; those stay then.
 *
 * The kernel takes a seal away when the host replaces or removes what is below it, as `git config`
 * does. So the folder is watched, and sealed again (seals.c).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct project {
	int lock; /* tells other wardens that the folder is in use; -1: nothing is held */
	uint64_t made; /* a bit for each entry that was missing */
	uint64_t kept; /* a bit for each that is sealed */
	int tree; /* its mount in the sandbox; -1: there is none */
	int top, git; /* inotify's watches of the folder and of its .git; -1: none */
	/* something kept was replaced, or was removed, and is not sealed again */
	bool broken, gone;
};
#define PROJECT_INIT ((struct project){ .lock = -1, .tree = -1, .top = -1, .git = -1 })

/* Makes what is missing in the directory dir (O_PATH), which st is of. Also what failed is to be
 * released. ERR_DENIED: an entry is a link, which can't be kept as it is; ERR_CONFLICT: another
 * program has locked the folder. */
int project_hold(struct project *p, int dir, const struct stat *st, struct err *e) MUST_USE;

/* Makes what is kept and missing again. -1 with errno. */
int project_hold_again(struct project *p) MUST_USE;

/* Removes what was made, unless another sandbox has the folder. */
void project_release(struct project *p);

/* Whether a name in the folder, or with in_git in its .git, is sealed. */
bool project_keeps(const struct project *p, bool in_git, const char *name);

/* In the sandbox's mount namespace: mounts the kept entries below the attached tree over
 * themselves; again: those on which nothing is mounted any more. -1 with errno. */
int project_seal(int tree, uint64_t kept, bool again) MUST_USE;
