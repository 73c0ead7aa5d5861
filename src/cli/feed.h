#pragma once
/*
 * Our standard input into an exec's: any kind of file, as fast as the program reads, to its end.
 * The descriptor's flags are left alone, since others share it.
 */
#include <uv.h>

#include "box/box.h"

struct feed {
	struct exec *exec;
	void (*on_drain)(void *arg);
	uv_poll_t poll;
	int watch; /* an epoll of standard input: readable when that is; -1: a file, always readable */
	bool open, polled, waiting; /* waiting: for the engine to take held */
	size_t held_n;
	char held[64 * 1024]; /* read, not yet taken */
};

/* Begins to read. f is the caller's and stays in place until the loop has ended. on_drain gets the
 * exec's arg and leads to feed_resume(). */
int feed_start(struct feed *f, uv_loop_t *loop, struct exec *x, void (*on_drain)(void *arg),
	       struct err *e) MUST_USE;
void feed_resume(struct feed *f);

/* Reads no more; the exec may be gone. Harmless on one that never started ({0}) or has stopped. */
void feed_stop(struct feed *f);
