#pragma once
/*
 * Work on the image store beside a hub. Builds and removals start confined processes, which a
 * program with threads must not (box/archive/confine.h), so the hub runs this program's own verbs:
 * `holt build`, `holt images rm`. They have the hub's environment, its data folder and its rights.
 * One that outlives a killed hub leaves all of an image or nothing.
 */
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct image_job;

enum { IMAGE_JOB_WORDS_MAX = 256 };

struct image_job_end { /* borrowed for the call */
	bool done; /* status 0 */
	bool late; /* it was killed at its time limit */
	struct str out, err; /* what it printed; of err, the end */
};

/* argv: the verb and its arguments, ending with NULL; borrowed for the call. on_done is called
 * once, later, when nothing of it is left. */
struct image_job *image_job_start(uv_loop_t *loop, const char *const *argv, unsigned timeout_s,
				  void (*on_done)(void *arg, const struct image_job_end *end),
				  void *arg, struct err *e) MUST_USE;
/* Ends it soon; on_done follows. */
void image_job_cancel(struct image_job *j);
