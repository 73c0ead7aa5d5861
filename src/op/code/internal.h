#pragma once
#include "hub/sandbox/sandbox.h"
#include "op/call.h"
#include "op/code/code.h"

/* ---- place.c: the sandbox of a principal --------------------------------------------------- */

struct code_place;

/* Who waits for a place. */
struct code_guest {
	struct code_guest *next;
	struct call *call;
	struct code_place *place;
	struct sandbox *sandbox; /* busy until the call's end */
	/* err: the place could not be made. */
	void (*then)(struct code_guest *g, const struct err *err);
};

/* Calls then(), now or later. Until then the call's cancellation is seen here. */
void place_enter(struct code *k, struct code_guest *g);
/* holt-js is not where it was put: it is put there again. */
void place_forget_program(struct code_place *p);

/* ---- worker.c: a process of holt-js -------------------------------------------------------- */

struct code_worker;

struct code_worker_events {
	/* Borrowed until it returns. */
	void (*on_frame)(void *run, const struct code_frame *f);
	/* It has ended, or broke its protocol (err) and is killed: nothing follows. */
	void (*on_end)(void *run, const struct exec_result *r, const struct err *err);
};

/* One that waits, or a new one. */
struct code_worker *worker_take(struct code_place *p, struct sandbox *sb, uv_loop_t *loop,
				const struct code_worker_events *ev, void *run,
				struct err *e) MUST_USE;
/* Where frames for it are appended; worker_flush() sends them. */
struct buf *worker_out(struct code_worker *w);
void worker_flush(struct code_worker *w);
/* No event follows. again: it can serve another run; else it is killed. */
void worker_leave(struct code_worker *w, bool again);

/* The part of a place that worker.c owns. */
struct code_workers {
	struct code_worker *idle;
	unsigned n_idle, n_busy;
};
struct code_workers *place_workers(struct code_place *p);

#define CODE_PROGRAM "/tmp/holt-js"
