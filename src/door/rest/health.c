/* GET /v1/health: the one route that needs no token. */
#include "door/http/common.h"
#include "op/ops.h"

static const struct api_route rows[] = {
	{ .id = "health",
	  .op = &hub_health_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/v1/health",
	  .open = true },
};
const struct api_resource api_health = API_RESOURCE(rows);
