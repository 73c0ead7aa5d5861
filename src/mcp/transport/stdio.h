#pragma once
/*
 * MCP over stdio: one message per line, on two descriptors of any kind (pipe, socket, file,
 * terminal), on a libuv loop. Serves one session.
 *
 * Output is queued. While more than queue_max bytes wait for a slow client, its input is not read,
 * so nothing is dropped and memory stays bounded. At the end of input, open calls get drain_ms to
 * end, then they are cancelled; the queue gets drain_ms again to be read. A broken output ends the
 * session at once.
 *
 * The process ignores SIGPIPE from then on, so a client that is gone is an error, not a signal.
 */
#include <uv.h>

#include "mcp/server/server.h"

struct mcp_stdio;

struct mcp_stdio_options {
	int in_fd, out_fd; /* both are taken: closed at the end, or at once on failure */
	size_t line_max; /* 0: 16 MiB */
	size_t queue_max; /* 0: 4 MiB */
	unsigned drain_ms;
	void *data; /* data of the session */
	/* Called once, last, when both descriptors are closed and the session has ended. The owner
	 * may call mcp_stdio_free() in it. May be NULL. */
	void (*on_closed)(void *owner);
	void *owner;
};

/* Moves descriptors 0 and 1, close-on-exec, to in_fd and out_fd. Puts /dev/null on 0 and a copy of
 * standard error on 1, so that no stray printf and no child can reach the client. */
int mcp_stdio_claim(int *ret_in_fd, int *ret_out_fd, struct err *e) MUST_USE;

struct mcp_stdio *mcp_stdio_start(uv_loop_t *loop, struct mcp_server *srv,
				  const struct mcp_stdio_options *o, struct err *e) MUST_USE;

/* Ends it like the end of input, with drain_ms for open calls; on_closed follows. For SIGTERM. */
void mcp_stdio_stop(struct mcp_stdio *t);

/* NULL-safe. Only after on_closed. */
void mcp_stdio_free(struct mcp_stdio *t);

/* A whole program: offers o on its standard input and output, on uv_default_loop(), until the
 * client ends its input and open calls have had 5 seconds to end. */
int mcp_serve_stdio(const struct mcp_server_options *o, struct err *e) MUST_USE;
