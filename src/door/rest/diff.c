/* GET /v1/sandboxes/{id}/diff: what a sandbox has changed against its template. */
#include "door/http/common.h"
#include "hub/sandbox/snapshots.h"

static const char *const type_names[] = { [FILE_REGULAR] = "file",
					  [FILE_DIRECTORY] = "directory",
					  [FILE_SYMLINK] = "symlink",
					  [FILE_OTHER] = "other" };

static const struct field change_fields[] = {
	FIELD_ENUM(struct snapshot_change, change, snapshot_change_names, .flags = FIELD_REQUIRED,
		   .doc = "What became of the path."),
	FIELD_ENUM(struct snapshot_change, type, type_names, .flags = FIELD_REQUIRED,
		   .doc = "What is there; of what was removed, what was."),
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
static const struct field diff_fields[] = {
	FIELD_OBJECTS(struct diff_view, changes, change_table, .flags = FIELD_REQUIRED,
		      .doc = "By path."),
	FIELD(struct diff_view, truncated, .flags = FIELD_REQUIRED,
	      .doc = "There are more than these."),
};
static const struct field_table diff_table = FIELD_TABLE(struct diff_view, diff_fields);

struct diff_params {
	struct id_path path;
};
static const struct field diff_parts[] = { API_ID_PATH(struct diff_params) };
static const struct field_table diff_input = FIELD_TABLE(struct diff_params, diff_parts);

static void on_diff(void *arg, const struct snapshot_change *changes, size_t n, bool truncated,
		    const struct err *err)
{
	const struct diff_view view = { { changes, n }, truncated };

	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, &view);
}

static void run(struct call *c, const void *params)
{
	const struct diff_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);

	if (l)
		snapshot_diff_start(l, on_diff, c);
	else
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .id = "sandboxes.diff",
	  .op = &(const struct
		  op){ .action = "sandbox.diff",
		       .doc = "What a sandbox has changed against its template: at most 50000 paths; what "
			      "runs in it stands still meanwhile.",
		       .effect = OP_READ,
		       .request = &diff_input,
		       .target = OP_TARGET(struct diff_params, path.id),
		       .result = &diff_table,
		       .run = run },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/diff",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_diff = API_RESOURCE(rows);
