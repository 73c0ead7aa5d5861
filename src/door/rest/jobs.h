#pragma once
/* Execs as REST shows them (hub/job.h), and what their routes share. */
#include "door/http/exec_run.h"
#include "hub/sandbox/job.h"
#include "hub/core/when.h"

struct job_view {
	struct str exec_id, sandbox, command;
	enum job_state state;
	bool background, tty, stdin_open;
	struct str started_at, ended_at;
	bool has_result;
	int32_t exit_code;
	bool has_signal;
	int32_t signal;
	double exec_time_ms;
	bool hit_memory, hit_pids;
	uint64_t first_offset, next_offset, stdout_bytes, stderr_bytes;
	struct str error, output_error;
	char started[WHEN_MAX], ended[WHEN_MAX]; /* what the strings borrow */
};
extern const struct field_table job_view_table;

/* Borrows from the job and from itself. */
void job_view(const struct job *j, struct job_view *ret);

struct job_path {
	struct str id, exec;
};
extern const struct field_table job_path_table;
#define API_JOB_PATH(S)                                                                            \
	FIELD_OBJECT(S, path, job_path_table, .flags = FIELD_REQUIRED, .doc = "Which exec.")

/* Borrowed; a failure is about its sandbox. */
struct job *ask_job(struct call *c, const struct job_path *p, struct err *e) MUST_USE;

/* The same for one that runs in a sandbox that runs: a failure else. */
struct job *ask_running_job(struct call *c, const struct job_path *p, struct err *e) MUST_USE;

/* What POST /v1/exec says besides of a background exec. */
struct job_wish {
	struct str id;
	bool stdin_open;
	uint64_t keep;
};
/* Ends the call with a job_view. */
void exec_detach(struct call *c, const struct exec_wish *w, const struct job_wish *jw);
