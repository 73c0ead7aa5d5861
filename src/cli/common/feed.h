#pragma once
/*
 * Copies our standard input, any kind of file, to a consumer as fast as that accepts it, until the
 * end. The descriptor's flags stay unchanged, since other processes share it.
 */
#include <stdbool.h>
#include <uv.h>

#include "base/err.h"

struct feed_to {
	/* Whether the consumer still wants input. If not, reading stops. */
	bool (*reads)(void *arg);
	/* False if the consumer is full. feed_resume() offers it the same bytes again. */
	bool (*take)(void *arg, const char *p, size_t n);
	void (*end)(void *arg);
};

struct feed {
	const struct feed_to *to;
	void *arg;
	uv_poll_t poll;
	/* An epoll descriptor, readable when standard input is. -1 for a file, which always is. */
	int watch;
	bool open, polled, waiting; /* waiting: for feed_resume() */
	size_t held_n;
	char held[64 * 1024]; /* read, not yet taken */
};

/* Begins to read. f belongs to the caller and must not move until the loop has ended. */
int feed_start(struct feed *f, uv_loop_t *loop, const struct feed_to *to, void *arg,
	       struct err *e) MUST_USE;
void feed_resume(struct feed *f);

/* Stops reading; the consumer may be freed afterwards. Harmless on {0}, or when stopped already. */
void feed_stop(struct feed *f);
