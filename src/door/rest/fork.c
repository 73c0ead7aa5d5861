/* POST /v1/sandboxes/{id}/fork: sandboxes with the files, limits and deadlines of a running one. */
#include "door/rest/copies.h"

struct fork_body {
	struct copies_wish wish;
	struct str template;
	bool pause_source;
};
static const struct field body_fields[] = {
	COPIES_ROWS(struct fork_body, wish),
	FIELD(struct fork_body, pause_source,
	      .doc = "The source stands still while it is copied and then goes on, with "
		     "or without this."),
	FIELD(struct fork_body, template, .max = API_TEMPLATE_MAX,
	      .doc = "Ignored: it is the source's."),
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

/* What was answered before is answered again, whether or not the source is still known. */
static void run(struct call *c, const void *params)
{
	const struct fork_params *p = params;
	struct life_fork_spec spec = { .ids = NULL };
	struct err e = ERR_INIT;
	struct copies *k;
	struct life *l;

	call_about(c)->sandbox = p->path.id;
	k = copies_begin(c, &p->body.wish, &p->header);
	if (!k)
		return;
	spec.n = k->names.n;
	spec.ids = k->names.p;
	l = call_life(c, p->path.id, &e);
	if (l)
		life_fork_start(l, &spec, copies_end, k);
	else
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .id = "sandboxes.fork",
	  .op = &(const struct
		  op){ .action = "sandbox.fork",
		       .doc = "Forks a running sandbox: as many new ones as asked for, with its files as "
			      "they are at one instant.",
		       .effect = OP_WRITE,
		       .request = &fork_input,
		       .target = OP_TARGET(struct fork_params, path.id),
		       .result = &api_sandbox_table,
		       .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/fork",
	  .page = &copies_table,
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_fork = API_RESOURCE(rows);
