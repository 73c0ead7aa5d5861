/* /v1/sandboxes/{id}/network: what a sandbox may reach. */
#include "door/http/common.h"

static const struct op_member by_path[] = { API_BY_PATH };

#define NETWORK(id_, op_, method_, errors_)                                                        \
	{                                                                                          \
		.id = (id_), .op = (op_), .projected = true, .members = OP_MEMBERS(by_path),       \
		.method = (method_), .path = "/v1/sandboxes/{id}/network", .errors = (errors_),    \
	}

static const struct api_route rows[] = {
	NETWORK("network.get", &network_get_op, HTTP_GET, API_MAY(NOT_FOUND)),
	NETWORK("network.set", &network_set_op, HTTP_POST,
		API_MAY_SANDBOX | API_MAY(FORBIDDEN) | API_MAY(CONFLICT) | API_MAY(UNSUPPORTED)),
};
const struct api_resource api_network = API_RESOURCE(rows);
