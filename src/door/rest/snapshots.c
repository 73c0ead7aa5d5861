/* Snapshots: take, list, look at, delete. */
#include "door/rest/snapshot_view.h"

#include "op/ops.h"
#include "op/page.h"

static const struct field view_fields[] = { SNAPSHOT_ROWS("id", "template_id") };
const struct field_table api_snapshot_table = FIELD_TABLE(struct snapshot_view, view_fields);

static const struct field path_fields[] = {
	FIELD(struct id_path, id, .flags = FIELD_REQUIRED, .min = 1, .max = API_ID_MAX,
	      .doc = "Id of the snapshot."),
};
const struct field_table snapshot_path_table = FIELD_TABLE(struct id_path, path_fields);

struct snapshot *ask_snapshot(struct call *c, struct str id, struct err *e)
{
	call_about(c)->snapshot = id;
	return snapshots_find(call_lives(c), id, e);
}

static void answer(struct call *c, const struct snapshot *s)
{
	struct snapshot_view view;
	struct err e = ERR_INIT;

	if (snapshot_view(c, s, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

static const struct op_member take_members[] = { API_BY_PATH };

/* ---- list ---------------------------------------------------------------------------------- */

struct list_query {
	uint32_t limit;
	struct str cursor;
};
static const struct field query_fields[] = {
	FIELD(struct list_query, limit, .min = 1, .max = PAGE_MAX, .def = DEFAULT_INT(PAGE_DEFAULT),
	      .doc = "How many at once."),
	CURSOR_ROW(struct list_query),
};
static const struct field_table query_table = FIELD_TABLE(struct list_query, query_fields);

struct list_params {
	struct list_query query;
};
static const struct field list_parts[] = {
	FIELD_OBJECT(struct list_params, query, query_table, .doc = "Which of them."),
};
static const struct field_table list_input = FIELD_TABLE(struct list_params, list_parts);

struct page {
	struct {
		const struct snapshot_view *p;
		size_t n;
	} snapshots;
	struct str next_cursor;
};
static const struct field page_fields[] = {
	FIELD_OBJECTS(struct page, snapshots, api_snapshot_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of creation."),
	NEXT_CURSOR_ROW(struct page),
};
static const struct field_table page_table = FIELD_TABLE(struct page, page_fields);

static void run_list(struct call *c, const void *params)
{
	const struct list_query *q = &((const struct list_params *)params)->query;
	struct err e = ERR_INIT;
	struct snapshot **found = arena_array(call_arena(c), q->limit + 1u,
					      sizeof(struct snapshot *), &e);
	struct snapshot_view *views = arena_array(call_arena(c), q->limit, sizeof(*views), &e);
	struct page page = { .next_cursor = STR_NONE };
	struct snapshot_info last = { .seq = 0 };
	char cursor[CURSOR_MAX];
	uint64_t after = 0;
	size_t n = 0;
	int failed = !found || !views || (q->cursor.p && cursor_read(q->cursor, &after, &e) < 0);

	if (!failed)
		n = snapshots_list(call_lives(c), after, found, q->limit + 1u);
	for (size_t i = 0; !failed && i < n && i < q->limit; i++)
		failed = snapshot_view(c, found[i], &views[i], &e) < 0;
	if (failed) {
		call_fail(c, &e);
		return;
	}
	page.snapshots.p = views;
	page.snapshots.n = n < q->limit ? n : q->limit;
	if (n > q->limit) { /* one more than the page has tells that there is another */
		snapshot_info(found[q->limit - 1], &last);
		cursor_text(cursor, last.seq);
		page.next_cursor = str_of(cursor);
	}
	call_answer(c, &page);
}

/* ---- one ----------------------------------------------------------------------------------- */

struct one_params {
	struct id_path path;
};
static const struct field one_parts[] = { API_SNAPSHOT_PATH(struct one_params) };
static const struct field_table one_input = FIELD_TABLE(struct one_params, one_parts);

static void run_get(struct call *c, const void *params)
{
	const struct one_params *p = params;
	struct err e = ERR_INIT;
	struct snapshot *s = ask_snapshot(c, p->path.id, &e);

	if (s)
		answer(c, s);
	else
		call_fail(c, &e);
}

struct deleted {
	struct str status, id;
};
static const struct field deleted_fields[] = {
	FIELD(struct deleted, status, .flags = FIELD_REQUIRED, .doc = "deleted"),
	FIELD(struct deleted, id, .flags = FIELD_REQUIRED, .doc = "The snapshot."),
};
static const struct field_table deleted_table = FIELD_TABLE(struct deleted, deleted_fields);

static void run_delete(struct call *c, const void *params)
{
	const struct one_params *p = params;
	const struct deleted done = { STR_LIT("deleted"), p->path.id };
	struct err e = ERR_INIT;
	struct snapshot *s = ask_snapshot(c, p->path.id, &e);

	if (!s || snapshot_delete(s, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &done);
}

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
	  .op = &(const struct op){ .action = "snapshot.list",
				    .doc = "The snapshots that clients have taken or imported.",
				    .effect = OP_READ,
				    .request = &list_input,
				    .result = &page_table,
				    .run = run_list },
	  .method = HTTP_GET,
	  .path = "/v1/snapshots" },
	{ .id = "snapshots.get",
	  .op = &(const struct op){ .action = "snapshot.get",
				    .doc = "One snapshot.",
				    .effect = OP_READ,
				    .request = &one_input,
				    .result = &api_snapshot_table,
				    .run = run_get },
	  .method = HTTP_GET,
	  .path = "/v1/snapshots/{id}",
	  .errors = API_MAY(NOT_FOUND) },
	{ .id = "snapshots.delete",
	  .op =
		  &(const struct op){
			  .action = "snapshot.delete",
			  .doc = "Deletes a snapshot; sandboxes that were restored from it stay.",
			  .effect = OP_DESTROY,
			  .request = &one_input,
			  .result = &deleted_table,
			  .run = run_delete },
	  .method = HTTP_DELETE,
	  .path = "/v1/snapshots/{id}",
	  .errors = API_MAY(NOT_FOUND) },
};
const struct api_resource api_snapshots = API_RESOURCE(rows);
