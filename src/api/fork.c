/* POST /v1/sandboxes/{id}/fork: sandboxes with the files, limits and deadlines of a running one. */
#include "api/names.h"
#include "api/view.h"
#include "base/clock.h"
#include "base/log.h"

enum { FORKS_MAX = API_NAMES_MAX };

struct fork_body {
	struct str id, template;
	bool pause_source, has_count, has_ids;
	uint32_t count;
	struct field_strs ids;
};
static const struct field body_fields[] = {
	FIELD(struct fork_body, id, .min = 1, .max = API_ID_MAX,
	      .doc = "Name of the one new sandbox. Absent: one is made."),
	FIELD(struct fork_body, pause_source,
	      .doc = "The source is paused before, and stays so until /v1/resume."),
	FIELD(struct fork_body, template, .max = API_TEMPLATE_MAX,
	      .doc = "Ignored: it is the source's."),
	FIELD(struct fork_body, count, .min = 1, .max = FORKS_MAX, .def = DEFAULT_INT(1),
	      .has = FIELD_HAS(struct fork_body, has_count),
	      .doc = "How many, of one instant, all or none; with it the answer has a list."),
	FIELD(struct fork_body, ids, .min = 1, .max = FORKS_MAX, .item_min = 1,
	      .item_max = API_ID_MAX, .has = FIELD_HAS(struct fork_body, has_ids),
	      .doc = "The names of all; with it the answer has a list."),
};
static const struct field_table body_table = FIELD_TABLE(struct fork_body, body_fields);

struct fork_params {
	struct id_path path;
	struct once_header header;
	struct fork_body body;
};
static const struct field fork_parts[] = {
	API_ID_PATH(struct fork_params),
	ONCE_HEADER(struct fork_params),
	FIELD_OBJECT(struct fork_params, body, body_table, .doc = "What to make of it."),
};
static const struct field_table fork_input = FIELD_TABLE(struct fork_params, fork_parts);

struct forks {
	struct {
		const struct sandbox_view *p;
		size_t n;
	} sandboxes;
};
static const struct field forks_fields[] = {
	FIELD_OBJECTS(struct forks, sandboxes, sandbox_view_table, .flags = FIELD_REQUIRED,
		      .doc = "The new ones."),
};
static const struct field_table forks_table = FIELD_TABLE(struct forks, forks_fields);

struct forking {
	struct call *call;
	uint64_t begun_ns;
	bool list;
};

static int view_all(struct forking *f, struct life *const *children, size_t n,
		    struct sandbox_view *views, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (sandbox_view(f->call, children[i], &views[i], e) < 0)
			return -1;
		views[i].has_fork_time_ms = true;
		views[i].fork_time_ms = (double)(clock_ns() - f->begun_ns) / 1e6;
	}
	return 0;
}

static void answer(struct forking *f, struct life *const *children, size_t n)
{
	struct sandbox_view views[FORKS_MAX];
	struct forks forks = { { views, n } };
	struct err e = ERR_INIT;

	if (view_all(f, children, n, views, &e) < 0)
		call_fail(f->call, &e);
	else if (f->list)
		ask_answer_by(f->call, &forks_table, &forks);
	else
		call_answer(f->call, &(struct call_answer){ .structured = views });
}

static void on_discarded(void *arg, struct life *l, const struct err *err)
{
	if (err)
		log_warn("could not end a sandbox that nobody waits for: %s", err->msg);
}

static void on_forked(void *arg, struct life *const *children, size_t n, const struct err *err)
{
	struct forking *f = arg;
	struct err e;

	if (err) {
		call_fail(f->call, err);
	} else if (call_cancelled(f->call) && !once_kept(f->call)) {
		for (size_t i = 0; i < n; i++)
			life_terminate_start(children[i], on_discarded, NULL);
		err_set(&e, ERR_CANCELLED, "the client went away while the forks were made");
		call_fail(f->call, &e);
	} else {
		answer(f, children, n);
	}
}

static int check_body(const struct fork_body *p, struct err *e)
{
	if (p->has_ids && (p->id.p || (p->has_count && p->count != p->ids.n)))
		return err_set(e, ERR_INVALID,
			       "body: ids names all of them: no id, and count is their number");
	if (p->id.p && p->count != 1)
		return err_set(e, ERR_INVALID, "body: id names one; ids names %u", p->count);
	return 0;
}

static void start(struct forking *f, const struct fork_params *p, const struct api_names *names)
{
	const struct life_fork_spec spec = { names->n, names->p, p->body.pause_source };
	struct err e = ERR_INIT;
	struct life *l = ask_life(f->call, p->path.id, &e);

	if (l)
		life_fork_start(l, &spec, on_forked, f);
	else
		call_fail(f->call, &e);
}

/* What was answered before is answered again, whether or not the source is still known. */
static void run(struct call *c, const void *params)
{
	const struct fork_params *p = params;
	const struct fork_body *b = &p->body;
	struct err e = ERR_INIT;
	struct forking *f = arena_alloc(call_arena(c), sizeof(*f), &e);
	struct life *made[API_NAMES_MAX];
	struct api_names names;

	ask_context(c)->sandbox = p->path.id;
	if (!f || check_body(b, &e) < 0 ||
	    api_names(c, b->id, b->has_ids ? &b->ids : NULL, b->count, &names, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	*f = (struct forking){ c, clock_ns(), b->has_count || b->has_ids };
	switch (api_names_once(c, &p->header, &names, made)) {
	case ONCE_OVER:
		break;
	case ONCE_AGAIN:
		answer(f, made, names.n);
		break;
	case ONCE_NEW:
		start(f, p, &names);
	}
}

static const struct api_route rows[] = {
	{ .tool = { .name = "sandboxes.fork",
		    .doc = "Forks a running sandbox: as many new ones as asked for, with its files as "
			   "they are at one instant.",
		    .input = &fork_input,
		    .output = &sandbox_view_table,
		    .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/fork",
	  .page = &forks_table,
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) },
};
const struct api_resource api_fork = API_RESOURCE(rows);
