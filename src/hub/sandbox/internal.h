#pragma once
/*
 * Between the files of the lifecycle:
 *
 *	life.c		the states and their setter; finding, listing, forgetting
 *	row.c	a life as a row of the registry, and back
 *	make.c	create and fork
 *	end.c	terminate, deadlines and their reaper, what ended by accident
 *	pause.c	pause and resume
 *	snapshots_impl.h	and those that it lists
 *	lives.c		all of a hub: from its start to its end
 *	job*.c		its programs, see hub/sandbox/job_impl.h
 *	forward.c relay.c	its ports on the host, see hub/sandbox/forward_impl.h
 *	idempotent.c	requests that are done once
 */
#include "base/id.h"
#include "hub/sandbox/idempotent.h"
#include "hub/sandbox/job_impl.h"
#include "hub/sandbox/life.h"
#include "store/store.h"

enum {
	LIVES_BUCKETS = 4096,
	TERMINATED_MAX = 1024, /* that are still found */
	MOURNED_MAX = 4096, /* lost and failed ones */
	KEYS_LIVE_MS = 24 * 3600 * 1000, /* of requests that are done once */
};

struct diffing;
struct forward;
struct life_port;

struct life {
	struct lives *all;
	struct life *older, *newer; /* in order of creation */
	struct life *chain; /* of its bucket */
	struct gone *gone; /* the queue of those that ended so; NULL: it has not */
	struct life *gone_before, *gone_after; /* in it */
	uint64_t seq;
	char id[LIFE_ID_MAX + 1], source[LIFE_ID_MAX + 1], template[256];
	enum life_state state;
	uint32_t generation;
	int64_t created_ms, changed_ms, deadline_ms;
	uint64_t ttl_ms, idle_ms;
	enum life_retention retention;
	struct limits limits;
	bool from_pool;
	struct err *why; /* NULL: nothing to tell */

	char *spec; /* JSON; NULL once it is in the registry */
	uint64_t spec_of; /* seq of the one whose spec it has */
	bool stored; /* a row of it is in the registry, */
	bool unsaved; /* which is not as it is */
	bool in_batch; /* written by the transaction that is open */

	struct sandbox *box; /* a reference; NULL: nothing runs */
	bool ending; /* its destruction is under way */
	struct jobs_of jobs;
	struct diffing *diffs; /* those that ask what it has changed: snapshot_diff.c */
	struct forward *forwards; /* its ports on the host */
	unsigned n_forwards;
	struct life_port *ports; /* connections to its ports, n_ports of them */
	unsigned n_ports;
	bool stopping; /* what is to be kept of it is being kept, then it ends */
	unsigned refs; /* one is the list's */
	unsigned busy;

	uint64_t due_ms, used_ms; /* clock_ms() of the deadline and of the last use; due 0: none */
	uint64_t reap_wait_ms; /* until the next try */
	uv_timer_t *timer;
};

struct gone {
	struct life *first, *last;
	size_t n, max;
};

struct lives {
	uv_loop_t *loop;
	struct box *box;
	struct store *store; /* NULL: none */
	char run[ID_MAX]; /* names this process's time */

	struct life *buckets[LIVES_BUCKETS];
	struct life *oldest, *newest;
	uint64_t last_seq;
	struct gone terminated, mourned;
	struct jobs jobs;
	unsigned n_forwards, n_ports; /* ports of sandboxes on the host, connections to them */
	/* The highest generation of those that are not found any more, and what the registry has of
	 * it: who takes an id that is not known begins above it, so that no generation of an id comes
	 * twice, without a list of all ids that there ever were. */
	uint32_t forgotten, forgotten_stored;
	struct snapshots *snapshots; /* owned, NULL: none are kept */
	char plan[IDEMPOTENT_PLAN_MAX + 1]; /* that was given out last */
	struct lives_stats stats; /* the states are kept by the setter */

	struct lives_watch *watches;
	bool telling; /* them is under way */
	uint64_t changes;

