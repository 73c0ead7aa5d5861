#pragma once
/*
 * Copies one stream of a program to one of our descriptors and never blocks. Bytes that the
 * descriptor does not accept are buffered, and the stream is held until they are written. The
 * descriptor's flags stay unchanged, since other processes share it.
 */
#include <uv.h>

#include "base/buf.h"

struct outlet {
	int fd;
	void (*hold)(void *arg, int fd, bool on); /* has the stream wait, or go on */
	void (*on_ready)(void *arg); /* called when the buffer is written or the reader is gone */
	void *arg;
	int errnum; /* errno of the write that failed; nothing is written after it */
	struct buf kept;
	uv_poll_t poll;
	int watch; /* an epoll of fd; -1: a file, which always takes all */
	bool polled;
};

/* o belongs to the caller and must not move until the loop has ended. */
int outlet_init(struct outlet *o, uv_loop_t *loop, int fd, struct err *e) MUST_USE;

/* Harmless on {0}. */
void outlet_close(struct outlet *o);

void outlet_write(struct outlet *o, const char *p, size_t n);

static inline bool outlet_empty(const struct outlet *o)
{
	return o->kept.n == 0;
}
