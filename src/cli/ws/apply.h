#pragma once
/*
 * `holt ws apply`: the changes of a revision, in a folder of the operator's.
 *
 * The revision comes into a folder of ours inside that folder, the stage, so that each file gets to
 * its place by a rename. The plan compares three states of each path: that of the base (the
 * revision that was applied or imported last), that of the revision, and that of the folder. What
 * only the folder has changed stays; what both have is a conflict. The plan is shown, old contents
 * are saved in Holt's data folder, and a journal is written there. Then each operation is one step:
 * a new file and an old one change places. A journal that is found by the next run was interrupted,
 * and is rolled back; one that ended is kept, since it has what an undo needs.
 *
 *	DATA/applied/KEY/journal	an apply that has begun
 *	DATA/applied/KEY/last		the last one that ended; it names the base
 *	DATA/applied/KEY/interrupted	one that was interrupted and has lost its stage, or files
 *					of it; it waits for an undo
 *	DATA/applied/KEY/saved-ID/N	old contents of operation N
 *	DIR/.holt-apply-KEY/N		the stage: new contents, and old ones that were replaced
 *	DIR/holt-kept-ID/N-NAME		old ones that a rollback could not put back
 *
 * Paths of the folder are resolved without links and mounts (openat2), from its descriptor, which
 * is locked.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "box/archive/tar.h"
#include "cli/ws/ws.h"

enum apply_type {
	APPLY_NONE = '-',
	APPLY_FILE = 'f',
	APPLY_LINK = 'l',
	APPLY_DIR = 'd',
	APPLY_OTHER = 'o'
};

/* The state of a path. Modes of links and hashes of directories don't count. */
struct apply_state {
	char type;
	uint32_t mode;
	char hash[HASH_HEX + 1];
};

