#pragma once
/* Internals of hub/sandbox: jobs, the lifecycle, ports and snapshots. */
#include <uv.h>

#include "base/id.h"
#include "box/pack/pack.h"
#include "hub/sandbox/bound.h"
#include "hub/sandbox/forward.h"
#include "hub/sandbox/idempotent.h"
#include "hub/sandbox/job.h"
#include "hub/net/net.h"
#include "hub/sandbox/sandbox.h"
#include "hub/sandbox/snapshots.h"
#include "json/field/field.h"
#include "store/store.h"

/*
 * Shared by the files of jobs:
 *
 *	job.c		one job: start, output, end
 *	job_row.c	one job as a row of the registry
 *	jobs.c		all jobs of a hub: which are remembered, and how long
 *	job_wait.c	waits for output; hub/spool/match.c matches patterns
 */
struct job_wait;

struct job {
	unsigned refs; /* held by its finder, its list and its exec */
	struct hub_sandboxes *all;
	struct hub_sandbox *hs; /* while it runs or is listed; NULL else */
	bool listed; /* its sandbox finds it */
	struct job *older; /* of its sandbox */
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

/* Ended jobs, in the order of their end. */
struct job_queue {
	struct job *first, *last;
	size_t n;
};

/* A sandbox's. */
struct jobs_of {
	struct job *newest;
	unsigned running; /* in the background */
	unsigned ended[2]; /* in the foreground, in the background */
};

/* All of a hub. */
struct jobs {
	struct hub_sandboxes *sandboxes;
	char *folder;
	struct spool_set spools;
	unsigned running; /* in the background */
	struct job_queue ended[2];
	uv_timer_t *timer; /* lets the oldest go */
	struct job_wait *looks; /* waits that queue for a thread (job_wait.c) */
	bool looking; /* and whether it is at work */
};

/* ---- job.c --------------------------------------------------------------------------------- */

/* A job without an exec. NULL if memory is short. */
struct job *job_new(struct hub_sandbox *l, struct str id, struct str command, bool background,
		    uint64_t keep, struct err *e) MUST_USE;

/* ---- job_row.c ----------------------------------------------------------------------------- */

int job_save(struct job *j, struct err *e) MUST_USE;
/* A failure is logged. */
void job_drop_row(struct job *j);
/* Reads the jobs of the registry: those of an earlier hub that ran are lost. */
int jobs_load(struct hub_sandboxes *all, struct err *e) MUST_USE;
/* The registry says so, too. */
void jobs_settle(struct hub_sandboxes *all);

/* ---- jobs.c -------------------------------------------------------------------------------- */

int jobs_init(struct hub_sandboxes *all, uv_loop_t *loop, struct err *e) MUST_USE;
/* No exec runs any more. */
void jobs_fini(struct hub_sandboxes *all);

/* Adds it to the list of its sandbox, which takes over a reference. */
void jobs_list(struct job *j);
/* An ended job is remembered for a while, */
void jobs_remember(struct job *j);
/* within bounds per sandbox and in all: the oldest beyond them are forgotten. */
void jobs_trim(struct hub_sandbox *l);
/* Drops all jobs of a sandbox that has ended; readers of running ones are told. */
void jobs_forget_of(struct hub_sandbox *l);

/*
 * Shared by the files of the lifecycle:
 *
 *	sandbox.c		states and their setter; finding, listing, forgetting
 *	row.c		a sandbox as a row of the registry
 *	make.c		create and fork
 *	end.c		terminate, deadlines and their reaper, unexpected ends
 *	pause.c		pause and resume
 *	sandboxes.c		all sandboxes of a hub, from its start to its end
 *	network.c	network grants
 *	inlet.c		the socket by which programs ask for modules
 *	job*.c		jobs
 *	forward.c	ports on the host, relay.c: their connections
 *	idempotent.c	idempotency keys
 */

enum {
	LIVES_BUCKETS = 4096,
	TERMINATED_MAX = 1024, /* that are still found */
	MOURNED_MAX = 4096, /* lost and failed ones */
	KEYS_LIVE_MS = 24 * 3600 * 1000, /* of requests that are done once */
	INLET_MOUNTS = 1,
	INLET_VARIABLES = 1,
};

struct diffing;
struct forward;
struct hub_sandbox_port;

struct hub_sandbox {
	struct hub_sandboxes *all;
	struct hub_sandbox *older, *newer; /* in order of creation */
	struct hub_sandbox *chain; /* of its bucket */
	struct gone *gone; /* the queue of ended sandboxes; NULL: it has not ended */
	struct hub_sandbox *gone_before, *gone_after; /* in it */
	uint64_t seq;
	char id[SANDBOX_ID_MAX + 1], source[SANDBOX_ID_MAX + 1], template[256];
	char owner[OWNER_MAX + 1]; /* "": nobody */
	enum hub_sandbox_state state;
	uint32_t generation;
	int64_t created_ms, changed_ms, deadline_ms;
	uint64_t ttl_ms, idle_ms;
	enum hub_sandbox_retention retention;
	struct limits limits;
	struct volumes *volumes; /* a reference; NULL: none */
	uint32_t volumes_gone; /* a bit for each that it has started without, as this hub knows */
	bool from_pool;
	double made_ms; /* how long it took to make, as far as this hub knows; 0: unknown */
	struct err *why; /* NULL: nothing to tell */

