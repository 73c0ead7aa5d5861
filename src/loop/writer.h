#pragma once
/*
 * Bytes to a descriptor of any kind, queued and written in the order of the calls. What is put in
 * one turn of the loop goes out in as few writes as it takes. The queue has a hard maximum; long
 * before it the owner looks at loop_writer_queued() and slows down whatever fills it.
 *
 * Whoever writes to pipes and sockets ignores SIGPIPE.
 */
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct loop_writer;

struct loop_writer_events {
	/* Something of the queue was written. */
	void (*on_written)(void *owner);
	/* The other end is gone, writing failed, or the queue went over its maximum. Once; what is
	 * put afterwards is dropped. Never from inside loop_writer_put(). */
	void (*on_broken)(void *owner, const struct err *e);
};

/* Takes fd, also on failure. max: bytes in the queue. */
struct loop_writer *loop_writer_new(uv_loop_t *loop, int fd, size_t max,
				    const struct loop_writer_events *ev, void *owner,
				    struct err *e) MUST_USE;

/* Copies the bytes into the queue. */
void loop_writer_put(struct loop_writer *w, struct str bytes);

/* Bytes that wait; 0 once broken. */
size_t loop_writer_queued(const struct loop_writer *w);

/* Drops what waits. No callback comes after it but on_closed (may be NULL), later, when the
 * descriptor is closed and w is gone. */
void loop_writer_close(struct loop_writer *w, void (*on_closed)(void *owner));
