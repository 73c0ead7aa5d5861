/* Snapshots: take, list, look at, delete. */
#include "door/rest/snapshot_view.h"

#include "base/id.h"
#include "base/log.h"
#include "hub/core/when.h"
#include "op/once.h"
#include "op/page.h"

/* ---- as it is shown ------------------------------------------------------------------------ */

static const struct field view_fields[] = {
	FIELD(struct snapshot_view, id, .flags = FIELD_REQUIRED, .doc = "Its name everywhere."),
	FIELD(struct snapshot_view, name, .doc = "For people, as it was given."),
	FIELD(struct snapshot_view, source,
	      .doc = "The sandbox that it was taken of; absent: it was imported."),
	FIELD(struct snapshot_view, template_id, .flags = FIELD_REQUIRED,
	      .doc = "What that was made from, and what is restored is made from."),
	FIELD(struct snapshot_view, digest, .flags = FIELD_REQUIRED,
	      .doc = "SHA-256 of its archive (tar.zst), in hex."),
	FIELD(struct snapshot_view, created_at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
	FIELD(struct snapshot_view, expires_at, .doc = "When it is deleted; absent: never."),
	FIELD(struct snapshot_view, bytes, .flags = FIELD_REQUIRED, .doc = "Of its archive."),
	FIELD(struct snapshot_view, unpacked_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Of what is in it."),
	FIELD(struct snapshot_view, disk_mb, .flags = FIELD_REQUIRED,
	      .doc = "MiB for files that a restored sandbox has, as its source had."),
};
const struct field_table snapshot_view_table = FIELD_TABLE(struct snapshot_view, view_fields);

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

void ask_discard_snapshot(struct call *c, const struct snapshot *s)
{
	struct snapshot_info i;
	struct snapshot *found;
	struct err e;

	snapshot_info(s, &i);
	found = snapshots_find(call_lives(c), i.id, &e);
	if (!found || snapshot_delete(found, &e) < 0)
		log_warn("could not delete a snapshot that nobody waits for: %s", e.msg);
	ask_fail_gone(c);
}

int snapshot_view(struct call *c, const struct snapshot *s, struct snapshot_view *ret,
		  struct err *e)
{
	char *created = arena_alloc(call_arena(c), WHEN_MAX, e);
	char *expires = arena_alloc(call_arena(c), WHEN_MAX, e);
	struct snapshot_info i;

	if (!created || !expires)
		return -1;
	snapshot_info(s, &i);
	when_text(created, i.created_ms);
	when_text(expires, i.expires_ms);
	*ret = (struct snapshot_view){
		.id = i.id,
		.name = i.name.n ? i.name : STR_NONE,
		.source = i.source.n ? i.source : STR_NONE,
		.template_id = i.template,
		.digest = i.digest,
		.created_at = str_of(created),
		.expires_at = i.expires_ms ? str_of(expires) : STR_NONE,
		.bytes = i.bytes,
		.unpacked_bytes = i.unpacked,
		.disk_mb = i.limits.disk / MIB,
	};
	return 0;
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

/* ---- take ---------------------------------------------------------------------------------- */

struct take_body {
	struct str name;
	uint32_t ttl_seconds;
};
static const struct field take_fields[] = {
	FIELD(struct take_body, name, .max = SNAPSHOT_NAME_MAX / 4, .doc = "For people."),
	FIELD(struct take_body, ttl_seconds, .max = API_SNAPSHOT_TTL_MAX,
	      .doc = "It is deleted so long after; absent or 0: never."),
};
static const struct field_table take_body = FIELD_TABLE(struct take_body, take_fields);

struct take_params {
	struct id_path path;
	struct take_body body;
};
static const struct field take_parts[] = {
	API_ID_PATH(struct take_params),
	FIELD_OBJECT(struct take_params, body, take_body, .doc = "What to call it."),
};
static const struct field_table take_input = FIELD_TABLE(struct take_params, take_parts);

static void on_taken(void *arg, const struct snapshot *s, const struct err *err)
{
	if (err)
		call_fail(arg, err);
	else if (call_cancelled(arg) && !once_kept(arg))
		ask_discard_snapshot(arg, s);
	else
		answer(arg, s);
}

static void take(struct call *c, const struct take_params *p, struct str id)
{
	const struct snapshot_spec spec = {
		.id = id,
		.name = p->body.name,
		.ttl_ms = p->body.ttl_seconds * 1000ull,
	};
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);

	if (l)
		snapshot_take_start(l, &spec, on_taken, c);
	else
		call_fail(c, &e);
}

static void run_take(struct call *c, const void *params)
{
	const struct take_params *p = params;
	char id[ID_MAX];
	struct str plan = { id, 0 };
	struct snapshot *made = NULL;
	struct err e;
	enum once once;

	id_make(id, "snap");
	plan.n = strlen(id);
	once = once_begin(c, &plan);
	if (once == ONCE_OVER)
		return;
	if (once == ONCE_AGAIN)
		made = snapshots_find(call_lives(c), plan, &e);
	if (made)
		answer(c, made);
	else
		take(c, p, plan);
}

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
	FIELD_OBJECTS(struct page, snapshots, snapshot_view_table, .flags = FIELD_REQUIRED,
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
	  .op = &(const struct
		  op){ .action = "snapshot.take",
		       .doc = "Keeps the files that a sandbox has changed; what runs in it stands still "
			      "meanwhile.",
		       .effect = OP_WRITE,
		       .flags = OP_KEYED,
		       .request = &take_input,
		       .target = OP_TARGET(struct take_params, path.id),
		       .result = &snapshot_view_table,
		       .run = run_take },
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
				    .result = &snapshot_view_table,
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
