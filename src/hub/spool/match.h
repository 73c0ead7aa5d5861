#pragma once
/*
 * A pattern (json/schema/regex.h) in what a program prints. It is looked for in each line for
 * itself, so where the output was cut into pieces makes no difference: a line that has ended is
 * searched without its end (\n or \r\n), one that has not as far as it has come, and then $ does
 * not match behind it. Of a line that is longer than JOB_LINE_MAX the last part is searched, of
 * half that length at least. Bytes that are no UTF-8 count as U+001A each.
 *
 * What a program prints is hostile, and so may be the pattern: all that one call looks at costs
 * JOB_MATCH_STEPS at most, some 0.3 s. No I/O, no loop: a thread of the work pool may do it.
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

/* pattern: valid UTF-8, borrowed for the call. NULL as regex_new(). */
struct job_match *job_match_new(struct str pattern, struct err *e) MUST_USE;
void job_match_free(struct job_match *m); /* NULL-safe */
AUTO_DEFINE(job_match_free, struct job_match)

/* The next bytes of a stream (0 or 1). 1: it matches, and the match ends in front of the *ret_n'th
 * of these bytes, or behind all; 0: not yet; -1 with ERR_INVALID: looking takes too long. */
int job_match_feed(struct job_match *m, unsigned stream, struct str bytes, size_t *ret_n,
		   struct err *e) MUST_USE;

/* Nothing follows on either stream: lines without an end have theirs now. As above. */
int job_match_end(struct job_match *m, struct err *e) MUST_USE;

/* Some bytes are missing: what comes next begins in the middle of a line. */
void job_match_gap(struct job_match *m);
