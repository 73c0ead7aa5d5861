/* Workspaces: make, list, look at, attach, commit, delete, and their revisions. */
#include "door/http/common.h"
#include "op/ops.h"
#include "op/workspace.h"

static const struct op_member by_path[] = { { "workspace", .as = "name", .in = OP_PATH } };
static const struct op_member create_members[] = { { "workspace", .as = "name" } };
static const struct op_member list_members[] = {
	{ "limit", .in = OP_QUERY },
	{ "cursor", .in = OP_QUERY },
};

static const struct op_member log_members[] = {
	{ "workspace", .as = "name", .in = OP_PATH },
	{ "limit", .in = OP_QUERY },
	{ "cursor", .in = OP_QUERY },
};
static const struct op_member diff_members[] = {
	{ "workspace", .as = "name", .in = OP_PATH },
	{ "from", .in = OP_QUERY },
	{ "to", .in = OP_QUERY },
	{ "content", .in = OP_QUERY },
	{ "limit", .in = OP_QUERY },
};

static const struct api_route rows[] = {
	{ .id = "workspaces.create",
	  .op = &workspace_create_op,
	  .projected = true,
	  .members = OP_MEMBERS(create_members),
	  .method = HTTP_POST,
	  .path = "/v1/workspaces",
	  .errors = API_MAY(CONFLICT) | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.list",
	  .op = &workspace_list_op,
	  .projected = true,
	  .members = OP_MEMBERS(list_members),
	  .method = HTTP_GET,
	  .path = "/v1/workspaces",
	  .errors = API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.get",
	  .op = &workspace_get_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_GET,
	  .path = "/v1/workspaces/{name}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.delete",
	  .op = &workspace_delete_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_DELETE,
	  .path = "/v1/workspaces/{name}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.attach",
	  .op = &workspace_attach_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/v1/workspaces/{name}/attach",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.commit",
	  .op = &workspace_commit_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/v1/workspaces/{name}/commit",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(BODY_TOO_LARGE) |
		    API_MAY(EXEC_TIMEOUT) },
	{ .id = "workspaces.log",
	  .op = &workspace_log_op,
	  .projected = true,
	  .members = OP_MEMBERS(log_members),
	  .method = HTTP_GET,
	  .path = "/v1/workspaces/{name}/log",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.diff",
	  .op = &workspace_diff_op,
	  .projected = true,
	  .members = OP_MEMBERS(diff_members),
	  .method = HTTP_GET,
	  .path = "/v1/workspaces/{name}/diff",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.revert",
	  .op = &workspace_revert_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/v1/workspaces/{name}/revert",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.fork",
	  .op = &workspace_fork_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .method = HTTP_POST,
	  .path = "/v1/workspaces/{name}/fork",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_workspaces = API_RESOURCE(rows);
