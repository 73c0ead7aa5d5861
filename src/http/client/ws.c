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

#include "base/base64.h"
#include "base/library.h"
#include "http/client/peer.h"
#include "http/message/head.h"
#include "http/message/ws_frame.h"

enum {
	/* bytes of the answer to the request, including the body if it is no upgrade */
	HEAD_MAX = 64 << 10,
	REQUEST_MAX = 16 << 10,
	KEY_BYTES = 16,
	FULL = 1 << 20,
};

struct ws_client {
	uv_poll_t poll;
	/* Begun by the upgrade. Before it, f.input holds the answer to the request. */
	struct ws_frames f;
	const struct ws_client_events *events;
	void *owner;
	char protocol[64], accept[32];
	char *offers; /* owned; NULL: `protocol`, or none */
	size_t message_max;
	int status; /* status of an answer that is no upgrade, while its body is received; else 0 */
	size_t body_at, body_n;
	bool full;
	/* the server went away while this was held; what it sent before must still be read */
	bool ended;
};

/* ---- its end --------------------------------------------------------------------------------- */

static void on_poll_closed(uv_handle_t *handle)
{
	struct ws_client *ws = handle->data;

	close_fd(&ws->f.fd);
	ws_frames_fini(&ws->f);
	free(ws->offers);
	free(ws);
}

void ws_client_close(struct ws_client *ws)
{
	if (!ws || ws->f.stopped)
		return;
	ws->f.stopped = true;
	uv_close((uv_handle_t *)&ws->poll, on_poll_closed);
}

static void lose(struct ws_client *ws, enum err_code code, const char *text)
{
	struct err e;

	err_set(&e, code, "%s", text);
	ws_client_close(ws);
	ws->events->on_closed(ws->owner, ws_frames_status(&ws->f), &e);
}

/* ---- the loop's side ------------------------------------------------------------------------- */

static void on_message(void *owner, uint8_t opcode, struct str message)
{
	struct ws_client *ws = owner;

	if (opcode == WSLAY_TEXT_FRAME || opcode == WSLAY_BINARY_FRAME)
		ws->events->on_message(ws->owner, opcode == WSLAY_TEXT_FRAME, message);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct ws_client *ws)
{
	bool writes = ws_frames_want_write(&ws->f);
	int reads = !ws->f.held ? UV_READABLE : ws->ended ? 0 : UV_DISCONNECT;
	int events = reads | (writes ? UV_WRITABLE : 0);

	if (!ws->f.stopped && events)
		uv_poll_start(&ws->poll, events, on_poll);
	else if (!ws->f.stopped)
		uv_poll_stop(&ws->poll);
}

static void pump(struct ws_client *ws)
{
	bool ok = ws_frames_pump(&ws->f);

	if (ws->f.stopped)
		return;
	if (!ok) {
		lose(ws, ERR_TRANSPORT, "the server went away");
		return;
	}
	if (ws_frames_queued(&ws->f) > WS_QUEUED_MAX) {
		lose(ws, ERR_LIMIT, "the server asks more than it reads");
		return;
	}
	/* Nobody reads queued messages any more, and further input would only wake the loop. */
	if (!wslay_event_want_read(ws->f.context)) {
		lose(ws, ERR_TRANSPORT, "the WebSocket was closed");
		return;
	}
	if (ws->full && ws_frames_queued(&ws->f) == 0) {
		ws->full = false;
		if (ws->events->on_drained)
			ws->events->on_drained(ws->owner);
	}
	watch(ws);
}

/* ---- the handshake --------------------------------------------------------------------------- */

/* A field of the answer's head, whose lines end in CR LF; STR_NONE if it is absent. */
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

/* Accepts the required subprotocol; or one of those that were offered, or none. */
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
	return ws_frames_begin(&ws->f, true, ws->message_max);
}

static void hear_body(struct ws_client *ws, bool ended)
{
	struct str body;

	if (!ended && ws->f.input.n - ws->body_at < ws->body_n)
		return;
	body = (struct str){ ws->f.input.p + ws->body_at, ws->f.input.n - ws->body_at };
	ws_client_close(ws);
	ws->events->on_refused(ws->owner, ws->status, body);
}

