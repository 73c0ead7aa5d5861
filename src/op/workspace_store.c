/* workspace.gc, .verify, .export: what is stored of workspaces. */
#include "op/files.h"
#include "op/ops.h"
#include "op/workspace.h"

/* ---- workspace.gc ---------------------------------------------------------------------------- */

#define T struct workspaces_gc
static const struct field gc_fields[] = {
	FIELD(T, revisions, .flags = FIELD_REQUIRED, .doc = "Number of revisions removed."),
	FIELD(T, removed, .flags = FIELD_REQUIRED, .doc = "Number of objects removed."),
	FIELD(T, removed_bytes, .flags = FIELD_REQUIRED, .doc = "Bytes removed."),
	FIELD(T, kept, .flags = FIELD_REQUIRED, .doc = "Number of objects left."),
	FIELD(T, kept_bytes, .flags = FIELD_REQUIRED, .doc = "Bytes left."),
};
#undef T
static const struct field_table gc_table = FIELD_TABLE(struct workspaces_gc, gc_fields);

static void gc_on_done(void *arg, const struct workspaces_gc *result, const struct err *err)
{
	if (err)
		call_fail(arg, err);
	else
		call_answer(arg, result);
}

static void workspace_gc_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct workspaces *all = call_workspaces_kept(c, &e);

	(void)request;
	if (all)
		workspaces_gc_start(all, gc_on_done, c);
	else
		call_fail(c, &e);
}

const struct op workspace_gc_op = {
	.action = "workspace.gc",
	.doc = "Removes data of deleted workspaces and failed commits from the store. "
	       "This also happens by itself.",
	.effect = OP_ADMINISTER,
	.request = &op_nothing_table,
	.result = &gc_table,
	.run = workspace_gc_run,
};

/* ---- workspace.verify ------------------------------------------------------------------------ */

struct verify_request {
	struct str workspace;
};
static const struct field verify_fields[] = { WORKSPACE_NAME_ROW(struct verify_request) };
static const struct field_table verify_table = FIELD_TABLE(struct verify_request, verify_fields);

#define T struct workspace_damage
static const struct field damage_fields[] = {
	FIELD(T, number, .flags = FIELD_REQUIRED,
	      .doc = "Number of the newest revision that has it."),
	FIELD(T, revision, .flags = FIELD_REQUIRED, .doc = "Id of that revision."),
	FIELD(T, path, .flags = FIELD_REQUIRED,
	      .doc = "Path in the workspace; empty: its top directory."),
	FIELD(T, path_bytes, .flags = FIELD_BYTES,
	      .doc = "Bytes of the path, if they are not UTF-8."),
	FIELD(T, why, .flags = FIELD_REQUIRED, .doc = "What is wrong."),
};
#undef T
static const struct field_table damage_table = FIELD_TABLE(struct workspace_damage, damage_fields);

#define T struct workspace_verify_view
static const struct field verified_fields[] = {
	FIELD(T, workspace, .flags = FIELD_REQUIRED, .doc = "Name of the workspace."),
	FIELD(T, revisions, .flags = FIELD_REQUIRED, .doc = "Number of revisions read."),
	FIELD(T, objects, .flags = FIELD_REQUIRED,
	      .doc = "Number of objects read, each counted once."),
	FIELD(T, bytes, .flags = FIELD_REQUIRED, .doc = "Bytes of file contents read."),
	FIELD(T, damaged, .flags = FIELD_REQUIRED,
	      .doc = "Number of objects that are missing or damaged."),
	FIELD_OBJECTS(T, damages, damage_table, .flags = FIELD_REQUIRED,
		      .doc = "The first damaged objects."),
};
#undef T
static const struct field_table verified_table = FIELD_TABLE(struct workspace_verify_view,
							     verified_fields);

static void verify_on_done(void *arg, const struct workspace_verified *result,
			   const struct err *err)
{
	struct call *c = arg;
	const struct verify_request *q = call_request(c);

	if (err)
		call_fail(c, err);
	else
		call_answer(c, &(struct workspace_verify_view){
				       .workspace = q->workspace,
				       .revisions = result->revisions,
				       .objects = result->objects,
				       .bytes = result->bytes,
				       .damaged = result->damaged,
				       .damages = { result->damages, result->n } });
}

static void workspace_verify_run(struct call *c, const void *request)
{
	const struct verify_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);

	if (w)
		workspace_verify_start(w, verify_on_done, c);
	else
		call_fail(c, &e);
}

const struct op workspace_verify_op = {
	.action = "workspace.verify",
	.doc = "Reads all that the revisions of a workspace need, and reports what is damaged.",
	.effect = OP_READ,
	.request = &verify_table,
	.result = &verified_table,
	.run = workspace_verify_run,
};

/* ---- workspace.export ------------------------------------------------------------------------ */

struct export_request {
	struct str workspace, revision;
	bool raw;
};
static const struct field export_fields[] = {
	WORKSPACE_NAME_ROW(struct export_request),
	REVISION_ROW(struct export_request, revision,
		     .doc = "Revision, or its first digits; absent: the newest."),
	OP_RAW_ROW(struct export_request),
};
static const struct field_table export_table = FIELD_TABLE(struct export_request, export_fields);

/* Its memory is the call's. */
struct exporting {
	struct call *call;
	struct workspace_export *x; /* NULL once it has ended */
	bool streams, waits;
};

static void export_on_room(void *data)
{
	struct exporting *m = data;

	if (!m->waits || !m->x)
		return;
	m->waits = false;
	workspace_export_next(m->x);
}

static void export_on_bytes(void *arg, struct str bytes)
{
	struct exporting *m = arg;
	struct err e;

	if (!m->streams && call_open(m->call, export_on_room, m, &e) < 0) {
		workspace_export_stop(take_ptr(m->x));
		call_fail(m->call, &e);
		return;
	}
	m->streams = true;
	files_send_archive(m->call, bytes, false);
	m->waits = call_full(m->call);
	if (!m->waits && m->x)
		workspace_export_next(m->x);
}

static void export_on_end(void *arg, const struct err *err)
{
	struct exporting *m = arg;

	m->x = NULL;
	if (err) {
		call_fail(m->call, err);
		return;
	}
	files_send_archive(m->call, STR_NONE, true);
	call_answer(m->call, NULL);
}

static void export_on_cancel(void *data)
{
	struct exporting *m = data;
	struct err e;

	if (m->x)
		workspace_export_stop(take_ptr(m->x));
	err_set(&e, ERR_CANCELLED, "the client went away");
	call_fail(m->call, &e);
}

static void workspace_export_run(struct call *c, const void *request)
{
	static const struct workspace_export_events events = { export_on_bytes, export_on_end };
	const struct export_request *q = request;
	struct err e = ERR_INIT;
	struct workspace *w = call_workspace(c, q->workspace, &e);
	struct exporting *m = w ? arena_alloc(call_arena(c), sizeof(*m), &e) : NULL;

	if (m)
		*m = (struct exporting){ c, workspace_export_new(w, q->revision, &events, m, &e) };
	if (!m || !m->x) {
		call_fail(c, &e);
		return;
	}
	call_on_cancel(c, export_on_cancel, m);
	workspace_export_next(m->x);
}

const struct op workspace_export_op = {
	.action = "workspace.export",
	.doc = "Exports the files of a revision as a tar archive. If it fails midway, "
	       "the connection is cut before the end of the archive.",
	.effect = OP_READ,
	.flags = OP_ARCHIVE,
	.request = &export_table,
	.raw = OP_RAW(struct export_request, raw),
	.event = &file_chunk_table,
	.run = workspace_export_run,
};
