#pragma once
/* How held paths are found; see held.h. */
#include "base/str.h"
#include "box/warden/held.h"
#include "box/wire/wire.h"

/* What becomes of a path that does not exist. */
enum missing { MISSING_NOTHING, MISSING_DIRECTORY, MISSING_FILE };

enum place {
	PLACE_OUTSIDE,
	PLACE_MISSING,
	PLACE_FILE, /* or anything but a directory */
	PLACE_DIRECTORY,
	PLACE_FULL, /* a directory with something in it */
};

struct finder {
	const struct held_from *from;
	struct held *held;
	struct err *e;
	/* what takes time: words of values, and names on their ways */
	unsigned words, steps;
	const char *why; /* what names the paths that are being held, for messages */
	char base[WIRE_PATH_MAX]; /* path on the host from which relative ones start */
};

int held_too_long(struct finder *f); /* refuses: returns -1 */

/* Reads a file of the host as its programs would. 0: there is none. */
int held_read_host(const struct finder *f, const char *path, size_t most, char **ret,
		   size_t *ret_n);

/* Beneath dir, through no link. */
int held_open(int dir, const char *path, uint64_t flags, uint64_t mode);

/* Where a path leads: relative to the base, absolute on the host, or of somebody's home ("~/"). */
enum place held_place(struct finder *f, const char *path);
/* Holds it, with the directories and links on the way. Nothing if it is outside. */
int held_path(struct finder *f, const char *path, enum missing missing);

/* By its path below the folder, without links; adds what is above it, too. */
int held_add(struct finder *f, const char *path, enum held_how how, uint64_t made);

/* Makes an empty directory or file, unless something is there, and holds it. */
int held_make(struct finder *f, const char *path, bool is_dir);

/* What the repository with that git directory (absolute on the host) names, and that of its
 * submodules. top: path on the host of its files. */
int held_find_git(struct finder *f, const char *top, const char *gitdir, unsigned depth);

/* The git directory of a folder of the host, as an absolute path; false: its path is too long. */
bool held_git_dir(const struct finder *f, const char *top, char ret[WIRE_PATH_MAX]);
/* Holds what the repositories name that the folder is a part of. */
int held_find_above(struct finder *f);
/* Whether git's configuration says more than `git init` and `git clone` do. -1: it is malformed. */
int held_config_runs(struct str text);
/* Calls fn with each value, and with each word of it, that may name something; whole: all of it is
 * a path. Not 0: stops and returns it. */
typedef int held_word_fn(void *data, const char *word, bool whole);
int held_config_words(struct str text, held_word_fn *fn, void *data);
/* Whether the folder is a git directory whose core.worktree is a folder that the sandbox has, and
 * whose .git names it: a submodule. */
bool held_is_named(const struct finder *f);
/* Where the files of a worktree are, by its git directory's path below the folder; false: that is
 * none. */
bool held_worktree_of(const struct finder *f, const char *path, char ret[WIRE_PATH_MAX]);
