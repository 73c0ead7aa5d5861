/* /v1/javascript: code that runs (op/code/code.h), and modules for it. */
#include "door/rest/view.h"

/* 512 KiB of code with each byte escaped, and the rest. */
enum { BODY_MAX = 6 * (512 << 10) + (64 << 10) };

static const struct op_member by_path[] = { { "name", .in = OP_PATH },
					    { "delete", .in = OP_HIDDEN } };
static const struct op_member delete_by_path[] = { { "name", .in = OP_PATH },
						   { "source", .in = OP_HIDDEN },
						   { "description", .in = OP_HIDDEN },
						   { "delete", .in = OP_HIDDEN } };

static const struct api_route rows[] = {
	{ .id = "javascript",
	  .op = &code_execute_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/javascript",
	  .body_max = BODY_MAX,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(FORBIDDEN) | API_MAY(CONFLICT) |
		    API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED) | API_MAY(UNSUPPORTED) },
	{ .id = "javascript.register",
	  .op = &code_register_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/v1/javascript/modules/{name}",
	  .body_max = BODY_MAX,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(FORBIDDEN) | API_MAY(CONFLICT) |
		    API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED) | API_MAY(UNSUPPORTED) },
	{ .id = "javascript.unregister",
	  .op = &code_unregister_op,
	  .projected = true,
	  .members = OP_MEMBERS(delete_by_path),
	  .method = HTTP_DELETE,
	  .path = "/v1/javascript/modules/{name}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_javascript = API_RESOURCE(rows);
