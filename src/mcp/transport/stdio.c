/*
 * One session over two descriptors. Its states:
 *
 *	SERVING		lines are read, unless too much output is queued
 *	DRAINING	the input has ended; open calls get drain_ms
 *	FLUSHING	no call is open, or the time is over; the queue gets drain_ms
 *	CLOSING		handles are being closed; no callbacks any more
 */
#include "mcp/transport/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "loop/reader.h"
#include "loop/writer.h"
#include "rpc/line.h"

enum {
	QUEUE_MAX = 4 << 20,
	QUEUE_HARD_MAX = 1 << 30, /* many large answers at once, to a client that reads none */
	FLUSH_MS_MIN = 1000,
	TICK_MS = 5000,
	SERVE_DRAIN_MS = 5000,
};

enum state { SERVING, DRAINING, FLUSHING, CLOSING };

static const char *const state_names[] = { "serving", "draining", "flushing", "closing" };

struct mcp_stdio {
	struct mcp_stdio_options o;
	enum state state;
	struct mcp_server *server;
	struct mcp_session *session;
	struct loop_reader *reader;
	struct loop_writer *writer;
	uv_timer_t timer; /* SERVING: ticks; later: the end of the state */
	struct line_reader lines;
	struct str input; /* read but not processed yet; borrowed from the reader */
	bool paused; /* input waits for the output's queue */
	unsigned closing; /* handles that are not closed yet */
};

static void set_state(struct mcp_stdio *t, enum state state)
{
	log_debug("mcp stdio: %s -> %s", state_names[t->state], state_names[state]);
	t->state = state;
}

/* --- the end --- */

static void on_one_closed(void *owner)
{
	struct mcp_stdio *t = owner;

	if (--t->closing == 0 && t->o.on_closed)
		t->o.on_closed(t->o.owner);
}

static void on_timer_closed(uv_handle_t *handle)
{
	on_one_closed(handle->data);
}

static void stdio_shut(struct mcp_stdio *t)
{
	if (t->state == CLOSING)
		return;
	set_state(t, CLOSING);
	mcp_session_close(take_ptr(t->session));
	t->closing = 3;
	loop_reader_close(take_ptr(t->reader), on_one_closed);
	loop_writer_close(take_ptr(t->writer), on_one_closed);
	uv_close((uv_handle_t *)&t->timer, on_timer_closed);
}

static void on_flush_timeout(uv_timer_t *timer)
{
	struct mcp_stdio *t = timer->data;

	log_warn("mcp stdio: %zu bytes were not taken by the client",
		 loop_writer_queued(t->writer));
	stdio_shut(t);
}

static void start_flushing(struct mcp_stdio *t)
{
	unsigned ms = t->o.drain_ms > FLUSH_MS_MIN ? t->o.drain_ms : FLUSH_MS_MIN;

	set_state(t, FLUSHING);
	uv_timer_start(&t->timer, on_flush_timeout, ms, 0);
	if (loop_writer_queued(t->writer) == 0)
		stdio_shut(t);
}

static void on_drain_timeout(uv_timer_t *timer)
{
	struct mcp_stdio *t = timer->data;

	log_warn("mcp stdio: %u calls are cancelled, since it ends", mcp_session_open(t->session));
	mcp_session_fail_all(t->session);
	if (t->state == DRAINING)
		start_flushing(t);
}

void mcp_stdio_stop(struct mcp_stdio *t)
{
	if (t->state != SERVING)
		return;
	set_state(t, DRAINING);
	mcp_session_drain(t->session);
	if (mcp_session_open(t->session) == 0)
		start_flushing(t);
	else
		uv_timer_start(&t->timer, on_drain_timeout, t->o.drain_ms, 0);
}

static void on_tick(uv_timer_t *timer)
{
	struct mcp_stdio *t = timer->data;

	mcp_server_tick(t->server);
}

/* --- output --- */

/* Sends a message as one line: JSON from a tool may have line breaks between its tokens. */
static void put_message(void *transport, void *stream, const struct mcp_out *m)
{
	struct mcp_stdio *t = transport;
	struct str message = m->text;
	const char *end;

	while ((end = memchr(message.p, '\n', message.n))) {
		size_t n = (size_t)(end - message.p);

		loop_writer_put(t->writer, (struct str){ message.p, n });
		loop_writer_put(t->writer, STR_LIT(" "));
		message.p += n + 1;
		message.n -= n + 1;
	}
	loop_writer_put(t->writer, message);
	loop_writer_put(t->writer, STR_LIT("\n"));
}

static bool is_full(const struct mcp_stdio *t)
{
	return loop_writer_queued(t->writer) > t->o.queue_max;
}

static bool is_congested(void *transport, void *stream)
{
	return is_full(transport);
}

static void on_idle(void *transport)
{
	struct mcp_stdio *t = transport;

	if (t->state == DRAINING)
		start_flushing(t);
}

static const struct mcp_transport transport = {
	.send = put_message,
	.congested = is_congested,
	.idle = on_idle,
};

/* --- input --- */

static void take_event(struct mcp_stdio *t, enum line_event event, struct str line)
{
	struct err e;

	switch (event) {
	case LINE_MORE:
		break;
	case LINE_TEXT:
		if (line.n > 0)
			mcp_session_message(t->session, line);
		break;
	case LINE_TOO_LONG:
		err_set(&e, ERR_TOO_LARGE, "a message of more than %zu bytes", t->o.line_max);
		mcp_session_reject(t->session, &e, &t->lines.sniff, NULL);
		break;
	case LINE_LOST:
		err_set(&e, ERR_LIMIT, "out of memory");
		mcp_session_reject(t->session, &e, &t->lines.sniff, NULL);
		break;
	}
}

