/* Snapshots: take, list, look at, delete. */
#include "door/rest/snapshot_view.h"

#include "op/ops.h"
#include "op/page.h"

static const struct field view_fields[] = { SNAPSHOT_ROWS("id", "template_id") };
const struct field_table api_snapshot_table = FIELD_TABLE(struct snapshot_view, view_fields);

static const struct op_member take_members[] = { API_BY_PATH };

static const struct op_member by_path[] = { { "snapshot", .as = "id", .in = OP_PATH } };

static const struct field page_fields[] = {
	FIELD_OBJECTS(struct snapshots_view, snapshots, api_snapshot_table, .flags = FIELD_REQUIRED,
		      .doc = "Snapshots, in order of creation."),
	NEXT_CURSOR_ROW(struct snapshots_view),
};
static const struct field_table page_table = FIELD_TABLE(struct snapshots_view, page_fields);

static const struct field deleted_fields[] = {
	FIELD(struct snapshot_deleted, status, .flags = FIELD_REQUIRED,
	      .doc = "Always \"deleted\"."),
	FIELD_NAMED(struct snapshot_deleted, snapshot, "id", .flags = FIELD_REQUIRED,
		    .doc = "Id of the snapshot."),
};
static const struct field_table deleted_table = FIELD_TABLE(struct snapshot_deleted,
							    deleted_fields);

static const struct api_route rows[] = {
	{ .id = "sandboxes.snapshot",
	  .op = &snapshot_take_op,
	  .projected = true,
	  .members = OP_MEMBERS(take_members),
	  .answer = &api_snapshot_table,
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/snapshots",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(BODY_TOO_LARGE) |
		    API_MAY(EXEC_TIMEOUT) },
	{ .id = "snapshots.list",
	  .op = &snapshot_list_op,
	  .projected = true,
	  .answer = &page_table,
	  .method = HTTP_GET,
	  .path = "/v1/snapshots" },
	{ .id = "snapshots.get",
	  .op = &snapshot_get_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &api_snapshot_table,
	  .method = HTTP_GET,
	  .path = "/v1/snapshots/{id}",
	  .errors = API_MAY(NOT_FOUND) },
	{ .id = "snapshots.delete",
	  .op = &snapshot_delete_op,
	  .projected = true,
	  .members = OP_MEMBERS(by_path),
	  .answer = &deleted_table,
	  .method = HTTP_DELETE,
	  .path = "/v1/snapshots/{id}",
	  .errors = API_MAY(NOT_FOUND) },
};
const struct api_resource api_snapshots = API_RESOURCE(rows);
