/*
 * WebSockets to a server in a sandbox: two connections, and messages of each are passed on to the
 * other. So every byte is checked, and an upgrade can hide nothing. No extensions are offered. The
 * server accepts one of the client's subprotocols, or none. The client gets its answer when the
 * server has upgraded.
 */
#include "door/expose/internal.h"

#include <stdio.h>
#include <string.h>

#include "http/message/head.h"

enum {
	MESSAGE_MAX = 1 << 20,
	QUEUE_MAX = 4 << 20, /* towards the client; the server is held from half of it on */
	OPEN_MS = 30000,
	GOODBYE_MS = 30000, /* for the server to take what is queued and send its close frame */
	OFFERS_MAX = 1 << 10,
	REQUEST_MAX = 16 << 10, /* as in http/client/ws.c */
};

/* Status codes of RFC 6455 section 7.4.1; the third and fourth are never sent. */
enum {
	CLOSE_NORMAL = 1000,
	CLOSE_GOING = 1001,
	CLOSE_NO_CODE = 1005,
	CLOSE_NO_FRAME = 1006,
	CLOSE_FAILED = 1011,
};

bool expose_socket_asked(struct http_request *q)
{
	return http_request_method(q) == HTTP_GET &&
	       http_list_has(http_request_header(q, STR_LIT("Upgrade")), "websocket");
}

/* Codes that a close frame may contain; the others mean that there was none. */
static unsigned sayable(unsigned code)
{
	bool named = code >= CLOSE_NORMAL && code <= 1014 && code != 1004 && code != CLOSE_NO_FRAME;

	if (code == CLOSE_NO_CODE)
		return CLOSE_NORMAL;
	return named || (code >= 3000 && code <= 4999) ? code : CLOSE_FAILED;
}

void expose_socket_stop(struct exposed *x)
{
	if (x->timing)
		uv_timer_stop(&x->timer);
	ws_client_close(take_ptr(x->far));
	if (x->near)
		http_ws_close(take_ptr(x->near), CLOSE_GOING, STR_LIT(""));
}

/* ---- the client's side --------------------------------------------------------------------- */

static void on_goodbye_timeout(uv_timer_t *t)
{
	exposed_end(t->data, NULL);
}

static void on_near_message(void *owner, bool is_text, struct str message)
{
	struct exposed *x = owner;

	x->in += message.n;
	ws_client_send(x->far, is_text, message);
	if (ws_client_full(x->far))
		http_ws_hold(x->near, true);
}

static void on_near_closed(void *owner, unsigned code, const struct err *why)
{
	struct exposed *x = owner;

	x->near = NULL;
	if (x->x->ending) {
		exposed_end(x, NULL);
		return;
	}
	ws_client_end(x->far, code == CLOSE_NO_FRAME ? CLOSE_GOING : sayable(code));
	uv_timer_start(&x->timer, on_goodbye_timeout, GOODBYE_MS, 0);
}

static void on_near_drained(void *owner)
{
	struct exposed *x = owner;

	ws_client_hold(x->far, false);
}

static const struct http_ws_events near_events = { on_near_message, on_near_closed,
						   on_near_drained };

/* ---- the server's side --------------------------------------------------------------------- */

static void on_far_open(void *owner)
{
	struct exposed *x = owner;
	const char *protocol = ws_client_protocol(x->far);
	const struct http_ws_options o = { .message_max = MESSAGE_MAX,
					   .queue_max = QUEUE_MAX,
					   .protocol = protocol[0] ? protocol : NULL };
	struct err e = ERR_INIT;

	uv_timer_stop(&x->timer);
	if (call_waits(x->call, &e) == 0)
		x->near = http_ws_accept(x->q, &o, &near_events, x, &e);
	x->accepted = x->near != NULL;
	if (x->accepted)
		x->q = NULL;
	else
		exposed_end(x, &e);
}

static void on_far_message(void *owner, bool is_text, struct str message)
{
	struct exposed *x = owner;

	if (!x->near)
		return; /* the client has left */
	x->out += message.n;
	http_ws_send(x->near, is_text, message);
	if (http_ws_full(x->near))
		ws_client_hold(x->far, true);
}

static void on_far_drained(void *owner)
{
	struct exposed *x = owner;

	if (x->near)
		http_ws_hold(x->near, false);
}

