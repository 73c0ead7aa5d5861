#pragma once
/* What a tool's schemas are compiled to; inside the folder only. */
#include "json/schema/schema.h"
#include "mcp/message/param.h"

struct mcp_prepared {
	struct json_doc *input; /* what params borrow from; NULL where there are none */
	struct mcp_params params;
	struct schema *output; /* NULL: none */
	bool object_output; /* it is of type object, as revisions before 2026-07-28 want it */
};
