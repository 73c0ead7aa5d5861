#pragma once
/*
 * Has the server forgotten the session of a request that named one? HTTP 404 is how it has to say so
 * (2025-11-25, basic/transports). Many say 400, and why in words, for each framework's own:
 *
 *	{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}
 *	{"error":"Invalid or missing session ID"}
 *	Session not found
 *
 * A 400 that is something else must not be taken for that: an error that answers a request by its id, a page, a
 * long text, one that only mentions a session.
 */
#include <stdbool.h>

#include "base/str.h"

/* text: the body, or its beginning. */
bool mcp_is_forgotten(int status, struct str text);
