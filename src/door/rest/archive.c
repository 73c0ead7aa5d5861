/* /v1/sandboxes/{id}/archive: a tree of files as a tar archive, down and up. */
#include "door/http/transfer.h"
#include "op/files.h"

static const struct op_member upload_members[] = {
	API_BY_PATH,
	{ "path", .in = OP_QUERY, .min = 1 },
	{ "literal", .in = OP_QUERY },
};
static const struct op_member download_members[] = { API_BY_PATH,
						     { "path", .in = OP_QUERY, .min = 1 } };

static void on_unpacked(struct transfer_upload *u, const struct err *e)
{
	api_done(u->call, e);
}

static void on_upload_cancel(void *data)
{
	struct transfer_upload *u = data;

	transfer_upload_stop(u);
	exchange_fail_gone(u->call);
}

static void run_upload(struct call *c, const void *params)
{
	const struct files_tree_request *q = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = api_enter(c, q->sandbox, q->path);
	struct transfer_upload *u = sb ? arena_alloc(call_arena(c), sizeof(*u), &e) : NULL;

	if (!sb)
		return;
	if (u)
		*u = (struct transfer_upload){ .literal = q->literal };
	if (!u || transfer_upload_start(u, c, sb, q->path, on_unpacked, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_upload_cancel, u);
	transfer_upload_body(u);
}

#define MAY (API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) | API_MAY(BODY_TOO_LARGE))

static const struct api_route rows[] = {
	{ .id = "archive.download",
	  .op = &files_download_op,
	  .doc = "Downloads a directory with its contents, or a file, as a tar archive. If that "
		 "fails midway, the connection is closed and the archive has no end.",
	  .projected = true,
	  .members = OP_MEMBERS(download_members),
	  .answer = &op_nothing_table,
	  .tell = api_tell_chunk,
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/archive",
	  .shape = API_TAR,
	  .errors = MAY | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "archive.upload",
	  .op = &(const struct
		  op){ .action = "files.upload",
		       .doc = "Unpacks an uncompressed tar archive into a directory as it arrives. "
			      "Links are not followed. After a failure, files that were already "
			      "unpacked stay.",
		       .effect = OP_WRITE,
		       .flags = OP_REPLACES,
		       .request = &files_upload_table,
		       .target = OP_TARGET(struct files_tree_request, sandbox),
		       .result = &api_status_table,
		       .normalize = files_tree_normalize,
		       .run = run_upload },
	  .projected = true,
	  .members = OP_MEMBERS(upload_members),
	  .method = HTTP_PUT,
	  .path = "/v1/sandboxes/{id}/archive",
	  .streams = true,
	  .errors = MAY },
};
const struct api_resource api_archive = API_RESOURCE(rows);
