/* /v1/modules: MCP servers of others (docs/mcp.md). */
#include "door/http/common.h"
#include "op/ops.h"

static const struct op_member by_path[] = { { "module", .as = "name", .in = OP_PATH } };
static const struct op_member info_by_path[] = { { "module", .as = "name", .in = OP_PATH },
						 { "tools", .in = OP_HIDDEN },
						 { "query", .in = OP_HIDDEN },
						 { "limit", .in = OP_HIDDEN } };
static const struct op_member test_by_path[] = { { "module", .as = "name", .in = OP_PATH },
						 { "action", .in = OP_HIDDEN } };
static const struct op_member call_by_path[] = { { "module", .as = "name", .in = OP_PATH },
						 { "tool", .in = OP_PATH },
						 { "kind", .in = OP_HIDDEN },
						 { "sandbox", .in = OP_HIDDEN } };

static const struct op_member search_by_query[] = { { "query", .in = OP_QUERY },
						    { "limit", .in = OP_QUERY } };
static const struct op_member result_by_path[] = { { "result", .in = OP_PATH },
						   { "offset", .in = OP_QUERY },
						   { "limit", .in = OP_QUERY },
						   { "sandbox", .in = OP_HIDDEN } };

#define MODULE(op_, id_, members_, method_, more_, ...)                                            \
	{                                                                                          \
		.id = id_, .op = &op_, .projected = true, .members = OP_MEMBERS(members_),         \
		.method = method_, .path = "/v1/modules/{name}" more_,                             \
		.errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) __VA_ARGS__                    \
	}

static const struct api_route rows[] = {
	{ .id = "modules.list",
	  .op = &module_list_op,
	  .projected = true,
	  .method = HTTP_GET,
	  .path = "/v1/modules",
	  .errors = API_MAY(UNSUPPORTED) },
	MODULE(module_info_op, "modules.info", info_by_path, HTTP_GET, ""),
	MODULE(module_logs_op, "modules.logs", by_path, HTTP_GET, "/logs"),
	MODULE(module_approve_op, "modules.approve", by_path, HTTP_POST, "/approve",
	       | API_MAY(CONFLICT)),
	MODULE(module_update_op, "modules.update", by_path, HTTP_POST, "/update",
	       | API_MAY(CONFLICT) | API_MAY(MODULE_FAILED)),
	MODULE(module_revoke_op, "modules.revoke", by_path, HTTP_POST, "/revoke"),
	MODULE(module_enable_op, "modules.enable", by_path, HTTP_POST, "/enable"),
	MODULE(module_disable_op, "modules.disable", by_path, HTTP_POST, "/disable"),
	MODULE(module_test_op, "modules.test", test_by_path, HTTP_POST, "/test",
	       | API_MAY(EXEC_TIMEOUT) | API_MAY(MODULE_FAILED) | API_MAY(MODULE_NOT_STARTED)),
	MODULE(module_disconnect_op, "modules.disconnect", test_by_path, HTTP_POST, "/disconnect",
	       | API_MAY(CONFLICT)),
	{ .id = "modules.search",
	  .op = &module_search_op,
	  .projected = true,
	  .members = OP_MEMBERS(search_by_query),
	  .method = HTTP_GET,
	  .path = "/v1/tools",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "modules.call",
	  .op = &module_call_op,
	  .projected = true,
	  .members = OP_MEMBERS(call_by_path),
	  .method = HTTP_POST,
	  .path = "/v1/modules/{name}/tools/{tool}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) | API_MAY(EXEC_TIMEOUT) |
		    API_MAY(BODY_TOO_LARGE) | API_MAY(MODULE_FAILED) |
		    API_MAY(MODULE_NOT_STARTED) },
	{ .id = "modules.result",
	  .op = &module_result_op,
	  .projected = true,
	  .members = OP_MEMBERS(result_by_path),
	  .method = HTTP_GET,
	  .path = "/v1/module-results/{result}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_modules = API_RESOURCE(rows);
