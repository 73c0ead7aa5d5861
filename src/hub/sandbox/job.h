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
 * bounded. Ended jobs stay for JOB_KEEP_MS: of the background the last JOBS_ENDED_MAX of each
 * sandbox and JOBS_ENDED_ALL_MAX in all, of the foreground fewer (jobs.c). A background job has its
 * row in the registry before any client learns of it, so a hub that adopts the sandbox later lists
 * it: as lost, without output.
 *
 * Output is a spool (hub/spool/spool.h) with one offset for both streams. Readers never block the
 * program.
 *
 * One loop, as in hub/sandbox/sandbox.h. A `struct job *` is borrowed until the loop's next turn:
 * job_ref() to keep it.
 */
#include "hub/sandbox/sandbox.h"
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
	JOB_COMMAND_MAX = 512, /* bytes of the command that are kept */
	JOBS_RUNNING_MAX = 64, /* background jobs of a sandbox */
	JOBS_RUNNING_ALL_MAX = 1024,
	JOBS_ENDED_MAX = 32,
	JOBS_ENDED_ALL_MAX = 1024,
	JOB_KEEP_MS = 3600 * 1000,
	JOB_OUTPUT_DEFAULT = 64 << 20, /* bytes of output kept in a job's file */
	JOB_OUTPUT_LEAST = 1 << 20,
};
#define JOB_OUTPUT_MAX (2ull << 30)
#define JOBS_DISK_MAX (8ull << 30) /* bytes of all output files together */

/* Borrowed for the call, but events until on_exit. */
struct job_spec {
	/* same syntax as a sandbox's id; STR_NONE: "exec-" and 32 hex digits. ERR_NAME_TAKEN:
	 * this sandbox has a job with that id. */
	struct str id;
	struct str command; /* for display; cut at JOB_COMMAND_MAX */
	struct exec_spec exec;
	bool background;
	/* bytes of output to keep in a file; 0: only the newest are kept, in memory */
	uint64_t keep;
	/* foreground: called after the job's own handling; on_exit may free the job */
	const struct exec_events *events;
	void *arg;
};

/* Starts a job in a running sandbox; else NULL with the errors of hub_sandbox_sandbox().
 * ERR_LIMIT: too many jobs run. A running job keeps the sandbox in use. */
struct job *job_start(struct hub_sandbox *l, const struct job_spec *spec, struct err *e) MUST_USE;

struct job *job_ref(struct job *j);
void job_unref(struct job *j); /* NULL-safe */
AUTO_DEFINE(job_unref, struct job)

/* NULL with ERR_PROCESS_NOT_FOUND. */
struct job *job_find(struct hub_sandbox *l, struct str id, struct err *e) MUST_USE;
/* Returns up to max jobs, the newest first. */
size_t job_list(struct hub_sandbox *l, struct job **ret, size_t max);

/* Borrowed until the next change. */
struct job_info {
	struct str id, sandbox, command;
	enum job_state state;
	bool background;
	bool terminal; /* runs on a terminal */
	bool reads; /* its stdin is open */
	int64_t started_ms, ended_ms; /* Unix time; 0: not yet */
	bool has_result; /* exited, signaled, timed_out */
	struct exec_result result;
	struct spool_stats output;
	const struct err *why; /* the reason if it failed or is lost; else NULL */
};
void job_info(const struct job *j, struct job_info *ret);

/* The exec of a running job, for exec_write(), exec_kill() and the like; NULL after its end. */
struct exec *job_exec(const struct job *j);

/* Its output, read by spool_cursor_new(); SPOOL_END means that the job has ended. Borrowed from j.
 */
struct spool *job_output(const struct job *j);

/* Sets the folder of output files, an absolute path, before any job starts. Without it output is
 * kept in memory only. */
int hub_sandboxes_set_folder(struct hub_sandboxes *all, const char *folder, struct err *e) MUST_USE;

/* Removes a job from its sandbox and from the registry. A running job is killed with all that it
 * started. */
void job_forget(struct job *j);
