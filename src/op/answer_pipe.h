#pragma once
/* What a descriptor gives as the stream of an answer: as fast as the client takes it. */
#include "op/call.h"

struct answer_pipe { /* part of something whose memory is the call's */
	struct call *call;
	/* call_open() and call_full(), or what a door has instead */
	int (*open)(struct call *c, void (*on_room)(void *data), void *data, struct err *e);
	bool (*full)(struct call *c);
	void (*send)(struct call *c, struct str bytes);
	void (*on_end)(struct answer_pipe *p, const struct err *e);
	struct loop_reader *reader; /* NULL behind the last byte */
	bool streams, waits;
};

/* Takes fd. The answer is a stream from the first piece on. on_end is called behind the last one, or with what went
 * wrong; not from inside of it. */
int answer_pipe_start(struct answer_pipe *p, int fd, struct err *e) MUST_USE;

/* Nothing more is read, and on_end is not called; twice is once. */
void answer_pipe_close(struct answer_pipe *p);
