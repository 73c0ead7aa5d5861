#pragma once
/*
 * MCP over HTTP with SSE, the transport of revision 2024-11-05 (basic/transports, "HTTP with SSE").
 * GET /sse opens a stream whose first event, `endpoint`, is the URI for messages: POST
 * /message?sessionId=…, each answered with 202. All messages of the server are `message` events on
 * the stream. The stream is the session: when it ends, the session ends and its calls are
 * cancelled.
 *
 * The stream's queue is bounded: progress is held back while it is long, and a client that is still
 * too slow is disconnected. The session's id can't be guessed, and only the principal that opened
 * the stream can use it; for all others the session does not exist.
 */
#include <uv.h>

#include "http/server/server.h"
#include "mcp/server/server.h"

struct mcp_sse;

/* 0: the default, in brackets. */
struct mcp_sse_options {
	size_t body_max; /* bytes of a message [16 MiB] */
	unsigned sessions; /* at once [1024] */
	unsigned sessions_each; /* of one principal [256] */
	unsigned pulse_ms; /* a stream is silent for at most twice this [15 s] */
	/* time for requests in mcp_sse_drain(), less than that of the server [9 s] */
	unsigned drain_ms;
	size_t queue; /* the server's stream_queue [1 MiB] */
};

/* Copies the options. The data of a session is the server's principal. srv is borrowed until
 * on_closed. */
struct mcp_sse *mcp_sse_new(uv_loop_t *loop, struct mcp_server *srv,
			    const struct mcp_sse_options *o, struct err *e) MUST_USE;

/* For http_options.routes; borrowed until on_closed. */
struct http_routes mcp_sse_routes(struct mcp_sse *t);

unsigned mcp_sse_sessions(const struct mcp_sse *t);

/* Before a shutdown: streams that wait for no answer end now, the others after their last answer,
 * or after drain_ms. */
void mcp_sse_drain(struct mcp_sse *t);

/* Ends all sessions of a principal. Must not be called inside a callback of the core. */
void mcp_sse_end_of(struct mcp_sse *t, const void *who);

/* The server must be closed, with no connection left. on_closed comes later, when t is freed. */
void mcp_sse_close(struct mcp_sse *t, void (*on_closed)(void *arg), void *arg);
