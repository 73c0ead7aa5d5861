#pragma once
/*
 * Paths of a project folder that its own contents make programs of the host act on, beside those of
 * the fixed list (box/wire/project.h): what the repository's configuration names (core.hooksPath,
 * include.path, core.fsmonitor, commands of aliases, filters and drivers, …), the .git of its
 * submodules, where links at names of the list lead, and worktrees that stand where the list would
 * keep all of it as it is.
 *
 * Every variable of the configuration counts but those that are known to be harmless, and every
 * word of its value that names something in the folder: git has more than a hundred variables that
 * name programs or files, and gets new ones. Configuration that is included is read, too, also from
 * outside the folder; that of the user or the machine is not.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"
#include "box/wire/project.h"
#include "box/wire/wire.h"

enum held_how {
	/* a directory above a held path: may be written, but neither moved nor removed */
	HELD_PINNED,
	HELD_SEALED, /* read-only, with all that is in it */
	HELD_OPEN, /* may be written, though what it is in is sealed */
};

struct held_path {
	char *path; /* below the folder */
	enum held_how how;
	uint64_t made; /* inode number of what was made there since nothing was; 0: nothing */
	bool barred; /* held_bar(): else it may be written */
	int watch; /* inotify's, of the directory that it is in; -1: none */
};

/* Each after all that are above it. */
struct held {
	struct held_path *v;
	uint32_t n, room;
};

struct held_from {
	int top; /* the folder */
	int root; /* the host's root */
	const char *host; /* path of the folder on the host, without links */
	const char *home; /* of its owner, on the host; "": it is not known */
	bool is_git; /* it is what .git is elsewhere: of worktrees, or of a submodule */
	bool is_home; /* it has what a home has */
	const struct stat *owner; /* of what is made */
	/* Whether the sandbox has that folder of the host: worktrees in such are worked in. */
	bool (*has)(const void *data, const char *path);
	const void *data;
};

/* The home of a folder's owner, by the host's files. "" if that, or where programs keep their
 * settings, is not known. */
void held_find_home(int root, const struct stat *owner, char ret[WIRE_PATH_MAX]);

/* Whether a name of the fixed list is to be made in a directory below the folder, or in "." itself:
 * a program of this host would act on it there without asking. */
bool held_is_needed(const struct held_from *from, const char *dir, const struct project_entry *n);

/* Whether the folder is the git directory of a worktree or submodule that the sandbox has. */
bool held_has_worktree(const struct held_from *from);

/* Adds what is not held yet. Something missing is made: an empty directory or file. ERR_DENIED:
 * what is named can't be held, such as all of the folder. */
int held_find(struct held *h, const struct held_from *from, struct err *e) MUST_USE;

/* errno, of what could not be held. A full file system is the host's: nothing in the sandbox helps.
 * Returns -1. */
int held_fail(struct err *e, const char *what);

/* Removes what was made, unless it is in use now. */
void held_remove(struct held *h, int top);

void held_free(struct held *h);

/* Whether a name of the directory with that watch is held. */
bool held_has(const struct held *h, int watch, const char *name);

/* As project_seal(). */
int held_seal(const struct held *h, int tree, bool again) MUST_USE;

/* As project_bar(): what is sealed stays so. */
int held_bar(struct held *h, int tree, bool bar) MUST_USE;
