#pragma once
/*
 * An MCP client on standard input and output, joined to an MCP server over Streamable HTTP: every line is
 * one POST, what comes back is one line each, in either era. The bridge carries messages as they are; it
 * looks into them only for what HTTP wants in headers (Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method,
 * Mcp-Name) and to answer what it can't deliver.
 *
 * A session that the server has forgotten (404) is opened anew with the client's own initialize, and what
 * was not taken is sent again; a broken event stream is taken up again behind its last event. In the modern
 * era the cancellation of a request closes its connection, as that era has it.
 *
 * At the end of input what is under way gets drain_ms, then the session is ended.
 */
#include <uv.h>

#include "base/secret.h"

struct bridge;

struct bridge_options {
	int in_fd, out_fd; /* taken, also on failure */
	const char *url; /* of the server; without a path it is /mcp. Copied. */
	const char *unix_socket; /* connect here instead of to the URL's host, or NULL */
	const struct secret *token; /* bearer, or NULL; borrowed until on_closed */
	unsigned drain_ms;
	/* Once, and b is gone. */
	void (*on_closed)(void *owner);
	void *owner;
};

struct bridge *bridge_start(uv_loop_t *loop, const struct bridge_options *o,
			    struct err *e) MUST_USE;

/* As the end of input does. */
void bridge_stop(struct bridge *b);
