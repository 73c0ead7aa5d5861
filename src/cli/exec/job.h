#pragma once
/* What the verbs share that look at execs of a sandbox: their paths, and what they have printed on our own streams. */
#include "cli/link/link.h"

enum { JOB_ID_MAX = 64, JOB_WORDS_MAX = 256 };

/* "/v1/sandboxes/NAME/execs/EXEC" and `more`, where both are ids. */
int job_path(char ret[JOB_WORDS_MAX], const char *name, const char *exec, const char *more,
	     struct err *e) MUST_USE;

/* The exec that was named, or the last one that the sandbox had. */
int job_choose(struct hub_link *l, const char *name, const char *said, char ret[JOB_ID_MAX + 1],
	       struct err *e) MUST_USE;

/* A whole number of any size, of an option; NULL: 0. */
int job_offset(const char *text, uint64_t *ret, struct err *e) MUST_USE;

/* The query of its output. stream: "stdout", "stderr" or NULL. */
struct job_look {
	const char *name, *exec, *stream;
	uint64_t offset;
};

/* Prints what is there; what comes while it does so is not waited for. */
int job_print(struct hub_link *l, struct job_look *k, struct err *e) MUST_USE;

/* Prints until the exec ends, and says how it did: its exit code; -1 with *e where it has none. */
int job_follow(struct hub_link *l, const struct job_look *k, int64_t *ret_code,
	       struct err *e) MUST_USE;
