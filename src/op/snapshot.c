#include "op/snapshot.h"

#include "base/id.h"
#include "base/log.h"
#include "box/host/box.h"
#include "base/when.h"
#include "op/answer_pipe.h"
#include "op/files.h"
#include "call/once.h"
#include "op/ops.h"
#include "op/page.h"

static const struct field view_fields[] = { SNAPSHOT_ROWS("snapshot", "template") };
const struct field_table snapshot_view_table = FIELD_TABLE(struct snapshot_view, view_fields);

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
		.snapshot = i.id,
		.name = i.name.n ? i.name : STR_NONE,
		.source = i.source.n ? i.source : STR_NONE,
		.template = i.template,
		.digest = i.digest,
		.created_at = str_of(created),
		.expires_at = i.expires_ms ? str_of(expires) : STR_NONE,
		.bytes = i.bytes,
		.unpacked_bytes = i.unpacked,
		.disk_mb = i.limits.disk / MIB,
	};
	return 0;
}

void snapshot_discard(struct call *c, const struct snapshot *s)
{
	struct snapshot_info i;
	struct snapshot *found;
	struct err e;

	snapshot_info(s, &i);
	found = snapshots_find(call_sandboxes(c), i.id, &e);
	if (!found || snapshot_delete(found, &e) < 0)
		log_warn("could not delete a snapshot that nobody waits for: %s", e.msg);
	err_set(&e, ERR_CANCELLED, "%s was cancelled", call_op(c)->action);
	call_fail(c, &e);
}

struct snapshot *call_snapshot(struct call *c, struct str id, struct err *e)
{
	struct snapshot *s = snapshots_find(call_sandboxes(c), id, e);
	struct snapshot_info i;

	call_about(c)->snapshot = id;
	if (!s)
		return NULL;
	snapshot_info(s, &i);
	if (call_sees_owner(c, i.owner))
		return s;
	snapshots_unknown(id, e);
	return NULL;
}

/* ---- snapshot.take ------------------------------------------------------------------------- */

struct take_request {
	struct str sandbox, name;
	uint32_t ttl_seconds;
};
static const struct field take_fields[] = {
	OP_SANDBOX_ROW(struct take_request),
	FIELD(struct take_request, name, .max = SNAPSHOT_NAME_MAX / 4, .doc = "Display name."),
	FIELD(struct take_request, ttl_seconds, .max = SNAPSHOT_TTL_MAX,
	      .doc = "Seconds until it is deleted; absent or 0: never."),
};
static const struct field_table take_table = FIELD_TABLE(struct take_request, take_fields);

