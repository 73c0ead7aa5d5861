#pragma once
/*
 * The registry of a hub: what must survive its process. It has rows of sandboxes, programs and
 * snapshots, events, API keys, approvals, questions, and the keys of idempotent requests. It does
 * not interpret them: states, retentions and specs are strings of the lifecycle
 * (hub/sandbox/sandbox.h). store/db.h tells what a power cut may lose.
 */
#include "store/db.h"

struct store;

struct store *store_open(const char *path, struct err *e) MUST_USE;
void store_close(struct store *s); /* NULL-safe */
AUTO_DEFINE(store_close, struct store)

/* A transaction joins a change with its events. */
int store_begin(struct store *s, struct err *e) MUST_USE;
int store_commit(struct store *s, struct err *e) MUST_USE;
void store_rollback(struct store *s);
/* True while a transaction is open and no failure has rolled it back. */
bool store_is_open(const struct store *s);

/* See store/db.h; store_checkpoint() may run on another thread. */
bool store_wants_checkpoint(const struct store *s);
int store_checkpoint(struct store *s, struct err *e) MUST_USE;
int store_sync(const struct store *s, struct err *e) MUST_USE; /* the same */
uint64_t store_written(const struct store *s);
void store_synced(struct store *s, uint64_t written);
bool store_unsynced(const struct store *s);
int store_check(struct store *s, struct err *e) MUST_USE;

/* ---- sandboxes ----------------------------------------------------------------------------- */

/* Strings are borrowed. */
struct store_sandbox {
	uint64_t seq; /* in order of creation; never reused */
	struct str id, template, spec, source, state, retention;
	struct str labels; /* STR_NONE: there are none */
	uint32_t generation;
	int64_t created_ms, changed_ms, deadline_ms; /* Unix time; 0: none */
	uint64_t ttl_ms, idle_ms;
	struct str code, why; /* an error's; STR_NONE: there is none */
	struct str network; /* what is granted; STR_NONE: nothing */
	struct str owner; /* name of a principal; empty: nobody's */
	uint64_t memory, disk; /* bytes */
	uint32_t pids, cpu_milli, files, debug, root;
	uint64_t spent_cpu_ms, spent_out; /* of its budget, before it was started the last time */
	/* What is written must last: its files are kept, or it may write folders of the host, which
	 * are looked at after its end. */
	bool lasts;
};

/* Adds a row, replacing one with the same id. spec STR_NONE: copied from the row spec_of. */
int store_sandbox_add(struct store *s, const struct store_sandbox *r, uint64_t spec_of,
		      struct err *e) MUST_USE;
/* Updates state, changed, deadline, ttl, code, why, generation, network and what is spent of the
 * row with its seq. */
int store_sandbox_change(struct store *s, const struct store_sandbox *r, struct err *e) MUST_USE;
int store_sandbox_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;

/* All rows in order of seq. each returns 0, or -1 with *e to stop, and must not write. */
int store_sandboxes(struct store *s,
		    int (*each)(void *arg, const struct store_sandbox *r, struct err *e), void *arg,
		    struct err *e) MUST_USE;
/* The highest seq that there ever was. */
int store_sandbox_last(struct store *s, uint64_t *ret_seq, struct err *e) MUST_USE;

/* ---- programs of sandboxes ----------------------------------------------------------------- */

/* Strings are borrowed. */
struct store_job {
	uint64_t sandbox; /* seq of its row */
	struct str sandbox_id; /* filled when read */
	struct str id, command, state;
	int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
	int exit_code, signal;
	bool hit_memory, hit_pids;
	uint64_t wall_us;
	uint64_t bytes[2]; /* of stdout and stderr */
	struct str code, why; /* an error's; STR_NONE: there is none */
};

/* Adds or replaces the row of this sandbox and id. */
int store_job_put(struct store *s, const struct store_job *j, struct err *e) MUST_USE;
int store_job_drop(struct store *s, uint64_t sandbox, struct str id, struct err *e) MUST_USE;
/* Deletes all rows that store_jobs() does not list. */
int store_jobs_clear(struct store *s, struct err *e) MUST_USE;
/* All jobs of sandboxes that exist and are not terminated, in the order of their start. each: as
 * for store_sandboxes(). */
