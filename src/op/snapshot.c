#include "op/snapshot.h"

#include "base/id.h"
#include "base/log.h"
#include "box/host/box.h"
#include "hub/core/when.h"
#include "op/once.h"
#include "op/ops.h"

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
	found = snapshots_find(call_lives(c), i.id, &e);
	if (!found || snapshot_delete(found, &e) < 0)
		log_warn("could not delete a snapshot that nobody waits for: %s", e.msg);
	err_set(&e, ERR_CANCELLED, "%s was cancelled", call_op(c)->action);
	call_fail(c, &e);
}

/* ---- snapshot.take ------------------------------------------------------------------------- */

struct take_request {
	struct str sandbox, name;
	uint32_t ttl_seconds;
};
static const struct field take_fields[] = {
	OP_SANDBOX_ROW(struct take_request),
	FIELD(struct take_request, name, .max = SNAPSHOT_NAME_MAX / 4, .doc = "For people."),
	FIELD(struct take_request, ttl_seconds, .max = SNAPSHOT_TTL_MAX,
	      .doc = "It is deleted so long after; absent or 0: never."),
};
static const struct field_table take_table = FIELD_TABLE(struct take_request, take_fields);

static void take_answer(struct call *c, const struct snapshot *s)
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
		take_answer(c, s);
}

static void take_start(struct call *c, const struct take_request *q, struct str id)
{
	const struct snapshot_spec spec = {
		.id = id,
		.name = q->name,
		.ttl_ms = q->ttl_seconds * 1000ull,
	};
	struct err e = ERR_INIT;
	struct life *l = call_life(c, q->sandbox, &e);

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
		made = snapshots_find(call_lives(c), plan, &e);
	if (made)
		take_answer(c, made);
	else
		take_start(c, request, plan);
}

const struct op snapshot_take_op = {
	.action = "snapshot.take",
	.doc = "Keeps the files that a sandbox has changed; what runs in it stands still meanwhile.",
	.effect = OP_WRITE,
	.flags = OP_KEYED,
	.request = &take_table,
	.target = OP_TARGET(struct take_request, sandbox),
	.result = &snapshot_view_table,
	.run = snapshot_take_run,
};
