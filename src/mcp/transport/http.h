#pragma once
/*
 * MCP over Streamable HTTP (basic/transports of revisions 2025-03-26 to 2026-07-28), served at the
 * path /mcp of the HTTP server, for clients of both eras.
 *
 * Modern (2026-07-28): every POST is self-contained. If the answer is the first thing to send, it
 * is JSON; otherwise the client gets an event stream. A client that disconnects cancels its
 * request.
 *
 * Legacy: initialize makes a session, named by Mcp-Session-Id. It belongs to its principal and ends
 * by DELETE, after idle_ms without use, or when its principal needs room for another. A client that
 * disconnects cancels nothing: events for its requests are stored, and a GET with Last-Event-ID
 * gets the rest. A GET without it opens the stream for messages that belong to no request; there is
 * one such stream, and the newest connection has it. From 2025-11-25 on, a request that is not
 * answered at once gets a stream whose first event has an id and no data, so that any stream can be
 * resumed, and a handler may disconnect the client for a while.
 */
#include <uv.h>

#include "http/server/server.h"
#include "mcp/server/server.h"

struct mcp_http;

/* 0: the default, in brackets. */
struct mcp_http_options {
	size_t body_max; /* bytes of a message [16 MiB] */
	unsigned sessions; /* at once [4096] */
	/* of one principal [2048]; one more ends the one that was unused longest */
	unsigned sessions_each;
	unsigned idle_ms; /* how long an unused session lives [30 min] */
	unsigned pulse_ms; /* a stream is silent for at most twice this [15 s] */
	unsigned retry_ms; /* after which a client returns to a stream [1 s] */
	unsigned events; /* stored by a session [512]; one more drops the oldest */
	size_t store_max; /* bytes of stored events [16 MiB]; a larger event is not stored */
	/* bytes of stored events of all sessions [256 MiB]; above that the largest session of the
	 * principal that has most loses its oldest */
	size_t store_all;
	unsigned keep_ms; /* how long events of a finished stream are stored [60 s] */
	/* time for requests in mcp_http_drain(), less than that of the server [9 s] */
	unsigned drain_ms;
	size_t queue; /* the server's stream_queue [1 MiB] */
};

/* Copies the options. The data of a session is the server's principal. srv is borrowed until
 * on_closed. */
struct mcp_http *mcp_http_new(uv_loop_t *loop, struct mcp_server *srv,
			      const struct mcp_http_options *o, struct err *e) MUST_USE;

/* For http_options.routes; borrowed until on_closed. */
struct http_routes mcp_http_routes(struct mcp_http *h);

struct mcp_http_stats {
	unsigned sessions; /* legacy ones */
	unsigned posts; /* modern requests in progress */
	unsigned streams; /* connected ones of both eras */
	size_t stored; /* bytes of stored events */
};
void mcp_http_stats(const struct mcp_http *h, struct mcp_http_stats *ret);

/* Before a shutdown: ends all streams that wait for no answer; subscriptions/listen ends with its
 * result. Requests in progress get drain_ms; then they are cancelled, and their streams end too. */
void mcp_http_drain(struct mcp_http *h);

/* Ends all sessions of a principal. Must not be called inside a callback of the core. */
void mcp_http_end_of(struct mcp_http *h, const void *who);

/* Ends all sessions. The server must be closed, with no connection left. on_closed comes later,
 * when h is freed. */
void mcp_http_close(struct mcp_http *h, void (*on_closed)(void *arg), void *arg);

/*
 * A whole program: offers o on /mcp, and on /sse for clients of 2024-11-05, on uv_default_loop()
 * until SIGINT or SIGTERM; a second signal ends the process at once. address: as in
 * http_server_listen(); ERR_DENIED unless it is loopback, since there are no tokens and everybody
 * on this machine may call. on_ready, which may be NULL, gets the URL.
 */
int mcp_serve_http(const struct mcp_server_options *o, const char *address,
		   void (*on_ready)(const char *url), struct err *e) MUST_USE;