static void on_far_refused(void *owner, int status, struct str body)
{
	struct exposed *x = owner;
	struct err e;

	x->far = NULL;
	err_set(&e, ERR_PORT, "port %u: it answers %d instead of a WebSocket", x->as.port, status);
	exposed_end(x, &e);
}

static void on_far_closed(void *owner, unsigned code, const struct err *why)
{
	struct exposed *x = owner;
	struct err e;

	x->far = NULL;
	if (x->near)
		http_ws_close(take_ptr(x->near), sayable(code), STR_LIT(""));
	if (x->accepted) {
		exposed_end(x, NULL);
		return;
	}
	err_set(&e, ERR_PORT, "port %u: %.200s", x->as.port, why->msg);
	exposed_end(x, &e);
}

static const struct ws_client_events far_events = { on_far_open, on_far_message, on_far_drained,
						    on_far_refused, on_far_closed };

/* ---- the beginning ------------------------------------------------------------------------- */

static void on_timeout(uv_timer_t *t)
{
	struct exposed *x = t->data;
	struct err e;

	err_set(&e, ERR_PORT, "port %u: it did not answer in time", x->as.port);
	exposed_end(x, &e);
}

struct offers {
	struct buf *to;
	struct err *e;
	bool failed;
};

/* Joins several fields into one list. */
static void put_offer(void *data, struct str name, struct str value)
{
	struct offers *o = data;

	if (!o->failed && value.n && http_same(name, STR_LIT("Sec-WebSocket-Protocol")))
		o->failed = buf_addf(o->to, o->e, "%s%.*s", o->to->n ? ", " : "", STR_ARG(value)) <
			    0;
}

/* The fields that a request would pass on, as names and values. */
static int split_fields(struct exposed *x, struct buf *text, struct http_header **ret,
			size_t *ret_n, struct err *e)
{
	size_t n = 0;

	*ret = arena_array(x->arena, HTTP_ANSWER_FIELDS + 8, sizeof(**ret), e);
	if (!*ret)
		return -1;
	for (char *at = text->p, *end; at < text->p + text->n; at = end + 2) {
		char *colon = strstr(at, ": ");

		end = strstr(at, "\r\n");
		if (!colon || !end || colon > end || n == HTTP_ANSWER_FIELDS + 8)
			return err_set(e, ERR_INVALID, "the request has too many fields");
		*colon = *end = '\0';
		(*ret)[n++] = (struct http_header){ at, str_of(colon + 2) };
	}
	*ret_n = n;
	return 0;
}

static int open_far(struct exposed *x, int *fd, struct err *e)
{
	autobuf struct buf path = BUF_INIT(REQUEST_MAX), fields = BUF_INIT(REQUEST_MAX),
			   offers = BUF_INIT(OFFERS_MAX);
	struct offers o = { &offers, e, false };
	struct http_header *headers;
	char host[32];
	struct ws_client_options options = { .host = host, .message_max = MESSAGE_MAX };

	snprintf(host, sizeof(host), "localhost:%u", x->as.port);
	http_request_each_header(x->q, put_offer, &o);
	if (o.failed || expose_target(x->q, &x->as, &path, e) < 0 ||
	    expose_fields(x->q, &x->as, &fields, e) < 0 ||
	    split_fields(x, &fields, &headers, &options.n_headers, e) < 0)
		return -1;
	options.path = path.p;
	options.offers = offers.n ? offers.p : NULL;
	options.headers = headers;
	options.fd = take_fd(fd);
	x->far = ws_client_open(x->x->loop, &options, &far_events, x, e);
	return x->far ? 0 : -1;
}

void expose_socket_start(struct exposed *x, int fd)
{
	autoclose int owned = fd;
	struct err e = ERR_INIT;

	if (!x->body_ended)
		err_set(&e, ERR_INVALID, "a request for a WebSocket has no body");
	else if (uv_timer_init(x->x->loop, &x->timer) < 0)
		err_set(&e, ERR_LIMIT, "no timer");
	if (e.code != ERR_NONE) {
		exposed_end(x, &e);
		return;
	}
	x->timing = true;
	x->timer.data = x;
	uv_timer_start(&x->timer, on_timeout, OPEN_MS, 0);
	if (open_far(x, &owned, &e) < 0)
		exposed_end(x, &e);
}
