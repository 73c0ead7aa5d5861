#pragma once
/*
 * MCP over HTTP with SSE, the transport of revision 2024-11-05 (basic/transports, "HTTP with SSE"):
 * GET /sse opens a stream, whose first event, `endpoint`, is the URI to send messages to: POST
 * /message?sessionId=…, each answered by 202. All that the server has to say comes as `message`
 * events on the stream. The session is the stream: it ends with it, and its calls are cancelled.
 *
 * The stream's queue is the door's and bounded: progress is held back while much waits, and a
 * client that is too slow for the rest is disconnected. The session's id can't be guessed and is of
 * use to the principal that opened the stream alone; to all others there is no such session.
 */
#include <uv.h>

#include "http/server/server.h"
#include "mcp/server/server.h"

struct mcp_sse;

/* 0 takes the default, in brackets. */
struct mcp_sse_options {
	size_t body_max; /* bytes of a message [16 MiB] */
	unsigned sessions; /* at once [1024] */
	unsigned sessions_each; /* of one principal [256] */
	unsigned pulse_ms; /* a stream is silent for no longer than twice this [15 s] */
	unsigned drain_ms; /* what mcp_sse_drain() gives requests, less than the door does [9 s] */
	size_t queue; /* the door's stream_queue [1 MiB] */
};

/* Copies the options. The data of its sessions is the door's principal. srv is borrowed until
 * on_closed. */
struct mcp_sse *mcp_sse_new(uv_loop_t *loop, struct mcp_server *srv,
			    const struct mcp_sse_options *o, struct err *e) MUST_USE;

/* To be listed in http_options.routes; borrowed until on_closed. */
struct http_routes mcp_sse_routes(struct mcp_sse *t);

unsigned mcp_sse_sessions(const struct mcp_sse *t);

/* The server goes down: streams on which no answer is awaited end now, the others with their last
 * answer, or when drain_ms are over. */
void mcp_sse_drain(struct mcp_sse *t);

/* The door is closed: no connection is left. on_closed comes later, and t is gone then. */
void mcp_sse_close(struct mcp_sse *t, void (*on_closed)(void *arg), void *arg);
