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
