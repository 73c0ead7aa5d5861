#pragma once
/*
 * Waits for output of a job, or for its end. A text is searched for on the loop as it arrives. A
 * pattern is searched for in the loop's work pool, one piece of output at a time for all waits of a
 * hub: slow patterns block neither the loop nor the other threads of the pool, only each other.
 */
#include "hub/sandbox/job.h"
#include "hub/spool/match.h"

enum { JOB_TEXT_MAX = 1024 };

/* Whether more comes of a stream: soon, not for a while, or never. */
enum job_more { JOB_MORE, JOB_QUIET, JOB_LAST };

/* What the caller may see of output, which is all that is searched: else a wait would tell what
 * the output does not show. Some of it may be held back until more has come. */
struct wait_view {
	/* Shows a piece, or, without bytes, what is held back of its stream. Valid until the next
	 * call. */
	struct str (*show)(void *arg, const struct spool_piece *piece, enum job_more more);
	size_t (*held)(void *arg, unsigned stream);
	uint64_t quiet_ms; /* after which what is held back is asked for */
};

enum job_waited { JOB_MATCHED, JOB_ENDED, JOB_WAITED };
extern const char *const job_waited_names[3]; /* "matched", "ended", "timeout" */

struct job_wait_options { /* borrowed for the call */
	/* These bytes, also across pieces; at most JOB_TEXT_MAX. Empty: only the end. */
	struct str text;
	/* or a pattern of hub/spool/match.h, at most JOB_PATTERN_MAX bytes */
	struct str pattern;
	unsigned streams; /* 1 << stream: only one, since a text never spans both */
	uint64_t offset; /* where the search begins */
	uint64_t from; /* from where on bytes are shown to the view, at most offset */
	const struct wait_view *view; /* NULL: all is seen */
	void *view_arg;
	/* JOB_WAITED also after this many bytes of output; 0: no limit */
	uint64_t most;
	uint64_t timeout_ms; /* 0: none */
};

struct job_wait;

/* err: the pattern takes too long (ERR_INVALID), and `how` is meaningless; else NULL. offset:
 * after the match, else how far the output was searched. */
typedef void job_wait_done(void *arg, enum job_waited how, uint64_t offset, const struct err *err);

/* on_done is called once, later, and the wait is freed. NULL with ERR_INVALID for both a text
 * and a pattern, or an invalid pattern. */
struct job_wait *job_wait_start(struct job *j, const struct job_wait_options *o,
				job_wait_done *on_done, void *arg, struct err *e) MUST_USE;
void job_wait_cancel(struct job_wait *w); /* no on_done after it */
