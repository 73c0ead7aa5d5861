/* Sandboxes that are there: list, look at, end. */
#include "door/rest/view.h"
#include "op/sandbox.h"

static const struct op_member list_members[] = {
	{ "limit", .in = OP_QUERY, .min = 1,
	  .doc = "How many at once; with it or cursor, the answer is a page." },
	{ "state", .in = OP_QUERY },
	{ "cursor", .in = OP_QUERY },
	{ "after", .in = OP_HIDDEN },
};
static const struct field page_fields[] = {
	VIEWS_ROW(api_sandbox_table, "In order of creation."),
	NEXT_CURSOR_ROW(struct sandboxes_view),
};
static const struct field_table page_table = FIELD_TABLE(struct sandboxes_view, page_fields);

static bool list_is_whole(const void *request)
{
	return ((const struct list_request *)request)->limit == 0;
}

static const struct op_member get_members[] = {
	API_BY_PATH,
	{ "usage", .in = OP_QUERY },
};

static const struct field terminated_fields[] = {
	FIELD(struct sandbox_ended, status, .flags = FIELD_REQUIRED, .doc = "terminated"),
	FIELD_NAMED(struct sandbox_ended, sandbox, "id", .flags = FIELD_REQUIRED,
		    .doc = "The sandbox."),
};
static const struct field_table terminated_table = FIELD_TABLE(struct sandbox_ended,
							       terminated_fields);

static const struct op_member by_path[] = { API_BY_PATH };

static const struct op_member diff_members[] = {
	API_BY_PATH,
	{ "limit", .in = OP_QUERY },
};

static const struct api_route rows[] = {
	{ .id = "sandboxes.list",
	  .op = &sandbox_list_op,
	  .doc = "The sandboxes: all of them as an array, or a page where limit or cursor is given.",
	  .projected = true,
	  .members = OP_MEMBERS(list_members),
	  .answer = &page_table,
	  .bare = list_is_whole,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes",
	  .shape = API_ARRAY },
	{ .id = "sandboxes.get",
	  .op = &sandbox_get_op,
	  .projected = true,
	  .members = OP_MEMBERS(get_members),
	  .answer = &api_sandbox_table,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}",
	  .errors = API_MAY(NOT_FOUND) },
	{ .id = "sandboxes.delete",
	  .op = &sandbox_terminate_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &terminated_table,
	  .method = HTTP_DELETE,
	  .path = "/v1/sandboxes/{id}",
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) },
	{ .id = "sandboxes.diff",
	  .op = &sandbox_diff_op,
	  .projected = true,
	  .members = OP_MEMBERS(diff_members),
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/diff",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(EXEC_TIMEOUT) },
	{ .id = "sandboxes.stop",
	  .op = &sandbox_stop_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &api_sandbox_table,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/stop",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(BODY_TOO_LARGE) |
		    API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_sandboxes = API_RESOURCE(rows);
