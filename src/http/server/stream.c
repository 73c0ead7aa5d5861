/*
 * Bodies of unknown length. Written bytes wait in the stream's queue until the daemon asks for
 * them. If the queue is empty then, the connection is suspended until the next write. A stream
 * belongs to its owner and to the daemon's response, and is freed when both have left it.
 *
 * The owner's callbacks come from the idle handle (stream_tell), or directly from the loop if none
 * of the owner's calls can be on the stack.
 */
#include "http/server/internal.h"

#include <stdlib.h>

enum {
	BLOCK = 1024,
	KEEP = 64 << 10,
	TEXT_MAX = 256 << 20, /* bytes of one write, which may exceed the queue's limit */
};

struct http_stream {
	struct http_server *srv;
	struct conn *conn; /* NULL once the daemon has left */
	const struct http_stream_events *events;
	void *owner;
	struct buf queue;
	size_t limit; /* what high and drained go by */
	size_t full; /* a write fails if this many bytes are queued already; limit, or more */
	size_t sent; /* bytes of the queue's front that were sent */
	bool owner_left, daemon_left;
	bool ending; /* no more writes */
	bool dead; /* nothing is sent any more */
	/* high: more than half of the limit was queued; drained: no longer, and the owner is to be
	 * told */
	bool high, drained;
	struct err why;
	bool listed; /* in srv->told */
	struct http_stream *next_told;
};

size_t http_stream_waiting(const struct http_stream *s)
{
	return s->queue.n - s->sent;
}

static void stream_settle(struct http_stream *s)
{
	if (!s->owner_left || !s->daemon_left || s->listed)
		return;
	buf_fini(&s->queue);
	free(s);
}

static void list(struct http_stream *s)
{
	if (s->listed)
		return;
	s->listed = true;
	s->next_told = s->srv->told;
	s->srv->told = s;
	server_again(s->srv);
}

static void die(struct http_stream *s, const struct err *why)
{
	if (!s->dead)
		s->why = *why;
	s->dead = true;
	buf_fini(&s->queue);
	s->sent = 0;
}

static void tell_closed(struct http_stream *s)
{
	if (s->owner_left)
		return;
	s->owner_left = true;
	s->events->on_closed(s->owner, &s->why);
}

void stream_tell(struct http_server *srv)
{
	struct http_stream *next = take_ptr(srv->told);

	while (next) {
		struct http_stream *s = next;

		next = s->next_told;
		s->listed = false;
		if (s->dead)
			tell_closed(s);
		else if (s->drained && !s->owner_left && s->events->on_drained)
			s->events->on_drained(s->owner);
		s->drained = false;
		stream_settle(s);
	}
}

void stream_lost(struct conn *c, const struct err *why)
{
	struct http_stream *s = c->stream;

	if (!s)
		return;
	die(s, why);
	tell_closed(s);
	conn_resume(c);
}

/* ---- the daemon's side --------------------------------------------------------------------- */

static void take_front(struct http_stream *s, char *to, size_t n)
{
	memcpy(to, s->queue.p + s->sent, n);
	s->sent += n;
	if (s->sent == s->queue.n) {
		if (s->queue.cap > KEEP)
			buf_fini(&s->queue);
		s->queue.n = 0;
		s->sent = 0;
	}
	if (s->high && http_stream_waiting(s) <= s->limit / 2) {
		s->high = false;
		s->drained = true;
		list(s);
	}
}

static ssize_t on_read(void *cls, uint64_t at, char *to, size_t max)
{
	struct http_stream *s = cls;
	size_t n = http_stream_waiting(s) < max ? http_stream_waiting(s) : max;

	if (s->dead)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n > 0)
		take_front(s, to, n);
	else if (s->ending)
		return MHD_CONTENT_READER_END_OF_STREAM;
	else
		conn_suspend(s->conn);
	return (ssize_t)n;
}

