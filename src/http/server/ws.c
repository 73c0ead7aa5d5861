/*
 * WebSockets (RFC 6455) by wslay, on the client's descriptor, and with TLS on its session, from the
 * daemon's 101 on. From then on the loop polls the descriptor here. The daemon keeps both until
 * MHD_upgrade_action().
 *
 * A WebSocket ends when both sides have sent a close frame, when its client goes silent, or when a
 * limit is exceeded. Its owner may have left earlier. A held WebSocket is not read, so the client
 * has to wait; only its end is noticed.
 */
#include "http/server/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/base64.h"
#include "http/message/ws_frame.h"

enum {
	MESSAGE_MAX = 1 << 20,
	PING_MS = 30000,
	GOODBYE_MS = 3000, /* for the client's answer to our close frame, and for its end */
	DRAIN_MAX = 4 << 20, /* bytes */
};

struct http_ws {
	struct http_server *srv;
	struct conn *conn;
	struct http_ws *next, *prev; /* of srv->websockets */
	const struct http_ws_events *events;
	void *owner;
	struct http_ws_options o;
	struct ws_frames f; /* the descriptor is owned by the daemon */
	struct MHD_UpgradeResponseHandle *handle; /* NULL until the 101 was sent */
	uv_poll_t poll;
	bool owner_left, over, high;
	bool draining; /* only its end is awaited */
	size_t drained;
	bool answered; /* the last ping was answered, or none was sent */
	uint64_t ping_ms; /* when the next ping is due */
	/* when the client last took bytes, once the owner has left; 0 before */
	uint64_t taken_ms;
};

/* ---- its end ------------------------------------------------------------------------------- */

static void free_ws(struct http_ws *ws)
{
	*(ws->prev ? &ws->prev->next : &ws->srv->websockets) = ws->next;
	if (ws->next)
		ws->next->prev = ws->prev;
	ws->srv->stats.websockets--;
	ws_frames_fini(&ws->f);
	free(ws);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct http_ws *ws = handle->data;

	ws->conn->ws = NULL;
	MHD_upgrade_action(ws->handle, MHD_UPGRADE_ACTION_CLOSE);
	/* With TLS the daemon first ends its relay, and the connection when it runs again. */
	server_kick_often(ws->srv, ws->conn->listener, 2);
	free_ws(ws);
}

static void leave_owner(struct http_ws *ws, unsigned code, const struct err *why)
{
	if (ws->owner_left)
		return;
	ws->owner_left = true;
	ws->events->on_closed(ws->owner, code, why);
}

