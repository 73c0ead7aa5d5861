#pragma once
/* The messages of a Connect stream: one byte of flags, four of length (big-endian), then that many
 * bytes of JSON. Bytes in, bytes out. */
#include "base/buf.h"

enum { FRAME_COMPRESSED = 1, FRAME_END = 2, FRAME_HEAD = 5 };

struct frames {
	struct str left; /* bytes that were not yet taken */
};

/* 1 with the next message, borrowed; 0 at the end; -1 with ERR_INVALID: the last message is
 * incomplete, or a client may not send it. */
int frame_next(struct frames *f, struct str *ret, struct err *e) MUST_USE;

/* The same for bytes that come in pieces. It stores no more than one message. */
struct frame_in {
	unsigned char head[FRAME_HEAD];
	size_t head_n; /* bytes of it that came */
	size_t n; /* bytes of the message, once the head is complete */
	struct buf text; /* the bytes of it that came */
};
/* max_: bytes of a message; a larger one is ERR_TOO_LARGE. of_: the budget that counts them, or
 * NULL. */
#define FRAME_IN_INIT(max_, of_) ((struct frame_in){ .text = { .max = (max_), .of = (of_) } })
void frame_in_fini(struct frame_in *f);

/* 1 with a message, borrowed until the next call; *bytes is what follows it. 0 if all of *bytes was
 * taken and the message is still incomplete; -1 as above, or from the buffer. */
int frame_in_next(struct frame_in *f, struct str *bytes, struct str *ret, struct err *e) MUST_USE;

/* Whether no message is incomplete. */
bool frame_in_whole(const struct frame_in *f);

/* Writes the head of a message of n bytes. */
void frame_head(char to[FRAME_HEAD], unsigned flags, size_t n);
