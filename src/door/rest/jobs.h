#pragma once
/* What the routes of execs share. */
#include "door/http/common.h"
#include "op/job.h"

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
