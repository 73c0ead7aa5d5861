/* sandbox_snapshot and sandbox_restore: files kept beyond their sandbox, and new sandboxes with them. */
#include "door/mcp/tools.h"

#include "hub/sandbox/snapshots.h"
#include "door/mcp/common.h"

/* ---- take ---------------------------------------------------------------------------------- */

enum { TTL_MAX = 365 * 24 * 3600 };

struct take_params {
	struct str sandbox, name;
	uint32_t ttl_seconds;
};
static const struct field take_fields[] = {
	SANDBOX_ROW(struct take_params),
	FIELD(struct take_params, name, .max = SNAPSHOT_NAME_MAX / 4, .doc = "For people."),
	FIELD(struct take_params, ttl_seconds, .max = TTL_MAX,
	      .doc = "Deleted so long after; never if absent."),
};
static const struct field_table take_input = FIELD_TABLE(struct take_params, take_fields);

struct take_result {
	struct str snapshot, sandbox, digest;
	uint64_t bytes;
};
static const struct field taken_fields[] = {
	FIELD(struct take_result, snapshot, .flags = FIELD_REQUIRED,
	      .doc = "Id for sandbox_restore."),
	FIELD(struct take_result, sandbox, .flags = FIELD_REQUIRED, .doc = "What it was taken of."),
	FIELD(struct take_result, digest, .flags = FIELD_REQUIRED,
	      .doc = "SHA-256 of its archive."),
	FIELD(struct take_result, bytes, .flags = FIELD_REQUIRED, .doc = "Of the archive."),
};
static const struct field_table take_output = FIELD_TABLE(struct take_result, taken_fields);

static void on_taken(void *arg, const struct snapshot *s, const struct err *err)
{
	struct call *c = arg;
	struct snapshot_info i;
	struct take_result r;

	if (err) {
		call_fail(c, err);
		return;
	}
	snapshot_info(s, &i);
	r = (struct take_result){ i.id, i.source, i.digest, i.bytes };
	call_answer(c, &r);
}

static void run_take(struct call *c, const void *params)
{
	const struct take_params *p = params;
	const struct snapshot_spec spec = { .name = p->name, .ttl_ms = p->ttl_seconds * 1000ull };
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);

	if (l)
		snapshot_take_start(l, &spec, on_taken, c);
	else
		call_fail(c, &e);
}

const struct tool sandbox_snapshot_tool = {
	.op =
		&(const struct op){
			.action = "snapshot.take",
			.effect = OP_WRITE,
			.request = &take_input,
			.target = OP_TARGET(struct take_params, sandbox),
			.result = &take_output,
			.run = run_take,
		},
	.name = "sandbox_snapshot",
	.title = "Take a snapshot",
	.doc = "Keeps the files of a sandbox as they are now, beyond its end; what runs in it stands still "
	       "meanwhile.",
	.says = "Snapshot {snapshot}",
};

/* ---- restore ------------------------------------------------------------------------------- */

struct restore_params {
	struct str snapshot;
};
static const struct field restore_fields[] = {
	FIELD(struct restore_params, snapshot, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id that sandbox_snapshot gave."),
};
static const struct field_table restore_input = FIELD_TABLE(struct restore_params, restore_fields);

static void on_restored(void *arg, struct life *const *made, size_t n, const struct err *err)
{
	struct call *c = arg;
	struct err e = ERR_INIT;
	struct state_result r;
	struct life_info i;

	if (err) {
		call_fail(c, err);
	} else if (call_cancelled(c)) {
		tool_discard(made[0]); /* nobody will learn its id */
		err_set(&e, ERR_CANCELLED, "sandbox_restore was cancelled");
		call_fail(c, &e);
	} else {
		life_info(made[0], &i);
		r = (struct state_result){ i.id, i.state };
		call_answer(c, &r);
	}
}

static void run_restore(struct call *c, const void *params)
{
	const struct restore_params *p = params;
	struct err e = ERR_INIT;
	struct snapshot *s = snapshots_find(call_lives(c), p->snapshot, &e);

	if (s)
		snapshot_restore_start(s, &(struct snapshot_restore){ .n = 1 }, on_restored, c);
	else
		call_fail(c, &e);
}

const struct tool sandbox_restore_tool = {
	.op =
		&(const struct op){
			.action = "snapshot.restore",
			.effect = OP_WRITE,
			.request = &restore_input,
			.result = &state_result_table,
			.run = run_restore,
		},
	.name = "sandbox_restore",
	.title = "Restore a snapshot",
	.doc = "Makes a new sandbox with the files of a snapshot, and returns its id.",
	.says = "Created sandbox {sandbox}",
};
