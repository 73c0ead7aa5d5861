#pragma once
/*
 * An MCP client on standard input and output, joined to a server over Streamable HTTP in either
 * era: each line is a message for mcp/connect/fetch.h, and what comes back is a line each. Messages
 * are carried as they are; they are looked into for what HTTP says beside them (Mcp-Session-Id,
 * MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Param-*), to tell which request an answer is for,
 * and to answer what can't be delivered.
 *
 * A session that the server has forgotten is opened anew with the client's own initialize. A
 * request that is cancelled has no answer from then on; a modern one is cancelled by closing its
 * connection. What Mcp-Param-* repeats is known from the lists of tools that pass, and from one
 * that is asked for where the server misses them.
 *
 * At the end of input what is under way gets drain_ms, then the session is ended.
 */
#include <uv.h>

#include "base/secret.h"

struct mcp_relay;

struct mcp_relay_options {
	int in_fd, out_fd; /* taken, also on failure */
	const char *url; /* of the server; without a path it is /mcp. Copied. */
	const char *unix_socket; /* connect here instead of to the URL's host, or NULL */
	const struct secret *token; /* bearer, or NULL; borrowed until on_closed */
	unsigned drain_ms;
	/* Once, and the relay is gone. */
	void (*on_closed)(void *owner);
	void *owner;
};

struct mcp_relay *mcp_relay_start(uv_loop_t *loop, const struct mcp_relay_options *o,
				  struct err *e) MUST_USE;

/* As the end of input does. */
void mcp_relay_stop(struct mcp_relay *r);
