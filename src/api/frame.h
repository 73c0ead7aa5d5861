#pragma once
/* The messages of a stream of Connect: a byte of flags, four of length (big-endian), and as many of
 * JSON. Bytes in, bytes out. */
#include "base/buf.h"

enum { FRAME_COMPRESSED = 1, FRAME_END = 2, FRAME_HEAD = 5 };

struct frames {
	struct str left; /* what no frame was taken from yet */
};

/* 1 with the next message, borrowed; 0 at the end; -1 with ERR_INVALID where there is no whole one, or
 * one that a client may not send. */
int frame_next(struct frames *f, struct str *ret, struct err *e) MUST_USE;

/* The head of a message of n bytes. */
void frame_head(char to[FRAME_HEAD], unsigned flags, size_t n);
