#pragma once
/*
 * Shared by the files that join workspaces with the hub:
 *
 *	workspaces.c	the table and its rows
 *	work.c		queues of work for the pool
 *	revision.c	revisions and histories
 *	attach.c	a workspace into a sandbox
 *	commit.c	what a sandbox has changed into a revision
 *	create.c	new ones, empty or as forks
 *	revert.c	an older revision as the next one
 *	import.c	a tar archive into a revision
 *	export.c	a revision as a tar archive
 *	compare.c	the differences of two revisions
 *	read.c		a part of a file of the newest revision
 *	gc.c		what nobody needs goes
 *	verify.c	whether all objects are there and whole
 */
#include <uv.h>

#include "base/clock.h"
#include "hub/workspace/checkout.h"
#include "hub/workspace/room.h"
#include "hub/workspace/take.h"
#include "hub/workspace/workspaces.h"
#include "store/store.h"

/* A row of revisions. */
struct revision {
	char id[REVISION_ID + 1], parent[REVISION_ID + 1]; /* parent: "" for a first one */
	struct object_id tree;
	uint64_t number; /* in the history of its workspace, from 1 on; forks have equal ones */
	uint64_t files, bytes, left_out;
	int64_t created_ms;
	char source[SANDBOX_ID_MAX + 1]; /* the sandbox; "" */
	char message[REVISION_MESSAGE_MAX + 1];
};

struct workspace {
	struct workspaces *all;
	struct workspace *older, *newer; /* in order of creation */
	uint64_t seq;
	char name[SANDBOX_ID_MAX + 1], owner[OWNER_MAX + 1];
	struct revision tip;
	int64_t created_ms;
	uint64_t sandbox; /* seq of the one that writes to it; 0: none */
	char base[REVISION_ID + 1]; /* the revision that it began with */
	unsigned busy; /* work that needs it; it is not deleted meanwhile */
	bool changing; /* its tip or its writer is about to change */
};

/* A piece of work of a queue. work runs in the pool, then done on the loop; done ends in
 * work_again() or work_end(). begin: on the loop, when its turn has come; may be NULL. */
struct work {
	struct work *next;
	struct workspaces *all;
	struct work_queue *queue;
	void (*begin)(struct work *w);
	void (*work)(struct work *w);
	void (*done)(struct work *w);
	struct err err;
};

/* The first one is at work. */
struct work_queue {
	struct workspaces *all;
	struct work *first, *last;
	uv_work_t pool;
};

struct workspaces {
	uv_loop_t *loop;
	struct store *store;
	struct hub_sandboxes *sandboxes;
	struct hub_keeper keeper;
	char *folder, *shots; /* owned */
	struct room room; /* of both; a commit has a copy */
	int dir;
	struct objects objects;
	struct checkouts checkouts;
	struct workspace *oldest, *newest;
	size_t n;
	uint64_t last_seq;
	struct work_queue writes; /* what writes objects and trees */
	struct work_queue reads; /* what only reads objects of revisions that stay meanwhile */
	atomic_bool stop; /* the hub ends, and what sandboxes have changed is not saved */
	atomic_bool stop_reads; /* the hub ends */
	struct gc *gc; /* the run that is under way; NULL: none */
	struct gc_waiter *gc_waiters; /* for the next one */
	uv_timer_t timer; /* of the next run, or of the hub's end; if timed */
	bool timed;
	uint64_t gc_ended_ms; /* of the last one */
	unsigned imports; /* archives that are coming */
	bool leftovers; /* of an earlier hub may be there */
	bool stopping;
	void (*on_stopped)(void *arg);
	void *on_stopped_arg;
};

/* ---- workspaces.c ---------------------------------------------------------------------------- */

int workspaces_check(const struct workspaces *all, struct err *e) MUST_USE;
/* Calls on_stopped where the hub ends and no work is left. */
void workspaces_check_stopped(struct workspaces *all);
void workspace_link(struct workspace *w); /* into the table */
int workspace_save(const struct workspace *w, struct err *e) MUST_USE;
/* The sandbox that writes to it; NULL: none. */
struct hub_sandbox *workspace_writer(const struct workspace *w);
struct workspace *workspace_of(const struct workspaces *all, const struct hub_sandbox *l);
void workspaces_trim(struct workspaces *all);

/* ---- work.c ---------------------------------------------------------------------------------- */

void work_queue_init(struct work_queue *q, struct workspaces *all);
void work_start(struct work_queue *q, struct work *w);
void work_again(struct work *w, void (*work)(struct work *w), void (*done)(struct work *w));
void work_nothing(struct work *w); /* of a piece that has failed before its turn */
/* Lets others have a turn first, then begins again. */
void work_yield(struct work *w);
/* Lets the next one begin. w may be freed afterwards. */
void work_end(struct work *w);

/* ---- revision.c ------------------------------------------------------------------------------ */

/* Fills id from all else. */
void revision_name(struct revision *r);
/* Makes it the tip, in one transaction with its row. On failure nothing has changed. */
int workspace_advance(struct workspace *w, const struct revision *r, struct err *e) MUST_USE;
/* The same for the first tip of a new one; of: what it is a fork of, NULL: it has no other. */
int workspace_enter(struct workspace *w, const struct workspace *of, struct err *e) MUST_USE;
/* ERR_WORKSPACE_NOT_FOUND. */
int revision_load(struct workspaces *all, struct str id, struct revision *ret,
		  struct err *e) MUST_USE;
/* The tip of a workspace that was not loaded yet. */
int revision_load_tip(struct workspace *w, struct err *e) MUST_USE;
/* One of its history, by the first digits of the id. */
int revision_find(const struct workspace *w, struct str id, struct revision *ret,
		  struct err *e) MUST_USE;
/* The one before it; itself: there is none. */
int revision_before(const struct workspace *w, const struct revision *r, struct revision *ret,
		    struct err *e) MUST_USE;

/* ---- gc.c ------------------------------------------------------------------------------------ */

void gc_start(struct workspaces *all);
void gc_later(struct workspaces *all); /* soon, of its own accord */

/* ---- commit.c -------------------------------------------------------------------------------- */

/* Whether a revision may be made without a sandbox. */
int workspace_check_change(const struct workspace *w, struct str message, struct err *e) MUST_USE;
/* fd: a file with an archive, taken. err: why there is none, which is reported; NULL: there is. */
void commit_import_start(struct workspace *w, int fd, struct str message, const struct err *err,
			 workspace_commit_cb on_done, void *arg);
/* Reads what its writer has changed as for a revision, and makes none: calls look in the pool with
 * the tree, whose new objects go when it has returned; then on_done on the loop. */
typedef int (*commit_look_fn)(void *arg, const struct object_id *tree, struct err *e);
typedef void (*commit_looked_fn)(void *arg, const struct err *err);
void commit_look_start(struct workspace *w, commit_look_fn look, commit_looked_fn on_done,
		       void *arg);
/* struct hub_keeper.save */
void commit_save(void *workspaces, struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);