int store_jobs(struct store *s, int (*each)(void *arg, const struct store_job *j, struct err *e),
	       void *arg, struct err *e) MUST_USE;
/* The highest generation among dropped sandboxes, as set by store_forgotten_set(). */
int store_forgotten(struct store *s, uint32_t *ret_generation, struct err *e) MUST_USE;
int store_forgotten_set(struct store *s, uint32_t generation, struct err *e) MUST_USE;

/* ---- snapshots ----------------------------------------------------------------------------- */

/* Strings are borrowed. */
struct store_snapshot {
	uint64_t seq; /* in order of creation; never reused */
	struct str id, name; /* name: "" for none */
	uint64_t of; /* seq of the sandbox that it is kept for; 0: made for a client */
	struct str source, template, base, spec, digest;
	struct str owner; /* as of a sandbox */
	int64_t created_ms, expires_ms; /* Unix time; 0: never */
	uint64_t bytes, unpacked;
	uint64_t memory, disk; /* bytes */
	uint32_t pids, cpu_milli, files, debug, root;
};

/* Adds a row. spec STR_NONE: copied from the sandbox in row spec_of. */
int store_snapshot_add(struct store *s, const struct store_snapshot *r, uint64_t spec_of,
		       struct err *e) MUST_USE;
int store_snapshot_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;
/* Whether the registry in a file, which a hub may have open, has a snapshot of that image, or a
 * module that runs it. 0 also without the file. */
int store_keeps_image(const char *path, const char *digest, struct err *e) MUST_USE;
/* All rows in order of seq, or only the one with seq if that is not 0. each: as for
 * store_sandboxes(). */
int store_snapshots(struct store *s, uint64_t seq,
		    int (*each)(void *arg, const struct store_snapshot *r, struct err *e),
		    void *arg, struct err *e) MUST_USE;
/* The highest seq that there ever was. */
int store_snapshot_last(struct store *s, uint64_t *ret_seq, struct err *e) MUST_USE;

/* ---- events ------------------------------------------------------------------------- */

enum { STORE_EVENTS_MAX = 10000 }; /* older ones are deleted */

/* Strings are borrowed. */
struct store_event {
	uint64_t seq; /* increases; never reused */
	int64_t at_ms; /* Unix time */
	struct str sandbox, kind, detail; /* detail may be STR_NONE */
	struct str owner; /* of the sandbox */
};

int store_event_add(struct store *s, const struct store_event *v, struct err *e) MUST_USE;
struct store_events_of {
	uint64_t after; /* only those with a higher seq */
	struct str sandbox, owner; /* STR_NONE: of all */
};
/* Up to max of these events, in order. */
int store_events(struct store *s, const struct store_events_of *of, unsigned max,
		 int (*each)(void *arg, const struct store_event *v, struct err *e), void *arg,
		 struct err *e) MUST_USE;

/* The lowest and highest seq kept; 0: none. */
int store_events_kept(struct store *s, uint64_t *ret_oldest, uint64_t *ret_newest,
		      struct err *e) MUST_USE;

/* ---- keys of requests ---------------------------------------------------------------------- */

enum {
	STORE_KEYS_MAX = 10000, /* above that the oldest that are done are deleted */
	STORE_KEYS_BYTES_MAX = 32 << 20, /* likewise, for the bytes of answers and plans */
	STORE_DIGEST_BYTES = 32,
};

/* Strings are borrowed; those of a found key until the next call. */
struct store_key {
	struct str scope, key;
	struct str digest; /* STORE_DIGEST_BYTES of the request, see store_digest() */
	struct str run; /* the run of the hub in which the request began */
	int64_t at_ms; /* Unix time */
	struct str plan; /* opaque, returned to the caller */
	bool done;
	int status;
	struct str body;
};

void store_digest(struct str request, char ret[STORE_DIGEST_BYTES]);

/* 1: found; 0: not found. */
int store_key_find(struct store *s, struct str scope, struct str key, struct store_key *ret,
		   struct err *e) MUST_USE;
/* Adds or replaces a key, deleting old ones that are done for room. ERR_LIMIT: no room. */
int store_key_put(struct store *s, const struct store_key *k, struct err *e) MUST_USE;
int store_key_drop(struct store *s, struct str scope, struct str key, struct err *e) MUST_USE;
/* Deletes the keys of requests that began before before_ms. */
int store_keys_expire(struct store *s, int64_t before_ms, struct err *e) MUST_USE;

