#pragma once
/* The inside of sandboxes, shared by the files of this folder: their programs, their lives, their
 * ports, their snapshots. */
#include <uv.h>

#include "base/id.h"
#include "box/pack/pack.h"
#include "hub/sandbox/forward.h"
#include "hub/sandbox/idempotent.h"
#include "hub/sandbox/job.h"
#include "hub/sandbox/life.h"
#include "hub/sandbox/snapshots.h"
#include "json/field/field.h"
#include "store/store.h"

/*
 * Between the files of jobs:
 *
 *	job.c		one: from its start to its end, and what it prints
 *	job_row.c	one as a row of the registry, and back
 *	jobs.c		all of a hub: which are remembered, and for how long
 *	job_wait.c	who waits for what one prints; hub/spool/match.c for a pattern
 */
struct job_wait;

struct job {
	unsigned refs; /* of who found it; of the list it is in; of its exec */
	struct lives *all;
	struct life *life; /* while it runs or is listed; NULL else */
	bool listed; /* its life finds it */
	struct job *older; /* of its life */
	bool queued; /* among all that have ended: */
	struct job *ended_before, *ended_after;
	char id[SANDBOX_ID_MAX + 1], sandbox[SANDBOX_ID_MAX + 1];
	char command[JOB_COMMAND_MAX + 1];
	enum job_state state;
	bool background, terminal;
	bool stored; /* a row of it is in the registry, */
	uint64_t row_of; /* with this seq of its sandbox */
	struct exec *exec; /* NULL: it has ended */
	const struct exec_events *also; /* the foreground's; may be NULL */
	void *also_arg;
	struct spool *output;
	int64_t started_ms, ended_ms;
	uint64_t ended_at; /* clock_ms() */
	struct exec_result result;
	struct err why;
};

/* Those that have ended, the first to end first. */
struct job_queue {
	struct job *first, *last;
	size_t n;
};

/* A life's. */
struct jobs_of {
	struct job *newest;
	unsigned running; /* in the background */
	unsigned ended[2]; /* in the foreground, in the background */
};

/* All of a hub. */
struct jobs {
	struct lives *lives;
	char *folder;
	struct spool_house house;
	unsigned running; /* in the background */
	struct job_queue ended[2];
	uv_timer_t *timer; /* lets the oldest go */
	struct job_wait *looks; /* that stand in line for a thread (job_wait.c), */
	bool looking; /* and whether it is at work */
};

/* ---- job.c --------------------------------------------------------------------------------- */

/* One without an exec. NULL without memory. */
struct job *job_new(struct life *l, struct str id, struct str command, bool background,
		    uint64_t keep, struct err *e) MUST_USE;

/* ---- job_row.c ----------------------------------------------------------------------------- */

int job_save(struct job *j, struct err *e) MUST_USE;
/* A failure is logged. */
void job_drop_row(struct job *j);
/* Those of the registry: what ran in an earlier hub is lost. */
int jobs_load(struct lives *all, struct err *e) MUST_USE;
/* The registry says so, too. */
void jobs_settle(struct lives *all);

/* ---- jobs.c -------------------------------------------------------------------------------- */

int jobs_init(struct lives *all, uv_loop_t *loop, struct err *e) MUST_USE;
/* No exec runs any more. */
void jobs_fini(struct lives *all);

/* Into the list of its life, which takes over a reference. */
void jobs_list(struct job *j);
/* It has ended, and is remembered for a while, */
void jobs_remember(struct job *j);
/* as far as there is room: of this life and of all the first go that are over a bound. */
void jobs_trim(struct life *l);
/* All of a life, which has ended; those that run hear of that. */
void jobs_forget_of(struct life *l);

/*
 * Between the files of the lifecycle:
 *
 *	life.c		the states and their setter; finding, listing, forgetting
 *	row.c		a life as a row of the registry, and back
 *	make.c		create and fork
 *	end.c		terminate, deadlines and their reaper, what ended by accident
 *	pause.c		pause and resume
 *	lives.c		all of a hub: from its start to its end
 *	job*.c		its programs
 *	forward.c relay.c	its ports on the host
 *	idempotent.c	requests that are done once
 */

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
	 * it: who takes an id that is not known begins above it, so that no generation of an id
	 * comes twice, without a list of all ids that there ever were. */
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
	/* callbacks of lives_later(), and of sorted diffs, that are still to come */
	unsigned later;
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
/* It is not found any more, and its row goes; who takes its id again begins at the first
 * generation. */
void life_forget(struct life *l);
/* It has one of the states in which nothing of it runs: the oldest such are forgotten. */
void life_mourn(struct life *l);
bool life_is_gone(const struct life *l);
/* A typed error that names the state, unless it runs. */
int life_check_runs(const struct life *l, struct err *e) MUST_USE;

/* ---- row.c ---------------------------------------------------------------------------- */

/* Writes it as it is, with an event (kind NULL: none). A failure is counted; the saver tries
 * again. */
int life_save(struct life *l, const char *kind, struct str detail, struct err *e) MUST_USE;
/* Only an event; a failure is logged. */
void life_tell(struct life *l, const char *kind, struct str detail);
/* The code of a failure by its name on the wire; ERR_BUG for one that is not known. */
enum err_code life_code_of(struct str name);
/* The lives of the registry. */
int lives_load(struct lives *all, struct err *e) MUST_USE;
/* JSON of what a spec has besides the row's columns; owned. */
char *life_spec_text(const struct sandbox_spec *spec, struct err *e) MUST_USE;
/* Several changes as one, which do not nest. Where that fails, or is not to be kept, all of them
 * are undone in the registry, and unsaved. */
int lives_batch(struct lives *all, struct err *e) MUST_USE;
int lives_batch_end(struct lives *all, bool keep, struct err *e) MUST_USE;

