/* POST /v1/snapshots/{id}/restore: new sandboxes with the files of a snapshot. */
#include "door/rest/copies.h"
#include "door/rest/snapshot_view.h"

struct restore_body {
	struct copies_wish wish;
};
static const struct field body_fields[] = { COPIES_ROWS(struct restore_body, wish) };
static const struct field_table body_table = FIELD_TABLE(struct restore_body, body_fields);

struct restore_params {
	struct id_path path;
	struct once_header header;
	struct restore_body body;
};
static const struct field restore_parts[] = {
	API_SNAPSHOT_PATH(struct restore_params),
	ONCE_HEADER(struct restore_params),
	FIELD_OBJECT(struct restore_params, body, body_table, .doc = "What to make of it."),
};
static const struct field_table restore_input = FIELD_TABLE(struct restore_params, restore_parts);

static void run(struct call *c, const void *params)
{
	const struct restore_params *p = params;
	struct copies *k = copies_begin(c, &p->body.wish, &p->header);
	struct err e = ERR_INIT;
	struct snapshot *s = k ? ask_snapshot(c, p->path.id, &e) : NULL;

	if (s)
		snapshot_restore_start(s, &(struct snapshot_restore){ k->names.n, k->names.p },
				       copies_end, k);
	else if (k)
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .id = "snapshots.restore",
	  .op = &(const struct
		  op){ .action = "snapshot.restore",
		       .doc = "Makes sandboxes with the files of a snapshot: as many new ones as asked for, "
			      "with names, randomness and processes of their own.",
		       .effect = OP_WRITE,
		       .request = &restore_input,
		       .result = &api_sandbox_table,
		       .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/snapshots/{id}/restore",
	  .page = &copies_table,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(QUOTA_EXCEEDED) |
		    API_MAY(CANCELED) | API_MAY(UNSUPPORTED) | API_MAY(SANDBOX_LOST) |
		    API_MAY(FILE_FAILED) },
};
const struct api_resource api_restore = API_RESOURCE(rows);
