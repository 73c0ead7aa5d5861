#pragma once
/* What steps.c (runs the steps in a sandbox) and keep.c (caches their results) share. */
#include <uv.h>

#include "box/host/box.h"
#include "cli/build/build.h"
#include "hub/image/cache.h"
#include "hub/image/build_doc.h"
#include "hub/image/images.h"
#include "loop/reader.h"
#include "loop/writer.h"

enum { STEPS_SIGNALS = 3 };

struct steps {
	const struct image_steps *of;
	const struct build_place *place;
	uv_loop_t loop;
	uv_signal_t signals[STEPS_SIGNALS];
	struct box *box;
	struct sandbox *sandbox;
	struct nets *nets; /* NULL: nothing is granted */
	struct net *net;
	size_t at; /* the step that runs, from 0 */

	/* At most one of the three is active, after a step and before the first: */
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
/* Runs the step at s->at, or finishes after the last. */
void steps_next(struct steps *s);
/* Starts again in a new sandbox, without the cache. */
void steps_anew(struct steps *s);

/* ---- keep.c ---- */

/* Restores the cached result into the sandbox, if there is one, then runs the next step. */
void steps_restore(struct steps *s);
/* Caches the result of the step at s->at if possible, then runs the next step. */
void steps_keep(struct steps *s);
/* Nothing of it goes on. */
void steps_keep_stop(struct steps *s);
