#pragma once
/* How what a sandbox has left is looked for; see left.c. In a process of its own. */
#include <stdbool.h>
#include <sys/stat.h>

#include "box/warden/internal.h"

enum left_class {
	LEFT_LISTED, /* never cut, as there are few: what the lists of the fixed names have */
	LEFT_RUNS, /* a repository that makes a program run something */
	LEFT_REBASE, /* one that was begun */
	LEFT_PLANTED, /* a link in a git directory */
	LEFT_OUT, /* a link elsewhere that leads out of the folder */
	LEFT_UNSEEN, /* a folder that could not be looked through */
	LEFT_PLAIN, /* a repository as `git init` and `git clone` make it */
	LEFT_NAMED, /* project_told */
	LEFT_CLASSES
};

enum { LEFT_TOLD_MAX = 20, LEFT_PATH_MAX = 400, LOOK_FD = 3 };

struct left {
	const struct project *project;
	uid_t owner; /* of the folder */
	unsigned n[LEFT_CLASSES];
	char plain[LEFT_TOLD_MAX][WIRE_PATH_MAX];
};

#define LEFT_NEW "is new, or was changed while a sandbox could write the folder: "
#define LEFT_GIT                                                                                   \
	LEFT_NEW "git runs what this repository's configuration says where you work in it, and "   \
		 "at the top if it was added as a submodule"

void left_tell(struct left *l, enum left_class class, const char *path, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* Both look at a path below dir. */
bool left_has(int dir, const char *path);
bool left_is_new(const struct left *l, int dir, const char *path);
/* An empty file may stand for what is missing (held.h), and says nothing. */
bool left_is_new_text(const struct left *l, int dir, const char *path);
/* Also of a directory in which something was written in place. */
bool left_has_new(const struct left *l, int dir, const char *path);

/* Looks at a directory below the top that has a name of what git has in a repository. path: its
 * own; named: it is called .git. */
void left_look_at_git(struct left *l, int git, const char *path, bool named);
/* Whether git takes a directory for a repository without a .git. */
bool left_is_bare(int dir);
/* Looks for what makes git of the host show less than there is, or something else. */
void left_look_for_hidden(struct left *l);