static void on_freed(void *cls)
{
	struct http_stream *s = cls;
	struct err e;

	s->daemon_left = true;
	s->srv->stats.streams--;
	if (s->conn)
		s->conn->stream = NULL;
	s->conn = NULL;
	if (!s->owner_left) {
		err_set(&e, ERR_TRANSPORT, "the client went away");
		die(s, &e);
		list(s);
	}
	stream_settle(s);
}

/* ---- the owner's side ---------------------------------------------------------------------- */

static struct http_stream *stream_make(struct conn *c, const struct http_stream_events *events,
				       void *owner, struct err *e)
{
	size_t limit = c->srv->o.limits.stream_queue;
	struct http_stream *s = NULL;

	if (conn_may_stream(c, e) < 0)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		err_set(e, ERR_LIMIT, "out of memory");
	else
		*s = (struct http_stream){ .srv = c->srv,
					   .conn = c,
					   .events = events,
					   .owner = owner,
					   .limit = limit,
					   .full = limit,
					   .queue = BUF_INIT(limit + TEXT_MAX) };
	return s;
}

struct http_stream *http_stream_start(struct http_request *q, const struct http_reply *reply,
				      const struct http_stream_events *events, void *owner,
				      struct err *e)
{
	struct conn *c = q->conn;
	struct http_stream *s = stream_make(c, events, owner, e);
	struct MHD_Response *r = NULL;

	if (!s)
		return NULL;
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_read, s, on_freed);
	if (!r) {
		free(s);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	c->srv->stats.streams++;
	if (reply_headers(q, r, reply) < 0) {
		s->owner_left = true;
		MHD_destroy_response(r);
		return err_set(e, ERR_BUG, "the stream's head can't be sent"), NULL;
	}
	c->stream = s;
	if (reply->body.n > 0)
		http_stream_write(s, reply->body);
	free(reply->owned);
	reply_queue(q, (unsigned)reply->status, r);
	if (c->stream)
		conn_set_state(c, CONN_STREAMING);
	return s;
}

void http_stream_allow(struct http_stream *s, size_t bytes)
{
	s->full = bytes > s->limit ? bytes : s->limit;
	s->queue.max = s->full + TEXT_MAX;
}

static void stream_wrote(struct http_stream *s)
{
	s->high |= http_stream_waiting(s) > s->limit / 2;
	/* Before that, the request's own reply must be queued. */
	if (s->conn->state == CONN_STREAMING)
		conn_resume(s->conn);
}

void http_stream_write(struct http_stream *s, struct str bytes)
{
	struct err e;

	if (s->dead || bytes.n == 0)
		return;
	if (s->sent > s->queue.n / 2) {
		buf_drop(&s->queue, s->sent);
		s->sent = 0;
	}
	if (http_stream_waiting(s) >= s->full || buf_add(&s->queue, bytes.p, bytes.n, &e) < 0) {
		err_set(&e, ERR_LIMIT, "the client reads too slowly");
		die(s, &e);
		list(s);
		s->srv->stats.slow++;
		conn_kill(s->conn);
	}
	stream_wrote(s);
}

void http_stream_give(struct http_stream *s, struct buf *b)
{
	if (s->dead || b->n <= KEEP || http_stream_waiting(s) > 0) {
		http_stream_write(s, buf_str(b));
		b->n = 0;
		return;
	}
	buf_fini(&s->queue);
	s->sent = 0;
	s->queue.n = b->n;
	s->queue.cap = b->cap;
	s->queue.p = buf_take(b);
	stream_wrote(s);
}

void http_stream_end(struct http_stream *s)
{
	s->owner_left = true;
	s->ending = true;
	if (s->conn && s->conn->state == CONN_STREAMING)
		conn_resume(s->conn);
	stream_settle(s);
}

void http_stream_break(struct http_stream *s)
{
	struct err e;

	err_set(&e, ERR_IO, "what was sent has no end");
	die(s, &e);
	http_stream_end(s);
}
