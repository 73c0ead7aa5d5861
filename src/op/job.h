#pragma once
/* An exec (hub/sandbox/job.h) as clients see it. */
#include "hub/core/when.h"
#include "hub/sandbox/job.h"
#include "json/field/field.h"

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
