/* sandbox_snapshot and sandbox_restore: files kept beyond their sandbox, and new sandboxes with them. */
#include "door/mcp/tools.h"

#include "hub/sandbox/snapshots.h"
#include "door/mcp/common.h"
#include "op/sandbox_view.h"

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

static const struct op_member restore_members[] = {
	{ "snapshot", .doc = "Id that sandbox_snapshot gave." },
	{ "replicas", .in = OP_HIDDEN },
	{ "id", .in = OP_HIDDEN },
	{ "ids", .in = OP_HIDDEN },
};

static const struct field restored_fields[] = {
	FIELD_NAMED(struct sandboxes_view, first, "sandbox", .flags = FIELD_REQUIRED,
		    .doc = "Its id."),
	FIELD_NAMED_ENUM(struct sandboxes_view, first_state, "state", life_state_names,
			 .flags = FIELD_REQUIRED, .doc = "What it is now."),
};
static const struct field_table restore_output = FIELD_TABLE(struct sandboxes_view,
							     restored_fields);

const struct tool sandbox_restore_tool = {
	.op = &snapshot_restore_op,
	.members = OP_MEMBERS(restore_members),
	.output = &restore_output,
	.name = "sandbox_restore",
	.title = "Restore a snapshot",
	.doc = "Makes a new sandbox with the files of a snapshot, and returns its id.",
	.says = "Created sandbox {sandbox}",
};
