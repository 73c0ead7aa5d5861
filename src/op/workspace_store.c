/* workspace.gc and workspace.verify: what is stored of workspaces. */
#include "op/ops.h"
#include "op/workspace.h"

/* ---- workspace.gc ---------------------------------------------------------------------------- */

#define T struct workspaces_gc
static const struct field gc_fields[] = {
	FIELD(T, revisions, .flags = FIELD_REQUIRED, .doc = "Removed revisions."),
	FIELD(T, removed, .flags = FIELD_REQUIRED, .doc = "Removed objects."),
	FIELD(T, removed_bytes, .flags = FIELD_REQUIRED, .doc = "Of them."),
	FIELD(T, kept, .flags = FIELD_REQUIRED, .doc = "Objects that are left."),
	FIELD(T, kept_bytes, .flags = FIELD_REQUIRED, .doc = "Of them."),
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
	.doc = "Removes what deleted workspaces and failed commits left in the store; it also "
	       "happens by itself.",
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
	FIELD(T, number, .flags = FIELD_REQUIRED, .doc = "Of the newest revision that has it."),
	FIELD(T, revision, .flags = FIELD_REQUIRED, .doc = "That revision."),
	FIELD(T, path, .flags = FIELD_REQUIRED, .doc = "Below the workspace; empty: its top."),
	FIELD(T, path_bytes, .flags = FIELD_BYTES, .doc = "Its bytes, where they are not UTF-8."),
	FIELD(T, why, .flags = FIELD_REQUIRED, .doc = "What is wrong."),
};
#undef T
static const struct field_table damage_table = FIELD_TABLE(struct workspace_damage, damage_fields);

#define T struct workspace_verify_view
static const struct field verified_fields[] = {
	FIELD(T, workspace, .flags = FIELD_REQUIRED, .doc = "The workspace."),
	FIELD(T, revisions, .flags = FIELD_REQUIRED, .doc = "That were read."),
	FIELD(T, objects, .flags = FIELD_REQUIRED, .doc = "That were read, each once."),
	FIELD(T, bytes, .flags = FIELD_REQUIRED, .doc = "Of the contents of files among them."),
	FIELD(T, damaged, .flags = FIELD_REQUIRED, .doc = "Objects that are missing or damaged."),
	FIELD_OBJECTS(T, damages, damage_table, .flags = FIELD_REQUIRED,
		      .doc = "The first of them."),
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
	.doc = "Reads all that the revisions of a workspace need, and tells what is damaged.",
	.effect = OP_READ,
	.request = &verify_table,
	.result = &verified_table,
	.run = workspace_verify_run,
};
