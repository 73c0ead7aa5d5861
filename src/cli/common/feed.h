#pragma once
/*
 * Our standard input into that of a program: any kind of file, as fast as the program reads, to its end.
 * The descriptor's flags are left alone, since others share it.
 */
#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

struct feed_to {
	bool (*reads)(void *arg); /* whether anybody still wants it; else it stops */
	/* False: it has enough for now; it is offered these bytes again by feed_resume(). */
	bool (*take)(void *arg, const char *p, size_t n);
	void (*end)(void *arg);
};

struct feed {
	const struct feed_to *to;
	void *arg;
	uv_poll_t poll;
	int watch; /* an epoll of standard input: readable when that is; -1: a file, always readable */
	bool open, polled, waiting; /* waiting: for feed_resume() */
	size_t held_n;
	char held[64 * 1024]; /* read, not yet taken */
};

/* Begins to read. f is the caller's and stays in place until the loop has ended. */
int feed_start(struct feed *f, uv_loop_t *loop, const struct feed_to *to, void *arg,
	       struct err *e) MUST_USE;
void feed_resume(struct feed *f);

/* Reads no more; who took it may be gone. Harmless on one that never started ({0}) or has stopped. */
void feed_stop(struct feed *f);