	/* what its last revision lacks, as in struct hub_sandbox_info; names: owned */
	uint32_t left_out;
	char *left_out_names;
	char *labels; /* NULL: none */
	char *spec; /* JSON; NULL once it is in the registry */
	uint64_t spec_of; /* seq of the one whose spec it has */
	bool stored; /* a row of it is in the registry, */
	bool unsaved; /* which is not as it is */
	bool in_batch; /* written by the transaction that is open */

	struct sandbox *box; /* a reference; NULL: nothing runs */
	bool ending; /* its destruction is under way */
	/* It ended with its warden, or without a hub: what it left in folders of the host is still
	 * to be looked for. */
	bool end_unseen;
	struct jobs_of jobs;
	struct diffing *diffs; /* requests for its changes: snapshot_diff.c */
	struct forward *forwards; /* its ports on the host */
	unsigned n_forwards;
	struct hub_sandbox_port *ports; /* connections to its ports, n_ports in number */
	unsigned n_ports;
	char *network; /* owned: what is granted, as text (hub/net); NULL: nothing */
	uint64_t network_revision; /* another when a change begins, and when it ends */
	bool network_changes; /* network is stored, and not yet granted */
	struct net *net; /* owned; NULL: nothing of it is served */
	struct bound *bound; /* a reference; NULL: it has no secrets */
	char *modules, *profiles; /* owned: of struct hub_modules; NULL: none */
	struct inlet *inlet; /* owned; NULL: its programs can't ask */
	unsigned binding; /* counts reads of their values */
	struct network_counts network_counts;
	uint64_t flows_since_ms,
		flows_lost; /* events of flows: since when flows_told were written */
	unsigned flows_told;
	/* before it was started the last time, by its source, and through its connections */
	struct hub_sandbox_budget spent;
	uint64_t cpu_ms; /* since then, as counted last */
	uint64_t count_ms; /* clock_ms() when it is to be counted again; 0: never */
	bool uncounted; /* this host can't tell its processor time */
	bool overspent; /* it is to end */
	bool stopping; /* its files are being saved, then it ends; until hub_sandbox_stopped() */
	bool keep_tried; /* by hub_sandboxes_keep_start() */
	struct waker *wakers; /* calls that wait until it runs again; NULL: none */
	unsigned refs; /* one is the list's */
	unsigned busy;

	/* Until when the files of a stopped one are kept, in Unix time; 0: no end. */
	int64_t kept_until_ms;
	uint64_t due_ms, used_ms; /* clock_ms() of the deadline (0: none) and of the last use */
	uint64_t reap_wait_ms, reap_at_ms; /* until the next try; clock_ms() of it */
	uv_timer_t *timer;
};

struct gone {
	struct hub_sandbox *first, *last;
	size_t n, max;
};

/* durable.c: who waits for the disk. */
struct durable {
	struct hub_sandboxes *all;
	uv_work_t work;
	bool running, failed;
	uint64_t written; /* store_written() when it began */
	struct hub_sandboxes_sync *served, *waiting; /* by this work, by the next one */
	struct err err;
};

struct hub_sandboxes {
	uv_loop_t *loop;
	struct box *box;
	struct store *store; /* NULL: none */
	void (*on_flow)(void *data, const struct hub_flow *f); /* NULL: nobody hears of them */
	void *on_flow_data;
	const struct hub_asker *asker; /* NULL: nobody can be asked */
	/* as in hub_sandboxes_limit() */
	void (*budget_of)(void *data, struct str owner, struct hub_sandbox_budget *ret);
	void *budget_data;
	uv_timer_t *counter; /* until the next is to be counted */
	char run[ID_MAX]; /* names this process's time */