static void snapshot_answer(struct call *c, const struct snapshot *s)
{
	struct snapshot_view view;
	struct err e = ERR_INIT;

	if (snapshot_view(c, s, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

static void take_on_done(void *arg, const struct snapshot *s, const struct err *err)
{
	struct call *c = arg;

	if (err)
		call_fail(c, err);
	else if (call_cancelled(c) && !once_kept(c))
		snapshot_discard(c, s);
	else
		snapshot_answer(c, s);
}

static void take_start(struct call *c, const struct take_request *q, struct str id)
{
	const struct snapshot_spec spec = {
		.id = id,
		.name = q->name,
		.ttl_ms = q->ttl_seconds * 1000ull,
	};
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (l)
		snapshot_take_start(l, &spec, take_on_done, c);
	else
		call_fail(c, &e);
}

static void snapshot_take_run(struct call *c, const void *request)
{
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
		made = snapshots_find(call_sandboxes(c), plan, &e);
	if (made)
		snapshot_answer(c, made);
	else
		take_start(c, request, plan);
}

const struct op snapshot_take_op = {
	.action = "snapshot.take",
	.doc = "Keeps the files that a sandbox has changed. Its processes are paused meanwhile.",
	.effect = OP_WRITE,
	.flags = OP_KEYED | OP_LIFECYCLE,
	.request = &take_table,
	.target = OP_TARGET(struct take_request, sandbox),
	.result = &snapshot_view_table,
	.run = snapshot_take_run,
};

/* ---- snapshot.list ------------------------------------------------------------------------- */

struct snapshots_request {
	uint32_t limit;
	struct str cursor;
};
static const struct field list_fields[] = {
	FIELD(struct snapshots_request, limit, .min = 1, .max = PAGE_MAX,
	      .def = DEFAULT_INT(PAGE_DEFAULT), .doc = "Maximum number of snapshots to return."),
	CURSOR_ROW(struct snapshots_request),
};
static const struct field_table list_table = FIELD_TABLE(struct snapshots_request, list_fields);

static const struct field page_fields[] = {
	FIELD_OBJECTS(struct snapshots_view, snapshots, snapshot_view_table,
		      .flags = FIELD_REQUIRED, .doc = "In order of creation."),
	NEXT_CURSOR_ROW(struct snapshots_view),
};
static const struct field_table page_table = FIELD_TABLE(struct snapshots_view, page_fields);

/* Those behind `after` that the principal may know of. */
static size_t snapshot_collect(struct call *c, uint64_t after, struct snapshot **ret, size_t max)
{
	enum { STEP = 256 };
	struct snapshot *step[STEP];
	struct snapshot_info i;
	size_t n = 0, got = STEP;

	while (got == STEP && n < max) {
		got = snapshots_list(call_sandboxes(c), after, step, STEP);
		for (size_t k = 0; k < got && n < max; k++) {
			snapshot_info(step[k], &i);
			after = i.seq;
			if (call_sees_owner(c, i.owner))
				ret[n++] = step[k];
		}
	}
	return n;
}

static void snapshot_list_run(struct call *c, const void *request)
{
	const struct snapshots_request *q = request;
	struct err e = ERR_INIT;
	struct snapshot **found = arena_array(call_arena(c), q->limit + 1u,
					      sizeof(struct snapshot *), &e);
	struct snapshot_view *views = arena_array(call_arena(c), q->limit, sizeof(*views), &e);
	struct snapshots_view page = { .next_cursor = STR_NONE };
	struct snapshot_info last = { .seq = 0 };
	char cursor[CURSOR_MAX];
	uint64_t after = 0;
	size_t n = 0;
	int failed = !found || !views || (q->cursor.p && cursor_read(q->cursor, &after, &e) < 0);

	if (!failed)
		n = snapshot_collect(c, after, found, q->limit + 1u);
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

const struct op snapshot_list_op = {
	.action = "snapshot.list",
	.doc = "Lists the snapshots that clients have taken or imported.",
	.effect = OP_READ,
	.request = &list_table,
	.result = &page_table,
	.run = snapshot_list_run,
};

/* ---- snapshot.get and snapshot.delete ------------------------------------------------------ */

struct snapshot_request {
	struct str snapshot;
};
static const struct field one_fields[] = {
	FIELD(struct snapshot_request, snapshot, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id of the snapshot."),
};
static const struct field_table one_table = FIELD_TABLE(struct snapshot_request, one_fields);

static void snapshot_get_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct snapshot *s = call_snapshot(c, ((const struct snapshot_request *)request)->snapshot,
					   &e);

	if (s)
		snapshot_answer(c, s);
	else
		call_fail(c, &e);
}

const struct op snapshot_get_op = {
	.action = "snapshot.get",
	.doc = "Returns one snapshot.",
	.effect = OP_READ,
	.request = &one_table,
	.result = &snapshot_view_table,
	.run = snapshot_get_run,
};

static const struct field deleted_fields[] = {
	FIELD(struct snapshot_deleted, status, .flags = FIELD_REQUIRED, .doc = "Always deleted."),
	FIELD(struct snapshot_deleted, snapshot, .flags = FIELD_REQUIRED,
	      .doc = "Id of the snapshot."),
};
static const struct field_table deleted_table = FIELD_TABLE(struct snapshot_deleted,
							    deleted_fields);

static void snapshot_delete_run(struct call *c, const void *request)
{
	struct str id = ((const struct snapshot_request *)request)->snapshot;
	struct err e = ERR_INIT;
	struct snapshot *s = call_snapshot(c, id, &e);

	if (!s || snapshot_delete(s, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &(struct snapshot_deleted){ id, STR_LIT("deleted") });
}

const struct op snapshot_delete_op = {
	.action = "snapshot.delete",
	.doc = "Deletes a snapshot; sandboxes that were restored from it stay.",
	.effect = OP_DESTROY,
	.flags = OP_LIFECYCLE,
	.request = &one_table,
	.result = &deleted_table,
	.run = snapshot_delete_run,
};

/* ---- snapshot.export ----------------------------------------------------------------------- */

static void snapshot_send(struct call *c, struct str bytes)
{
	call_send(c, &(struct file_chunk){ bytes, bytes.n == 0 });
}

static void snapshot_on_exported(struct answer_pipe *p, const struct err *err)
{
	if (err)
		call_fail(p->call, err);
	else
		call_answer(p->call, NULL);
}

static void snapshot_on_export_cancel(void *data)
{
	struct answer_pipe *p = data;
	struct err e;

	answer_pipe_close(p);
	err_set(&e, ERR_CANCELLED, "the client went away");
	call_fail(p->call, &e);
}

static void snapshot_export_run(struct call *c, const void *request)
{
	const struct snapshot_request *q = request;
	struct err e = ERR_INIT;
	const struct snapshot *s = call_snapshot(c, q->snapshot, &e);
	struct answer_pipe *p = s ? arena_alloc(call_arena(c), sizeof(*p), &e) : NULL;
	int fd = p ? snapshot_open(s, &e) : -1;

	if (fd >= 0)
		*p = (struct answer_pipe){ .call = c,
					   .open = call_open,
					   .full = call_full,
					   .send = snapshot_send,
					   .on_end = snapshot_on_exported };
	if (fd < 0 || answer_pipe_start(p, fd, &e) < 0)
		call_fail(c, &e);
	else
		call_on_cancel(c, snapshot_on_export_cancel, p);
}

const struct op snapshot_export_op = {
	.action = "snapshot.export",
	.doc = "Exports a snapshot as an archive (tar with zstd), which can be imported "
	       "anywhere. If it fails midway, the connection is cut before the end of "
	       "the archive.",
	.effect = OP_READ,
	.flags = OP_ARCHIVE,
	.request = &one_table,
	.event = &file_chunk_table,
	.run = snapshot_export_run,
};