/* ---- API keys ------------------------------------------------------------------------------ */

/* Strings are borrowed. */
struct store_api_key {
	struct str name;
	struct str hash; /* of the token, which is nowhere */
	uint32_t scopes;
	int64_t created_ms, expires_ms, used_ms; /* Unix time; 0: never */
	struct str makers; /* owners, with blanks between; empty: no key made it */
};

/* Adds or replaces the key of this name. */
int store_api_key_put(struct store *s, const struct store_api_key *r, struct err *e) MUST_USE;
int store_api_key_used(struct store *s, struct str name, int64_t at_ms, struct err *e) MUST_USE;
int store_api_key_drop(struct store *s, struct str name, struct err *e) MUST_USE;
/* All, in order of creation. each: as for store_sandboxes(). */
int store_api_keys(struct store *s,
		   int (*each)(void *arg, const struct store_api_key *r, struct err *e), void *arg,
		   struct err *e) MUST_USE;
/* Those that keys made and that are gone, as long as something may be left of them. */
int store_api_keys_ended(struct store *s,
			 int (*each)(void *arg, struct str owner, struct str makers, struct err *e),
			 void *arg, struct err *e) MUST_USE;

/* ---- approvals ----------------------------------------------------------------------------- */

/* Strings are borrowed; none is STR_NONE. guard/approval says what they mean. */
struct store_approval {
	uint64_t seq; /* in order of creation */
	uint64_t rev; /* in order of changes */
	struct str id, principal, action, target, digest, arguments, conversation, rule;
	uint64_t sandbox; /* seq of the target's row; 0: none */
	uint64_t size; /* bytes of the whole arguments */
	struct str state, scope, pattern, who, surface;
	int64_t created_ms, deadline_ms, answered_ms, used_ms; /* Unix time; 0: never */
};

/* Adds or replaces the row of this seq. */
int store_approval_put(struct store *s, const struct store_approval *r, struct err *e) MUST_USE;
int store_approval_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;
/* All rows in order of seq. each: as for store_sandboxes(). */
int store_approvals(struct store *s,
		    int (*each)(void *arg, const struct store_approval *r, struct err *e),
		    void *arg, struct err *e) MUST_USE;

/* ---- questions to people ------------------------------------------------------------------- */

/* Strings are borrowed; none is STR_NONE. ask/question.h says what they mean. */
struct store_question {
	uint64_t seq; /* in order of creation */
	uint64_t rev; /* in order of changes */
	struct str id, principal, session, kind, origin, state;
	struct str spec, reply; /* JSON */
	struct str who, surface;
	int64_t created_ms, deadline_ms, ended_ms; /* Unix time; 0: never */
};

/* Adds or replaces the row of this seq. */
int store_question_put(struct store *s, const struct store_question *r, struct err *e) MUST_USE;
int store_question_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;
/* All rows in order of seq. each: as for store_sandboxes(). */
int store_questions(struct store *s,
		    int (*each)(void *arg, const struct store_question *r, struct err *e),
		    void *arg, struct err *e) MUST_USE;

/* ---- modules ------------------------------------------------------------------------------- */

/* Strings are borrowed; none is STR_NONE. modules/upstream.h says what they mean. */
struct store_module {
	struct str name, digest, who;
	int64_t approved_ms; /* Unix time; 0: never */
	bool disabled;
	struct str pins; /* JSON; "": none */
	struct str package, update; /* digests of images, which are kept as long as this row */
	struct str package_for, update_for; /* digests of what they were fetched for */
};
/* Adds or replaces the row of this name. */
int store_module_put(struct store *s, const struct store_module *r, struct err *e) MUST_USE;
/* The row of this name keeps no images any more. */
int store_module_let_go(struct store *s, struct str name, struct err *e) MUST_USE;
/* All rows. each: as for store_sandboxes(). */
int store_modules(struct store *s,
		  int (*each)(void *arg, const struct store_module *r, struct err *e), void *arg,
		  struct err *e) MUST_USE;