/* ---- end.c ---------------------------------------------------------------------------- */

/* It runs: sb becomes its own, and its deadlines begin, but for life_arm() when it has its
 * state. */
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

/* Between forward.c, which has the ports, and relay.c, which has their connections. */

struct relay;

struct forward {
	struct forward *next;
	struct life *life; /* as long as it listens */
	uint16_t guest_port, host_port;
	uv_tcp_t listener;
	struct relay *relays; /* open ones */
	uint32_t n_relays;
	uint64_t relays_total;
};

/* Ends all that its life has, and all other connections to its ports. */
void forwards_end(struct life *l);

/* A client waits at the listener: it is accepted, and ended at once where there is no room. */
void relay_start(struct forward *f);
void relays_end(struct forward *f);

/*
 * Between the files of snapshots:
 *
 *	snapshots.c		the folder, the rows and the table of them; what time ends
 *	snapshot_pack.c		holt-pack as a process of the hub's
 *	snapshot_take.c		a sandbox's files into an archive
 *	snapshot_restore.c	an archive into sandboxes
 *	snapshot_import.c	an archive of elsewhere
 *	snapshot_diff.c		what a sandbox has changed
 *	keep.c		sandboxes that are kept without running; what retention says
 */

struct snapshot {
	struct lives *all;
	struct snapshot *older, *newer; /* in order of creation */
	uint64_t seq, of; /* of: the sandbox that it is kept for; 0: it is a client's */
	char id[LIFE_ID_MAX + 1], name[SNAPSHOT_NAME_MAX + 1], source[LIFE_ID_MAX + 1];
	char template[256], base[SANDBOX_BASE_MAX], digest[HASH_HEX + 1];
	int64_t created_ms, expires_ms;
	uint64_t bytes, unpacked;
	struct limits limits;
};

struct snapshots {
	struct lives *all;
	int dir, new; /* the folder; what is not whole yet */
	struct snapshot *oldest, *newest;
	size_t n;
	uint64_t last_seq;
	unsigned taking; /* that will be there */
	uv_timer_t *reaper;
	struct packing *packs; /* that run */
	unsigned works; /* of the loop's pool, that are to end before all of this does */
};

/* What an archive says of itself. */
struct snapshot_meta {
	uint32_t version;
	struct str template, base;
	uint64_t memory, disk;
	uint32_t pids, cpu_milli, open_files;
	bool has_open_files;
};
extern const struct field_table snapshot_meta_table;

/* ---- snapshots.c --------------------------------------------------------------------------- */

/* ERR_UNSUPPORTED where none are kept, ERR_LIMIT where there are too many. */
int snapshots_check(const struct lives *all, struct err *e) MUST_USE;
/* A new one that nobody knows yet, as spec says; owned. */
struct snapshot *snapshot_new(struct lives *all, const struct snapshot_spec *spec,
			      struct err *e) MUST_USE;
void snapshot_free(struct snapshot *s); /* of one that nobody knows; NULL-safe */
AUTO_DEFINE(snapshot_free, struct snapshot)
/* The file that its archive is written to. */
int snapshot_create_file(const struct snapshot *s, struct err *e) MUST_USE;
void snapshot_drop_file(const struct snapshot *s); /* of one that did not come to be */
/* The archive is whole and on the disk: has it known, then calls on_done; takes s, which it frees
 * where that fails. spec: JSON, or STR_NONE: as that of the sandbox of row spec_of. */
void snapshot_publish(struct snapshot *s, uint64_t spec_of, struct str spec, snapshot_cb on_done,
		      void *arg);
/* The one that is kept for a sandbox; NULL: none. */
struct snapshot *snapshot_kept(const struct lives *all, const struct life *l);
/* Removes that, too. */
void snapshot_drop_kept(struct life *l);
/* JSON of what its source had besides limits; owned. */
char *snapshot_spec_text(const struct snapshot *s, struct err *e) MUST_USE;
/* The hub ends: what runs for snapshots ends soon. */
void snapshots_stop(struct lives *all);
bool snapshots_busy(const struct lives *all);
void snapshots_free(struct snapshots *s); /* NULL-safe */

/* ---- snapshot_pack.c ----------------------------------------------------------------------- */

/* a is good where err is NULL. */
typedef void (*pack_cb)(void *arg, const struct pack_answer *a, const struct err *err);

struct pack_spec {
	const char *mode; /* of holt-pack */
	uint64_t max;
	const char *with; /* its last argument, or NULL */
	int in, out; /* borrowed; out -1: nowhere */
};

struct packing;
struct packing *pack_start(struct lives *all, const struct pack_spec *spec, pack_cb on_done,
			   void *arg, struct err *e) MUST_USE;
void packs_kill(struct lives *all);

/* How much there may be in a snapshot of a sandbox with this disk: files, and what says of them. */
uint64_t snapshot_max(const struct limits *l);

/* ---- snapshot_take.c ----------------------------------------------------------------------- */

/* The same as snapshot_take_start() for a sandbox whose life sees to it that it may be; of: it is
 * kept for that. */
void snapshot_take(struct life *l, const struct snapshot_spec *spec, bool kept, snapshot_cb on_done,
		   void *arg);

/* ---- snapshot_restore.c -------------------------------------------------------------------- */

/* A stopped or cold one, from what is kept for it. */
void life_start_again(struct life *l, life_cb on_done, void *arg);

/* ---- keep.c --------------------------------------------------------------------------- */

/* Carries out a retention other than RETAIN_DESTROY: what it says is kept, then l has ended for
 * that reason. on_done's err: nothing is, and it goes on. */
void life_keep_start(struct life *l, enum life_retention how, const struct err *why,
		     life_cb on_done, void *arg);
