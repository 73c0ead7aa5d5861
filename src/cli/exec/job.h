#pragma once
/* Shared by the verbs that read execs: paths, and printing what an exec has written. */
#include "cli/link/link.h"

enum { JOB_ID_MAX = 64, JOB_WORDS_MAX = 256 };

/* Builds "/v1/sandboxes/NAME/execs/EXEC" and `more`. Fails if either is no valid id. */
int job_path(char ret[JOB_WORDS_MAX], const char *name, const char *exec, const char *more,
	     struct err *e) MUST_USE;

/* The named exec, or the newest of the sandbox. */
int job_choose(struct hub_link *l, const char *name, const char *said, char ret[JOB_ID_MAX + 1],
	       struct err *e) MUST_USE;

/* *ret: where the next output of a running exec with a terminal begins; else 0. */
int job_seen(struct hub_link *l, const char *name, const char *exec, uint64_t *ret,
	     struct err *e) MUST_USE;

/* Parses an option's whole number; NULL gives 0. */
int job_offset(const char *text, uint64_t *ret, struct err *e) MUST_USE;

/* The query for its output. stream: "stdout", "stderr" or NULL for both. */
struct job_look {
	const char *name, *exec, *stream;
	uint64_t offset;
};

/* Prints the output so far, without waiting for more. */
int job_print(struct hub_link *l, struct job_look *k, struct err *e) MUST_USE;

/* Prints until the exec ends, and returns its exit code; -1 with *e if it has none. */
int job_follow(struct hub_link *l, const struct job_look *k, int64_t *ret_code,
	       struct err *e) MUST_USE;
