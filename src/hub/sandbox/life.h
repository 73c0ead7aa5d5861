#pragma once
/*
 * The sandboxes of a hub as clients know them, from creating to terminated. A `struct life` is one
 * sandbox with its name, its deadlines and its history; the `struct sandbox` of box/ is the machine
 * that it has while it runs. States have one setter and one table of what may follow what; a change
 * that gives a client something is in the registry (store/) before it is acknowledged.
 *
 * Everything runs on the loop's thread. An operation that takes time ends in exactly one callback,
 * never from inside the starting call; its `struct err` is borrowed until it returns, NULL means
 * success. A `struct life *` is borrowed until the loop's next turn: life_busy(l, +1) keeps it
 * valid until the -1.
 *
 * Where the registry can't be written, what gives a client something fails and is undone (create,
 * fork, set_timeout); what takes something away or only tells (terminate, pause, resume, a loss)
 * happens, and is written as soon as that can be done.
 */
#include "box/host/box.h"

struct lives; /* all of a hub */
struct life; /* one */
struct store;

enum life_state {
	LIFE_CREATING,
	LIFE_RUNNING,
	LIFE_PAUSED,
	LIFE_COLD,
	LIFE_RESTORING,
	LIFE_STOPPED,
	LIFE_LOST, /* it ended and nobody wanted that; stays until it is terminated */
	LIFE_TERMINATED,
	LIFE_FAILED, /* something of it could not be removed */
	LIFE_STATES
};
extern const char *const life_state_names[LIFE_STATES];

enum life_retention { /* what happens at a deadline */
		      RETAIN_DESTROY,
		      RETAIN_STOP,
		      RETAIN_COLD,
		      RETAIN_SNAPSHOT,
		      RETENTIONS
};
extern const char *const life_retention_names[RETENTIONS];

enum { LIFE_ID_MAX = SANDBOX_ID_MAX };
#define LIFE_TIMEOUT_MAX_MS (365ull * 86400 * 1000)

/* Borrowed for the call. */
struct life_spec {
	struct sandbox_spec box; /* its id is not read; its ttl_ms is the lifecycle's */
	/* ^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$; STR_NONE: "sbx-" and 32 hex digits. One that is taken:
	 * ERR_CONFLICT; that of a terminated sandbox is free again, and the new one has a higher
	 * generation. */
	struct str id;
	uint64_t idle_ms; /* ended so long after its last use; 0: never */
	enum life_retention retention; /* what can't be carried out is refused: ERR_INVALID */
};

struct life_info { /* borrowed until the next change */
	uint64_t seq; /* counts up in order of creation, for ever */
	struct str id, template, source; /* source: id of what it was forked from, else STR_NONE */
	enum life_state state;
	/* from 1; counts up each time that what is behind the id was replaced */
	uint32_t generation;
	int64_t created_ms, changed_ms; /* Unix time; changed: into its state */
	int64_t deadline_ms; /* Unix time; 0: none */
	uint64_t ttl_ms, idle_ms; /* as asked for, by set_timeout too; 0: none */
	enum life_retention retention;
	const struct limits *limits;
	bool from_pool;
	bool adopted; /* it runs, and was made by an earlier hub */
	/* lost, failed, and terminated by a deadline: what happened; else NULL */
	const struct err *why;
};

/* Reads the registry. store: borrowed; NULL: nothing outlives this process. Then lives_adopt() is
 * called once, before anything else. */
struct lives *lives_new(uv_loop_t *loop, struct store *store, struct err *e) MUST_USE;

/* on_end of the box, with the lives as its argument. */
void lives_on_end(void *lives, struct sandbox *sb, const struct err *why);

/* Told the sandboxes that have outlived an earlier hub, by their ids: those that the registry knows
 * as alive go on with their generation, what it does not know is destroyed, and what it knows and
 * is not among them is lost. The box is borrowed until it is closed. */
void lives_adopt(struct lives *all, struct box *box, struct sandbox *const *sandboxes, size_t n);

/* The hub is ending: nothing new begins, and what the box ends from now on is terminated, not
 * lost. */
void lives_stop(struct lives *all);
/* The hub goes, and its sandboxes stay for the next one: the registry keeps them as they are. */
void lives_leave(struct lives *all);
/* Of one that was not yet told of its sandboxes; NULL-safe. */
void lives_free(struct lives *all);
/* Behind the box's end: waits for what is under way, then all is gone. */
void lives_close(struct lives *all, void (*on_closed)(void *arg), void *arg);

