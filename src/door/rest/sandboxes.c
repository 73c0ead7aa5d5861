/* Sandboxes: make, list, look at, end; and restore them from snapshots. */
#include "door/rest/mitos.h"
#include "door/rest/view.h"
#include "hub/core/hub.h"
#include "op/sandbox.h"
#include "op/template.h"

static const struct op_member list_members[] = {
	{ "limit", .in = OP_QUERY, .min = 1,
	  .doc = "Most sandboxes per page. With limit or cursor, the answer is a page." },
	{ "after", .in = OP_HIDDEN }
};
static const struct field page_fields[] = {
	VIEWS_ROW(api_sandbox_table, "Sandboxes, in order of creation."),
	NEXT_CURSOR_ROW(struct sandboxes_view),
};
static const struct field_table page_table = FIELD_TABLE(struct sandboxes_view, page_fields);

static bool list_is_whole(struct call *c)
{
	return ((const struct list_request *)call_request(c))->limit == 0;
}

static const struct field terminated_fields[] = {
	FIELD(struct sandbox_ended, status, .flags = FIELD_REQUIRED,
	      .doc = "Always \"terminated\"."),
	FIELD_NAMED(struct sandbox_ended, sandbox, "id", .flags = FIELD_REQUIRED,
		    .doc = "Id of the sandbox."),
	SANDBOX_LEFT_OUT_ROWS,
};
static const struct field_table terminated_table = FIELD_TABLE(struct sandbox_ended,
							       terminated_fields);

static const struct op_member by_path[] = { API_BY_PATH };

/* ---- new ones ------------------------------------------------------------------------------ */

#define FLAT_LIMITS                                                                                \
	{ "memory_mb", .in = OP_HIDDEN }, { "disk_mb", .in = OP_HIDDEN },                          \
		{ "pids", .in = OP_HIDDEN }, { "cpus", .in = OP_HIDDEN },                          \
	{                                                                                          \
		"open_files", .in = OP_HIDDEN                                                      \
	}

/* mitos' way: a template and an id; and its sandbox_fork gives a sandbox as the template. */
static const struct op_member fork_template_members[] = {
	{ "template", .presence = OP_REQUIRED,
	  .doc = "Name of a template, such as \"host\", or id of a sandbox to copy." },
	FLAT_LIMITS,
	{ "limits", .in = OP_HIDDEN },
	{ "user", .in = OP_HIDDEN },
	{ "debug", .in = OP_HIDDEN },
	{ "env", .in = OP_HIDDEN },
	{ "cwd", .in = OP_HIDDEN },
	{ "ttl_seconds", .in = OP_HIDDEN },
	{ "idle_seconds", .in = OP_HIDDEN },
	{ "retention", .in = OP_HIDDEN },
	{ "labels", .in = OP_HIDDEN },
	{ "volumes", .in = OP_HIDDEN },
	{ "secrets", .in = OP_HIDDEN },
	{ "modules", .in = OP_HIDDEN },
};
static const struct op_member create_members[] = {
	FLAT_LIMITS,
	{ "ttl_seconds", .as = "timeout_seconds",
	  .doc = "Time to live in seconds; 0 means no limit. /v1/set_timeout changes it." },
};

static const struct op_member fork_sandbox_members[] = {
	{ "sandbox", .as = "template" },     { "template", .in = OP_HIDDEN },
	{ "replicas", .in = OP_HIDDEN },     { "ids", .in = OP_HIDDEN },
	{ "pause_source", .in = OP_HIDDEN },
};

/* A template goes first; and of what one may not know there is none. */
static bool names_sandbox(struct ops *ops, const struct principal *who, const struct json_val *body)
{
	struct str name = json_str(json_get(body, "template"));
	struct err e;
	struct hub_sandbox *l = name.n ? hub_sandboxes_find(hub_sandboxes(ops_hub(ops)), name, &e)
				       : NULL;

	return l && op_sees(ops, who, l) && !template_exists(ops, name);
}

#define COPIES_MEMBERS                                                                             \
	{ "replicas", .as = "count",                                                               \
	  .doc = "Number of copies of the same instant: all are made, or none. If present, "       \
		 "the answer has a list." },                                                       \
	{                                                                                          \
		"ids", .doc = "Ids of the copies, one for each. If present, the answer has a "     \
			      "list."                                                              \
	}
static const struct op_member fork_members[] = { API_BY_PATH, COPIES_MEMBERS };
static const struct op_member restore_members[] = {
	{ "snapshot", .as = "id", .in = OP_PATH },
	COPIES_MEMBERS,
};

static const struct field copies_fields[] = { VIEWS_ROW(api_sandbox_table, "The new sandboxes.") };
static const struct field_table copies_table = FIELD_TABLE(struct sandboxes_view, copies_fields);

