/*
 * WebSockets: RFC 6455 by wslay, on the descriptor that the daemon hands over after its 101. From
 * then on the loop polls the descriptor here; the daemon keeps it open until it is told that we are
 * done.
 *
 * A WebSocket ends when both have said goodbye, when its client goes silent, or when a bound is
 * broken. Its owner may have left before. One that is held is read no further, so that its client
 * has to wait; all that is heard of it meanwhile is that it went away.
 */
#include "http/server/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "http/message/sha1.h"
#include "http/message/ws_pieces.h"

enum {
	MESSAGE_MAX = 1 << 20,
	PING_MS = 30000,
	GOODBYE_MS = 3000, /* for the client's answer to our close */
	QUEUED_MAX = 4096, /* frames; what a flood of pings can make us keep */
	TURN_MAX = 128 << 10, /* bytes read before others get their turn */
	NO_CLOSE_FRAME = 1006,
};

struct http_ws {
	struct http_server *srv;
	struct conn *conn;
	struct http_ws *next, *prev; /* of srv->websockets */
	const struct http_ws_events *events;
	void *owner;
	struct http_ws_options o;
	wslay_event_context_ptr context;
	struct MHD_UpgradeResponseHandle *handle; /* NULL until the 101 is out */
	int fd;
	uv_poll_t poll;
	struct buf early; /* what the daemon had read already */
	size_t early_read;
	size_t turn; /* bytes that may still be read in this one */
	unsigned pieces; /* of the message that is coming */
	bool owner_left, over, high;
	bool held; /* by its owner */
	bool resumed; /* what was read before that waits to be looked at */
	bool answered; /* the last ping, or there was none */
	/* of the goodbye that waits for what is to be sent before it; 0: none */
	unsigned close_code;
	char close_reason[124]; /* RFC 6455 allows 123 bytes */
	uint64_t ping_ms; /* when */
	/* when the client took something last, once the owner has left; 0: it has not */
	uint64_t taken_ms;
};

/* ---- its end ------------------------------------------------------------------------------- */

static void free_ws(struct http_ws *ws)
{
	if (ws->prev)
		ws->prev->next = ws->next;
	else
		ws->srv->websockets = ws->next;
	if (ws->next)
		ws->next->prev = ws->prev;
	ws->srv->stats.websockets--;
	wslay_event_context_free(ws->context);
	buf_fini(&ws->early);
	free(ws);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct http_ws *ws = handle->data;

	ws->conn->ws = NULL;
	MHD_upgrade_action(ws->handle, MHD_UPGRADE_ACTION_CLOSE);
	server_kick(ws->srv, ws->conn->listener);
	free_ws(ws);
}

void ws_lost(struct http_ws *ws, unsigned code, const struct err *why)
{
	if (!ws->owner_left) {
		ws->owner_left = true;
		ws->events->on_closed(ws->owner, code, why);
	}
	if (!ws->handle) {
		ws->conn->ws = NULL;
		free_ws(ws);
	} else if (!uv_is_closing((uv_handle_t *)&ws->poll)) {
		uv_close((uv_handle_t *)&ws->poll, on_poll_closed);
	}
}

static void lose(struct http_ws *ws, unsigned code, enum err_code why, const char *text)
{
	struct err e;

	err_set(&e, why, "%s", text);
	ws_lost(ws, code, &e);
}

/* ---- wslay's side -------------------------------------------------------------------------- */

static ssize_t take_early(struct http_ws *ws, uint8_t *to, size_t n)
{
	size_t left = ws->early.n - ws->early_read;

	n = left < n ? left : n;
	memcpy(to, ws->early.p + ws->early_read, n);
	ws->early_read += n;
	return (ssize_t)n;
}

