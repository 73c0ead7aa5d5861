#pragma once
/*
 * `holt ws apply`: the changes of a revision, in a folder of the operator's.
 *
 * git compares and merges, in a bare repository of Holt's own, so that no hook and no configuration
 * of the folder's repository acts. It never writes into the folder: Holt does, one file at a time,
 * without following links and mounts, since somebody else may have the folder, too.
 *
 * Three trees are merged: the base (what was applied to the folder or imported from it last), the
 * folder as it is, and the revision. Only files that the base or the revision has are looked at.
 * The result is a commit; its first parent is the folder as it was, its second one the next base:
 *
 *	DATA/applied/KEY/imported	a newer base: workspace and revision of an import
 *	DATA/applied/KEY/modes		permissions of the files that the last apply removed
 *	DATA/applied/KEY/git		the repository, with these branches:
 *		begun			an apply that has begun to change the folder
 *		last			the last one that ended
 *		agent/BRANCH		the last one of an agent's worktree, or its start
 *		kept/ID			what there was where an interrupted one could not be taken
 *					back, and what it had set aside
 *	DIR/.holt-apply-KEY/N		new files, each of which changes places with an old one
 *
 * To undo one and to take an interrupted one back is a merge as well: its result is the base, and
 * the folder as it was is the revision. All that an apply replaces is in the repository before.
 */
#include <signal.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cli/common/git.h"
#include "cli/ws/git.h"

enum { APPLY_LINK = 0120000, APPLY_PROGRAM = 0100755, APPLY_MODES_MAX = 256 << 20 };

struct apply_id {
	char hex[COMMIT_HEX_MAX + 1]; /* "": none */
};

/* A file of the folder as it was when it was read. */
struct apply_seen {
	const char *path;
	struct stat st;
};

/* One file that becomes another. */
struct apply_op {
	const char *path;
	unsigned old, new; /* git's modes; 0: it is not there */
	struct apply_id content; /* the new one */
	const struct apply_seen *seen; /* the old one; NULL: none */
};

struct apply {
	struct arena arena;
	int dir, data, stage; /* stage -1: none */
	char stage_name[40];
	char folder[PATH_MAX], data_path[PATH_MAX], repository[PATH_MAX];
	bool force, guarded; /* guarded: files that programs of this machine act on, too */
	size_t conflicts, left_out; /* as they were told on standard error */
	struct apply_seen *seen; /* sorted */
	size_t seen_n;
	struct apply_id here, result; /* trees: the folder, and what it is to be */
	struct apply_op *ops; /* from one to the other, sorted */
	size_t n;
	sigset_t held; /* the signals that could end the program before apply_hold() */
	bool holds;
	struct buf modes; /* "MODE PATH" and a NUL, for each file that may come back */
	bool undo; /* it brings back old files */
	bool takes_back; /* the same; signals don't end apply_write() then */
	const char *record; /* the branch that has this apply when it has ended, such as "last" */
};

/* ---- apply.c: the order of it ---------------------------------------------------------------- */

enum { APPLY_DECLINED = 1, APPLY_CONFLICTS = 3 }; /* of apply_go() */

/* Finds and locks the folder, and takes back what was interrupted there, as it tells. The caller
 * calls apply_close() in any case. */
int apply_open(struct apply *a, const char *folder, struct err *e) MUST_USE;
/* Reads lines for `git update-ref --stdin`. */
int apply_refs(const struct apply *a, const char *rows, struct err *e) MUST_USE;
/* The commit that stands for an apply. */
int apply_record(struct apply *a, const char *message, const struct apply_id *base,
		 const struct apply_id *next, struct apply_id *ret, struct err *e) MUST_USE;
/* Shows the plan, asks unless `yes`, and changes the folder. next: the base after it. Returns the
 * exit status. */
int apply_go(struct apply *a, const char *name, bool yes, const struct apply_id *base,
	     const struct apply_id *next, struct err *e) MUST_USE;

/* ---- apply_write.c: the folder --------------------------------------------------------------- */

/* Finds the folder and what Holt knows of it. The caller calls apply_close() in any case. */
int apply_find(struct apply *a, const char *folder, struct err *e) MUST_USE;
/* ERR_CONFLICT: another apply goes on in it. */
int apply_lock(const struct apply *a, struct err *e) MUST_USE;
void apply_close(struct apply *a);

/* 1: *ret is what has this path in the folder; 0: nothing. -1 with errno; ELOOP: a link is in the
 * way, EXDEV: a mount. */
int apply_look(const struct apply *a, const char *path, struct stat *ret) MUST_USE;

/* What was seen, for reading; of a link, where it leads. -1 with errno; ESTALE: it is another. */
int apply_open_seen(const struct apply *a, const struct apply_seen *s) MUST_USE;

/* Makes the changes of a->ops, or fails and leaves some of them. */
int apply_write(struct apply *a, struct err *e) MUST_USE;
/* Signals wait until apply_release(), and end apply_write() between two files. */
void apply_hold(struct apply *a);
void apply_release(struct apply *a);

/* Says something about a path on standard error. */
void apply_tell(const char *path, const char *what);

/* ---- apply_tree.c: git ----------------------------------------------------------------------- */

int apply_repository(struct apply *a, struct err *e) MUST_USE;

/* Runs git there with the words, of which the last is NULL. The first digits that it prints are
 * *ret. */
int apply_git(const struct apply *a, const char *const *words, struct str input,
	      struct apply_id *ret, struct err *e) MUST_USE;
/* The object that a name means; "" where nothing has it. */
int apply_object(const struct apply *a, const char *name, struct apply_id *ret,
		 struct err *e) MUST_USE;
/* parents may be NULL. */
int apply_commit(const struct apply *a, const struct apply_id *tree, const char *message,
		 const struct apply_id *first, const struct apply_id *second, struct apply_id *ret,
		 struct err *e) MUST_USE;
/* The tree `onto` with the changes between two others. guard: without those that are left out,
 * which are told. */
int apply_overlay(struct apply *a, const struct apply_id *onto, const struct apply_id *from,
		  const struct apply_id *to, bool guard, struct apply_id *ret,
		  struct err *e) MUST_USE;

enum apply_way { APPLY_ASK, APPLY_THEIRS, APPLY_OURS }; /* what a conflict becomes */
/* Reads the folder, and plans: a->here, a->result and a->ops. With APPLY_ASK conflicts are told. */
int apply_plan(struct apply *a, const struct apply_id *base, const struct apply_id *theirs,
	       enum apply_way way, struct err *e) MUST_USE;

/* The tree of another folder, whose files are read as those of a->folder are: what `base` has, and
 * all others that git does not ignore there. base NULL: all files. Repositories in it are left out,
 * and told. */
int apply_snapshot(const struct apply *a, const char *folder, const struct apply_id *base,
		   struct apply_id *ret, struct err *e) MUST_USE;
/* Writes the files of a commit into an empty folder, as the repository has them. objects: its
 * folder of objects. */
int apply_checkout(const struct apply *a, const char *objects, const char *commit,
		   const char *folder, struct err *e) MUST_USE;

/* Prints the changes on standard output. */
int apply_show(const struct apply *a, struct err *e) MUST_USE;
