/* The files of a workspace as a tar archive, down and up: GET /v1/workspaces/{name}/export, POST
 * /v1/workspaces/{name}/import. */
#include "door/http/common.h"
#include "door/http/transfer.h"
#include "op/files.h"
#include "op/ops.h"
#include "op/workspace.h"

static const struct op_member export_members[] = { { "workspace", .as = "name", .in = OP_PATH } };

static const struct op_member import_members[] = {
	{ "workspace", .as = "name", .in = OP_PATH },
	{ "message", .in = OP_QUERY },
	{ "literal", .in = OP_QUERY },
};

struct import_request {
	struct str workspace, message;
	bool literal;
};
static const struct field import_fields[] = {
	FIELD(struct import_request, workspace, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Name of the workspace."),
	MESSAGE_ROW(struct import_request),
	FILES_LITERAL_ROW(struct import_request),
};
static const struct field_table import_table = FIELD_TABLE(struct import_request, import_fields);

/* Its memory is the call's. */
struct upload {
	struct transfer_upload to; /* first, so that they have one address */
	struct workspace *w; /* busy until on_imported() */
	struct err failed; /* what came is not whole */
};

static void on_imported(void *arg, const struct workspace_commit *made, const struct err *err)
{
	struct upload *u = arg;
	struct call *c = u->to.call;
	const struct import_request *q = call_request(c);
	struct workspace_committed view;

	transfer_upload_stop(&u->to);
	if (err) {
		call_fail(c, err);
		return;
	}
	view = workspace_committed(q->workspace, made);
	call_answer(c, &view);
}

/* files_return_spec.read */
static void read_tip(void *owner, const char *name, uint64_t offset, size_t max,
		     file_read_cb on_done, void *arg)
{
	const struct upload *u = owner;

	workspace_read_start(u->w, name, offset, max, on_done, arg);
}

/* The reader gets the end of what came so far, and then the call ends. */
static void on_refused(struct transfer_upload *to, const struct err *err)
{
	struct upload *u = (struct upload *)to;

	u->failed = *err;
}

static void on_upload_cancel(void *data)
{
	struct upload *u = data;

	err_set(&u->failed, ERR_CANCELLED, "the client has left");
	transfer_upload_stop(&u->to);
}

static void run_import(struct call *c, const void *params)
{
	const struct import_request *q = params;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);
	struct upload *u = w ? arena_alloc(call_arena(c), sizeof(*u), &e) : NULL;
	int from;

	if (u)
		*u = (struct upload){ .to.literal = q->literal, .w = w };
	from = u ? transfer_upload_open(&u->to, c, read_tip, on_refused, &e) : -1;
	if (from < 0) {
		call_fail(c, &e);
		return;
	}
	workspace_import_start(w, from, q->message, &u->failed, on_imported, u);
	call_on_cancel(c, on_upload_cancel, u);
	transfer_upload_body(&u->to);
}

static const struct api_route rows[] = {
	{ .id = "workspaces.export",
	  .op = &workspace_export_op,
	  .projected = true,
	  .members = OP_MEMBERS(export_members),
	  .answer = &op_nothing_table,
	  .tell = api_tell_chunk,
	  .method = HTTP_GET,
	  .path = "/v1/workspaces/{name}/export",
	  .shape = API_TAR,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CANCELED) | API_MAY(TOO_MANY_STREAMS) |
		    API_MAY(UNSUPPORTED) },
	{ .id = "workspaces.import",
	  .op =
		  &(const struct op){
			  .action = "workspace.import",
			  .doc = "Makes a revision from a tar archive, which is read completely "
				 "before anything is kept. The workspace then contains exactly its "
				 "files.",
			  .effect = OP_WRITE,
			  .flags = OP_LIFECYCLE,
			  .request = &import_table,
			  .result = &workspace_committed_table,
			  .run = run_import },
	  .projected = true,
	  .members = OP_MEMBERS(import_members),
	  .method = HTTP_POST,
	  .path = "/v1/workspaces/{name}/import",
	  .streams = true,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(CANCELED) |
		    API_MAY(BODY_TOO_LARGE) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_workspace_archive = API_RESOURCE(rows);
