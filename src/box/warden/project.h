#pragma once
/*
 * Project folders. In a folder of the host that a sandbox may write, some files and directories are
 * read by programs of the host, which then run what they say: hooks and configuration of git,
 * settings of editors and agents, profiles of shells. They stay as they are. Each is mounted on
 * itself read-only, so that it can neither be written, nor removed, nor renamed. Those that do not
 * exist yet are made for so long, as empty directories that git does not show, and removed behind
 * the last sandbox that has the folder.
 */
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct project {
	int lock; /* tells other wardens that the folder is in use; -1: nothing is held */
	uint32_t made; /* a bit for each entry that was missing */
};

/* Makes what is missing in the directory dir (O_PATH), which st is of. Also what failed is to be
 * released. ERR_DENIED: an entry is a link, which can't be kept as it is; ERR_CONFLICT: another
 * program has locked the folder. */
int project_hold(struct project *p, int dir, const struct stat *st, struct err *e) MUST_USE;

/* Removes what was made, unless another sandbox has the folder. */
void project_release(struct project *p);

/* In the sandbox's mount namespace: mounts the entries below the attached tree over themselves.
 * -1 with errno. */
int project_seal(int tree) MUST_USE;
