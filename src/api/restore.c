/* POST /v1/snapshots/{id}/restore: new sandboxes with the files of a snapshot. */
#include "api/names.h"
#include "api/snapshot_view.h"
#include "api/view.h"
#include "base/clock.h"
#include "base/log.h"

enum { RESTORES_MAX = API_NAMES_MAX };

struct restore_body {
	struct str id;
	bool has_count, has_ids;
	uint32_t count;
	struct field_strs ids;
};
static const struct field body_fields[] = {
	FIELD(struct restore_body, id, .min = 1, .max = API_ID_MAX,
	      .doc = "Name of the one new sandbox. Absent: one is made."),
	FIELD(struct restore_body, count, .min = 1, .max = RESTORES_MAX, .def = DEFAULT_INT(1),
	      .has = FIELD_HAS(struct restore_body, has_count),
	      .doc = "How many, all or none; with it the answer has a list."),
	FIELD(struct restore_body, ids, .min = 1, .max = RESTORES_MAX, .item_min = 1,
	      .item_max = API_ID_MAX, .has = FIELD_HAS(struct restore_body, has_ids),
	      .doc = "The names of all; with it the answer has a list."),
};
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

struct restored {
	struct {
		const struct sandbox_view *p;
		size_t n;
	} sandboxes;
};
static const struct field restored_fields[] = {
	FIELD_OBJECTS(struct restored, sandboxes, sandbox_view_table, .flags = FIELD_REQUIRED,
		      .doc = "The new ones."),
};
static const struct field_table restored_table = FIELD_TABLE(struct restored, restored_fields);

struct restoring {
	struct call *call;
	uint64_t begun_ns;
	bool list;
};

static void answer(struct restoring *r, struct life *const *children, size_t n)
{
	struct sandbox_view views[RESTORES_MAX];
	struct restored all = { { views, n } };
	struct err e = ERR_INIT;

	for (size_t i = 0; i < n; i++) {
		if (sandbox_view(r->call, children[i], &views[i], &e) < 0) {
			call_fail(r->call, &e);
			return;
		}
		views[i].has_fork_time_ms = true;
		views[i].fork_time_ms = (double)(clock_ns() - r->begun_ns) / 1e6;
	}
	if (r->list)
		ask_answer_by(r->call, &restored_table, &all);
	else
		call_answer(r->call, &(struct call_answer){ .structured = views });
}

static void on_discarded(void *arg, struct life *l, const struct err *err)
{
	if (err)
		log_warn("could not end a sandbox that nobody waits for: %s", err->msg);
}

static void on_restored(void *arg, struct life *const *children, size_t n, const struct err *err)
{
	struct restoring *r = arg;
	struct err e;

	if (err) {
		call_fail(r->call, err);
	} else if (call_cancelled(r->call) && !once_kept(r->call)) {
		for (size_t i = 0; i < n; i++)
			life_terminate_start(children[i], on_discarded, NULL);
		err_set(&e, ERR_CANCELLED, "the client went away while it was restored");
		call_fail(r->call, &e);
	} else {
		answer(r, children, n);
	}
}

static int check_body(const struct restore_body *p, struct err *e)
{
	if (p->has_ids && (p->id.p || (p->has_count && p->count != p->ids.n)))
		return err_set(e, ERR_INVALID,
			       "body: ids names all of them: no id, and count is their number");
	if (p->id.p && p->count != 1)
		return err_set(e, ERR_INVALID, "body: id names one; ids names %u", p->count);
	return 0;
}

static void start(struct restoring *r, struct str id, const struct api_names *names)
{
	const struct snapshot_restore spec = { names->n, names->p };
	struct err e = ERR_INIT;
	struct snapshot *s = ask_snapshot(r->call, id, &e);

	if (s)
		snapshot_restore_start(s, &spec, on_restored, r);
	else
		call_fail(r->call, &e);
}

static void run(struct call *c, const void *params)
{
	const struct restore_params *p = params;
	const struct restore_body *b = &p->body;
	struct err e = ERR_INIT;
	struct restoring *r = arena_alloc(call_arena(c), sizeof(*r), &e);
	struct life *made[RESTORES_MAX];
	struct api_names names;

	if (!r || check_body(b, &e) < 0 ||
	    api_names(c, b->id, b->has_ids ? &b->ids : NULL, b->count, &names, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*r = (struct restoring){ c, clock_ns(), b->has_count || b->has_ids };
	switch (api_names_once(c, &p->header, &names, made)) {
	case ONCE_OVER:
		break;
	case ONCE_AGAIN:
		answer(r, made, names.n);
		break;
	case ONCE_NEW:
		start(r, p->path.id, &names);
	}
}

static const struct api_route rows[] = {
	{ .tool = { .name = "snapshots.restore",
		    .doc = "Makes sandboxes with the files of a snapshot: as many new ones as asked for, "
			   "with names, randomness and processes of their own.",
		    .input = &restore_input,
		    .output = &sandbox_view_table,
		    .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/snapshots/{id}/restore",
	  .page = &restored_table,
	  .errors = API_MAY(NOT_FOUND) | API_MAY(CONFLICT) | API_MAY(QUOTA_EXCEEDED) |
		    API_MAY(CANCELED) | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_restore = API_RESOURCE(rows);
