#pragma once
/*
 * Writes a request's body into a pipe that somebody else reads. The client is held while the reader
 * is slow. What comes after the reader has left is dropped.
 */
#include "door/http/common.h"

enum { BODY_PIPE_BYTES = 256 << 10 }; /* bytes that the kernel buffers, if the limits allow it */

struct body_pipe { /* part of a structure in the call's memory */
	struct call *call;
	struct loop_writer *writer; /* NULL once everything was written, or the reader has left */
	bool waits; /* the client is held */
	bool whole; /* nothing more is put */
	/* bytes in exchange_bodies(): put by body_pipe_put_counted() and not yet written */
	size_t counted;
};

/* Returns the read end, close-on-exec, owned by the caller; -1 with *e. */
int body_pipe_open(struct body_pipe *p, struct call *c, struct err *e) MUST_USE;

/* Writes the body of a route that streams unchanged. */
void body_pipe_start(struct body_pipe *p);

/* Or the owner writes what it makes of the body. Before each piece it calls body_pipe_holds(). If
 * that is true, it takes nothing of the piece, and exchange_body_resume() is called when there is
 * room. */
bool body_pipe_holds(struct body_pipe *p);
void body_pipe_put(struct body_pipe *p, struct str bytes);
/* The same for bytes that may be many: ERR_LIMIT if all bodies together hold too much. */
int body_pipe_put_counted(struct body_pipe *p, struct str bytes, struct err *e) MUST_USE;
void body_pipe_end(struct body_pipe *p); /* call it after the last piece */

/* Nothing more is written; idempotent. If it comes before everything was written, the reader sees a
 * truncated body. */
void body_pipe_close(struct body_pipe *p);