static bool copies_is_one(struct call *c)
{
	return !json_get(exchange_body(c), "count") && !json_get(exchange_body(c), "ids");
}

#define MAY_MAKE                                                                                   \
	(API_MAY(NOT_FOUND) | API_MAY(FORBIDDEN) | API_MAY(CONFLICT) | API_MAY(QUOTA_EXCEEDED) |   \
	 API_MAY(CANCELED) | API_MAY(UNSUPPORTED))

static bool is_one(struct call *c)
{
	return true;
}

#define FORK_OF_SANDBOX                                                                            \
	.id = "fork", .op = &sandbox_fork_op, .projected = true,                                   \
	.members = OP_MEMBERS(fork_sandbox_members), .answer = &copies_table, .bare = is_one,      \
	.method = HTTP_POST, .path = "/v1/fork"

static const struct api_route fork_of_sandbox = { FORK_OF_SANDBOX };

static const struct api_route rows[] = {
	{ .id = "fork",
	  .op = &sandbox_create_op,
	  .doc = "Makes a sandbox from a template, or as a copy of another sandbox, with an id of "
		 "the client's choice.",
	  .projected = true,
	  .members = OP_MEMBERS(fork_template_members),
	  .is_other = names_sandbox,
	  .other = &fork_of_sandbox,
	  .answer = &api_sandbox_table,
	  .method = HTTP_POST,
	  .path = "/v1/fork",
	  .errors = MAY_MAKE | API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "sandboxes.create",
	  .op = &sandbox_create_op,
	  .projected = true,
	  .members = OP_MEMBERS(create_members),
	  .answer = &api_sandbox_table,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes",
	  .errors = MAY_MAKE },
	{ .id = "sandboxes.fork",
	  .op = &sandbox_fork_op,
	  .projected = true,
	  .members = OP_MEMBERS(fork_members),
	  .answer = &copies_table,
	  .bare = copies_is_one,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/fork",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(EXEC_TIMEOUT) },
	{ .id = "snapshots.restore",
	  .op = &snapshot_restore_op,
	  .projected = true,
	  .members = OP_MEMBERS(restore_members),
	  .answer = &copies_table,
	  .bare = copies_is_one,
	  .method = HTTP_POST,
	  .path = "/v1/snapshots/{id}/restore",
	  .errors = MAY_MAKE | API_MAY(SANDBOX_LOST) | API_MAY(FILE_FAILED) },
	{ .id = "sandboxes.list",
	  .op = &sandbox_list_op,
	  .doc = "Lists all sandboxes, as an array; with limit or cursor, as a page.",
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
	  .members = OP_MEMBERS(by_path),
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
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(BODY_TOO_LARGE) },
	{ .id = "sandboxes.diff",
	  .op = &sandbox_diff_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
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

/* ---- for clients of mitos -------------------------------------------------------------------- */

static const struct api_route mitos_fork_of_sandbox = {
	FORK_OF_SANDBOX,
	.show = mitos_show_several,
};

static const struct api_route mitos_rows[] = {
	{ .id = "fork",
	  .op = &sandbox_create_op,
	  .projected = true,
	  .members = OP_MEMBERS(create_members),
	  .mend = mitos_mend_create,
	  .is_other = names_sandbox,
	  .other = &mitos_fork_of_sandbox,
	  .answer = &api_sandbox_table,
	  .show = mitos_show_made,
	  .method = HTTP_POST,
	  .path = "/v1/fork",
	  .errors = MAY_MAKE | API_MAY_SANDBOX | API_MAY(EXEC_TIMEOUT) },
	{ .id = "sandboxes.create",
	  .op = &sandbox_create_op,
	  .projected = true,
	  .members = OP_MEMBERS(create_members),
	  .mend = mitos_mend_create,
	  .answer = &api_sandbox_table,
	  .show = mitos_show_made,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes",
	  .errors = MAY_MAKE },
	{ .id = "sandboxes.fork",
	  .op = &sandbox_fork_op,
	  .projected = true,
	  .members = OP_MEMBERS(fork_members),
	  .mend = mitos_mend_fork,
	  .answer = &copies_table,
	  .bare = copies_is_one,
	  .show = mitos_show_several,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/fork",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(EXEC_TIMEOUT) },
	{ .id = "sandboxes.list",
	  .op = &sandbox_list_op,
	  .projected = true,
	  .members = OP_MEMBERS(list_members),
	  .answer = &page_table,
	  .bare = list_is_whole,
	  .show = mitos_show_several,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes",
	  .shape = API_ARRAY },
	{ .id = "sandboxes.get",
	  .op = &sandbox_get_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &api_sandbox_table,
	  .show = mitos_show_one,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}",
	  .errors = API_MAY(NOT_FOUND) },
};
const struct api_resource api_mitos_sandboxes = API_RESOURCE(mitos_rows);
