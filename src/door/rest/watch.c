/* GET /v1/sandboxes/{id}/watch: what happens in a directory, as it happens. */
#include "door/http/common.h"
#include "op/files.h"

#define T struct file_event
static const struct field line_fields[] = {
	FIELD_ENUM(
		T, kind, file_event_names, .flags = FIELD_REQUIRED,
		.doc = "Kind of event. ready is the first one; overflow: events were lost; ended: "
		       "the directory is gone."),
	FIELD(T, path, .doc = "Path relative to the directory."),
	FIELD_NAMED(T, path_bytes, "path_base64", .flags = FIELD_BYTES,
		    .doc = "Bytes of the path, if they are not UTF-8."),
	FIELD(T, is_dir, .flags = FIELD_REQUIRED, .doc = "Whether it is a directory."),
	FIELD(T, cookie, .has = FIELD_HAS(T, is_move),
	      .doc = "Number that both parts of a move, moved_from and moved_to, have in common."),
};
#undef T
static const struct field_table line_table = FIELD_TABLE(struct file_event, line_fields);

static void tell(struct call *c, const void *event)
{
	exchange_write(c, &line_table, event);
}

static const struct op_member members[] = { API_BY_PATH, { "path", .in = OP_QUERY, .min = 1 } };

static const struct api_route rows[] = {
	{ .id = "watch",
	  .op = &files_watch_op,
	  .projected = true,
	  .members = OP_MEMBERS(members),
	  .answer = &line_table,
	  .tell = tell,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/watch",
	  .shape = API_LINES,
	  .errors = API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) |
		    API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_watch = API_RESOURCE(rows);
