#pragma once
/* What Streamable HTTP says beside a modern message, also of one that no client of this folder has
 * made. */
#include "mcp/client/client.h"
#include "mcp/message/param.h"

/* Fills params of m: those of the arguments that are to be repeated. known may be NULL. To be
 * released, also on failure. */
int mcp_head_params(struct mcp_client_out *m, const struct mcp_params *known,
		    const struct json_val *arguments, struct err *e) MUST_USE;
/* name and params of m. */
void mcp_head_release(struct mcp_client_out *m);
