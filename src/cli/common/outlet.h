#pragma once
/*
 * One stream of a program into a descriptor of ours, without ever waiting for its reader: what it does
 * not take at once is kept, and the stream is held until it is gone. The descriptor's flags are
 * left alone, since others share it.
 */
#include <uv.h>

#include "base/buf.h"

struct outlet {
	int fd;
	void (*hold)(void *arg, int fd, bool on); /* has the stream wait, or go on */
	void (*on_ready)(void *arg); /* all that was kept is written, or the reader is gone */
	void *arg;
	int errnum; /* of the failed write; nothing is written after it */
	struct buf kept;
	uv_poll_t poll;
	int watch; /* an epoll of fd; -1: a file, which always takes all */
	bool polled;
};

/* o is the caller's and stays in place until the loop has ended. */
int outlet_init(struct outlet *o, uv_loop_t *loop, int fd, struct err *e) MUST_USE;

/* Harmless on {0}. */
void outlet_close(struct outlet *o);

void outlet_write(struct outlet *o, const char *p, size_t n);

static inline bool outlet_empty(const struct outlet *o)
{
	return o->kept.n == 0;
}
