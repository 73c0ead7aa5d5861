/* /v1/approvals: what waits for a person (docs/approvals.md). */
#include "door/http/routes.h"
#include "op/ops.h"

static const struct op_member by_path[] = { { "id", .as = "approval_id", .in = OP_PATH } };

static const struct api_route rows[] = {
	{ .id = "approvals.list",
	  .op = &approval_list_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/v1/approvals",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "approvals.get",
	  .op = &approval_get_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/v1/approvals/{approval_id}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "approvals.answer",
	  .op = &approval_answer_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/v1/approvals/{approval_id}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(ALREADY_ANSWERED) | API_MAY(QUOTA_EXCEEDED) |
		    API_MAY(UNSUPPORTED) },
};
const struct api_resource api_approvals = API_RESOURCE(rows);
