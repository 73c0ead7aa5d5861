/*
 * A request over HTTP. Its head is written anew; its body and the answer are passed on piece by
 * piece. Each side slows down the other: the client is read when its last piece was sent, the
 * server when the client has room. The door requires an answer that comes before the end of its
 * request to wait for that end; the server still gets the rest of the request meanwhile.
 */
#include "door/expose/internal.h"

#include <stdio.h>

#include "http/message/head.h"

enum {
	REQUEST_MAX = 64 << 10, /* bytes of a request's head */
	SILENCE_MS = 300000,
	FULL = 512 << 10, /* half of the door's queue, as in exchange_write.c */
};

/* ---- the end ------------------------------------------------------------------------------- */

void expose_http_stop(struct exposed *x)
{
	if (x->hop)
		http_hop_close(take_ptr(x->hop));
	if (x->stream)
		http_stream_break(take_ptr(x->stream));
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void on_stream_closed(void *owner, const struct err *why)
{
	struct exposed *x = owner;

	x->stream = NULL;
	call_cancel(x->call);
}

static void on_stream_drained(void *owner)
{
	struct exposed *x = owner;

	if (x->hop)
		http_hop_hold(x->hop, false);
}

static const struct http_stream_events stream_events = { on_stream_closed, on_stream_drained };

/* Called when the request has ended. */
static void begin_answer(struct exposed *x)
{
	const struct http_reply reply = { .status = x->status,
					  .headers = x->headers,
					  .n_headers = x->n_headers };
	struct err e = ERR_INIT;

	if (x->status == 204 || x->status == 304) {
		http_reply(take_ptr(x->q), &reply);
		exposed_end(x, NULL);
		return;
	}
	x->stream = http_stream_start(x->q, &reply, &stream_events, x, &e);
	if (!x->stream) {
		exposed_end(x, &e);
		return;
	}
	x->q = NULL;
	http_hop_hold(x->hop, false);
}

static bool is_news(struct str type)
{
	static const struct str events = STR_LIT("text/event-stream");

	return type.n >= events.n && http_same((struct str){ type.p, events.n }, events);
}

static void on_head(void *owner, const struct http_answer *a)
{
	struct exposed *x = owner;
	struct err e = ERR_INIT;

	x->news = is_news(http_answer_field(a, "Content-Type"));
	x->headers = arena_array(x->arena, EXPOSE_HEADERS_MAX, sizeof(*x->headers), &e);
	if (!x->headers ||
	    expose_answer(a, &x->as, http_request_room(x->q), x->arena, x->headers, &x->n_headers,
			  &e) < 0 ||
	    (x->news && call_waits(x->call, &e) < 0)) {
		exposed_end(x, &e);
		return;
	}
	x->status = a->status;
	http_hop_hold(x->hop, true);
	if (x->body_ended)
		begin_answer(x);
	else if (x->body_held)
		http_body_resume(x->q);
}

static void on_bytes(void *owner, struct str bytes)
{
	struct exposed *x = owner;

	x->out += bytes.n;
	http_stream_write(x->stream, bytes);
	if (http_stream_waiting(x->stream) > FULL)
		http_hop_hold(x->hop, true);
}

static void on_end(void *owner, const struct err *e)
{
	struct exposed *x = owner;

	x->hop = NULL;
	if (!e)
		http_stream_end(take_ptr(x->stream));
	exposed_end(x, e);
}

/* ---- the request --------------------------------------------------------------------------- */

static void on_sent(void *owner)
{
	struct exposed *x = owner;

	x->body_held = false;
	if (x->q && !x->body_ended)
		http_body_resume(x->q);
}

size_t expose_http_bytes(struct exposed *x, struct str bytes)
{
	char size[32];

	if (!x->hop || http_hop_waiting(x->hop) > HTTP_HOP_QUEUE) {
		x->body_held = true;
		return 0;
	}
	x->in += bytes.n;
	if (x->chunked) {
		snprintf(size, sizeof(size), "%zx\r\n", bytes.n);
		http_hop_send(x->hop, str_of(size));
	}
	http_hop_send(x->hop, bytes);
	if (x->chunked)
		http_hop_send(x->hop, STR_LIT("\r\n"));
	return bytes.n;
}

void expose_http_body_end(struct exposed *x)
{
	x->body_ended = true;
	if (!x->hop)
		return;
	if (x->chunked)
		http_hop_send(x->hop, STR_LIT("0\r\n\r\n"));
	if (x->status)
		begin_answer(x);
}

static const struct http_hop_events hop_events = { on_head, on_bytes, on_sent, on_end };

void expose_http_start(struct exposed *x, int fd)
{
	const struct http_hop_options o = { .fd = fd,
					    .no_body = http_request_method(x->q) == HTTP_HEAD,
					    .silence_ms = SILENCE_MS };
	autobuf struct buf head = BUF_INIT(REQUEST_MAX);
	struct err e = ERR_INIT;

	x->hop = http_hop_new(x->x->loop, &o, &hop_events, x, &e);
	if (!x->hop || expose_request(x->q, &x->as, &head, &e) < 0) {
		exposed_end(x, &e);
		return;
	}
	http_hop_send(x->hop, buf_str(&head));
	if (x->body_ended && x->chunked)
		http_hop_send(x->hop, STR_LIT("0\r\n\r\n")); /* the body was empty */
	on_sent(x);
}
