#include "http/client/hop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/mem.h"

enum {
	PIECE = 16 << 10,
	TURN = 4, /* pieces that are read before others get their turn */
	INTERIM_MAX = 32, /* answers with status 1xx, which a server could repeat without end */
	ASIDE = 64 << 10, /* one write and its framing may exceed the queue's limit by this */
};

enum body { BODY_UNKNOWN, BODY_NONE, BODY_LENGTH, BODY_CHUNKS, BODY_TO_END };

struct http_hop {
	uv_poll_t poll;
	uv_timer_t silence;
	unsigned handles; /* open handles */
	int fd;
	struct http_hop_options o;
	const struct http_hop_events *events;
	void *owner;
	struct buf out;
	size_t sent; /* bytes of the queue's front that were sent */
	bool high, deaf;
	struct buf in; /* bytes that were not processed yet */
	unsigned interim; /* answers with status 1xx so far */
	enum body body; /* BODY_UNKNOWN: the head has not come */
	unsigned long long left;
	struct http_chunks chunks;
	bool held, resumed, closing;
};

/* ---- its end ------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
	struct http_hop *h = handle->data;

	if (--h->handles)
		return;
	close_fd(&h->fd);
	buf_fini(&h->out);
	buf_fini(&h->in);
	free(h);
}

void http_hop_close(struct http_hop *h)
{
	if (h->closing)
		return;
	h->closing = true;
	uv_close((uv_handle_t *)&h->poll, on_handle_closed);
	uv_close((uv_handle_t *)&h->silence, on_handle_closed);
}

static void end(struct http_hop *h, const struct err *e)
{
	http_hop_close(h);
	h->events->on_end(h->owner, e);
}

static void hop_fail(struct http_hop *h, enum err_code code, const char *why)
{
	struct err e;

	err_set(&e, code, "%s", why);
	end(h, &e);
}

static void on_silence(uv_timer_t *timer)
{
	struct http_hop *h = timer->data;

	hop_fail(h, ERR_PORT,
		 h->body == BODY_UNKNOWN ? "it did not answer in time"
					 : "it takes no more of the request");
}

/* Restarts the timer if the server has to act, else stops it. */
static void time_it(struct http_hop *h)
{
	if (h->body == BODY_UNKNOWN || http_hop_waiting(h) > 0)
		uv_timer_start(&h->silence, on_silence, h->o.silence_ms, 0);
	else
		uv_timer_stop(&h->silence);
}

/* ---- what it says -------------------------------------------------------------------------- */

/* 1: a head was processed, 0: it is incomplete. */
static int take_head(struct http_hop *h, struct str *in, struct err *e)
{
	const char *end = in->n ? memmem(in->p, in->n, "\r\n\r\n", 4) : NULL;
	struct http_answer a;
	struct str head;

	if (!end && in->n >= HTTP_ANSWER_HEAD_MAX)
		return err_set(e, ERR_PORT, "the head of its answer is too large");
	if (!end)
		return 0;
	head = (struct str){ in->p, (size_t)(end - in->p) + 4 };
	*in = (struct str){ in->p + head.n, in->n - head.n };
	if (http_answer_parse(head, &a, e) < 0)
		return -1;
	if (a.status == 101)
		return err_set(e, ERR_PORT, "it changes to a protocol that nobody asked for");
	if (a.status < 200 && ++h->interim > INTERIM_MAX)
		return err_set(e, ERR_PORT, "it answers that it will answer, and no more");
	if (a.status < 200)
		return 1;
	h->left = a.length;
	if (h->o.no_body || a.status == 204 || a.status == 304 || (a.has_length && a.length == 0))
		h->body = BODY_NONE;
	else
		h->body = a.chunked ? BODY_CHUNKS : a.has_length ? BODY_LENGTH : BODY_TO_END;
	time_it(h);
	h->events->on_head(h->owner, &a);
	return 1;
}

/* 1: something was processed, 0: nothing, or the body has ended. */
static int take_body(struct http_hop *h, struct str *in, bool *ret_over, struct err *e)
{
	struct str piece = *in;
	int rc = 1;

	if (h->body == BODY_CHUNKS) {
		rc = http_chunks_next(&h->chunks, in, &piece, e);
	} else {
		if (h->body == BODY_LENGTH && piece.n > h->left)
			piece.n = (size_t)h->left;
		h->left -= h->body == BODY_LENGTH ? piece.n : 0;
		*in = (struct str){ in->p + piece.n, in->n - piece.n };
	}
	*ret_over = rc == 0 || (h->body == BODY_LENGTH && h->left == 0);
	if (rc > 0 && piece.n > 0)
		h->events->on_bytes(h->owner, piece);
	return rc;
}