/* The head of the answer is complete. */
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
		ws->f.input_taken = message_at;
		ws->events->on_open(ws->owner);
		if (!ws->f.stopped)
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
	char *to = buf_reserve(&ws->f.input, 4096, &e), *end;
	ssize_t n = to ? recv(ws->f.fd, to, 4096, 0) : -1;

	if (n < 0 && to && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		if (ws->status)
			hear_body(ws, true);
		else
			lose(ws, ERR_TRANSPORT, "the server did not answer the upgrade");
		return;
	}
	buf_advance(&ws->f.input, (size_t)n);
	if (ws->status) {
		hear_body(ws, false);
		return;
	}
	end = memmem(ws->f.input.p, ws->f.input.n, "\r\n\r\n", 4);
	if (end)
		answered(ws, (struct str){ ws->f.input.p, (size_t)(end + 2 - ws->f.input.p) },
			 (size_t)(end + 4 - ws->f.input.p));
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct ws_client *ws = poll->data;

	ws->ended |= ws->f.held && (status < 0 || (events & UV_DISCONNECT));
	if (!ws->f.context)
		shake_hands(ws);
	else
		pump(ws);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Makes the key, and the value that the server must derive from it (section 4.1). */
static int make_key(struct ws_client *ws, struct buf *key, struct err *e)
{
	autobuf struct buf accept = BUF_INIT(sizeof(ws->accept) - 1);
	char raw[KEY_BYTES];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return err_sys(e, errno, "random bytes");
	if (base64_encode(key, (struct str){ raw, sizeof(raw) }, e) < 0 ||
	    ws_accept_key(buf_str(key), &accept, e) < 0)
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
	return http_peer_check_unix(fd, e) < 0 ? -1 : take_fd(&fd);
}

/* The request fits into an empty socket, so it is sent at once. */
static int start(struct ws_client *ws, uv_loop_t *loop, const struct ws_client_options *o,
		 struct err *e)
{
	autowipe struct buf request = BUF_INIT(REQUEST_MAX);

	if (library_load("wslay", e) < 0 || !buf_reserve(&request, REQUEST_MAX, e) ||
	    write_request(ws, o, &request, e) < 0)
		return -1;
	if (o->unix_socket)
		ws->f.fd = dial(o->unix_socket, e);
	if (ws->f.fd < 0)
		return -1;
	if (send(ws->f.fd, request.p, request.n, MSG_NOSIGNAL) != (ssize_t)request.n ||
	    fcntl(ws->f.fd, F_SETFL, O_NONBLOCK) < 0)
		return err_set(e, ERR_TRANSPORT, "the server does not read");
	if (uv_poll_init(loop, &ws->poll, ws->f.fd) < 0)
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
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	}
	ws->f.fd = o->unix_socket ? -1 : o->fd;
	ws->f.on_message = on_message;
	ws->f.owner = ws;
	ws->events = events;
	ws->owner = owner;
	ws->f.input = BUF_INIT(HEAD_MAX);
	ws->message_max = o->message_max;
	snprintf(ws->protocol, sizeof(ws->protocol), "%s", o->protocol ? o->protocol : "");
	ws->offers = o->offers ? strdup(o->offers) : NULL;
	if (start(ws, loop, o, e) < 0) {
		close_fd(&ws->f.fd);
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
	return ws_frames_waiting(&ws->f);
}

bool ws_client_full(const struct ws_client *ws)
{
	return ws_client_waiting(ws) > FULL || ws_frames_queued(&ws->f) > WS_QUEUED_MAX / 4;
}

void ws_client_send(struct ws_client *ws, bool is_text, struct str message)
{
	if (ws->f.context && !ws->f.stopped)
		ws->full |= ws_frames_say(&ws->f, is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
					  message);
	watch(ws);
}

void ws_client_hold(struct ws_client *ws, bool hold)
{
	if (ws->f.held == hold)
		return;
	ws_frames_hold(&ws->f, hold);
	watch(ws);
}

void ws_client_end(struct ws_client *ws, unsigned code)
{
	ws_client_hold(ws, false);
	ws_frames_goodbye(&ws->f, code, STR_LIT(""));
	watch(ws);
}
