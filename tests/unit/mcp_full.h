#pragma once
/*
 * A server that offers one of everything, to be used with mcp_fixture.h. Its rows run by
 * themselves.
 *
 * Tools: query (x-mcp-header of three types, one of them nested), sum (structured), wrong and
 * silent (what the output schema refuses), list (structured, no object), say (log and progress),
 * show (content of every kind), refuse. Resources: mem:///note, mem:///pixel, and mem:///user/{id}.
 * Prompts: plain, greet(name, tone).
 *
 */
#include "mcp/server/server.h"

/* Fills offer, handler and promises; leaves the limits. */
void full_offer(struct mcp_server_options *o);
