#pragma once
/*
 * Joins an MCP client on standard input and output to a server over Streamable HTTP, in either era.
 * Each line is a message for mcp/connect/fetch.h, and each message that comes back is a line.
 * Messages are passed on unchanged. They are parsed for HTTP headers (Mcp-Session-Id,
 * MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Param-*), to match answers to requests, and to
 * answer what can't be delivered.
 *
 * A session that the server has forgotten is opened again with the client's own initialize. A
 * cancelled request gets no answer; a modern one is cancelled by closing its connection.
 * Mcp-Param-* are known from the tool lists that pass, and from one that is requested if the server
 * misses them.
 *
 * At the end of input, requests in flight get drain_ms, then the session is ended.
 */
#include <uv.h>

#include "base/secret.h"

struct mcp_relay;

struct mcp_relay_options {
	int in_fd, out_fd; /* taken, also on failure */
	const char *url; /* URL of the server; without a path, /mcp is used. Copied. */
	const char *tools; /* only these, asked for by ?tools=; NULL: all. Copied. */
	const char *profile; /* likewise by ?profile=; NULL: none. Copied. */
	const char *modules, *texts; /* likewise */
	const char *unix_socket; /* connect here instead of to the URL's host, or NULL */
	const struct secret *token; /* bearer, or NULL; borrowed until on_closed */
	bool own_only; /* send nothing to programs of other users (http/client/client.h) */
	unsigned drain_ms;
	/* Called once, last; the relay is freed. */
	void (*on_closed)(void *owner);
	void *owner;
};

struct mcp_relay *mcp_relay_start(uv_loop_t *loop, const struct mcp_relay_options *o,
				  struct err *e) MUST_USE;

/* Ends it like the end of input. */
void mcp_relay_stop(struct mcp_relay *r);