/* Tells whether a file is still the one that was looked at. */
struct apply_seen {
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

struct apply_item {
	char *path;
	struct apply_state is, here; /* in the revision; in the folder */
	struct apply_seen seen;
	unsigned n; /* of its content in the stage */
	int here_errnum; /* it could not be looked at */
};

struct apply_list {
	struct apply_item *p;
	size_t n;
	uint64_t bytes;
};

enum apply_kind {
	APPLY_REMOVE = 'R',
	APPLY_RMDIR = 'X', /* if it is empty then */
	APPLY_MKDIR = 'M',
	APPLY_ADD = 'A',
	APPLY_CHANGE = 'C',
	APPLY_CHMOD = 'P' /* of a directory */
};

struct apply_op {
	char kind;
	char *path;
	unsigned n; /* its name in the stage and among what is saved */
	ino_t staged; /* the new file; 0: none */
	struct apply_state old, new;
	struct apply_seen seen; /* the old file */
};

enum { APPLY_ID = 16, APPLY_REVISION = 64, APPLY_NAME = 128, APPLY_ENTRIES_MAX = 600000 };

struct apply_revision {
	char workspace[APPLY_NAME + 1], id[APPLY_REVISION + 1]; /* "": none */
};

/* A journal. */
struct apply_plan {
	char id[APPLY_ID + 1];
	bool undo; /* it undid another one, and can't be undone */
	struct apply_revision to, base;
	struct apply_op *ops;
	size_t n;
};

struct apply {
	int dir, data, stage; /* stage -1: none yet */
	char stage_name[40];
	struct hash *hash;
	unsigned next; /* number in the stage */
	bool force, guarded; /* guarded: protected files are written, too */
	size_t conflicts, left_out; /* as they were told on standard error */
	size_t stayed; /* files that the last rollback did not restore, as they were told */
	bool recovers; /* the rollback is of an earlier run, and others may have had the stage */
	size_t lost; /* files that it found nowhere then: only their saved copies are left */
	sigset_t held; /* signals that wait while the folder is changed; they were let through */
	bool holds;
	struct apply_plan plan;
};

/* ---- apply_folder.c: the folder, and files below it ------------------------------------------ */

/* Opens and locks the folder. ERR_CONFLICT: another apply goes on in it. The caller calls
 * apply_close() in any case. */
int apply_open(struct apply *a, const char *folder, struct err *e) MUST_USE;
/* The two parts of it. */
int apply_find(struct apply *a, const char *folder, struct err *e) MUST_USE;
int apply_lock(const struct apply *a, struct err *e) MUST_USE;
void apply_close(struct apply *a);

/* A new, empty stage, which a signal removes. */
int apply_stage(struct apply *a, struct err *e) MUST_USE;
void apply_unstage(struct apply *a);

/* The directory of a path below dir, as a descriptor for *at() calls, and the last name. -1 with
 * errno: ELOOP where a link is in the way, EXDEV where a mount is. */
int apply_parent(int dir, const char *path, const char **ret_name) MUST_USE;

/* -1 with errno; a path that is not there is APPLY_NONE. */
int apply_look(const struct apply *a, const char *path, struct apply_state *ret,
	       struct apply_seen *ret_seen) MUST_USE;
bool apply_same(const struct apply_state *x, const struct apply_state *y);

/* Copies a file or link with its mode and time; synced. -1 with errno. */
int apply_copy(const struct apply *a, int from, const char *name, int to, unsigned n,
	       struct apply_state *ret) MUST_USE;

/* An old file whose place is taken leaves the stage for a folder that stays, which is told. -1 with
 * errno. */
int apply_keep(const struct apply *a, const struct apply_op *op) MUST_USE;

/* The name of a number. */
struct apply_number {
	char text[16];
};
struct apply_number apply_number(unsigned n);

/* Says something about a path on standard error. */
void apply_tell(const char *path, const char *what);

/* ---- apply_fetch.c --------------------------------------------------------------------------- */

/* Reads a revision of the hub; sorted. staged: its contents go to the stage, unless the folder has
 * the same, and what the folder has is in the list. */
int apply_fetch(struct apply *a, struct hub_link *l, const struct apply_revision *r, bool staged,
		struct apply_list *ret, struct err *e) MUST_USE;
void apply_list_fini(struct apply_list *l);
/* The order of paths: what is in a directory follows it. */
int apply_order(const char *x, const char *y);

/* ---- apply_plan.c ---------------------------------------------------------------------------- */

/* The changes that make `new` of the folder, since `base`. Conflicts and what is left out are
 * told. */
int apply_plan(struct apply *a, const struct apply_list *new, const struct apply_list *base,
	       struct err *e) MUST_USE;
/* The changes that take the last apply back; contents go to the stage. */
int apply_plan_undo(struct apply *a, const struct apply_plan *last, struct err *e) MUST_USE;

/* ---- apply_show.c ---------------------------------------------------------------------------- */

void apply_show(const struct apply *a);

/* ---- apply_journal.c ------------------------------------------------------------------------- */

int apply_journal_write(const struct apply *a, const char *name, struct err *e) MUST_USE;
/* 1; 0: there is none. heads: without its operations. */
int apply_journal_read(const struct apply *a, const char *name, bool heads, struct apply_plan *ret,
		       struct err *e) MUST_USE;
int apply_plan_id(struct apply_plan *p, struct err *e) MUST_USE;
bool apply_journal_has(const struct apply *a, const char *name);
/* "last" is written: nothing waits for an undo any more. */
int apply_journal_end(const struct apply *a, struct err *e) MUST_USE;
/* Removes what is saved of any other than the last one and the one that waits for an undo. */
void apply_journal_clean(const struct apply *a);

/* ---- apply_text.c: what is in a journal ------------------------------------------------------ */

struct apply_op *apply_plan_add(struct apply_plan *p, char kind, const char *path,
				struct err *e) MUST_USE;
void apply_plan_fini(struct apply_plan *p);
void apply_plan_write(FILE *to, const struct apply_plan *p);
/* Only what apply_plan_write() writes. heads: without the operations. The caller calls
 * apply_plan_fini() in any case. */
bool apply_plan_read(FILE *from, bool heads, struct apply_plan *ret, struct err *e) MUST_USE;

/* ---- apply_run.c ----------------------------------------------------------------------------- */

/* Does what is planned. If it fails, or a signal asks for the end, all is as before, but for what
 * others changed meanwhile. Signals then wait for apply_release(). */
int apply_run(struct apply *a, struct err *e) MUST_USE;
void apply_release(struct apply *a);
/* Rolls back what was interrupted, if anything was, and tells so. ERR_INVALID: only an undo can
 * take it back, and this is none. */
int apply_recover(struct apply *a, bool undo, struct err *e) MUST_USE;
