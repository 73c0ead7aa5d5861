/* /v1/sandboxes/{id}/forward: ports of a sandbox on this machine's loopback; /v1/preview: a link
 * for people. */
#include "door/http/common.h"

static const struct op_member by_path[] = { API_BY_PATH };

#define FORWARD(id_, op_, method_, members_, errors_)                                              \
	{                                                                                          \
		.id = (id_), .op = (op_), .projected = true, .members = OP_MEMBERS(members_),      \
		.method = (method_), .path = "/v1/sandboxes/{id}/forward", .errors = (errors_),    \
	}

static const struct api_route rows[] = {
	FORWARD("sandboxes.forward", &port_forward_op, HTTP_POST, by_path,
		API_MAY_SANDBOX | API_MAY(FORBIDDEN)),
	FORWARD("forwards.list", &port_list_op, HTTP_GET, by_path, API_MAY(NOT_FOUND)),
	FORWARD("forwards.delete", &port_unforward_op, HTTP_DELETE, by_path, API_MAY(NOT_FOUND)),
	{ .id = "preview",
	  .op = &port_preview_op,
	  .projected = true,
	  .method = HTTP_POST,
	  .path = "/v1/preview",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_ports = API_RESOURCE(rows);
