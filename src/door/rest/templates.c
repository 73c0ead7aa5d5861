/* /v1/templates. */
#include "door/http/common.h"
#include "op/ops.h"

static const struct api_route rows[] = {
	{ .id = "templates.list",
	  .op = &template_list_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/v1/templates",
	  .shape = API_ARRAY },
	{ .id = "templates.create",
	  .op = &template_create_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/templates",
	  .errors = API_MAY(UNSUPPORTED) },
};
const struct api_resource api_templates = API_RESOURCE(rows);
