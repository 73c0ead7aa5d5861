#pragma once
/*
 * Project folders. In a folder of the host that a sandbox may write, some files and directories are
 * read by programs of the host, which then run what they say: hooks and configuration of git,
 * settings of editors and agents, profiles of shells, and what these name (held.h). They stay as
 * they are. Each is mounted on itself read-only (sealed), so that it can neither be written, nor
 * removed, nor renamed. Those that do not exist yet are made for so long, as empty directories,
 * which git does not show, and removed behind the last sandbox that has the folder. Their
 * owner may fill the directories meanwhile, as `git init` and editors do; those stay then.
 *
 * The kernel takes a seal away when the host replaces or removes what is below it, as `git config`
 * does. So the folder is watched, and sealed again (seals.c).
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "box/warden/held.h"

/* The project that it is part of; borrowed as long as that is held. */
struct project_of {
	const char *host; /* its path on the host */
	bool (*has)(const void *data, const char *path); /* held_from.has */
	const void *data;
};

struct project {
	struct project_of of;
	int lock; /* tells other wardens that the folder is in use; -1: nothing is held */
	uint64_t made; /* a bit for each entry that was missing */
	uint64_t kept; /* a bit for each that is sealed */
	struct held held; /* what is sealed beside those */
	int tree; /* its mount in the sandbox; -1: there is none */
	struct timespec since; /* a sandbox may write it; 0: none could */
	int top, git; /* inotify's watches of the folder and of its .git; -1: none */
	struct planted_dir *git_dirs; /* planted.c: by their watches */
	uint32_t n_git_dirs;
	unsigned git_come; /* how many came with the events that are being read, if not too many */
	uint64_t git_again_at; /* clock_ms(): all of them may be looked through */
	unsigned planted; /* how many links were taken away while it was watched */
	/* It was given to a sandbox that ended with its warden: which changes are the sandbox's is
	 * not known. */
	bool past;
	/* It is itself what .git is elsewhere, and the sandbox has a worktree of it. */
	bool is_git;
	bool folds; /* the file system ignores case */
	bool modeless; /* the file system does not keep the modes of what is made */
	/* something kept was replaced, or was removed, and is not sealed again */
	bool broken, gone;
	bool barred; /* project_bar() */
	unsigned repositories; /* left_repositories() at the start */
	uint64_t hidden; /* left_hidden(), too */
};
#define PROJECT_INIT ((struct project){ .lock = -1, .tree = -1, .top = -1, .git = -1 })

/* Makes what is missing in the directory dir (O_PATH); of is set. Also what failed
 * is to be released. ERR_DENIED: something can't be kept as it is; ERR_CONFLICT: another program
 * has locked the folder. */
int project_hold(struct project *p, int dir, struct err *e) MUST_USE;

/* Whether a folder of the host with that path is a program's own state, as ~/.codex is, and no
 * project. */
bool project_is_state(const char *path);

/* The folder's contents may make programs act on more names now. */
int project_look_again(struct project *p, struct err *e) MUST_USE;

/* Whether what dir has there was made, renamed or changed since a sandbox may write the folder. */
bool project_is_new(const struct project *p, const struct stat *st);

/* Makes what is kept and missing again. -1 with errno. */
int project_hold_again(struct project *p) MUST_USE;

/* Whether the host has removed the folder. Nothing can be made in it any more. */
bool project_is_removed(const struct project *p);

/* Removes what was made, unless another sandbox has the folder. */
void project_release(struct project *p);

/* Whether a name in the folder, or with in_git in its .git, is sealed. */
bool project_keeps(const struct project *p, bool in_git, const char *name);

/* In the sandbox's mount namespace: mounts what is kept below the attached tree over itself; again:
 * that on which nothing is mounted any more. -1 with errno. */
int project_seal(const struct project *p, int tree, bool again) MUST_USE;

/* There, too: makes the folder read-only, for as long as not all of it can be sealed; or writable
 * again. -1 with errno. EBUSY: a program has a file open for writing. */
int project_bar(struct project *p, bool bar) MUST_USE;
