#pragma once
/* Execs (hub/sandbox/job.h) as clients see them, and what is asked of one by its id: exec.list,
 * exec.get, exec.stdin, exec.signal, exec.resize, exec.delete. */
#include "base/when.h"
#include "hub/sandbox/job.h"
#include "op/ops.h"

struct call;

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

/* The exec that a request is about. */
struct job_name {
	struct str sandbox, exec;
};
#define OP_JOB_ROWS(S)                                                                             \
	OP_SANDBOX_ROW(S), FIELD(S, exec, .flags = FIELD_REQUIRED, .min = 1, .max = 64,            \
				 .doc = "Id of the exec.")

/* Borrowed; a failure is about its sandbox. */
struct job *call_job(struct call *c, struct str sandbox, struct str exec, struct err *e) MUST_USE;
