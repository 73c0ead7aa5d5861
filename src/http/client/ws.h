#pragma once
/*
 * The client's side of a WebSocket (RFC 6455), on the loop. It connects to a Unix socket, for our
 * own programs and a server of ours; or it uses an open connection, to a server that may be
 * hostile. One thread; every callback comes from the loop, never from inside a call of this header.
 */
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/message/header.h"

struct ws_client;

struct ws_client_options {
	/* NULL: use fd, which is non-blocking, and is taken, also on failure */
	const char *unix_socket; /* of a program of this user or root, else ERR_DENIED */
	int fd;
	const char *host; /* NULL: localhost */
	const char *path; /* path of the request */
	const char *protocol; /* the required subprotocol; NULL: see offers */
	/* a list of subprotocols, of which the server takes one or none; NULL: none */
	const char *offers;
	const struct http_header *headers;
	size_t n_headers;
	size_t message_max; /* bytes; a longer message ends it */
};

struct ws_client_events {
	void (*on_open)(void *owner);
	/* A whole message, borrowed for the call. */
	void (*on_message)(void *owner, bool is_text, struct str message);
	void (*on_drained)(void *owner); /* the queue is empty again; may be NULL */
	/* The last callback is one of these two; ws is freed. on_refused: the server has answered
	 * the request without an upgrade. */
	void (*on_refused)(void *owner, int status, struct str body);
	/* on_closed: it has ended. code: that of the server's close frame, 1006 without one. */
	void (*on_closed)(void *owner, unsigned code, const struct err *why);
};

/* Everything but events is borrowed for the call. ERR_TRANSPORT: nobody listens. */
struct ws_client *ws_client_open(uv_loop_t *loop, const struct ws_client_options *o,
				 const struct ws_client_events *events, void *owner,
				 struct err *e) MUST_USE;

/* The subprotocol, once it is open; "": none. */
const char *ws_client_protocol(const struct ws_client *ws);

/* Copies the message. A sender that may be faster than the server must check ws_client_full()
 * first: a queue of four times as many messages ends the WebSocket. */
void ws_client_send(struct ws_client *ws, bool is_text, struct str message);
size_t ws_client_waiting(const struct ws_client *ws); /* bytes */
/* More than 1 MiB or 1024 messages are queued: on_drained will report when none are. */
bool ws_client_full(const struct ws_client *ws);

/* Stops reading, so that the server has to wait; or resumes, which includes what the server sent
 * before it went away. A few messages may still come after a stop. */
void ws_client_hold(struct ws_client *ws, bool hold);

/* Sends a close frame after the queued messages, and keeps reading. on_closed reports that the
 * server has answered it, or went away. */
void ws_client_end(struct ws_client *ws, unsigned code);

/* Ends it at once, without a close frame; no callback comes. NULL-safe. */
void ws_client_close(struct ws_client *ws);
