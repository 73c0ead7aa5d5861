#pragma once
/*
 * Searches output for a pattern (json/schema/regex.h), line by line, so the split into pieces does
 * not matter. An ended line is searched without its end (\n or \r\n). An unfinished line is
 * searched as far as it has come, and $ does not match at its end. Of a line longer than
 * JOB_LINE_MAX, the last part is searched: at least half that length. Each byte that is not UTF-8
 * counts as U+001A.
 *
 * Both the output and the pattern may be hostile: one call costs at most JOB_MATCH_STEPS, about 0.3
 * s. No I/O and no loop, so a thread of the work pool may run it.
 */
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum {
	JOB_PATTERN_MAX = 1024, /* bytes of a pattern */
	JOB_LINE_MAX = 4096,
	JOB_MATCH_STEPS = 8 << 20,
};

struct job_match;

/* pattern: valid UTF-8, borrowed for the call. NULL with the errors of regex_new(). */
struct job_match *job_match_new(struct str pattern, struct err *e) MUST_USE;
void job_match_free(struct job_match *m); /* NULL-safe */
AUTO_DEFINE(job_match_free, struct job_match)

/* The next bytes of a stream (0 or 1). 1: a match ends before byte *ret_n of these, or after
 * all; 0: no match yet; -1 with ERR_INVALID: the search takes too long. */
int job_match_feed(struct job_match *m, unsigned stream, struct str bytes, size_t *ret_n,
		   struct err *e) MUST_USE;

/* Both streams have ended: unfinished lines end now. Returns as above. */
int job_match_end(struct job_match *m, struct err *e) MUST_USE;

/* Some bytes are lost: the next ones begin in the middle of a line. */
void job_match_gap(struct job_match *m);