/* 256 random bits in hex, the same for as long as there is this registry. */
enum { STORE_MODULE_KEY = 65 };
int store_module_key(struct store *s, char ret[STORE_MODULE_KEY], struct err *e) MUST_USE;

/* ---- code ---------------------------------------------------------------------------------- */

/* A JavaScript module that a client has registered. Strings are borrowed; "" is none. */
struct store_code {
	struct str owner, name; /* unique together */
	struct str source, description;
	struct str exports; /* JSON array of the names that it exports */
};
int store_code_put(struct store *s, const struct store_code *r, struct err *e) MUST_USE;
/* 1: it was there. */
int store_code_drop(struct store *s, struct str owner, struct str name, struct err *e) MUST_USE;
/* All of an owner. */
int store_code_drop_all(struct store *s, struct str owner, struct err *e) MUST_USE;
/* Those of an owner by name; name: only this, or STR_NONE. each: as for store_sandboxes(). */
int store_codes(struct store *s, struct str owner, struct str name,
		int (*each)(void *arg, const struct store_code *r, struct err *e), void *arg,
		struct err *e) MUST_USE;
/* Owners that have any. each may drop none. */
int store_code_owners(struct store *s, int (*each)(void *arg, struct str owner, struct err *e),
		      void *arg, struct err *e) MUST_USE;

/* ---- workspaces ---------------------------------------------------------------------------- */

/* Strings are borrowed; none is STR_NONE. */
struct store_workspace {
	uint64_t seq; /* in order of creation; never reused */
	struct str name, owner; /* unique together */
	struct str tip; /* id of its newest revision */
	int64_t created_ms; /* Unix time */
	uint64_t sandbox; /* seq of the one that writes to it; 0: none */
	struct str base; /* the revision that it began with; "" */
};
int store_workspace_put(struct store *s, const struct store_workspace *r, struct err *e) MUST_USE;
int store_workspace_drop(struct store *s, uint64_t seq, struct err *e) MUST_USE;
/* All, in order of seq. each: as for store_sandboxes(). */
int store_workspaces(struct store *s,
		     int (*each)(void *arg, const struct store_workspace *r, struct err *e),
		     void *arg, struct err *e) MUST_USE;
int store_workspace_last(struct store *s, uint64_t *ret_seq, struct err *e) MUST_USE;

/* Strings are borrowed; none is STR_NONE. */
struct store_revision {
	struct str id, parent, tree; /* parent: "" for a first one */
	uint64_t files, bytes;
	uint64_t left_out; /* files that it does not have, since they hold credentials */
	int64_t created_ms;
	struct str source, message;
	uint64_t number; /* in the history that was asked for, from 1 on */
};
int store_revision_add(struct store *s, const struct store_revision *r, struct err *e) MUST_USE;
int store_revision_drop(struct store *s, struct str id, struct err *e) MUST_USE;
/* The one with this id, or all where it is empty. each: as for store_sandboxes(). */
typedef int (*store_revision_fn)(void *arg, const struct store_revision *r, struct err *e);
int store_revisions(struct store *s, struct str id, store_revision_fn each, void *arg,
		    struct err *e) MUST_USE;

/* Histories, by the workspace's seq. */
int store_history_add(struct store *s, uint64_t workspace, uint64_t number, struct str revision,
		      struct err *e) MUST_USE;
/* The revisions of another one, up to this number. */
int store_history_copy(struct store *s, uint64_t from, uint64_t to, uint64_t number,
		       struct err *e) MUST_USE;
/* Those before this number, the newest first. */
int store_history_before(struct store *s, uint64_t workspace, uint64_t number, uint32_t limit,
			 store_revision_fn each, void *arg, struct err *e) MUST_USE;
/* Forgets up to `limit` rows of workspaces that are gone. 1: there may be more. */
int store_history_forget(struct store *s, uint32_t limit, struct err *e) MUST_USE;
/* Calls each for up to `limit` revisions behind this id, in order of their ids; number: 0: it is in
 * no history. */
int store_revisions_after(struct store *s, struct str id, uint32_t limit, store_revision_fn each,
			  void *arg, struct err *e) MUST_USE;
/* Those whose id begins with these hexadecimal digits, two at most. */
int store_history_find(struct store *s, uint64_t workspace, struct str digits,
		       store_revision_fn each, void *arg, struct err *e) MUST_USE;
