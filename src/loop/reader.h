#pragma once
/*
 * Bytes from a descriptor of any kind (pipe, socket, terminal, file, device), a piece at a time and
 * only when asked for, so that who can't take more just does not ask.
 */
#include <uv.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct loop_reader;

struct loop_reader_events {
	/* A piece, borrowed until loop_reader_next(), which may be called from inside. */
	void (*on_bytes)(void *owner, struct str bytes);
	/* The end: e is NULL at the end of input. Once, and after it there is nothing to ask
	 * for. */
	void (*on_end)(void *owner, const struct err *e);
};

/* Takes fd, also on failure. Nothing is read before loop_reader_next(). */
struct loop_reader *loop_reader_new(uv_loop_t *loop, int fd, const struct loop_reader_events *ev,
				    void *owner, struct err *e) MUST_USE;

/* Asks for one piece; on_bytes or on_end follows, never from inside of it. */
void loop_reader_next(struct loop_reader *r);

/* No callback comes after it but on_closed (may be NULL), later, when the descriptor is closed and
 * r is gone. */
void loop_reader_close(struct loop_reader *r, void (*on_closed)(void *owner));
