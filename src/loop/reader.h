#pragma once
/*
 * Reads any kind of descriptor (pipe, socket, terminal, file, device), one piece at a time and only
 * on request, so a slow consumer simply does not ask.
 */
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct loop_reader;

struct loop_reader_events {
	/* A piece, borrowed until loop_reader_next(), which may be called in the callback. */
	void (*on_bytes)(void *owner, struct str bytes);
	/* The end, called once and last: e is NULL at the end of input. */
	void (*on_end)(void *owner, const struct err *e);
};

/* Takes over fd, also on failure. Nothing is read before loop_reader_next(). */
struct loop_reader *loop_reader_new(uv_loop_t *loop, int fd, const struct loop_reader_events *ev,
				    void *owner, struct err *e) MUST_USE;

/* Asks for one piece. on_bytes or on_end follows, never from inside this call. */
void loop_reader_next(struct loop_reader *r);

/* No callback follows but on_closed (may be NULL), later, when the descriptor is closed and r is
 * freed. */
void loop_reader_close(struct loop_reader *r, void (*on_closed)(void *owner));
