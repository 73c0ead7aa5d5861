#include "http/client/ws.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <wslay/wslay.h>

#include "base/base64.h"
#include "http/message/head.h"
#include "http/message/sha1.h"
#include "http/message/ws_pieces.h"

enum {
	HEAD_MAX = 64
		<< 10, /* of the answer to the request, and of what it says instead of an upgrade */
	REQUEST_MAX = 16 << 10,
	KEY_BYTES = 16,
	TURN_MAX = 128 << 10, /* bytes read before others get their turn */
	QUEUED_MAX = 4096, /* frames; what a flood of pings can make us keep */
	FULL = 1 << 20,
	NO_CLOSE_FRAME = 1006,
};

struct ws_client {
	uv_poll_t poll;
	int fd;
	const struct ws_client_events *events;
	void *owner;
	char protocol[64], accept[32];
	char *offers; /* owned; NULL: that protocol, or none */
	size_t turn; /* bytes that may still be read in this one */
	unsigned pieces; /* of the message that is coming */
	wslay_event_context_ptr context; /* NULL: the upgrade is not answered yet */
	struct buf came; /* of the answer; then what came behind it */
	size_t read; /* of that */
	size_t message_max;
	int status; /* of an answer that is no upgrade, whose body is waited for; else 0 */
	size_t body_at, body_n;
	unsigned goodbye; /* its code, that waits for what is to be sent before it; 0: none */
	bool held, resumed, full, closing;
	bool ended; /* while it was held: what it said before that is still to be read */
};

/* ---- its end --------------------------------------------------------------------------------- */

static void on_poll_closed(uv_handle_t *handle)
{
	struct ws_client *ws = handle->data;

	close_fd(&ws->fd);
	if (ws->context)
		wslay_event_context_free(ws->context);
	buf_fini(&ws->came);
	free(ws->offers);
	free(ws);
}

void ws_client_close(struct ws_client *ws)
{
	if (!ws || ws->closing)
		return;
	ws->closing = true;
	uv_close((uv_handle_t *)&ws->poll, on_poll_closed);
}

static void lose(struct ws_client *ws, enum err_code code, const char *text)
{
	unsigned status = ws->context ? wslay_event_get_status_code_received(ws->context) : 0;
	struct err e;

	err_set(&e, code, "%s", text);
	ws_client_close(ws);
	ws->events->on_closed(ws->owner, status ? status : NO_CLOSE_FRAME, &e);
}

/* ---- wslay's side ---------------------------------------------------------------------------- */

