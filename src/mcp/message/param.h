#pragma once
/* Tool arguments that HTTP repeats as Mcp-Param-<name>, by x-mcp-header in the input schema. MCP
 * 2026-07-28, server/tools. For this folder only. */
#include "json/document/json.h"

enum { MCP_PARAMS_MAX = 32, MCP_PARAM_DEPTH = 8 };

struct mcp_param {
	struct str name;
	struct str path[MCP_PARAM_DEPTH]; /* property names, from the arguments on */
	size_t depth;
};

struct mcp_params {
	struct mcp_param *p;
	size_t n;
};

/* Reads those of the schema, borrowed from it. ERR_BUG: an invalid or misplaced one. Release *ret
 * in that case too. */
int mcp_params_find(const struct json_val *schema, struct mcp_params *ret, struct err *e) MUST_USE;
void mcp_params_fini(struct mcp_params *p);

/* The argument that is repeated; NULL if it is absent or null. */
const struct json_val *mcp_param_value(const struct mcp_param *p, const struct json_val *args);