	struct hub_sandbox *buckets[LIVES_BUCKETS];
	struct hub_sandbox *oldest, *newest;
	uint64_t last_seq;
	struct gone terminated, mourned;
	struct jobs jobs;
	unsigned n_forwards, n_ports; /* ports of sandboxes on the host, connections to them */
	/* The highest generation of forgotten sandboxes, and its value in the registry. A
	 * sandbox with an unknown id starts above it, so no generation of an id repeats, without
	 * a list of all ids ever used. */
	uint32_t forgotten, forgotten_stored;
	struct nets *nets; /* borrowed; NULL: no network is granted */
	const struct hub_secrets *secrets; /* borrowed; NULL: none can be had yet */
	const struct hub_inlets *inlets; /* borrowed; NULL: nobody answers programs */
	char *inlet_folder; /* owned; NULL: not looked for yet */
	struct snapshots *snapshots; /* owned, NULL: none are kept */
	const struct hub_keeper *keeper; /* NULL: none */
	struct volume_roots *roots; /* owned, NULL: no volumes are allowed */
	char plan[IDEMPOTENT_PLAN_MAX + 1]; /* that was given out last */
	struct hub_sandboxes_stats stats; /* the states are kept by the setter */

	struct hub_sandboxes_watch *watches;
	bool telling; /* them is under way */
	uint64_t changes;

