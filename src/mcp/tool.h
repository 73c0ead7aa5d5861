#pragma once
/* What a tool's schemas are compiled to; inside the folder only. */
#include "json/json.h"
#include "json/schema.h"

enum { MCP_PARAMS_MAX = 32, MCP_PARAM_DEPTH = 8 };

/* The place of a property in a schema, from the inside out. */
struct mcp_path {
	const struct mcp_path *up;
	struct str key;
};

/* An argument that HTTP repeats as Mcp-Param-<name>. */
struct mcp_param {
	struct str name;
	struct str path[MCP_PARAM_DEPTH];
	size_t depth;
};

struct mcp_prepared {
	struct json_doc *input; /* what the names are borrowed from; NULL where there are none */
	struct mcp_param *params;
	size_t n;
	struct schema *output; /* NULL: none */
	bool object_output; /* it is of type object, as revisions before 2026-07-28 want it */
};