/* l is NULL with err. */
typedef void (*life_cb)(void *arg, struct life *l, const struct err *err);
typedef void (*life_fork_cb)(void *arg, struct life *const *children, size_t n,
			     const struct err *err);

void life_create_start(struct lives *all, const struct life_spec *spec, life_cb on_done, void *arg);

struct life_fork_spec { /* borrowed for the call */
	size_t n; /* 1 to 64 */
	const struct str *ids; /* n of them, or NULL; as in life_spec */
};
/* All or none. The children have the source's deadlines, counted from now, and run. The source
 * stands still while it is copied, and is then as it was: running or paused. */
void life_fork_start(struct life *source, const struct life_fork_spec *spec, life_fork_cb on_done,
		     void *arg);

/* Of a lost or failed one: it is forgotten as such, and its id is free. Twice:
 * ERR_SANDBOX_NOT_FOUND. */
void life_terminate_start(struct life *l, life_cb on_done, void *arg);

/* To pause a paused one, or resume a running one, is done at once. */
void life_pause_start(struct life *l, life_cb on_done, void *arg);
void life_resume_start(struct life *l, life_cb on_done, void *arg);

/* The time to live begins anew: ms from now; 0: none any more. Running or paused, else a typed
 * error. */
int life_set_timeout(struct life *l, uint64_t ms, struct err *e) MUST_USE;

/* -1 with ERR_SANDBOX_NOT_FOUND. */
int lives_unknown(struct str id, struct err *e);

/* NULL with ERR_SANDBOX_NOT_FOUND. Those that are gone are found for a while, with their state. */
struct life *lives_find(struct lives *all, struct str id, struct err *e) MUST_USE;

/* Up to max with a seq above `after` (0: from the start), in order of creation. */
size_t lives_list(struct lives *all, uint64_t after, struct life **ret, size_t max);
void life_info(const struct life *l, struct life_info *ret);

struct lives_stats {
	uint64_t by_state[LIFE_STATES];
	uint64_t reap_failures; /* deadlines that could not be carried out at once */
	uint64_t store_failures; /* changes that the registry did not take at once */
	uint64_t unsaved; /* of them, those that it still does not have */
};
void lives_stats(const struct lives *all, struct lives_stats *ret);

/* What happened, from the registry, in order: up to max with a seq above `after`, of the sandbox of
 * an id, or with STR_NONE of all. Strings are borrowed until each() returns; without a registry
 * there are none. */
struct life_event {
	uint64_t seq;
	int64_t at_ms; /* Unix time */
	/* kind: created, resumed, restored, snapshot, deadline, reap_failed, or a state */
	struct str sandbox, kind, detail;
};
/* The oldest and the newest that are still there; 0: there is none. What was before the oldest is
 * gone. */
int lives_events_kept(struct lives *all, uint64_t *ret_oldest, uint64_t *ret_newest,
		      struct err *e) MUST_USE;
int lives_events(struct lives *all, uint64_t after, struct str id, unsigned max,
		 void (*each)(void *arg, const struct life_event *v), void *arg,
		 struct err *e) MUST_USE;

/* Told, later and once for many, that there may be more of them. The owner's, on the list from add
 * to remove. */
struct lives_watch {
	struct lives_watch *next;
	void (*on_events)(void *arg);
	void *arg;
};
void lives_watch_add(struct lives *all, struct lives_watch *w);
void lives_watch_remove(struct lives *all, struct lives_watch *w);

/* Counts up with each change of what lives_list() and life_info() show. */
uint64_t lives_changes(const struct lives *all);

/* What there is of it, running or paused, without a use; else NULL with a typed error. */
struct sandbox *life_machine(struct life *l, struct err *e) MUST_USE;

/* For exec and files: that of a running one, else NULL with a typed error that names the state
 * (ERR_PAUSED, ERR_GUEST for lost, ERR_IDLE or ERR_SANDBOX_NOT_FOUND for terminated, ERR_CONFLICT
 * while it changes). Counts as a use. */
struct sandbox *life_sandbox(struct life *l, struct err *e) MUST_USE;

/* +1 while an exec, an operation on files or a stream is open, -1 at its end: while it is busy it
 * is not idle, and l stays valid. */
void life_busy(struct life *l, int by);