	bool batch; /* a transaction holds several changes, */
	size_t n_in_batch; /* of so many */
	struct keeping_all *keeping; /* by hub_sandboxes_keep_start(); NULL: it does not run */
	bool stopping;
	uv_timer_t *saver; /* retries failed writes, and deletes old idempotency keys */
	uv_work_t checkpoint;
	bool checkpointing;
	struct err checkpoint_err;
	struct durable durable;
	/* pending callbacks of hub_sandboxes_later() and of sorted diffs */
	unsigned later;
	void (*on_closed)(void *arg);
	void *on_closed_arg;
};

/* A running operation and its callback. */
struct hub_sandbox_op {
	struct hub_sandbox *hs; /* a reference; NULL: none */
	struct hub_sandboxes *all;
	hub_sandbox_cb on_done;
	void *arg;
	struct err err;
};

/* ---- sandbox.c ----------------------------------------------------------------------------- */

/* A new sandbox in state creating, which can be found. id must be valid. NULL if memory is
 * short. */
struct hub_sandbox *hub_sandbox_new(struct hub_sandboxes *all, struct str id,
				    struct err *e) MUST_USE;
struct hub_sandbox *hub_sandbox_ref(struct hub_sandbox *l);
void hub_sandbox_unref(struct hub_sandbox *l); /* NULL-safe */
AUTO_DEFINE(hub_sandbox_unref, struct hub_sandbox)
struct hub_sandbox *hub_sandboxes_get(const struct hub_sandboxes *all,
				      struct str id); /* NULL: none */

bool hub_sandbox_may_follow(enum hub_sandbox_state from, enum hub_sandbox_state to);
/* The only setter of states; writes the registry, too. why is copied, or NULL. -1 if the
 * registry failed, with the new state set; or with ERR_BUG if the transition is not allowed,
 * with the old state. */
int hub_sandbox_set_state(struct hub_sandbox *l, enum hub_sandbox_state to, const struct err *why,
			  struct err *e);
/* Removes the sandbox and its row. The next sandbox with its id starts at the first generation. */
void hub_sandbox_forget(struct hub_sandbox *l);
/* It has entered a state in which nothing of it runs: the oldest such sandboxes are forgotten. */
void hub_sandbox_mourn(struct hub_sandbox *l);
bool hub_sandbox_is_gone(const struct hub_sandbox *l);
/* An error that names the state, unless it runs. */
int hub_sandbox_check_runs(const struct hub_sandbox *l, struct err *e) MUST_USE;

/* ---- row.c ---------------------------------------------------------------------------- */

/* Writes the row, with an event (kind NULL: none). A failure is counted, and the saver retries. */
int hub_sandbox_save(struct hub_sandbox *l, const char *kind, struct str detail,
		     struct err *e) MUST_USE;
/* Only an event; a failure is logged. */
void hub_sandbox_tell(struct hub_sandbox *l, const char *kind, struct str detail);
/* The error code with that wire name; ERR_BUG if unknown. */
enum err_code hub_sandbox_code_of(struct str name);
/* The hub has its folder: finds there what the loaded sandboxes need, and removes the rest. */
int hub_sandboxes_open_bound(struct hub_sandboxes *all, struct err *e) MUST_USE;
/* The sandboxes of the registry. */
int hub_sandboxes_load(struct hub_sandboxes *all, struct err *e) MUST_USE;
/* JSON of the members of a spec that have no column; owned. */
char *hub_sandbox_spec_text(const struct sandbox_spec *spec, const struct volumes *volumes,
			    const struct bound *bound, const struct hub_modules *modules,
			    struct err *e) MUST_USE;
/* For a new sandbox. Copied. */
int hub_sandbox_set_modules(struct hub_sandbox *l, const struct hub_modules *m,
			    struct err *e) MUST_USE;
int hub_sandbox_set_labels(struct hub_sandbox *l, struct str labels, struct err *e) MUST_USE;
/* Joins several changes in one transaction; they do not nest. If it fails or is rolled back, all
 * are undone in the registry and marked unsaved. */
int hub_sandboxes_batch(struct hub_sandboxes *all, struct err *e) MUST_USE;
int hub_sandboxes_batch_end(struct hub_sandboxes *all, bool keep, struct err *e) MUST_USE;

/* ---- end.c ---------------------------------------------------------------------------- */

/* The sandbox runs: takes over sb and starts its deadlines. After setting the state, call
 * hub_sandbox_arm(). */
void hub_sandbox_begin(struct hub_sandbox *l, struct sandbox *sb);
/* The record that the engine keeps (sandbox_record), by which a row recognizes its own sandbox. */
enum { SANDBOX_MARK_MAX = 48 };
void hub_sandbox_mark(const struct hub_sandbox *l, char ret[SANDBOX_MARK_MAX]);
/* Why it ended at its deadline. */
void hub_sandbox_say_over(const struct hub_sandbox *l, struct err *ret);
/* It ended unexpectedly, and was let go: lost, or stopped where an earlier stop has kept files. */
void hub_sandbox_lose(struct hub_sandbox *l, const struct err *why);
/* The sandbox has stopped running: releases everything for that. */
void hub_sandbox_let_go(struct hub_sandbox *l);
/* Call it when deadlines have changed, or after a use. */
void hub_sandbox_arm(struct hub_sandbox *l);
/* It is no longer being stopped, whatever came of that. */
void hub_sandbox_stopped(struct hub_sandbox *l);
/* Whether the keeper has to save its files before it ends. */
bool hub_sandbox_is_held(const struct hub_sandbox *l);

/* ---- budget.c ------------------------------------------------------------------------- */

/* ERR_LIMIT: it has used all of its budget. ERR_UNSUPPORTED: what it uses can't be counted. */
int hub_sandbox_check_budget(const struct hub_sandbox *l, struct err *e) MUST_USE;
/* Counts what it has used so far. False: on_done does not follow, for it has no budget. */
bool hub_sandbox_count(struct hub_sandbox *l, void (*on_done)(void *arg, const struct err *err),
		       void *arg);
/* It has a machine from now on; it had one until now; it is forked from another. */
/* Until when it may live, in Unix time; 0: no end. Whether it may be resumed. */
int64_t budget_until(const struct hub_sandbox *l);
int budget_check_again(const struct hub_sandbox *l, struct err *e) MUST_USE;
void budget_begin(struct hub_sandbox *l);
void budget_end(struct hub_sandbox *l);
void budget_inherit(struct hub_sandbox *l, const struct hub_sandbox *source);
/* Its connections sent more. */
void budget_sent(struct hub_sandbox *l, uint64_t bytes);

/* ---- sandboxes.c --------------------------------------------------------------------------- */

/* Has the engine look for what those with end_unseen have left: once in each folder, since the
 * oldest of its sandboxes was made. all: a struct hub_sandboxes. */
void hub_sandboxes_look_at_left(void *all);

/* Calls f on the loop's next turn. */
void hub_sandboxes_later(struct hub_sandboxes *all, void (*f)(void *arg), void *arg);
/* The same for on_done; err may be NULL, and l with it. */
void hub_sandbox_later(struct hub_sandboxes *all, struct hub_sandbox *l, hub_sandbox_cb on_done,
		       void *arg, const struct err *err);
struct hub_sandbox_op *hub_sandbox_op_new(struct hub_sandboxes *all, struct hub_sandbox *l,
					  hub_sandbox_cb on_done, void *arg);
/* Ends the operation and calls its callback; err NULL: success. */
void hub_sandbox_op_end(struct hub_sandbox_op *op, const struct err *err);
/* Something that hub_sandboxes_close() waits for is done. */
void hub_sandboxes_try_close(struct hub_sandboxes *all);
/* Call it after a write, successful or not. */
void hub_sandboxes_written(struct hub_sandboxes *all);
/* After an event was written. */
void hub_sandboxes_tell_watches(struct hub_sandboxes *all);
/* Something has ended that the end of everything waits for. */
void hub_sandboxes_try_close(struct hub_sandboxes *all);

/* ---- network.c ----------------------------------------------------------------------------- */

/* Serves what is granted. True: on_done follows. Else nothing is granted, or *e says why it can't
 * be. */
bool network_serve(struct hub_sandbox *l, net_cb on_done, void *arg, struct err *e);
/* The same for a sandbox of an earlier hub; a failure is logged. */
void network_adopt(struct hub_sandbox *l);
/* Whether a sandbox with that network has to be made with an authority that it trusts. */
int network_needs_authority(struct hub_sandboxes *all, struct str text, bool *ret,
			    struct err *e) MUST_USE;

/* ---- inlet.c ------------------------------------------------------------------------------- */

/* Whether sandboxes can be made with modules. */
int inlet_check(struct hub_sandboxes *all, struct err *e) MUST_USE;
/* As network_serve() and network_adopt(). */
bool inlet_serve(struct hub_sandbox *l, net_cb on_done, void *arg, struct err *e);
void inlet_adopt(struct hub_sandbox *l);
void inlet_end(struct hub_sandbox *l);
/* For the engine, as bound_mounts() and bound_env(). */
void inlet_mounts(const struct hub_sandbox *l, struct sandbox_mount *mounts, size_t *n);
void inlet_env(const struct hub_sandbox *l, struct env_var *env, size_t *n);

/* ---- make.c --------------------------------------------------------------------------- */

/* A sandbox in state creating, with the given id or a generated one; owner as in
 * hub_sandbox_spec. */
struct hub_sandbox *hub_sandbox_new_named(struct hub_sandboxes *all, struct str id,
					  struct str owner, struct err *e) MUST_USE;
/* It runs on sb from now on; the client is told next. */
int hub_sandbox_bear(struct hub_sandbox *l, struct sandbox *sb, struct err *e) MUST_USE;
/* The name belonged to a terminated sandbox until now. */
void hub_sandbox_replace_old(struct hub_sandbox *l);
/* It was never told to anybody. */
void hub_sandbox_stillborn(struct hub_sandbox *l);

/* Shared by forward.c (ports) and relay.c (connections). */

struct relay;

struct forward {
	struct forward *next;
	struct hub_sandbox *hs; /* as long as it listens */
	uint16_t guest_port, host_port;
	char owner[OWNER_MAX + 1]; /* who asked for it last */
	uv_tcp_t listener;
	struct relay *relays; /* open ones */
	uint32_t n_relays;
	uint64_t relays_total;
};

/* Ends all forwards of a sandbox, and all other connections to its ports. */
void forwards_end(struct hub_sandbox *l);

/* Accepts a waiting client, and closes it at once if there is no room. */
void relay_start(struct forward *f);
void relays_end(struct forward *f);

/*
 * Shared by the files of snapshots:
 *
 *	snapshots.c		the folder, the rows and their table; expiry
 *	snapshot_pack.c		holt-pack as a process of the hub
 *	snapshot_take.c		a sandbox's files into an archive
 *	snapshot_restore.c	an archive into sandboxes
 *	snapshot_import.c	an archive from elsewhere
 *	snapshot_diff.c		what a sandbox has changed
 *	keep.c			sandboxes kept without running; retention
 */

struct snapshot {
	struct hub_sandboxes *all;
	struct snapshot *older, *newer; /* in order of creation */
	uint64_t seq, of; /* of: the sandbox whose files it keeps; 0: made for a client */
	char id[SANDBOX_ID_MAX + 1], name[SNAPSHOT_NAME_MAX + 1], source[SANDBOX_ID_MAX + 1];
	char template[256], base[SANDBOX_BASE_MAX], digest[HASH_HEX + 1];
	char owner[OWNER_MAX + 1]; /* "": nobody */
	int64_t created_ms, expires_ms;
	uint64_t bytes, unpacked;
	struct limits limits;
};

struct snapshots {
	struct hub_sandboxes *all;
	int dir, new; /* the folder; what is not whole yet */
	struct snapshot *oldest, *newest;
	size_t n;
	uint64_t last_seq;
	unsigned taking; /* that will be there */
	uv_timer_t *reaper;
	struct packing *packs; /* that run */
	unsigned works; /* work in the loop's pool that must end before this does */
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

/* A new snapshot that is not yet listed; owned. */
struct snapshot *snapshot_new(struct hub_sandboxes *all, const struct snapshot_spec *spec,
			      struct err *e) MUST_USE;
void snapshot_free(struct snapshot *s); /* of one that nobody knows; NULL-safe */
AUTO_DEFINE(snapshot_free, struct snapshot)
/* The archive's file name before it is complete. */
int snapshot_create_file(const struct snapshot *s, struct err *e) MUST_USE;
void snapshot_drop_file(const struct snapshot *s); /* of one that did not come to be */
/* The archive is complete and synced: lists the snapshot, then calls on_done. Takes over s, and
 * frees it on failure. spec: JSON, or STR_NONE: that of the sandbox in row spec_of. */
void snapshot_publish(struct snapshot *s, uint64_t spec_of, struct str spec, snapshot_cb on_done,
		      void *arg);
/* Its time is over; the reaper deletes it soon. */
bool snapshot_is_over(const struct snapshot *s);
/* The newest snapshot that keeps a sandbox's files; NULL: none. It stays when the sandbox starts
 * again, until a newer one has taken its place or the sandbox is terminated. */
struct snapshot *snapshot_kept(const struct hub_sandboxes *all, const struct hub_sandbox *l);
/* Removes those of it: all; or all but the newest. */
void snapshot_drop_kept(struct hub_sandbox *l);
void snapshot_drop_older(struct hub_sandbox *l);
/* JSON of its source's settings besides limits; owned. */
char *snapshot_spec_text(const struct snapshot *s, struct err *e) MUST_USE;
/* The hub is ending: stops all work on snapshots soon. */
void snapshots_stop(struct hub_sandboxes *all);
bool snapshots_busy(const struct hub_sandboxes *all);
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
struct packing *pack_start(struct hub_sandboxes *all, const struct pack_spec *spec, pack_cb on_done,
			   void *arg, struct err *e) MUST_USE;
void packs_kill(struct hub_sandboxes *all);

/* The size limits of a snapshot of a sandbox with this disk: its files and their metadata. */
uint64_t snapshot_max(const struct limits *l);

/* ---- snapshot_take.c ----------------------------------------------------------------------- */

/* Like snapshot_take_start(), but the caller has checked the sandbox; of: whose files it keeps. */
void snapshot_take(struct hub_sandbox *l, const struct snapshot_spec *spec, bool kept,
		   snapshot_cb on_done, void *arg);

/* ---- snapshot_restore.c -------------------------------------------------------------------- */

/* Restarts a stopped or cold sandbox from its snapshot. */
void hub_sandbox_start_again(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg);

/* ---- keep.c --------------------------------------------------------------------------- */

/* Carries out a retention other than RETAIN_DESTROY: saves the files for ms (0: the default), then
 * ends l for that reason. on_done with err: nothing was saved, and it continues. */
void hub_sandbox_keep_start(struct hub_sandbox *l, enum hub_sandbox_retention how, uint64_t ms,
			    const struct err *why, hub_sandbox_cb on_done, void *arg);
