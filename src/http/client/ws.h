#pragma once
/*
 * The other side of a WebSocket (RFC 6455), on the loop, over a Unix socket: for programs of our
 * own that speak to a server of ours; or over a connection that is there, to a server that may be
 * hostile. One thread; every callback comes from the loop, never from inside of a call of this
 * header.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/message/header.h"

struct ws_client;

struct ws_client_options {
	const char *unix_socket; /* NULL: fd, which does not block, and is taken, also on failure */
	int fd;
	const char *host; /* NULL: localhost */
	const char *path; /* of the request */
	const char *protocol; /* the one without which there is no WebSocket; NULL: offers */
	const char *offers; /* a list of them, of which the server takes one or none; NULL: none */
	const struct http_header *headers;
	size_t n_headers;
	size_t message_max; /* bytes; a longer one ends it */
};

struct ws_client_events {
	void (*on_open)(void *owner);
	/* A whole message, borrowed for the call. */
	void (*on_message)(void *owner, bool is_text, struct str message);
	void (*on_drained)(void *owner); /* nothing waits to be sent any more; may be NULL */
	/* The last callback is one of these two; ws is gone. The server has answered the request
	 * otherwise: */
	void (*on_refused)(void *owner, int status, struct str body);
	/* or it is over. code: of the server's close frame, 1006 without one. */
	void (*on_closed)(void *owner, unsigned code, const struct err *why);
};

/* All but events is borrowed for the call. ERR_TRANSPORT where nobody listens. */
struct ws_client *ws_client_open(uv_loop_t *loop, const struct ws_client_options *o,
				 const struct ws_client_events *events, void *owner,
				 struct err *e) MUST_USE;

/* Once it is open: the subprotocol; "" for none. */
const char *ws_client_protocol(const struct ws_client *ws);

/* Copies the message. Whoever sends more than the server takes looks at full() before: with four
 * times as many messages it is over. */
void ws_client_send(struct ws_client *ws, bool is_text, struct str message);
size_t ws_client_waiting(const struct ws_client *ws); /* bytes */
/* More than 1 MiB or 1024 messages wait: on_drained will tell when none does. */
bool ws_client_full(const struct ws_client *ws);

/* Reads no further, so that the server has to wait; or goes on, also with what it said before it
 * went away. A few messages may still come. */
void ws_client_hold(struct ws_client *ws, bool hold);

/* Says goodbye behind what waits, and reads on; on_closed tells when the server has said it as
 * well, or went away. */
void ws_client_end(struct ws_client *ws, unsigned code);

/* At once, without a goodbye; no callback comes. NULL-safe. */
void ws_client_close(struct ws_client *ws);
