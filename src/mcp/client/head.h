#pragma once
/* HTTP headers beside a modern message, also for messages that no client of this folder has
 * made. */
#include "mcp/client/client.h"
#include "mcp/message/param.h"

/* Fills params of m with the arguments that are repeated. known may be NULL. Release them, also
 * after a failure. */
int mcp_head_params(struct mcp_client_out *m, const struct mcp_params *known,
		    const struct json_val *arguments, struct err *e) MUST_USE;
/* Releases name and params of m. */
void mcp_head_release(struct mcp_client_out *m);