/* Processes lines until the input is used up, or enough output is queued. */
static void serve(struct mcp_stdio *t)
{
	enum line_event event = LINE_TEXT;
	struct str line = STR_NONE;

	while (t->state == SERVING && event != LINE_MORE && !is_full(t)) {
		event = line_next(&t->lines, &t->input, &line);
		take_event(t, event, line);
	}
	t->paused = event != LINE_MORE;
	if (t->state == SERVING && !t->paused)
		loop_reader_next(t->reader);
	/* a handler in one of the messages has stopped it, and the calls have ended */
	if (t->state == DRAINING && mcp_session_open(t->session) == 0)
		start_flushing(t);
}

static void on_bytes(void *owner, struct str bytes)
{
	struct mcp_stdio *t = owner;

	t->input = bytes;
	serve(t);
}

static void on_end(void *owner, const struct err *e)
{
	struct mcp_stdio *t = owner;
	struct str line = STR_NONE;

	if (e)
		log_warn("mcp stdio: %s", e->msg);
	if (t->state == SERVING)
		take_event(t, line_last(&t->lines, &line), line);
	mcp_stdio_stop(t);
}

static const struct loop_reader_events reader_events = { on_bytes, on_end };

static void on_written(void *owner)
{
	struct mcp_stdio *t = owner;
	size_t queued = loop_writer_queued(t->writer);

	if (t->state == FLUSHING && queued == 0)
		stdio_shut(t);
	else if (t->state == SERVING && t->paused && queued <= t->o.queue_max / 2)
		serve(t);
}

static void on_broken(void *owner, const struct err *e)
{
	log_info("mcp stdio: %s", e->msg);
	stdio_shut(owner);
}

static const struct loop_writer_events writer_events = { on_written, on_broken };

/* --- the beginning --- */

int mcp_stdio_claim(int *ret_in_fd, int *ret_out_fd, struct err *e)
{
	autoclose int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	autoclose int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (in < 0 || out < 0)
		return err_sys(e, errno, "standard input or output is not open");
	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return err_sys(e, errno, "open /dev/null");
	if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0 && dup2(null, STDOUT_FILENO) < 0)
		return err_sys(e, errno, "move standard output");
	*ret_in_fd = take_fd(&in);
	*ret_out_fd = take_fd(&out);
	return 0;
}

/* Frees a half-made transport: nothing was started, so no callback comes. */
static void stdio_abandon(struct mcp_stdio *t)
{
	if (t->reader)
		loop_reader_close(t->reader, NULL);
	if (t->writer)
		loop_writer_close(t->writer, NULL);
	mcp_session_close(t->session);
	free(t);
}

struct mcp_stdio *mcp_stdio_start(uv_loop_t *loop, struct mcp_server *srv,
				  const struct mcp_stdio_options *o, struct err *e)
{
	autoclose int in = o->in_fd, out = o->out_fd;
	struct mcp_stdio *t = calloc(1, sizeof(*t));

	if (!t)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	signal(SIGPIPE, SIG_IGN);
	t->o = *o;
	t->o.line_max = o->line_max ? o->line_max : LINE_MAX_DEFAULT;
	t->o.queue_max = o->queue_max ? o->queue_max : QUEUE_MAX;
	t->reader = loop_reader_new(loop, take_fd(&in), &reader_events, t, e);
	if (t->reader)
		t->writer = loop_writer_new(loop, take_fd(&out), QUEUE_HARD_MAX, &writer_events, t,
					    e);
	if (!t->reader || !t->writer) {
		stdio_abandon(t);
		return NULL;
	}
	t->session = mcp_session_new(srv, &transport, t, MCP_ROAD_LINES, o->data);
	if (!t->session) {
		err_set(e, ERR_LIMIT, "out of memory");
		stdio_abandon(t);
		return NULL;
	}
	line_init(&t->lines, t->o.line_max);
	uv_timer_init(loop, &t->timer);
	t->timer.data = t;
	t->server = srv;
	uv_timer_start(&t->timer, on_tick, TICK_MS, TICK_MS);
	loop_reader_next(t->reader);
	return t;
}

void mcp_stdio_free(struct mcp_stdio *t)
{
	if (!t)
		return;
	line_fini(&t->lines);
	free(t);
}

/* --- whole programs --- */

/* Tasks end with the program, since nobody can ask for them later. */
static void on_served(void *server)
{
	mcp_server_end_tasks(server);
}

int mcp_serve_stdio(const struct mcp_server_options *options, struct err *e)
{
	AUTO(mcp_server_free) struct mcp_server *srv = mcp_server_new(options, e);
	struct mcp_stdio_options o = { .drain_ms = SERVE_DRAIN_MS,
				       .on_closed = on_served,
				       .owner = srv };
	struct mcp_stdio *t = NULL;

	if (srv && mcp_stdio_claim(&o.in_fd, &o.out_fd, e) == 0)
		t = mcp_stdio_start(uv_default_loop(), srv, &o, e);
	if (!t)
		return -1;
	uv_run(uv_default_loop(), UV_RUN_DEFAULT);
	mcp_stdio_free(t);
	return 0;
}
