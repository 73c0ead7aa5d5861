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

/* The same of bytes that come piece by piece, of which no more is kept than one message. */
struct frame_in {
	unsigned char head[FRAME_HEAD];
	size_t head_n; /* of it came */
	size_t n; /* bytes of the message, once the head is there */
	struct buf text; /* what of it came */
};
/* A message of more than max bytes is ERR_TOO_LARGE; of: what they are counted in, or NULL. */
#define FRAME_IN_INIT(max_, of_) ((struct frame_in){ .text = { .max = (max_), .of = (of_) } })
void frame_in_fini(struct frame_in *f);

/* 1 with a message, borrowed until the next call, and *bytes is what stands behind it; 0 where all of *bytes was taken
 * and there is no whole one yet; -1 as above, or from the buffer. */
int frame_in_next(struct frame_in *f, struct str *bytes, struct str *ret, struct err *e) MUST_USE;

/* Whether nothing of a message is missing. */
bool frame_in_whole(const struct frame_in *f);

/* The head of a message of n bytes. */
void frame_head(char to[FRAME_HEAD], unsigned flags, size_t n);
