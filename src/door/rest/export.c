/* The archive of a snapshot, down and up: GET /v1/snapshots/{id}/export, POST /v1/snapshots. */
#include "door/http/body_pipe.h"
#include "door/rest/snapshot_view.h"
#include "base/hash.h"

#define PACKED "application/zstd"

/* ---- down ---------------------------------------------------------------------------------- */

static const struct op_member export_members[] = { { "snapshot", .as = "id", .in = OP_PATH } };

/* ---- up ------------------------------------------------------------------------------------ */

struct import_request {
	struct str name, digest;
	uint32_t ttl_seconds;
};
static const struct field import_fields[] = {
	FIELD(struct import_request, name, .max = SNAPSHOT_NAME_MAX / 4,
	      .doc = "Name of the snapshot, for people."),
	FIELD(struct import_request, digest, .min = HASH_HEX, .max = HASH_HEX,
	      .doc = "SHA-256 that the archive must have, in hex. Default: any."),
	FIELD(struct import_request, ttl_seconds, .max = SNAPSHOT_TTL_MAX,
	      .doc = "Seconds until the snapshot is deleted; absent or 0: never."),
};
static const struct field_table import_table = FIELD_TABLE(struct import_request, import_fields);

static const struct op_member import_members[] = {
	{ "name", .in = OP_QUERY },
	{ "digest", .in = OP_QUERY },
	{ "ttl_seconds", .in = OP_QUERY },
};

/* Its memory is the call's. */
struct upload {
	struct call *call;
	struct body_pipe body;
};

static void on_imported(void *arg, const struct snapshot *s, const struct err *err)
{
	struct upload *u = arg;
	struct snapshot_view view;
	struct err e = ERR_INIT;

	body_pipe_close(&u->body);
	if (!err && call_cancelled(u->call))
		snapshot_discard(u->call, s);
	else if (err || snapshot_view(u->call, s, &view, &e) < 0)
		call_fail(u->call, err ? err : &e);
	else
		call_answer(u->call, &view);
}

/* The reader gets the end of what came so far, and then the call ends. */
static void on_upload_cancel(void *data)
{
	struct upload *u = data;

	body_pipe_close(&u->body);
}

static void run_import(struct call *c, const void *params)
{
	const struct import_request *q = params;
	const struct snapshot_spec spec = { .name = q->name,
					    .ttl_ms = q->ttl_seconds * 1000ull,
					    .owner = call_owner(c) };
	struct err e = ERR_INIT;
	struct upload *u = arena_alloc(call_arena(c), sizeof(*u), &e);
	int from;

	if (u)
		*u = (struct upload){ .call = c };
	from = u ? body_pipe_open(&u->body, c, &e) : -1;
	if (from < 0) {
		call_fail(c, &e);
		return;
	}
	snapshot_import_start(call_sandboxes(c), from, q->digest, &spec, on_imported, u);
	call_on_cancel(c, on_upload_cancel, u);
	body_pipe_start(&u->body);
}

static const struct api_route rows[] = {
	{ .id = "snapshots.export",
	  .op = &snapshot_export_op,
	  .projected = true,
	  .members = OP_MEMBERS(export_members),
	  .answer = &op_nothing_table,
	  .tell = api_tell_chunk,
	  .method = HTTP_GET,
	  .path = "/v1/snapshots/{id}/export",
	  .shape = API_TAR,
	  .bytes_type = PACKED,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CANCELED) | API_MAY(TOO_MANY_STREAMS) },
	{ .id = "snapshots.import",
	  .op =
		  &(const struct op){
			  .action = "snapshot.import",
			  .doc = "Imports a snapshot from an exported archive. The archive is read "
				 "and checked completely before anything is kept.",
			  .effect = OP_WRITE,
			  .flags = OP_LIFECYCLE,
			  .request = &import_table,
			  .result = &api_snapshot_table,
			  .run = run_import },
	  .projected = true,
	  .members = OP_MEMBERS(import_members),
	  .method = HTTP_POST,
	  .path = "/v1/snapshots",
	  .streams = true,
	  .bytes_type = PACKED,
	  .errors = API_MAY(CANCELED) | API_MAY(BODY_TOO_LARGE) | API_MAY(UNSUPPORTED) |
		    API_MAY(QUOTA_EXCEEDED) },
};
const struct api_resource api_export = API_RESOURCE(rows);
