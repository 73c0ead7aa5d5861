#pragma once
/*
 * Tells whether an answer means that the server no longer knows the request's session. The
 * specification requires HTTP 404 for it (2025-11-25, basic/transports). Many servers send 400
 * instead, with a text that depends on their framework:
 *
 * 	{"jsonrpc":"2.0","error":{"code":-32000,
 * 	 "message":"Bad Request: No valid session ID provided"},"id":null}
 * 	{"error":"Invalid or missing session ID"}
 * 	Session not found
 *
 * Other answers with status 400 must not match: an error that answers a request by its id, a web
 * page, a long text, a text that only mentions a session.
 */
#include <stdbool.h>

#include "base/str.h"

/* text: the body, or its beginning. */
bool mcp_is_forgotten(int status, struct str text);
