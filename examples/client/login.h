#pragma once
/*
 * Logging in, as the conformance suite has it: what it says of clients and identities stands in
 * MCP_CONFORMANCE_CONTEXT, and there is no person, so a browser's part is played by one request.
 */
#include <mcp/oauth/oauth.h>

#include "client.h"

struct login;

/* For the server at url; the scenario and context of c say by which grant. NULL with *e. */
struct login *login_new(struct client *c, const char *url, struct mcp_err *e);
struct mcp_auth *login_auth(struct login *l);
void login_close(struct login *l); /* NULL-safe; gone when the loop has run */
