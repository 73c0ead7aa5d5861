#pragma once
/*
 * MCP over Streamable HTTP (basic/transports of revisions 2025-03-26 to 2026-07-28), served at one
 * path of the HTTP door, /mcp, for clients of both eras.
 *
 * Modern (2026-07-28): every POST is for itself. One that is answered at once, or only by its
 * answer, gets JSON; one that has something to say before gets an event stream. A client that goes
 * away has cancelled its request.
 *
 * Legacy: initialize makes a session, named by Mcp-Session-Id, which belongs to its principal and
 * ends by DELETE, by being unused for idle_ms, or when its principal needs room for another. A
 * client that goes away has cancelled nothing: what is sent for its requests is stored, and a GET
 * with Last-Event-ID gives it the rest. A GET without it opens the stream for what belongs to no
 * request; there is one, and the newest connection has it. From 2025-11-25 on, a request that is
 * not answered at once gets a stream whose first event has an id and no data, so that any stream
 * can be resumed, and a handler may have the connection closed for a while.
 */
#include <uv.h>

#include "http/server/server.h"
#include "mcp/server/server.h"

struct mcp_http;

/* 0 takes the default, in brackets. */
struct mcp_http_options {
	size_t body_max; /* bytes of a message [16 MiB] */
	unsigned sessions; /* at once [4096] */
	/* of one principal [2048]; one too many ends the one longest unused */
	unsigned sessions_each;
	unsigned idle_ms; /* an unused session lives this long [30 min] */
	unsigned pulse_ms; /* a stream is silent for no longer than twice this [15 s] */
	unsigned retry_ms; /* after which a client comes back to a stream [1 s] */
	unsigned events; /* that a session stores [512]; one too many drops the oldest */
	size_t store_max; /* bytes of them [16 MiB]; a larger event is not stored */
	size_t store_all; /* bytes of them for all sessions [256 MiB] */
	unsigned keep_ms; /* events of a finished stream are stored this long [60 s] */
	unsigned drain_ms; /* what mcp_http_drain() gives requests, less than the door does [9 s] */
	size_t queue; /* the door's stream_queue [1 MiB] */
};

/* Copies the options. The data of its sessions is the door's principal. srv is borrowed until
 * on_closed. */
struct mcp_http *mcp_http_new(uv_loop_t *loop, struct mcp_server *srv,
			      const struct mcp_http_options *o, struct err *e) MUST_USE;

/* To be listed in http_options.routes; borrowed until on_closed. */
struct http_routes mcp_http_routes(struct mcp_http *h);

struct mcp_http_stats {
	unsigned sessions; /* legacy */
	unsigned posts; /* modern requests that are being served */
	unsigned streams; /* connected ones of both eras */
	size_t stored; /* bytes of events */
};
void mcp_http_stats(const struct mcp_http *h, struct mcp_http_stats *ret);

/* The server goes down: ends all streams that wait for nothing, those that modern clients listen on
 * with their result. Requests in progress get drain_ms; then they are cancelled, and their streams
 * end too. */
void mcp_http_drain(struct mcp_http *h);

/* Ends all sessions. The door is closed: no connection is left. on_closed comes later, and h is
 * gone then. */
void mcp_http_close(struct mcp_http *h, void (*on_closed)(void *arg), void *arg);

/*
 * All of a program: offers o on /mcp, and on /sse for clients of 2024-11-05, on uv_default_loop()
 * until SIGINT or SIGTERM; the second ends the process at once. address: as http_server_listen()
 * takes it; ERR_DENIED unless it is loopback, as there are no tokens: everybody on this machine may
 * call. on_ready, which may be NULL, is given the URL.
 */
int mcp_serve_http(const struct mcp_server_options *o, const char *address,
		   void (*on_ready)(const char *url), struct err *e) MUST_USE;
