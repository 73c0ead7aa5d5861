#pragma once
/* Streams a descriptor's bytes as the answer, as fast as the client takes them. */
#include "call/call.h"

struct answer_pipe { /* part of a structure in the call's memory */
	struct call *call;
	/* call_open() and call_full(), or a door's own functions */
	int (*open)(struct call *c, void (*on_room)(void *data), void *data, struct err *e);
	bool (*full)(struct call *c);
	void (*send)(struct call *c, struct str bytes);
	void (*on_end)(struct answer_pipe *p, const struct err *e);
	struct loop_reader *reader; /* NULL after the last byte */
	bool streams, waits;
};

/* Takes fd. The first piece starts the stream of the answer. on_end is called after the last piece,
 * or with a failure, never from inside this call. */
int answer_pipe_start(struct answer_pipe *p, int fd, struct err *e) MUST_USE;

/* Stops reading; on_end is not called. Idempotent. */
void answer_pipe_close(struct answer_pipe *p);