static ssize_t on_recv(wslay_event_context_ptr context, uint8_t *to, size_t n, int flags,
		       void *data)
{
	struct ws_client *ws = data;
	ssize_t got;

	if (ws->held || ws->closing) {
		wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (ws->read < ws->came.n) {
		size_t left = ws->came.n - ws->read;

		n = left < n ? left : n;
		memcpy(to, ws->came.p + ws->read, n);
		ws->read += n;
		return (ssize_t)n;
	}
	if (ws->turn == 0) {
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
	struct ws_client *ws = data;
	ssize_t sent = send(ws->fd, p, n, MSG_NOSIGNAL | (flags & WSLAY_MSG_MORE ? MSG_MORE : 0));

	if (sent >= 0)
		return sent;
	wslay_event_set_error(context, errno == EAGAIN || errno == EINTR
					       ? WSLAY_ERR_WOULDBLOCK
					       : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static int on_genmask(wslay_event_context_ptr context, uint8_t *to, size_t n, void *data)
{
	return getrandom(to, n, 0) == (ssize_t)n ? 0 : -1;
}

static void on_frame(wslay_event_context_ptr context,
		     const struct wslay_event_on_frame_recv_start_arg *f, void *data)
{
	struct ws_client *ws = data;

	ws_count_piece(context, f->opcode, &ws->pieces);
}

static void on_message(wslay_event_context_ptr context, const struct wslay_event_on_msg_recv_arg *m,
		       void *data)
{
	struct ws_client *ws = data;

	if (!ws->closing && (m->opcode == WSLAY_TEXT_FRAME || m->opcode == WSLAY_BINARY_FRAME))
		ws->events->on_message(ws->owner, m->opcode == WSLAY_TEXT_FRAME,
				       (struct str){ (const char *)m->msg, m->msg_length });
}

static const struct wslay_event_callbacks callbacks = {
	.recv_callback = on_recv,
	.send_callback = on_send,
	.genmask_callback = on_genmask,
	.on_frame_recv_start_callback = on_frame,
	.on_msg_recv_callback = on_message,
};

/* ---- the loop's side ------------------------------------------------------------------------- */

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct ws_client *ws)
{
	bool writes = ws->context && (wslay_event_want_write(ws->context) || ws->resumed);
	int reads = !ws->held ? UV_READABLE : ws->ended ? 0 : UV_DISCONNECT;
	int events = reads | (writes ? UV_WRITABLE : 0);

	if (!ws->closing && events)
		uv_poll_start(&ws->poll, events, on_poll);
	else if (!ws->closing)
		uv_poll_stop(&ws->poll);
}

/* The library would send its goodbye before what waits, and then nothing more. */
static void say_goodbye(struct ws_client *ws)
{
	if (!ws->goodbye || wslay_event_get_queued_msg_count(ws->context) > 0)
		return;
	wslay_event_queue_close(ws->context, (uint16_t)ws->goodbye, NULL, 0);
	ws->goodbye = 0;
}

static void pump(struct ws_client *ws)
{
	bool ok;

	ws->resumed = false;
	ws->turn = TURN_MAX;
	ok = ws->held || wslay_event_recv(ws->context) == 0;
	ok = ws->closing || (wslay_event_send(ws->context) == 0 && ok);
	if (ws->closing)
		return;
	say_goodbye(ws);
	if (!ok) {
		lose(ws, ERR_TRANSPORT, "the server went away");
		return;
	}
	if (wslay_event_get_queued_msg_count(ws->context) > QUEUED_MAX) {
		lose(ws, ERR_LIMIT, "the server asks more than it reads");
		return;
	}
	/* Nobody reads queued messages any more, and further input would only wake the loop. */
	if (!wslay_event_want_read(ws->context)) {
		lose(ws, ERR_TRANSPORT, "the WebSocket was closed");
		return;
	}
	if (ws->full && wslay_event_get_queued_msg_count(ws->context) == 0) {
		ws->full = false;
		if (ws->events->on_drained)
			ws->events->on_drained(ws->owner);
	}
	watch(ws);
}

/* ---- the handshake --------------------------------------------------------------------------- */

/* A field of the answer's head, whose lines end in CR LF; STR_NONE if it is not there. */
static struct str field_of(struct str head, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = head.p, *end; at < head.p + head.n; at = end + 2) {
		end = memmem(at, (size_t)(head.p + head.n - at), "\r\n", 2);
		if (!end)
			break;
		if ((size_t)(end - at) > n && at[n] == ':' &&
		    http_same((struct str){ at, n }, str_of(name))) {
			for (at += n + 1; at < end && *at == ' ';)
				at++;
			return (struct str){ at, (size_t)(end - at) };
		}
	}
	return STR_NONE;
}

/* The one that was asked for, or one of those that were offered, or none of them. */
static bool take_protocol(struct ws_client *ws, struct str protocol)
{
	if (ws->protocol[0])
		return str_is(protocol, ws->protocol);
	if (!protocol.p)
		return true;
	if (!ws->offers || protocol.n == 0 || protocol.n >= sizeof(ws->protocol))
		return false;
	memcpy(ws->protocol, protocol.p, protocol.n);
	ws->protocol[protocol.n] = '\0';
	return http_list_has(str_of(ws->offers), ws->protocol);
}

static int upgrade(struct ws_client *ws, struct str head)
{
	if (!str_is(field_of(head, "Sec-WebSocket-Accept"), ws->accept) ||
	    !take_protocol(ws, field_of(head, "Sec-WebSocket-Protocol")))
		return -1;
	if (wslay_event_context_client_init(&ws->context, &callbacks, ws) != 0)
		return -1;
	wslay_event_config_set_max_recv_msg_length(ws->context, ws->message_max);
	return 0;
}

static void hear_body(struct ws_client *ws, bool ended)
{
	struct str body;

	if (!ended && ws->came.n - ws->body_at < ws->body_n)
		return;
	body = (struct str){ ws->came.p + ws->body_at, ws->came.n - ws->body_at };
	ws_client_close(ws);
	ws->events->on_refused(ws->owner, ws->status, body);
}

/* The head of the answer is there. */
static void answered(struct ws_client *ws, struct str head, size_t message_at)
{
	unsigned long long n;

	if (sscanf(head.p, "HTTP/1.1 %3d", &ws->status) != 1 || ws->status < 100) {
		lose(ws, ERR_TRANSPORT, "the server speaks no HTTP/1.1");
	} else if (ws->status == 101) {
		ws->status = 0;
		if (upgrade(ws, head) < 0) {
			lose(ws, ERR_TRANSPORT, "the server's upgrade is not what was asked for");
			return;
		}
		ws->read = message_at;
		ws->events->on_open(ws->owner);
		if (!ws->closing)
			pump(ws);
	} else {
		ws->body_at = message_at;
		ws->body_n = http_length_parse(field_of(head, "Content-Length"), &n) && n < HEAD_MAX
				   ? (size_t)n
				   : HEAD_MAX;
		hear_body(ws, false);
	}
}

static void shake_hands(struct ws_client *ws)
{
	struct err e;
	char *to = buf_reserve(&ws->came, 4096, &e), *end;
	ssize_t n = to ? recv(ws->fd, to, 4096, 0) : -1;

	if (n < 0 && to && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (ws->status)
			hear_body(ws, true);
		else
			lose(ws, ERR_TRANSPORT, "the server did not answer the upgrade");
		return;
	}
	buf_advance(&ws->came, (size_t)n);
	if (ws->status) {
		hear_body(ws, false);
		return;
	}
	end = memmem(ws->came.p, ws->came.n, "\r\n\r\n", 4);
	if (end)
		answered(ws, (struct str){ ws->came.p, (size_t)(end + 2 - ws->came.p) },
			 (size_t)(end + 4 - ws->came.p));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct ws_client *ws = poll->data;

	ws->ended |= ws->held && (status < 0 || (events & UV_DISCONNECT));
	if (!ws->context)
		shake_hands(ws);
	else
		pump(ws);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* The key, and what the server has to make of it (section 4.1). */
static int make_key(struct ws_client *ws, struct buf *key, struct err *e)
{
	autobuf struct buf accept = BUF_INIT(sizeof(ws->accept) - 1);
	unsigned char hash[SHA1_BYTES];
	char raw[KEY_BYTES], text[96];
	int n;

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_sys(e, errno, "random bytes");
	if (base64_encode(key, (struct str){ raw, sizeof(raw) }, e) < 0)
		return -1;
	n = snprintf(text, sizeof(text), "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key->p);
	sha1((struct str){ text, (size_t)n }, hash);
	if (base64_encode(&accept, (struct str){ (const char *)hash, sizeof(hash) }, e) < 0)
		return -1;
	snprintf(ws->accept, sizeof(ws->accept), "%s", accept.p);
	return 0;
}

static int write_request(struct ws_client *ws, const struct ws_client_options *o, struct buf *b,
			 struct err *e)
{
	const char *protocols = o->protocol ? o->protocol : o->offers;
	autobuf struct buf key = BUF_INIT(64);

	if (make_key(ws, &key, e) < 0 ||
	    buf_addf(
		    b, e,
		    "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\n"
		    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
		    o->path, o->host ? o->host : "localhost", key.p) < 0 ||
	    (protocols && buf_addf(b, e, "Sec-WebSocket-Protocol: %s\r\n", protocols) < 0))
		return -1;
	for (size_t i = 0; i < o->n_headers; i++) {
		if (buf_addf(b, e, "%s: %.*s\r\n", o->headers[i].name,
			     STR_ARG(o->headers[i].value)) < 0)
			return -1;
	}
	return buf_addf(b, e, "\r\n");
}

static int dial(const char *path, struct err *e)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(to.sun_path))
		return err_set(e, ERR_INVALID, "the path of the socket is too long");
	strcpy(to.sun_path, path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		err_sys(e, errno, "connect to %.100s", path);
		e->code = ERR_TRANSPORT;
		return -1;
	}
	return take_fd(&fd);
}

/* The request fits into an empty socket, so all of it is sent before anything is waited for. */
static int start(struct ws_client *ws, uv_loop_t *loop, const struct ws_client_options *o,
		 struct err *e)
{
	autowipe struct buf request = BUF_INIT(REQUEST_MAX);

	if (!buf_reserve(&request, REQUEST_MAX, e) || write_request(ws, o, &request, e) < 0)
		return -1;
	if (o->unix_socket)
		ws->fd = dial(o->unix_socket, e);
	if (ws->fd < 0)
		return -1;
	if (send(ws->fd, request.p, request.n, MSG_NOSIGNAL) != (ssize_t)request.n ||
	    fcntl(ws->fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, ERR_TRANSPORT, "the server does not read");
	if (uv_poll_init(loop, &ws->poll, ws->fd) < 0)
		return err_set(e, ERR_LIMIT, "the socket can't be watched");
	return 0;
}

struct ws_client *ws_client_open(uv_loop_t *loop, const struct ws_client_options *o,
				 const struct ws_client_events *events, void *owner, struct err *e)
{
	struct ws_client *ws = calloc(1, sizeof(*ws));

	if (!ws) {
		if (!o->unix_socket)
			close(o->fd);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	ws->fd = o->unix_socket ? -1 : o->fd;
	ws->events = events;
	ws->owner = owner;
	ws->came = BUF_INIT(HEAD_MAX);
	ws->message_max = o->message_max;
	snprintf(ws->protocol, sizeof(ws->protocol), "%s", o->protocol ? o->protocol : "");
	ws->offers = o->offers ? strdup(o->offers) : NULL;
	if (start(ws, loop, o, e) < 0) {
		close_fd(&ws->fd);
		free(ws->offers);
		free(ws);
		return NULL;
	}
	ws->poll.data = ws;
	watch(ws);
	return ws;
}

/* ---- the owner's side ------------------------------------------------------------------------ */

const char *ws_client_protocol(const struct ws_client *ws)
{
	return ws->protocol;
}

size_t ws_client_waiting(const struct ws_client *ws)
{
	return ws->context ? wslay_event_get_queued_msg_length(ws->context) : 0;
}

bool ws_client_full(const struct ws_client *ws)
{
	return ws_client_waiting(ws) > FULL ||
	       (ws->context && wslay_event_get_queued_msg_count(ws->context) > QUEUED_MAX / 4);
}

void ws_client_send(struct ws_client *ws, bool is_text, struct str message)
{
	struct wslay_event_msg m = {
		.opcode = is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
		.msg = (const uint8_t *)message.p,
		.msg_length = message.n,
	};

	if (ws->context && !ws->closing && wslay_event_queue_msg(ws->context, &m) == 0)
		ws->full = true;
	watch(ws);
}

void ws_client_hold(struct ws_client *ws, bool hold)
{
	if (ws->held == hold)
		return;
	ws->held = hold;
	ws->resumed = !hold;
	watch(ws);
}

void ws_client_end(struct ws_client *ws, unsigned code)
{
	ws->goodbye = code;
	ws_client_hold(ws, false);
	if (ws->context)
		say_goodbye(ws);
	watch(ws);
}
