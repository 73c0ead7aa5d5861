#pragma once
/*
 * Writes to any kind of descriptor, queued and in the order of the calls. Bytes queued in one turn
 * of the loop are written with as few calls as possible. The queue has a hard maximum; well before
 * it the owner checks loop_writer_queued() and slows the source down. A process that writes to
 * pipes and sockets must ignore SIGPIPE.
 */
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct loop_writer;

struct loop_writer_events {
	/* Something of the queue was written. */
	void (*on_written)(void *owner);
	/* The other end is gone, writing failed, or the queue exceeded its maximum. Called once,
	 * never from inside loop_writer_put(); later bytes are dropped. */
	void (*on_broken)(void *owner, const struct err *e);
};

/* Takes over fd, also on failure. max: bytes in the queue. */
struct loop_writer *loop_writer_new(uv_loop_t *loop, int fd, size_t max,
				    const struct loop_writer_events *ev, void *owner,
				    struct err *e) MUST_USE;

/* Copies the bytes into the queue. */
void loop_writer_put(struct loop_writer *w, struct str bytes);

/* Bytes that wait; 0 once broken. */
size_t loop_writer_queued(const struct loop_writer *w);

/* Drops queued bytes. No callback follows but on_closed (may be NULL), later, when the
 * descriptor is closed and w is freed. */
void loop_writer_close(struct loop_writer *w, void (*on_closed)(void *owner));
