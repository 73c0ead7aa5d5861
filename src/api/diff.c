/* GET /v1/sandboxes/{id}/diff: what a sandbox has changed against its template. */
#include "api/common.h"
#include "hub/snapshots.h"

static const char *const diff_names[DIFFS] = {
	[DIFF_ADDED] = "added", [DIFF_CHANGED] = "changed", [DIFF_REMOVED] = "removed"
};
static const char *const type_names[] = { [FILE_REGULAR] = "file",
					  [FILE_DIRECTORY] = "directory",
					  [FILE_SYMLINK] = "symlink",
					  [FILE_OTHER] = "other" };

struct change_view {
	enum diff change;
	enum file_type type;
	struct str path;
};
static const struct field change_fields[] = {
	FIELD_ENUM(struct change_view, change, diff_names, .flags = FIELD_REQUIRED,
		   .doc = "What became of the path."),
	FIELD_ENUM(struct change_view, type, type_names, .flags = FIELD_REQUIRED,
		   .doc = "What is there; of what was removed, what was."),
	FIELD(struct change_view, path, .flags = FIELD_REQUIRED,
	      .doc = "From the sandbox's root. Bytes that are not UTF-8 are shown as U+FFFD."),
};
static const struct field_table change_table = FIELD_TABLE(struct change_view, change_fields);

struct diff_view {
	struct {
		const struct change_view *p;
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

static int by_path(const void *a, const void *b)
{
	const struct str x = ((const struct change_view *)a)->path;
	const struct str y = ((const struct change_view *)b)->path;
	int order = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);

	return order ? order : (x.n > y.n) - (x.n < y.n);
}

static void on_diff(void *arg, const struct snapshot_change *changes, size_t n, bool truncated,
		    const struct err *err)
{
	struct call *c = arg;
	struct err e = ERR_INIT;
	struct change_view *views = err ? NULL : arena_array(call_arena(c), n, sizeof(*views), &e);
	const struct diff_view view = { { views, n }, truncated };

	if (!views) {
		call_fail(c, err ? err : &e);
		return;
	}
	for (size_t i = 0; i < n; i++)
		views[i] = (struct change_view){ changes[i].diff, changes[i].type,
						 changes[i].path };
	qsort(views, n, sizeof(*views), by_path);
	call_answer(c, &(struct call_answer){ .structured = &view });
}

static void run(struct call *c, const void *params)
{
	const struct diff_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = ask_life(c, p->path.id, &e);

	if (l)
		snapshot_diff_start(l, on_diff, c);
	else
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .tool = { .name = "sandboxes.diff",
		    .doc = "What a sandbox has changed against its template: at most 50000 paths; what "
			   "runs in it stands still meanwhile.",
		    .input = &diff_input,
		    .output = &diff_table,
		    .run = run },
	  .method = HTTP_GET,
	  .path = "/v1/sandboxes/{id}/diff",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_diff = API_RESOURCE(rows);
