#pragma once
/*
 * The registry of a hub: what must be known after its process has ended. Rows of sandboxes, keys of
 * requests that are done once, and what happened. It knows nothing of what they mean: states,
 * retentions and specs are texts of the lifecycle's (hub/sandbox/life.h). What a power cut may take
 * is in store/db.h.
 */
#include "store/db.h"

struct store;

struct store *store_open(const char *path, struct err *e) MUST_USE;
void store_close(struct store *s); /* NULL-safe */
AUTO_DEFINE(store_close, struct store)

/* A change and what happened belong together. */
int store_begin(struct store *s, struct err *e) MUST_USE;
int store_commit(struct store *s, struct err *e) MUST_USE;
void store_rollback(struct store *s);
/* A transaction has begun, and no failure in it has undone it already. */
bool store_is_open(const struct store *s);

/* See db.h; the second is for another thread. */
bool store_wants_checkpoint(const struct store *s);
int store_checkpoint(struct store *s, struct err *e) MUST_USE;

/* ---- sandboxes ----------------------------------------------------------------------------- */

struct store_sandbox { /* strings borrowed */
	uint64_t seq; /* in order of creation; never used again */
	struct str id, template, spec, source, state, retention;
	uint32_t generation;
	int64_t created_ms, changed_ms, deadline_ms; /* Unix time; 0: none */
	uint64_t ttl_ms, idle_ms;
	struct str code, why; /* an error's; STR_NONE: there is none */
	uint64_t memory, disk; /* bytes */
	uint32_t pids, cpu_milli, files;
};

/* A new row; one with its id goes. A spec of STR_NONE is that of the row spec_of. */
int store_sandbox_add(struct store *s, const struct store_sandbox *r, uint64_t spec_of,
		      struct err *e) MUST_USE;
/* Of the row with its seq: state, changed, deadline, ttl, code, why and generation. */
int store_sandbox_change(struct store *s, const struct store_sandbox *r, struct err *e) MUST_USE;
int store_sandbox_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;

/* All, in order of seq. each: 0, or -1 with *e to end it; it writes nothing. */
int store_sandboxes(struct store *s,
		    int (*each)(void *arg, const struct store_sandbox *r, struct err *e), void *arg,
		    struct err *e) MUST_USE;
/* The highest seq that there ever was. */
int store_sandbox_last(struct store *s, uint64_t *ret_seq, struct err *e) MUST_USE;

/* ---- programs of sandboxes ----------------------------------------------------------------- */

struct store_job { /* strings borrowed */
	uint64_t sandbox; /* seq of its row */
	struct str sandbox_id; /* of those that are read */
	struct str id, command, state;
	int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
	int exit_code, signal;
	bool hit_memory, hit_pids;
	uint64_t wall_us;
	uint64_t bytes[2]; /* of stdout and stderr */
	struct str code, why; /* an error's; STR_NONE: there is none */
};

/* Adds or replaces the one of this sandbox and id. */
int store_job_put(struct store *s, const struct store_job *j, struct err *e) MUST_USE;
int store_job_drop(struct store *s, uint64_t sandbox, struct str id, struct err *e) MUST_USE;
/* All but those that store_jobs() has. */
int store_jobs_clear(struct store *s, struct err *e) MUST_USE;
/* Those of the sandboxes that there are, but terminated ones, in the order in which they were
 * started. As of sandboxes. */
int store_jobs(struct store *s, int (*each)(void *arg, const struct store_job *j, struct err *e),
	       void *arg, struct err *e) MUST_USE;
/* The highest generation of a sandbox that was dropped, as far as it was said. */
int store_forgotten(struct store *s, uint32_t *ret_generation, struct err *e) MUST_USE;
int store_forgotten_set(struct store *s, uint32_t generation, struct err *e) MUST_USE;

/* ---- snapshots ----------------------------------------------------------------------------- */

struct store_snapshot { /* strings borrowed */
	uint64_t seq; /* in order of creation; never used again */
	struct str id, name; /* name: "" where it has none */
	uint64_t of; /* the sandbox that it is kept for; 0: it is a client's */
	struct str source, template, base, spec, digest;
	int64_t created_ms, expires_ms; /* Unix time; 0: never */
	uint64_t bytes, unpacked;
	uint64_t memory, disk; /* bytes */
	uint32_t pids, cpu_milli, files;
};

/* A new row. A spec of STR_NONE is that of the sandbox in row spec_of. */
int store_snapshot_add(struct store *s, const struct store_snapshot *r, uint64_t spec_of,
		       struct err *e) MUST_USE;
int store_snapshot_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;
/* All, in order of seq, or with a seq that one. each: 0, or -1 with *e to end it; it writes
 * nothing. */
int store_snapshots(struct store *s, uint64_t seq,
		    int (*each)(void *arg, const struct store_snapshot *r, struct err *e),
		    void *arg, struct err *e) MUST_USE;
/* The highest seq that there ever was. */
int store_snapshot_last(struct store *s, uint64_t *ret_seq, struct err *e) MUST_USE;

/* ---- what happened ------------------------------------------------------------------------- */

enum { STORE_EVENTS_MAX = 10000 }; /* the oldest go */

struct store_event { /* strings borrowed */
	uint64_t seq; /* counts up, for ever */
	int64_t at_ms; /* Unix time */
	struct str sandbox, kind, detail; /* detail may be STR_NONE */
};

int store_event_add(struct store *s, const struct store_event *v, struct err *e) MUST_USE;
/* Up to max with a seq above `after`, in order; of one sandbox, or with STR_NONE of all. */
int store_events(struct store *s, uint64_t after, struct str sandbox, unsigned max,
		 int (*each)(void *arg, const struct store_event *v, struct err *e), void *arg,
		 struct err *e) MUST_USE;

/* The lowest and the highest seq that there are; 0: none. */
int store_events_kept(struct store *s, uint64_t *ret_oldest, uint64_t *ret_newest,
		      struct err *e) MUST_USE;

/* ---- keys of requests ---------------------------------------------------------------------- */

enum {
	STORE_KEYS_MAX = 10000, /* the oldest that are done go */
	STORE_KEYS_BYTES_MAX = 32 << 20, /* likewise, by their answers and plans */
	STORE_DIGEST_BYTES = 32,
};

struct store_key { /* strings borrowed, those of a found one until the next call */
	struct str scope, key;
	struct str digest; /* STORE_DIGEST_BYTES of the request, see store_digest() */
	struct str run; /* the hub's run in which it began */
	int64_t at_ms; /* Unix time */
	struct str plan; /* as the caller wants it back */
	bool done;
	int status;
	struct str body;
};

void store_digest(struct str request, char ret[STORE_DIGEST_BYTES]);

/* 1: found, 0: there is none. */
int store_key_find(struct store *s, struct str scope, struct str key, struct store_key *ret,
		   struct err *e) MUST_USE;
/* Adds or replaces. Makes room among those that are done; ERR_LIMIT where there is none to make. */
int store_key_put(struct store *s, const struct store_key *k, struct err *e) MUST_USE;
int store_key_drop(struct store *s, struct str scope, struct str key, struct err *e) MUST_USE;
/* Those that began before. */
int store_keys_expire(struct store *s, int64_t before_ms, struct err *e) MUST_USE;
