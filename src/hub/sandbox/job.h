#pragma once
/*
 * Jobs: the programs of a sandbox, each with an id, a state, a result and its output. A background
 * job outlives the request that started it. A foreground job is the exec of one call: the call gets
 * the events of exec_start(), and the end of the output is kept afterwards.
 *
 * 	job_start() ── running ──┬── exited, signaled, timed_out
 * 	                         ├── failed	it never ran
 * 	                         └── lost	its sandbox ended, or the hub was killed
 *
 * A job belongs to its sandbox and is freed when that is terminated. The number of running jobs is
 * bounded. Ended jobs stay for JOB_KEEP_MS, the last JOBS_ENDED_MAX of each sandbox and
 * JOBS_ENDED_ALL_MAX in all. A background job has its row in the registry before any client learns
 * of it, so a hub that adopts the sandbox later lists it: as lost, without output.
 *
 * Output is a spool (hub/spool/spool.h) with one offset for both streams. Readers never block the
 * program.
 *
 * One loop, as in hub/sandbox/life.h. A `struct job *` is borrowed until the loop's next turn:
 * job_ref() to keep it.
 */
#include "hub/sandbox/life.h"
#include "hub/spool/spool.h"

struct job;

enum job_state {
	JOB_RUNNING,
	JOB_EXITED,
	JOB_SIGNALED,
	JOB_TIMED_OUT,
	JOB_FAILED,
	JOB_LOST,
	JOB_STATES
};
extern const char *const job_state_names[JOB_STATES];
extern const char *const job_stream_names[SPOOL_STREAMS]; /* "stdout", "stderr" */

enum {
	JOB_COMMAND_MAX = 512, /* bytes of it that are remembered */
	JOBS_RUNNING_MAX = 64, /* in the background, of a sandbox */
	JOBS_RUNNING_ALL_MAX = 1024,
	JOBS_ENDED_MAX = 32,
	JOBS_ENDED_ALL_MAX = 1024,
	JOB_KEEP_MS = 3600 * 1000,
	JOB_OUTPUT_DEFAULT = 64 << 20, /* bytes in its file */
	JOB_OUTPUT_LEAST = 1 << 20,
};
#define JOB_OUTPUT_MAX (2ull << 30)
#define JOBS_DISK_MAX (8ull << 30) /* of all files */

/* Borrowed for the call, but for events: for the life of the exec. */
struct job_spec {
	/* as of a sandbox; STR_NONE: "exec-" and 32 hex digits. One that this sandbox has:
	 * ERR_CONFLICT */
	struct str id;
	struct str command; /* what is shown as such; what is over JOB_COMMAND_MAX is cut */
	struct exec_spec exec;
	bool background;
	uint64_t keep; /* background: bytes of output to keep, 0: JOB_OUTPUT_DEFAULT */
	/* foreground: called after the job's own handling; on_exit may free the job */
	const struct exec_events *events;
	void *arg;
};

/* In a running sandbox: else NULL, as life_sandbox() says. ERR_LIMIT: too many run. It is a use of
 * the sandbox until its end. */
struct job *job_start(struct life *l, const struct job_spec *spec, struct err *e) MUST_USE;

struct job *job_ref(struct job *j);
void job_unref(struct job *j); /* NULL-safe */
AUTO_DEFINE(job_unref, struct job)

/* NULL with ERR_PROCESS_NOT_FOUND. */
struct job *job_find(struct life *l, struct str id, struct err *e) MUST_USE;
/* Up to max, the newest first. */
size_t job_list(struct life *l, struct job **ret, size_t max);

struct job_info { /* borrowed until the next change */
	struct str id, sandbox, command;
	enum job_state state;
	bool background;
	bool terminal; /* it was started on one */
	bool reads; /* its standard input is open */
	int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
	bool has_result; /* exited, signaled, timed_out */
	struct exec_result result;
	struct spool_stats output;
	const struct err *why; /* failed, lost: what happened; else NULL */
};
void job_info(const struct job *j, struct job_info *ret);

/* While it runs, for exec_write(), exec_kill() and the like; NULL after its end. */
struct exec *job_exec(const struct job *j);

/* Its output: spool_cursor_new() reads it, and SPOOL_END means that the job has ended. Borrowed
 * from j. */
struct spool *job_output(const struct job *j);

/* Where the files of outputs are made: an absolute path. Without it outputs are kept in memory
 * only. Before any job. */
int lives_set_folder(struct lives *all, const char *folder, struct err *e) MUST_USE;

/* Is found no more: by its sandbox, or by the registry. One that runs is killed with all that it
 * started. */
void job_forget(struct job *j);
