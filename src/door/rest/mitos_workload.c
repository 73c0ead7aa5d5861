/* The workload of a template of mitos: a command that is started in each of its sandboxes. */
#include "door/rest/mitos.h"

#include <string.h>

#include "base/log.h"
#include "op/exec.h"

static const struct field workload_fields[] = {
	FIELD(struct mitos_workload, command, .max = EXEC_ARGS_MAX,
	      .doc = "Program and its arguments."),
	FIELD(struct mitos_workload, env, .max = API_ENV_MAX,
	      .doc = "Environment variables of the program."),
};
/* ready is not waited for. */
const struct field_table mitos_workload_table = FIELD_TABLE(struct mitos_workload, workload_fields,
							    .open = true);

/* A command of its own, which goes on when the request that made the sandbox is answered. */
struct starting {
	struct arena *arena; /* which has this */
	struct json_doc *doc; /* what the request borrows */
	struct exec_request request;
};

static void starting_end(struct starting *s)
{
	struct arena *a = s->arena;

	json_free(s->doc);
	arena_free(a);
}

static void starting_on_answer(void *client, const struct field_table *t, const void *result)
{
	starting_end(client);
}

static void starting_on_fail(void *client, const struct err *e)
{
	struct starting *s = client;

	log_warn("sandbox %.*s: the workload of its template does not run: %s",
		 STR_ARG(s->request.sandbox), e->msg);
	starting_end(s);
}

static int starting_decode(void *client, void *request, struct err *e)
{
	memcpy(request, &((struct starting *)client)->request, sizeof(struct exec_request));
	return 0;
}

static int starting_fill(struct starting *s, const char *text, struct str sandbox, struct err *e)
{
	struct exec_request *r = &s->request;
	struct mitos_workload w;
	char *id;

	s->doc = json_parse(str_of(text), NULL, e);
	if (!s->doc ||
	    field_decode(&mitos_workload_table, json_root(s->doc), s->arena, &w, e) < 0 ||
	    !(id = arena_dup(s->arena, sandbox, e)))
		return -1;
	field_defaults(sandbox_exec_op.request, r);
	r->sandbox = (struct str){ id, sandbox.n };
	r->command = w.command.p[0];
	r->has_args = true;
	r->args = (struct field_strs){ w.command.p + 1, w.command.n - 1 };
	r->env = w.env;
	r->background = true;
	r->exec_id = STR_LIT("workload"); /* so that a request that is repeated starts no second */
	return 0;
}

void mitos_workload_start(struct call *c, const char *text, struct str sandbox)
{
	static const struct op_sink sink = { .answer = starting_on_answer,
					     .fail = starting_on_fail };
	struct arena *a = arena_new(1 << 20);
	struct err e = ERR_INIT;
	struct starting *s = a ? arena_alloc(a, sizeof(*s), &e) : NULL;
	struct call *inner = NULL;

	if (!s) {
		arena_free(a);
		return;
	}
	s->arena = a;
	if (starting_fill(s, text, sandbox, &e) == 0)
		inner = call_inner(c,
				   &(struct op_start){ .op = &sandbox_exec_op,
						       .decode = starting_decode,
						       .sink = &sink,
						       .client = s,
						       .arena = a },
				   &e);
	if (inner)
		op_start(inner);
	else
		starting_on_fail(s, &e);
}
