#pragma once
/*
 * Waits for what a job prints, or for its end. A text is looked for as it comes, on the loop; a
 * pattern in the loop's work pool, and for all waits of a hub together one piece of output at a
 * time, so that patterns which take long hold neither the loop nor the other threads of the pool,
 * but only each other.
 */
#include "hub/sandbox/job.h"
#include "hub/spool/match.h"

enum { JOB_TEXT_MAX = 1024 };

enum job_waited { JOB_MATCHED, JOB_ENDED, JOB_WAITED };
extern const char *const job_waited_names[3]; /* "matched", "ended", "timeout" */

struct job_wait_options { /* borrowed for the call */
	/* these bytes, also where they came in pieces; at most JOB_TEXT_MAX; empty: only the end */
	struct str text;
	struct str pattern; /* or what hub/spool/match.h looks for, at most JOB_PATTERN_MAX bytes */
	unsigned streams; /* 1 << stream: of one of them, since two have no common text */
	uint64_t offset; /* where the search begins */
	uint64_t most; /* JOB_WAITED after so many bytes of output, too; 0: however much */
	uint64_t timeout_ms; /* 0: none */
};

struct job_wait;

/* err: a pattern takes too long (ERR_INVALID), and `how` is nothing; else NULL. offset: behind the
 * text; else how far the output was looked at. */
typedef void job_wait_done(void *arg, enum job_waited how, uint64_t offset, const struct err *err);

/* on_done comes once, later, and the wait is gone. NULL with ERR_INVALID for a text and a pattern,
 * or a pattern that is none. */
struct job_wait *job_wait_start(struct job *j, const struct job_wait_options *o,
				job_wait_done *on_done, void *arg, struct err *e) MUST_USE;
void job_wait_cancel(struct job_wait *w); /* no on_done after it */