void ws_lost(struct http_ws *ws, unsigned code, const struct err *why)
{
	leave_owner(ws, code, why);
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

/* ---- the loop's side ----------------------------------------------------------------------- */

static void on_message(void *owner, uint8_t opcode, struct str message)
{
	struct http_ws *ws = owner;

	ws->answered = true; /* any message shows that the client is there */
	if (!ws->owner_left && (opcode == WSLAY_TEXT_FRAME || opcode == WSLAY_BINARY_FRAME))
		ws->events->on_message(ws->owner, opcode == WSLAY_TEXT_FRAME, message);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct http_ws *ws)
{
	/* After the client's last frame, more input would only wake the loop. */
	bool reads = ws->draining || wslay_event_want_read(ws->f.context);
	int events = (ws->f.held ? UV_DISCONNECT
		      : reads	 ? UV_READABLE
				 : 0) |
		     (ws_frames_want_write(&ws->f) ? UV_WRITABLE : 0);

	if (ws->handle && !uv_is_closing((uv_handle_t *)&ws->poll))
		uv_poll_start(&ws->poll, events, on_poll);
}

static bool has_much(const struct http_ws *ws)
{
	return http_ws_waiting(ws) > ws->o.queue_max / 2 ||
	       ws_frames_queued(&ws->f) > WS_QUEUED_MAX / 4;
}

/* Both close frames were sent, or ours was and nothing else is read. In the second case the client
 * may be in the middle of a message: closing the descriptor with input unread would reset the
 * connection, and the client might never read why it was closed. So the rest of the input is thrown
 * away first. */
static void finish(struct http_ws *ws)
{
	struct err e;

	err_set(&e, ERR_TRANSPORT, "the WebSocket was closed");
	if (wslay_event_get_close_received(ws->f.context)) {
		ws_lost(ws, ws_frames_status(&ws->f), &e);
		return;
	}
	leave_owner(ws, ws_frames_status(&ws->f), &e);
	ws->draining = true;
	ws->taken_ms = server_now_ms(ws->srv);
	if (ws->f.io)
		server_tls_bye(ws->conn);
	shutdown(ws->f.fd, SHUT_WR);
	watch(ws);
}

static void drain(struct http_ws *ws)
{
	char bytes[16 << 10];
	ssize_t n = ws->f.io ? ws->f.io->read(ws, bytes, sizeof(bytes))
			     : recv(ws->f.fd, bytes, sizeof(bytes), 0);

	ws->drained += n > 0 ? (size_t)n : 0;
	if (n == 0 || ws->drained > DRAIN_MAX || (n < 0 && errno != EAGAIN && errno != EINTR))
		lose(ws, WS_NO_CLOSE_FRAME, ERR_TRANSPORT, "the WebSocket was closed");
}

static void pump(struct http_ws *ws)
{
	bool ok;

	ws->f.sent = false;
	ok = ws_frames_pump(&ws->f);
	if (ws->f.sent && ws->taken_ms)
		ws->taken_ms = server_now_ms(ws->srv);
	if (ws->over || http_ws_waiting(ws) > 2 * ws->o.queue_max ||
	    ws_frames_queued(&ws->f) > WS_QUEUED_MAX) {
		ws->srv->stats.slow++;
		lose(ws, WS_NO_CLOSE_FRAME, ERR_LIMIT, "the client reads too slowly");
	} else if (!ok) {
		lose(ws, ws_frames_status(&ws->f), ERR_TRANSPORT, "the client went away");
	} else if (!wslay_event_want_read(ws->f.context) &&
		   !wslay_event_want_write(ws->f.context)) {
		finish(ws);
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

	if (ws->f.held && (status < 0 || (events & UV_DISCONNECT)))
		lose(ws, WS_NO_CLOSE_FRAME, ERR_TRANSPORT, "the client went away");
	else if (ws->draining)
		drain(ws);
	else
		pump(ws);
}

/* Once the owner has left, queued messages are sent as long as the client takes some of them. Until
 * the 101 is sent, the daemon's deadline applies. */
static bool is_overdue(const struct http_ws *ws, uint64_t now_ms)
{
	unsigned ms = ws_frames_queued(&ws->f) ? ws->srv->o.limits.idle_ms : GOODBYE_MS;

	return ws->handle && ws->taken_ms && now_ms >= ws->taken_ms + ms;
}

/* Sends pings, and ends a WebSocket whose client did not answer the last one. */
static void tick(struct http_ws *ws, uint64_t now_ms)
{
	if (is_overdue(ws, now_ms)) {
		lose(ws, WS_NO_CLOSE_FRAME, ERR_TIMEOUT, "the client does not answer");
	} else if (ws->f.held) {
		ws->ping_ms = now_ms + ws->o.ping_ms; /* a pong would not be read */
	} else if (ws->handle && now_ms >= ws->ping_ms) {
		if (!ws->answered) {
			lose(ws, WS_NO_CLOSE_FRAME, ERR_TIMEOUT, "the client does not answer");
			return;
		}
		ws->answered = false;
		ws->ping_ms = now_ms + ws->o.ping_ms;
		ws->over |= !ws_frames_say(&ws->f, WSLAY_PING, STR_LIT("holt"));
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

static ssize_t tls_read(void *owner, void *to, size_t n)
{
	struct http_ws *ws = owner;

	return server_tls_read(ws->conn, to, n);
}

static ssize_t tls_write(void *owner, const void *p, size_t n, bool more)
{
	struct http_ws *ws = owner;

	return server_tls_write(ws->conn, p, n, more);
}

static const struct ws_io tls_io = { tls_read, tls_write };

/* With TLS the daemon offers one end of a socketpair in place of the client's descriptor. */
static void on_upgrade(void *cls, struct MHD_Connection *mhd, void *context, const char *extra,
		       size_t extra_n, MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
	struct http_ws *ws = cls;
	struct err e = ERR_INIT;

	ws->handle = handle;
	ws->f.fd = ws->conn->fd;
	conn_set_state(ws->conn, CONN_UPGRADED);
	ws->f.io = ws->conn->tls ? &tls_io : NULL;
	if (buf_add(&ws->f.input, extra, extra_n, &e) < 0 ||
	    (ws->conn->tls && server_tls_take(ws->conn, &ws->f.input, &e) < 0) ||
	    uv_poll_init(ws->srv->loop, &ws->poll, ws->f.fd) < 0) {
		ws->handle = NULL;
		MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
		lose(ws, WS_NO_CLOSE_FRAME, ERR_LIMIT, "the descriptor can't be watched");
		return;
	}
	ws->poll.data = ws;
	ws->ping_ms = server_now_ms(ws->srv) + ws->o.ping_ms;
	uv_poll_start(&ws->poll, UV_READABLE | UV_WRITABLE, on_poll);
}

/* Checks the handshake, and writes the answer to its key: 16 bytes in base64. */
static int ws_check_handshake(struct http_request *q, struct buf *to, struct err *e)
{
	struct str key = http_request_header(q, STR_LIT("Sec-WebSocket-Key"));
	autobuf struct buf raw = BUF_INIT(64);

	if (q->method != HTTP_GET ||
	    !http_list_has(http_request_header(q, STR_LIT("Upgrade")), "websocket") ||
	    !http_list_has(http_request_header(q, STR_LIT("Connection")), "upgrade"))
		return err_set(e, ERR_INVALID, "the request asks for no WebSocket");
	if (!str_is(http_request_header(q, STR_LIT("Sec-WebSocket-Version")), "13"))
		return err_set(e, ERR_INVALID, "this server speaks version 13 of WebSocket");
	if (key.n != 24 || http_request_header_count(q, STR_LIT("Sec-WebSocket-Key")) != 1 ||
	    base64_decode(&raw, key, e) < 0 || raw.n != 16)
		return err_set(e, ERR_INVALID, "Sec-WebSocket-Key is not 16 bytes in base64");
	return ws_accept_key(key, to, e);
}

static struct http_ws *make(struct conn *c, const struct http_ws_options *options, struct err *e)
{
	struct http_server *srv = c->srv;
	struct http_ws *ws = NULL;

	if (conn_may_stream(c, e) < 0)
		return NULL;
	ws = calloc(1, sizeof(*ws));
	if (!ws || ws_frames_begin(&ws->f, false, options->message_max ?: MESSAGE_MAX) < 0) {
		free(ws);
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	ws->srv = srv;
	ws->conn = c;
	ws->f.fd = -1;
	ws->f.on_message = on_message;
	ws->f.owner = ws;
	ws->answered = true;
	ws->o = *options;
	if (ws->o.queue_max == 0)
		ws->o.queue_max = srv->o.limits.stream_queue;
	if (ws->o.ping_ms == 0)
		ws->o.ping_ms = PING_MS;
	ws->f.input = BUF_INIT(2 * srv->o.limits.header_bytes + WS_READ_MAX);
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

	if (ws_check_handshake(q, &accept, e) < 0)
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
		return err_set(e, ERR_LIMIT, "the upgrade can't be answered"), NULL;
	}
	c->ws = ws;
	reply_queue(q, 101, r);
	return ws;
}

/* ---- the owner's side ---------------------------------------------------------------------- */

size_t http_ws_waiting(const struct http_ws *ws)
{
	return ws_frames_waiting(&ws->f);
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
		ws->over = !ws_frames_say(&ws->f, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
					  message);
	ws->high |= has_much(ws);
	if (ws->over && ws->handle)
		shutdown(ws->f.fd, SHUT_RDWR); /* the loop notices the end and reports it */
	watch(ws);
}

void http_ws_hold(struct http_ws *ws, bool hold)
{
	if (ws->f.held == hold)
		return;
	ws_frames_hold(&ws->f, hold);
	ws->answered = true;
	watch(ws);
}

void http_ws_close(struct http_ws *ws, unsigned code, struct str reason)
{
	ws->owner_left = true;
	ws->taken_ms = server_now_ms(ws->srv);
	http_ws_hold(ws, false);
	ws_frames_goodbye(&ws->f, code, reason);
	watch(ws);
}