static ssize_t on_recv(wslay_event_context_ptr context, uint8_t *to, size_t n, int flags,
		       void *data)
{
	struct http_ws *ws = data;
	ssize_t got;

	if (ws->early_read < ws->early.n && !ws->held)
		return take_early(ws, to, n);
	if (ws->turn == 0 || ws->held) {
		wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	got = recv(ws->fd, to, n < ws->turn ? n : ws->turn, 0);
	if (got > 0) {
		ws->turn -= (size_t)got;
		return got;
	}
	wslay_event_set_error(context, got < 0 && (errno == EAGAIN || errno == EINTR)
					       ? WSLAY_ERR_WOULDBLOCK
					       : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr context, const uint8_t *p, size_t n, int flags,
		       void *data)
{
	struct http_ws *ws = data;
	ssize_t sent = send(ws->fd, p, n, MSG_NOSIGNAL | (flags & WSLAY_MSG_MORE ? MSG_MORE : 0));

	if (sent >= 0 && ws->taken_ms)
		ws->taken_ms = server_now_ms(ws->srv);
	if (sent >= 0)
		return sent;
	wslay_event_set_error(context, errno == EAGAIN || errno == EINTR
					       ? WSLAY_ERR_WOULDBLOCK
					       : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static void on_frame(wslay_event_context_ptr context,
		     const struct wslay_event_on_frame_recv_start_arg *f, void *data)
{
	struct http_ws *ws = data;

	ws_count_piece(context, f->opcode, &ws->pieces);
}

static void on_message(wslay_event_context_ptr context, const struct wslay_event_on_msg_recv_arg *m,
		       void *data)
{
	struct http_ws *ws = data;

	ws->answered = true; /* whatever it says, it is there */
	if (ws->owner_left || (m->opcode != WSLAY_TEXT_FRAME && m->opcode != WSLAY_BINARY_FRAME))
		return;
	ws->events->on_message(ws->owner, m->opcode == WSLAY_TEXT_FRAME,
			       (struct str){ (const char *)m->msg, m->msg_length });
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_recv,
	.send_callback = on_send,
	.on_frame_recv_start_callback = on_frame,
	.on_msg_recv_callback = on_message,
};

/* ---- the loop's side ----------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct http_ws *ws)
{
	bool writes = wslay_event_want_write(ws->context) || ws->resumed;
	bool reads =
		wslay_event_want_read(ws->context); /* else what comes would wake us for nothing */
	int events = (ws->held ? UV_DISCONNECT
		      : reads  ? UV_READABLE
			       : 0) |
		     (writes ? UV_WRITABLE : 0);

	if (ws->handle && !uv_is_closing((uv_handle_t *)&ws->poll))
		uv_poll_start(&ws->poll, events, on_poll);
}

static bool is_over(const struct http_ws *ws)
{
	return ws->over || wslay_event_get_queued_msg_length(ws->context) > 2 * ws->o.queue_max ||
	       wslay_event_get_queued_msg_count(ws->context) > QUEUED_MAX;
}

/* The status code that the client's close frame had, or ours. */
static unsigned close_code(const struct http_ws *ws)
{
	unsigned code = wslay_event_get_status_code_received(ws->context);

	return code ? code : NO_CLOSE_FRAME;
}

/* The library would send its goodbye before what waits, and then nothing more. */
static void say_goodbye(struct http_ws *ws)
{
	if (!ws->close_code || wslay_event_get_queued_msg_count(ws->context) > 0)
		return;
	wslay_event_queue_close(ws->context, (uint16_t)ws->close_code,
				(const uint8_t *)ws->close_reason, strlen(ws->close_reason));
	ws->close_code = 0;
}

static bool has_much(const struct http_ws *ws)
{
	return wslay_event_get_queued_msg_length(ws->context) > ws->o.queue_max / 2 ||
	       wslay_event_get_queued_msg_count(ws->context) > QUEUED_MAX / 4;
}

static void pump(struct http_ws *ws)
{
	bool ok;

	ws->turn = TURN_MAX;
	ws->resumed = false;
	ok = ws->held || wslay_event_recv(ws->context) == 0;
	ok = wslay_event_send(ws->context) == 0 && ok;
	say_goodbye(ws);
	if (is_over(ws)) {
		ws->srv->stats.slow++;
		lose(ws, NO_CLOSE_FRAME, ERR_LIMIT, "the client reads too slowly");
	} else if (!ok) {
		lose(ws, close_code(ws), ERR_TRANSPORT, "the client went away");
	} else if (!wslay_event_want_read(ws->context) && !wslay_event_want_write(ws->context)) {
		lose(ws, close_code(ws), ERR_TRANSPORT, "the WebSocket was closed");
	} else {
		if (ws->high && !has_much(ws)) {
			ws->high = false;
			if (!ws->owner_left && ws->events->on_drained)
				ws->events->on_drained(ws->owner);
		}
		watch(ws);
	}
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct http_ws *ws = poll->data;

	if (ws->held && (status < 0 || (events & UV_DISCONNECT)))
		lose(ws, NO_CLOSE_FRAME, ERR_TRANSPORT, "the client went away");
	else
		pump(ws);
}

static void say(struct http_ws *ws, uint8_t opcode, struct str message)
{
	struct wslay_event_msg m = { .opcode = opcode,
				     .msg = (const uint8_t *)message.p,
				     .msg_length = message.n };

	if (wslay_event_queue_msg(ws->context, &m) == WSLAY_ERR_NOMEM)
		ws->over = true;
}

/* After its owner has left: what still waits may go out as long as the client takes some of it.
 * Before the 101 is out the daemon has it, and a time of its own for that. */
static bool is_overdue(const struct http_ws *ws, uint64_t now_ms)
{
	unsigned ms = wslay_event_get_queued_msg_count(ws->context) ? ws->srv->o.limits.idle_ms
								    : GOODBYE_MS;

	return ws->handle && ws->taken_ms && now_ms >= ws->taken_ms + ms;
}

/* Pings, and those that did not answer in time. */
static void tick(struct http_ws *ws, uint64_t now_ms)
{
	if (is_overdue(ws, now_ms)) {
		lose(ws, NO_CLOSE_FRAME, ERR_TIMEOUT, "the client does not answer");
	} else if (ws->held) {
		ws->ping_ms = now_ms + ws->o.ping_ms; /* we would not hear its answer */
	} else if (ws->handle && now_ms >= ws->ping_ms) {
		if (!ws->answered) {
			lose(ws, NO_CLOSE_FRAME, ERR_TIMEOUT, "the client does not answer");
			return;
		}
		ws->answered = false;
		ws->ping_ms = now_ms + ws->o.ping_ms;
		say(ws, WSLAY_PING, STR_LIT("holt"));
		watch(ws);
	}
}

void ws_tick(struct http_server *srv, uint64_t now_ms)
{
	struct http_ws *next;

	for (struct http_ws *ws = srv->websockets; ws; ws = next) {
		next = ws->next;
		tick(ws, now_ms);
	}
}

/* ---- the handshake ------------------------------------------------------------------------- */

static void on_upgrade(void *cls, struct MHD_Connection *mhd, void *context, const char *extra,
		       size_t extra_n, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct http_ws *ws = cls;
	struct err e = ERR_INIT;

	ws->handle = handle;
	ws->fd = fd;
	conn_set_state(ws->conn, CONN_UPGRADED);
	if (buf_add(&ws->early, extra, extra_n, &e) < 0 ||
	    uv_poll_init(ws->srv->loop, &ws->poll, fd) < 0) {
		ws->handle = NULL;
		MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
		lose(ws, NO_CLOSE_FRAME, ERR_LIMIT, "the descriptor can't be watched");
		return;
	}
	ws->poll.data = ws;
	ws->ping_ms = server_now_ms(ws->srv) + ws->o.ping_ms;
	uv_poll_start(&ws->poll, UV_READABLE | UV_WRITABLE, on_poll);
}

/* The key is 16 bytes in base64; its echo is a hash with a constant (RFC 6455 section 4.2.2). */
static int accept_key(struct http_request *q, struct buf *to, struct err *e)
{
	struct str key = http_request_header(q, STR_LIT("Sec-WebSocket-Key"));
	autobuf struct buf raw = BUF_INIT(64);
	unsigned char hash[SHA1_BYTES];
	char text[64];
	int n;

	if (key.n != 24 || http_request_header_count(q, STR_LIT("Sec-WebSocket-Key")) != 1 ||
	    base64_decode(&raw, key, e) < 0 || raw.n != 16)
		return err_set(e, ERR_INVALID, "Sec-WebSocket-Key is not 16 bytes in base64");
	n = snprintf(text, sizeof(text), "%.*s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", STR_ARG(key));
	sha1((struct str){ text, (size_t)n }, hash);
	return base64_encode(to, (struct str){ (const char *)hash, sizeof(hash) }, e);
}

static int check_handshake(struct http_request *q, struct err *e)
{
	if (q->method != HTTP_GET ||
	    !http_list_has(http_request_header(q, STR_LIT("Upgrade")), "websocket") ||
	    !http_list_has(http_request_header(q, STR_LIT("Connection")), "upgrade"))
		return err_set(e, ERR_INVALID, "the request asks for no WebSocket");
	if (!str_is(http_request_header(q, STR_LIT("Sec-WebSocket-Version")), "13"))
		return err_set(e, ERR_INVALID, "this server speaks version 13 of WebSocket");
	return 0;
}

static struct http_ws *make(struct conn *c, const struct http_ws_options *options, struct err *e)
{
	struct http_server *srv = c->srv;
	struct http_ws *ws = NULL;

	if (srv->stats.streams + srv->stats.websockets >= srv->o.limits.streams) {
		err_set(e, ERR_LIMIT, "%u streams are open",
			srv->stats.streams + srv->stats.websockets);
		return NULL;
	}
	ws = calloc(1, sizeof(*ws));
	if (!ws || wslay_event_context_server_init(&ws->context, &callbacks, ws) != 0) {
		free(ws);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	ws->srv = srv;
	ws->conn = c;
	ws->fd = -1;
	ws->answered = true;
	ws->o = *options;
	if (ws->o.message_max == 0)
		ws->o.message_max = MESSAGE_MAX;
	if (ws->o.queue_max == 0)
		ws->o.queue_max = srv->o.limits.stream_queue;
	if (ws->o.ping_ms == 0)
		ws->o.ping_ms = PING_MS;
	ws->early = BUF_INIT(2 * srv->o.limits.header_bytes);
	wslay_event_config_set_max_recv_msg_length(ws->context, ws->o.message_max);
	ws->next = srv->websockets;
	if (ws->next)
		ws->next->prev = ws;
	srv->websockets = ws;
	srv->stats.websockets++;
	return ws;
}

struct http_ws *http_ws_accept(struct http_request *q, const struct http_ws_options *options,
			       const struct http_ws_events *events, void *owner, struct err *e)
{
	struct conn *c = q->conn;
	autobuf struct buf accept = BUF_INIT(64);
	struct http_header headers[3] = { { "Upgrade", STR_LIT("websocket") } };
	struct http_reply reply = { .status = 101, .headers = headers, .n_headers = 2 };
	struct MHD_Response *r;
	struct http_ws *ws;

	if (check_handshake(q, e) < 0 || accept_key(q, &accept, e) < 0)
		return NULL;
	ws = make(c, options, e);
	if (!ws)
		return NULL;
	ws->events = events;
	ws->owner = owner;
	headers[1] = (struct http_header){ "Sec-WebSocket-Accept", buf_str(&accept) };
	if (options->protocol)
		headers[reply.n_headers++] = (struct http_header){ "Sec-WebSocket-Protocol",
								   str_of(options->protocol) };
	r = MHD_create_response_for_upgrade(on_upgrade, ws);
	if (!r || reply_headers(q, r, &reply) < 0) {
		if (r)
			MHD_destroy_response(r);
		free_ws(ws);
		err_set(e, ERR_LIMIT, "the upgrade can't be answered");
		return NULL;
	}
	c->ws = ws;
	reply_queue(q, 101, r);
	return ws;
}

/* ---- the owner's side ---------------------------------------------------------------------- */

size_t http_ws_waiting(const struct http_ws *ws)
{
	return wslay_event_get_queued_msg_length(ws->context);
}

bool http_ws_full(const struct http_ws *ws)
{
	return ws->high;
}

void http_ws_send(struct http_ws *ws, bool is_text, struct str message)
{
	if (ws->over)
		return;
	if (message.n > ws->o.queue_max - http_ws_waiting(ws) ||
	    http_ws_waiting(ws) > ws->o.queue_max)
		ws->over = true;
	else
		say(ws, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, message);
	ws->high |= has_much(ws);
	if (ws->over && ws->handle)
		shutdown(ws->fd, SHUT_RDWR); /* the loop then finds it, and tells */
	watch(ws);
}

void http_ws_hold(struct http_ws *ws, bool hold)
{
	if (ws->held == hold)
		return;
	ws->held = hold;
	ws->resumed = !hold;
	ws->answered = true;
	watch(ws);
}

void http_ws_close(struct http_ws *ws, unsigned code, struct str reason)
{
	ws->owner_left = true;
	ws->taken_ms = server_now_ms(ws->srv);
	http_ws_hold(ws, false);
	ws->close_code = code;
	snprintf(ws->close_reason, sizeof(ws->close_reason), "%.*s", STR_ARG(reason));
	say_goodbye(ws);
	watch(ws);
}
