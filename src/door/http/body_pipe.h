#pragma once
/*
 * The body of a request on its way into a pipe, whose other end somebody reads: as fast as that one does, with the
 * client held meanwhile. What comes after nobody reads any more is dropped.
 */
#include "door/http/common.h"

enum { BODY_PIPE_BYTES = 256 << 10 }; /* what the kernel keeps between both ends, where it may */

struct body_pipe { /* part of something whose memory is the call's */
	struct call *call;
	struct loop_writer *writer; /* NULL once all is written, or nobody reads */
	bool waits; /* the client does */
	bool whole; /* nothing more is put */
	size_t counted; /* bytes in exchange_bodies(): put so, and not written yet */
};

/* Returns the other end, close-on-exec, which is the caller's; -1 with *e. */
int body_pipe_open(struct body_pipe *p, struct call *c, struct err *e) MUST_USE;

/* The body of a route that streams goes into it as it is. */
void body_pipe_start(struct body_pipe *p);

/* Or what its owner makes of the body, who asks before each piece of it whether the client has to wait; then it takes
 * nothing of that piece, and exchange_body_resume() is called when there is room. */
bool body_pipe_holds(struct body_pipe *p);
void body_pipe_put(struct body_pipe *p, struct str bytes);
/* The same of what may be large: ERR_LIMIT where all bodies together keep too much. */
int body_pipe_put_counted(struct body_pipe *p, struct str bytes, struct err *e) MUST_USE;
void body_pipe_end(struct body_pipe *p); /* behind what was put */

/* Nothing more goes into it; twice is once. Before the end of what was put, who reads sees it cut off. */
void body_pipe_close(struct body_pipe *p);
