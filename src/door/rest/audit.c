/* Records of the audit log (docs/audit.md). */
#include "door/http/routes.h"
#include "op/ops.h"

static const struct op_member by_path[] = { { "id", .as = "audit_id", .in = OP_PATH } };

static const struct api_route rows[] = {
	{ .id = "audit.list",
	  .op = &audit_list_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/v1/audit",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "audit.get",
	  .op = &audit_get_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/v1/audit/{audit_id}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_audit = API_RESOURCE(rows);
