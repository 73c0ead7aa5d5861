/* /v1/sandboxes/{id}/archive: a tree of files as a tar archive, down and up. */
#include "door/http/transfer.h"
#include "op/files.h"

struct archive_query {
	struct str path;
};
static const struct field up_fields[] = {
	FIELD(struct archive_query, path, .min = 1, .max = API_PATH_MAX,
	      .doc = "Existing directory; the sandbox's working directory if absent."),
};
static const struct field_table up_query = FIELD_TABLE(struct archive_query, up_fields);

struct archive_params {
	struct id_path path;
	struct archive_query query;
};
static const struct field up_parts[] = {
	API_ID_PATH(struct archive_params),
	FIELD_OBJECT(struct archive_params, query, up_query, .doc = "Where to unpack the archive."),
};
static const struct field_table up_input = FIELD_TABLE(struct archive_params, up_parts);

static struct str or_here(struct str path)
{
	return path.p ? path : STR_LIT(".");
}

static const struct op_member down_members[] = { API_BY_PATH,
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
	const struct archive_params *p = params;
	struct err e = ERR_INIT;
	struct sandbox *sb = api_enter(c, p->path.id, p->query.path);
	struct transfer_upload *u = sb ? arena_alloc(call_arena(c), sizeof(*u), &e) : NULL;

	if (!sb)
		return;
	if (!u || transfer_upload_start(u, c, sb, or_here(p->query.path), on_unpacked, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, on_upload_cancel, u);
	body_pipe_start(&u->pipe);
}

#define MAY (API_MAY_SANDBOX | API_MAY(FILE_FAILED) | API_MAY(FORBIDDEN) | API_MAY(BODY_TOO_LARGE))

static const struct api_route rows[] = {
	{ .id = "archive.download",
	  .op = &files_download_op,
	  .doc = "Downloads a directory with its contents, or a file, as a tar archive. If that "
		 "fails midway, the connection is closed and the archive has no end.",
	  .projected = true,
	  .members = OP_MEMBERS(down_members),
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
		       .request = &up_input,
		       .target = OP_TARGET(struct archive_params, path.id),
		       .result = &api_status_table,
		       .run = run_upload },
	  .method = HTTP_PUT,
	  .path = "/v1/sandboxes/{id}/archive",
	  .streams = true,
	  .errors = MAY },
};
const struct api_resource api_archive = API_RESOURCE(rows);
