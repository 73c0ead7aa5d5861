/* /v1/keys: API keys. */
#include "door/http/common.h"
#include "op/ops.h"

static const struct op_member by_path[] = { { "name", .in = OP_PATH } };

static const struct api_route rows[] = {
	{ .id = "keys.create",
	  .op = &key_create_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/keys",
	  .errors = API_MAY(CONFLICT) | API_MAY(QUOTA_EXCEEDED) | API_MAY(UNSUPPORTED) },
	{ .id = "keys.list",
	  .op = &key_list_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/v1/keys",
	  .shape = API_ARRAY,
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "keys.revoke",
	  .op = &key_revoke_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_DELETE,
	  .path = "/v1/keys/{name}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_keys = API_RESOURCE(rows);
