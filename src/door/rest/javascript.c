/* POST /v1/javascript: code.execute (op/code/code.h). */
#include "door/rest/view.h"

/* 512 KiB of code with each byte escaped, and the rest. */
enum { BODY_MAX = 6 * (512 << 10) + (64 << 10) };

static const struct api_route rows[] = {
	{ .id = "javascript",
	  .op = &code_execute_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/javascript",
	  .body_max = BODY_MAX,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(FORBIDDEN) | API_MAY(CONFLICT) |
		    API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_javascript = API_RESOURCE(rows);
