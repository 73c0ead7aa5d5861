#include "door/http/body_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/budget.h"
#include "loop/writer.h"

/* A piece, or the content of one message, may exceed the mark. */
enum { QUEUE_HIGH = 512 << 10, QUEUE_MAX = 64 << 20 };

static void recount(struct body_pipe *p, size_t n)
{
	if (n < p->counted) {
		budget_give(exchange_bodies(p->call), p->counted - n);
		p->counted = n;
	}
}

void body_pipe_close(struct body_pipe *p)
{
	recount(p, 0);
	if (p->writer)
		loop_writer_close(take_ptr(p->writer), NULL);
	if (p->waits) { /* what still comes is dropped, but it must be received */
		p->waits = false;
		exchange_body_resume(p->call);
	}
}

static void on_written(void *owner)
{
	struct body_pipe *p = owner;

	recount(p, loop_writer_queued(p->writer));
	if (p->whole && loop_writer_queued(p->writer) == 0)
		body_pipe_close(p);
	else if (p->waits && loop_writer_queued(p->writer) <= QUEUE_HIGH / 2) {
		p->waits = false;
		exchange_body_resume(p->call);
	}
}

/* The reader has left, and gives the reason. */
static void on_broken(void *owner, const struct err *e)
{
	body_pipe_close(owner);
}

int body_pipe_open(struct body_pipe *p, struct call *c, struct err *e)
{
	static const struct loop_writer_events events = { on_written, on_broken };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	fcntl(ends[0], F_SETPIPE_SZ, BODY_PIPE_BYTES); /* or what the user's limit allows */
	*p = (struct body_pipe){ .call = c };
	p->writer = loop_writer_new(call_loop(c), ends[1], QUEUE_MAX, &events, p, e);
	if (p->writer)
		return ends[0];
	close(ends[0]);
	return -1;
}

bool body_pipe_holds(struct body_pipe *p)
{
	p->waits = p->writer && loop_writer_queued(p->writer) >= QUEUE_HIGH;
	return p->waits;
}

void body_pipe_put(struct body_pipe *p, struct str bytes)
{
	if (p->writer)
		loop_writer_put(p->writer, bytes);
}

int body_pipe_put_counted(struct body_pipe *p, struct str bytes, struct err *e)
{
	if (!p->writer)
		return 0;
	if (budget_take(exchange_bodies(p->call), bytes.n, e) < 0)
		return -1;
	p->counted += bytes.n;
	loop_writer_put(p->writer, bytes);
	return 0;
}

void body_pipe_end(struct body_pipe *p)
{
	p->whole = true;
	if (p->writer && loop_writer_queued(p->writer) == 0)
		body_pipe_close(p);
}

/* ---- the body as it is ----------------------------------------------------------------------- */

static size_t on_bytes(void *data, struct str bytes)
{
	if (body_pipe_holds(data))
		return 0;
	body_pipe_put(data, bytes);
	return bytes.n;
}

static void on_end(void *data)
{
	body_pipe_end(data);
}

void body_pipe_start(struct body_pipe *p)
{
	static const struct exchange_body_events body = { on_bytes, on_end };

	exchange_body_start(p->call, &body, p);
}
