/* POST /v1/run: one command from nothing (op/run.h). */
#include "door/rest/view.h"
#include "op/run.h"

/* All files with each byte escaped, and the rest. */
enum { BODY_MAX = 6 * RUN_FILES_BYTES_MAX + (1 << 20) };

static const struct api_route rows[] = {
	{ .id = "run",
	  .op = &run_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/run",
	  .body_max = BODY_MAX,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(FORBIDDEN) | API_MAY(CONFLICT) |
		    API_MAY(QUOTA_EXCEEDED) | API_MAY(CANCELED) | API_MAY(UNSUPPORTED) |
		    API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_run = API_RESOURCE(rows);
