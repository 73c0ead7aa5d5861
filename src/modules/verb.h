#pragma once
/*
 * Verbs of this program, which the hub runs for work on the image store: `holt build`, `holt images
 * rm`. They start confined processes, which a program with threads must not
 * (box/archive/confine.h). They have the hub's environment, its data folder and its rights, and end
 * with it, also where it is killed: then all of an image is there, or nothing.
 */
#include <uv.h>

#include "base/err.h"
#include "base/str.h"

struct verb_run;

enum { VERB_WORDS_MAX = 256 };

struct verb_end { /* borrowed for the call */
	bool late; /* it was ended at its time limit */
	struct str out, err; /* what it printed, unless that is too long; of err, the end */
};

/* words: the verb and its arguments, ending with NULL; borrowed for the call. on_done is called
 * once, later, when nothing of it runs. */
struct verb_run *verb_run_start(uv_loop_t *loop, const char *const *words, unsigned timeout_s,
				void (*on_done)(void *arg, const struct verb_end *end), void *arg,
				struct err *e) MUST_USE;
/* Ends it soon; on_done follows. */
void verb_run_cancel(struct verb_run *r);