/* Processes what was received, until the owner holds it. */
static void hop_take(struct http_hop *h)
{
	struct str in = buf_str(&h->in);
	struct err e = ERR_INIT;
	bool over = false;
	int rc = 1;

	while (rc > 0 && !over && !h->held && !h->closing) {
		if (h->body == BODY_UNKNOWN)
			rc = take_head(h, &in, &e);
		else if (h->body == BODY_NONE)
			over = true;
		else if (in.n > 0)
			rc = take_body(h, &in, &over, &e);
		else
			rc = 0;
	}
	if (h->closing)
		return;
	buf_drop(&h->in, h->in.n - in.n);
	if (rc < 0)
		end(h, &e);
	else if (over)
		end(h, NULL);
}

static void ended(struct http_hop *h)
{
	if (h->body == BODY_TO_END)
		end(h, NULL);
	else if (h->body == BODY_UNKNOWN)
		hop_fail(h, ERR_PORT, "it ended the connection instead of an answer");
	else
		hop_fail(h, ERR_PORT, "its answer has no end");
}

/* Returns whether there may be more to read at once. */
static bool read_piece(struct http_hop *h)
{
	struct err e;
	char *to = buf_reserve(&h->in, PIECE, &e);
	ssize_t n = to ? recv(h->fd, to, PIECE, MSG_DONTWAIT) : -1;

	if (!to) {
		hop_fail(h, ERR_LIMIT, "out of memory");
	} else if (n > 0) {
		buf_advance(&h->in, (size_t)n);
		hop_take(h);
		return n == PIECE;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		ended(h);
	}
	return false;
}

/* ---- what it hears ------------------------------------------------------------------------- */

static void hop_watch(struct http_hop *h);

size_t http_hop_waiting(const struct http_hop *h)
{
	return h->out.n - h->sent;
}

static void hop_flush(struct http_hop *h)
{
	size_t n = http_hop_waiting(h);
	ssize_t took = n ? send(h->fd, h->out.p + h->sent, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

	if (took < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (took < 0)
		h->deaf = true; /* its answer, if there is one, must still be read */
	h->sent += took < 0 ? n : (size_t)took;
	if (http_hop_waiting(h) == 0) {
		buf_fini(&h->out);
		h->sent = 0;
	}
	if (n)
		time_it(h);
	if (h->high && http_hop_waiting(h) <= HTTP_HOP_QUEUE / 2) {
		h->high = false;
		h->events->on_sent(h->owner);
	}
}

void http_hop_send(struct http_hop *h, struct str bytes)
{
	struct err e;
	bool idle;

	if (h->closing || h->deaf || bytes.n == 0)
		return;
	idle = http_hop_waiting(h) == 0;
	if (h->sent > h->out.n / 2) {
		buf_drop(&h->out, h->sent);
		h->sent = 0;
	}
	if (buf_add(&h->out, bytes.p, bytes.n, &e) < 0)
		/* out of memory: the server will not answer an incomplete request */
		h->deaf = true;
	h->high |= http_hop_waiting(h) > HTTP_HOP_QUEUE / 2;
	if (idle)
		time_it(h);
	hop_watch(h);
}

/* ---- on the loop --------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void hop_watch(struct http_hop *h)
{
	int events = (h->held ? 0 : UV_READABLE) |
		     (http_hop_waiting(h) > 0 || h->resumed ? UV_WRITABLE : 0);

	if (h->closing)
		return;
	if (events)
		uv_poll_start(&h->poll, events, on_poll);
	/* held: that the server has gone is noticed when reading resumes */
	else
		uv_poll_stop(&h->poll);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct http_hop *h = poll->data;

	if (http_hop_waiting(h) > 0)
		hop_flush(h);
	if (h->resumed && !h->closing && !h->held) {
		h->resumed = false;
		hop_take(h);
	}
	for (int i = 0; i < TURN && !h->closing && !h->held; i++) {
		if (!read_piece(h))
			break;
	}
	hop_watch(h);
}

void http_hop_hold(struct http_hop *h, bool hold)
{
	h->resumed |= h->held && !hold;
	h->held = hold;
	hop_watch(h);
}

static struct http_hop *init(uv_loop_t *loop, const struct http_hop_options *o, int *fd,
			     struct err *e)
{
	struct http_hop *h = calloc(1, sizeof(*h));

	if (!h || uv_poll_init(loop, &h->poll, *fd) < 0) {
		free(h);
		return err_set(e, ERR_LIMIT, "the connection can't be watched"), NULL;
	}
	uv_timer_init(loop, &h->silence);
	h->handles = 2;
	h->poll.data = h->silence.data = h;
	h->fd = take_fd(fd);
	h->o = *o;
	h->out = BUF_INIT(2 * HTTP_HOP_QUEUE + ASIDE); /* up to half of it may be sent already */
	h->in = BUF_INIT(HTTP_ANSWER_HEAD_MAX + 2 * PIECE);
	return h;
}

struct http_hop *http_hop_new(uv_loop_t *loop, const struct http_hop_options *o,
			      const struct http_hop_events *events, void *owner, struct err *e)
{
	autoclose int fd = o->fd;
	struct http_hop *h = init(loop, o, &fd, e);

	if (!h)
		return NULL;
	h->events = events;
	h->owner = owner;
	time_it(h);
	hop_watch(h);
	return h;
}
