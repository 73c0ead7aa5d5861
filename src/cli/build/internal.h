#pragma once
/* What steps.c (lines in a sandbox) and keep.c (what they have made, kept and put back) share. */
#include <uv.h>

#include "box/host/box.h"
#include "hub/image/cache.h"
#include "hub/image/build_doc.h"
#include "hub/image/images.h"
#include "loop/reader.h"
#include "loop/writer.h"

enum { STEPS_SIGNALS = 3 };

struct steps {
	const struct image_steps *of;
	uv_loop_t loop;
	uv_signal_t signals[STEPS_SIGNALS];
	struct box *box;
	struct sandbox *sandbox;
	size_t at; /* the step that runs, from 0 */

	/* One of the three is under way behind a step, and before the first: */
	struct {
		int file; /* -1: nothing is put back */
		uint64_t left; /* of it */
		size_t done; /* steps that it stands for */
		struct loop_writer *out;
	} back;
	struct {
		struct build_kept *file;
		bool writing, failed;
	} keep;
	struct {
		uint64_t n;
		bool archived; /* init has said that this is all */
	} tar;
	struct loop_reader *in; /* what comes of the latter two */
	struct file_transfer *transfer;

	bool ending;
	struct err err;
};

/* ---- steps.c ---- */

/* All of it ends; e: why, or NULL. */
void steps_finish(struct steps *s, const struct err *e);
/* Goes on with the step at s->at, or with what comes behind the last. */
void steps_next(struct steps *s);
/* With a new sandbox, and nothing that was kept. */
void steps_anew(struct steps *s);

/* ---- keep.c ---- */

/* Has the sandbox get what was kept, if anything was, and then the next step. */
void steps_restore(struct steps *s);
/* Keeps what there is behind the step at s->at, if it can be, and then goes on with the next. */
void steps_keep(struct steps *s);
/* Nothing of it goes on. */
void steps_keep_stop(struct steps *s);
