#pragma once
#include "call/call.h"
#include "hub/sandbox/sandbox.h"
#include "op/code/code.h"
#include "op/lazy_sandbox.h"

struct code_run;

/* ---- place.c: the sandbox of a principal --------------------------------------------------- */

struct code_place;

/* A call that needs one. */
struct code_guest {
	struct lazy_wait wait; /* its call */
	struct code_place *place;
	struct sandbox *sandbox; /* busy until the call's end */
	/* err: there is none. */
	void (*then)(struct code_guest *g, const struct err *err);
};

/* Calls then(), now or later. */
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

/* ---- calls.c: what a run asks of modules --------------------------------------------------- */

struct code_inner; /* a call of this run */
struct code_import;

/* For one run. */
struct code_calls {
	struct code_inner *first, *over; /* over: their memory is freed by calls_sweep() */
	unsigned n; /* that are under way */
	uint32_t made;
	uint32_t asked; /* imports, of which not all are there */
	struct code_import *imports; /* in the call's arena, by the index that holt-js has */
	size_t n_imports;
};

/* -1: holt-js may not ask for this. */
int calls_import(struct code_run *r, const struct code_frame *f, struct err *e) MUST_USE;
int calls_call(struct code_run *r, const struct code_frame *f, struct err *e) MUST_USE;
/* A person is asked about one of them. */
bool calls_ask_person(const struct code_calls *k);
void calls_cancel(struct code_calls *k);
void calls_sweep(struct code_calls *k);

/* ---- run.c ----------------------------------------------------------------------------------- */

struct code_request {
	struct str code;
	uint32_t cpu_ms, wall_ms, heap_mb, stack_kb, output_kb, max_calls;
	bool has_cpu_ms, has_wall_ms, has_heap_mb, has_output_kb, has_max_calls; /* it was said */
	bool check;
	struct field_strs profiles;
};

struct code_run {
	struct code_guest guest; /* first */
	struct call *call;
	const struct code_request *q;
	struct code_worker *worker; /* NULL: the code has ended */
	struct code_calls calls;
	bool ending; /* its calls are being cancelled */
	uv_timer_t timer;
	uint64_t began_ms, ticked_ms, wall_ms; /* wall_ms: counted so far */
	uint64_t output_left;
	struct code_line *lines; /* owned; the texts are in the call's arena */
	size_t n_lines, room_lines;
	struct code_answer answer;
	struct err failed; /* instead of the answer */
};

/* Where the code and all calls have ended. */
void run_end(struct code_run *r);
void run_failed(struct code_run *r, const struct err *e);

#define CODE_PROGRAM "/tmp/holt-js"
