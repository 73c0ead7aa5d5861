#include "op/answer_pipe.h"

#include "loop/reader.h"

void answer_pipe_close(struct answer_pipe *p)
{
	if (p->reader)
		loop_reader_close(take_ptr(p->reader), NULL);
}

static void on_last(void *owner, const struct err *e)
{
	struct answer_pipe *p = owner;

	answer_pipe_close(p);
	p->on_end(p, e);
}

static void on_room(void *data)
{
	struct answer_pipe *p = data;

	if (!p->waits || !p->reader)
		return;
	p->waits = false;
	loop_reader_next(p->reader);
}

static void on_piece(void *owner, struct str bytes)
{
	struct answer_pipe *p = owner;
	struct err e;

	if (!p->streams && p->open(p->call, on_room, p, &e) < 0) {
		on_last(p, &e);
		return;
	}
	p->streams = true;
	p->send(p->call, bytes);
	p->waits = p->full(p->call);
	if (!p->waits)
		loop_reader_next(p->reader);
}

int answer_pipe_start(struct answer_pipe *p, int fd, struct err *e)
{
	static const struct loop_reader_events events = { on_piece, on_last };

	p->reader = loop_reader_new(call_loop(p->call), fd, &events, p, e);
	if (!p->reader)
		return -1;
	loop_reader_next(p->reader);
	return 0;
}
