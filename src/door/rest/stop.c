/* POST /v1/sandboxes/{id}/stop: the files are kept, the rest ends; /v1/resume starts it again. */
#include "door/rest/view.h"
#include "hub/sandbox/snapshots.h"

struct stop_body {
	bool cold;
};
static const struct field stop_fields[] = {
	FIELD(struct stop_body, cold,
	      .doc = "Its files are kept for 7 days, not 30; its state is cold."),
};
static const struct field_table stop_body = FIELD_TABLE(struct stop_body, stop_fields);

struct stop_params {
	struct id_path path;
	struct stop_body body;
};
static const struct field stop_parts[] = {
	API_ID_PATH(struct stop_params),
	FIELD_OBJECT(struct stop_params, body, stop_body, .doc = "How."),
};
static const struct field_table stop_input = FIELD_TABLE(struct stop_params, stop_parts);

static void on_stopped(void *arg, struct life *l, const struct err *err)
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

static void run(struct call *c, const void *params)
{
	const struct stop_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->path.id, &e);

	if (l)
		life_stop_start(l, p->body.cold, on_stopped, c);
	else
		call_fail(c, &e);
}

static const struct api_route rows[] = {
	{ .id = "sandboxes.stop",
	  .op = &(const struct
		  op){ .action = "sandbox.stop",
		       .doc = "Ends what runs in a sandbox and keeps its files; /v1/resume starts it again "
			      "under the same id, as its next generation, without its processes.",
		       .effect = OP_WRITE,
		       .request = &stop_input,
		       .target = OP_TARGET(struct stop_params, path.id),
		       .result = &api_sandbox_table,
		       .run = run },
	  .method = HTTP_POST,
	  .path = "/v1/sandboxes/{id}/stop",
	  .errors = API_MAY_SANDBOX | API_MAY(UNSUPPORTED) | API_MAY(BODY_TOO_LARGE) |
		    API_MAY(EXEC_TIMEOUT) },
};
const struct api_resource api_stop = API_RESOURCE(rows);
