#pragma once
/*
 * MCP over stdio: one message a line, on two descriptors of any kind (pipe, socket, file,
 * terminal), on a libuv loop. Serves one session.
 *
 * Output is queued. While more than queue_max bytes wait for a client that does not read, its
 * input is not read either, so nothing is dropped and memory stays bounded. At the end of input,
 * open calls get drain_ms to end, then they are cancelled; what is queued gets as long again to be
 * taken. A broken output ends the session at once.
 *
 * SIGPIPE is set to be ignored for the process: a client that is gone is an error, no signal.
 */
#include <uv.h>

#include "mcp/server/server.h"

struct mcp_stdio;

struct mcp_stdio_options {
	int in_fd, out_fd; /* two; taken: closed at the end, or at once on failure */
	size_t line_max; /* 0: 16 MiB */
	size_t queue_max; /* 0: 4 MiB */
	unsigned drain_ms;
	void *data; /* of the session */
	/* Once, when both descriptors are closed and the session is over; the last callback. The
	 * owner may call mcp_stdio_free() in it. May be NULL. */
	void (*on_closed)(void *owner);
	void *owner;
};

/* Moves descriptors 0 and 1 away, close-on-exec, for the two in_fd and out_fd; leaves /dev/null on
 * 0 and a copy of standard error on 1, so that no stray printf and no child can reach the wire. */
int mcp_stdio_claim(int *ret_in_fd, int *ret_out_fd, struct err *e) MUST_USE;

struct mcp_stdio *mcp_stdio_start(uv_loop_t *loop, struct mcp_server *srv,
				  const struct mcp_stdio_options *o, struct err *e) MUST_USE;

/* Ends it as the end of input does, with drain_ms for open calls; on_closed follows. For
 * SIGTERM. */
void mcp_stdio_stop(struct mcp_stdio *t);

/* NULL-safe. Only after on_closed. */
void mcp_stdio_free(struct mcp_stdio *t);

/* All of a program: offers o on its standard input and output, on uv_default_loop(), until the
 * client ends its input and open calls have had 5 seconds to end. */
int mcp_serve_stdio(const struct mcp_server_options *o, struct err *e) MUST_USE;
