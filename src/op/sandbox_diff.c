/* sandbox.diff and sandbox.stop: what a sandbox has changed, and keeping it without running. */
#include "hub/sandbox/snapshots.h"
#include "op/sandbox_view.h"

/* ---- sandbox.diff -------------------------------------------------------------------------- */

struct diff_request {
	struct str sandbox;
	uint32_t limit;
};
static const struct field diff_fields[] = {
	OP_SANDBOX_ROW(struct diff_request),
	FIELD(struct diff_request, limit, .min = 1, .max = SNAPSHOT_CHANGES_MAX,
	      .def = DEFAULT_INT(SNAPSHOT_CHANGES_MAX), .doc = "Paths at most."),
};
static const struct field_table diff_table = FIELD_TABLE(struct diff_request, diff_fields);

static const char *const type_names[] = { [FILE_REGULAR] = "file",
					  [FILE_DIRECTORY] = "directory",
					  [FILE_SYMLINK] = "symlink",
					  [FILE_OTHER] = "other" };

static const struct field change_fields[] = {
	FIELD_ENUM(struct snapshot_change, change, snapshot_change_names, .flags = FIELD_REQUIRED,
		   .doc = "How the path changed."),
	FIELD_ENUM(struct snapshot_change, type, type_names, .flags = FIELD_REQUIRED,
		   .doc = "Type of the file; for a removed path, its former type."),
	FIELD(struct snapshot_change, path, .flags = FIELD_REQUIRED,
	      .doc = "From the sandbox's root. Bytes that are not UTF-8 are shown as U+FFFD."),
};
static const struct field_table change_table = FIELD_TABLE(struct snapshot_change, change_fields);

struct diff_view {
	struct {
		const struct snapshot_change *p;
		size_t n;
	} changes;
	bool truncated;
};
static const struct field view_fields[] = {
	FIELD_OBJECTS(struct diff_view, changes, change_table, .flags = FIELD_REQUIRED,
		      .doc = "Sorted by path."),
	FIELD(struct diff_view, truncated, .flags = FIELD_REQUIRED, .doc = "There are more paths."),
};
static const struct field_table view_table = FIELD_TABLE(struct diff_view, view_fields);

static void diff_on_done(void *arg, const struct snapshot_change *changes, size_t n, bool truncated,
			 const struct err *err)
{
	struct call *c = arg;
	size_t limit = ((const struct diff_request *)call_request(c))->limit;
	const struct diff_view view = { { changes, n < limit ? n : limit },
					truncated || n > limit };

	uint64_t bytes = 0;

	for (size_t i = 0; i < view.changes.n; i++)
		bytes += changes[i].path.n;
	call_count_out(c, bytes);
	if (err)
		call_fail(c, err);
	else
		call_answer(c, &view);
}

static void sandbox_diff_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, ((const struct diff_request *)request)->sandbox,
						 &e);

	if (l)
		snapshot_diff_start(l, diff_on_done, c);
	else
		call_fail(c, &e);
}

const struct op sandbox_diff_op = {
	.action = "sandbox.diff",
	.doc = "Lists what a sandbox has changed against its template. Its processes "
	       "are paused meanwhile.",
	.effect = OP_READ,
	.request = &diff_table,
	.target = OP_TARGET(struct diff_request, sandbox),
	.result = &view_table,
	.run = sandbox_diff_run,
};

/* ---- sandbox.stop -------------------------------------------------------------------------- */

struct stop_request {
	struct str sandbox;
	bool cold;
};
static const struct field stop_fields[] = {
	OP_SANDBOX_ROW(struct stop_request),
	FIELD(struct stop_request, cold,
	      .doc = "Keep its files for 7 days instead of 30; its state becomes cold."),
};
static const struct field_table stop_table = FIELD_TABLE(struct stop_request, stop_fields);

static void stop_on_done(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct call *c = arg;
	struct sandbox_view view;
	struct err e = ERR_INIT;

	if (err)
		call_fail(c, err);
	else if (sandbox_view(c, l, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

static void sandbox_stop_run(struct call *c, const void *request)
{
	const struct stop_request *q = request;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = call_hub_sandbox(c, q->sandbox, &e);

	if (l)
		hub_sandbox_stop_start(l, q->cold, 0, stop_on_done, c);
	else
		call_fail(c, &e);
}

const struct op sandbox_stop_op = {
	.action = "sandbox.stop",
	.doc = "Ends the processes of a sandbox and keeps its files. sandbox.resume "
	       "starts it again under the same id, as its next generation, without its "
	       "processes.",
	.effect = OP_WRITE,
	.flags = OP_LIFECYCLE | OP_NO_WAKE,
	.request = &stop_table,
	.target = OP_TARGET(struct stop_request, sandbox),
	.result = &sandbox_view_table,
	.run = sandbox_stop_run,
};