	bool batch; /* a transaction holds several changes, */
	size_t n_in_batch; /* of so many */
	bool stopping;
	uv_timer_t *saver; /* writes again what could not be written, and lets old keys go */
	uv_work_t checkpoint;
	bool checkpointing;
	struct err checkpoint_err;
	unsigned
		later; /* callbacks of lives_later(), and of sorted diffs, that are still to come */
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* An operation under way, and whom to tell. */
struct life_op {
	struct life *life; /* a reference; NULL: none */
	struct lives *all;
	life_cb on_done;
	void *arg;
	struct err err;
};

/* ---- life.c -------------------------------------------------------------------------------- */

/* A new one in creating, found by its id. id is valid. NULL without memory. */
struct life *life_new(struct lives *all, struct str id, struct err *e) MUST_USE;
struct life *life_ref(struct life *l);
void life_unref(struct life *l); /* NULL-safe */
AUTO_DEFINE(life_unref, struct life)
struct life *lives_get(const struct lives *all, struct str id); /* NULL: none */

bool life_may_follow(enum life_state from, enum life_state to);
/* The only one that changes a state: tells the registry, too. why is copied, or NULL. -1 where the
 * registry did not take it, or with ERR_BUG where it may not follow; only in the second case the
 * state is the old one. */
int life_set_state(struct life *l, enum life_state to, const struct err *why, struct err *e);
/* It is not found any more, and its row goes; who takes its id again begins at the first generation. */
void life_forget(struct life *l);
/* It has one of the states in which nothing of it runs: the oldest such are forgotten. */
void life_mourn(struct life *l);
bool life_is_gone(const struct life *l);
/* A typed error that names the state, unless it runs. */
int life_check_runs(const struct life *l, struct err *e) MUST_USE;

/* ---- row.c ---------------------------------------------------------------------------- */

/* Writes it as it is, with an event (kind NULL: none). A failure is counted; the saver tries again. */
int life_save(struct life *l, const char *kind, struct str detail, struct err *e) MUST_USE;
/* Only an event; a failure is logged. */
void life_tell(struct life *l, const char *kind, struct str detail);
/* The code of a failure by its name on the wire; ERR_BUG for one that is not known. */
enum err_code life_code_of(struct str name);
/* The lives of the registry. */
int lives_load(struct lives *all, struct err *e) MUST_USE;
/* JSON of what a spec has besides the row's columns; owned. */
char *life_spec_text(const struct sandbox_spec *spec, struct err *e) MUST_USE;
/* Several changes as one, which do not nest. Where that fails, or is not to be kept, all of them are
 * undone in the registry, and unsaved. */
int lives_batch(struct lives *all, struct err *e) MUST_USE;
int lives_batch_end(struct lives *all, bool keep, struct err *e) MUST_USE;

/* ---- end.c ---------------------------------------------------------------------------- */

/* It runs: sb becomes its own, and its deadlines begin, but for life_arm() when it has its state. */
void life_begin(struct life *l, struct sandbox *sb);
/* What its box keeps of it (sandbox_record): a row takes no sandbox again but its own. */
enum { LIFE_MARK_MAX = 48 };
void life_mark(const struct life *l, char ret[LIFE_MARK_MAX]);
/* Why it ended at its deadline. */
void life_say_over(const struct life *l, struct err *ret);
/* It does not run any more: lets go of what it has of that. */
void life_let_go(struct life *l);
/* Its deadlines have changed, or it was used. */
void life_arm(struct life *l);

/* ---- lives.c ------------------------------------------------------------------------------- */

/* Calls f on the loop's next turn. */
void lives_later(struct lives *all, void (*f)(void *arg), void *arg);
/* on_done likewise; err may be NULL, and l with it. */
void life_later(struct lives *all, struct life *l, life_cb on_done, void *arg,
		const struct err *err);
struct life_op *life_op_new(struct lives *all, struct life *l, life_cb on_done, void *arg);
/* Ends it with its callback; err NULL: success. */
void life_op_end(struct life_op *op, const struct err *err);
/* Something that the end has waited for is over. */
void lives_try_close(struct lives *all);
/* After something was written, or was not. */
void lives_written(struct lives *all);
/* After an event was written. */
void lives_tell_watches(struct lives *all);
/* Something has ended that the end of all waits for. */
void lives_try_close(struct lives *all);

/* ---- make.c --------------------------------------------------------------------------- */

/* One in creating, with an id of the caller's or of ours. */
struct life *life_new_named(struct lives *all, struct str id, struct err *e) MUST_USE;
/* It runs on sb from now on: what a client is told of next. */
int life_bear(struct life *l, struct sandbox *sb, struct err *e) MUST_USE;
/* Its name belonged to a terminated one until now. */
void life_replace_old(struct life *l);
/* It was never told to anybody. */
void life_stillborn(struct life *l);
