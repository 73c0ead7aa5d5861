#pragma once
/* Waits for what a job prints, or for its end. */
#include "hub/job.h"

enum { JOB_TEXT_MAX = 1024 };

enum job_waited { JOB_MATCHED, JOB_ENDED, JOB_WAITED };
extern const char *const job_waited_names[3]; /* "matched", "ended", "timeout" */

struct job_wait_options { /* borrowed for the call */
	struct str
		text; /* these bytes, also where they came in pieces; at most JOB_TEXT_MAX; empty: only the end */
	unsigned streams; /* 1 << stream: of one of them, since two have no common text */
	uint64_t offset; /* where the search begins */
	uint64_t timeout_ms; /* 0: none */
};

struct job_wait;

/* on_done comes once, later, and the wait is gone. offset: behind the text; else how far the output was
 * read. */
struct job_wait *job_wait_start(struct job *j, const struct job_wait_options *o,
				void (*on_done)(void *arg, enum job_waited how, uint64_t offset),
				void *arg, struct err *e) MUST_USE;
void job_wait_cancel(struct job_wait *w); /* no on_done after it */
