#include "door/mcp/tools.h"

#include <stdio.h>

#include "door/mcp/common.h"

struct terminate_params {
	struct str sandbox;
};

static const struct field terminate_fields[] = { SANDBOX_ROW(struct terminate_params) };
static const struct field_table terminate_input = FIELD_TABLE(struct terminate_params,
							      terminate_fields);

struct terminate_result {
	struct str sandbox;
	bool terminated;
};

static const struct field result_fields[] = {
	FIELD(struct terminate_result, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD(struct terminate_result, terminated, .flags = FIELD_REQUIRED,
	      .doc = "True: nothing of it is left."),
};
static const struct field_table terminate_output = FIELD_TABLE(struct terminate_result,
							       result_fields);

struct terminate_run {
	struct call *call;
	char id[LIFE_ID_MAX + 1];
};

static void on_terminated(void *arg, struct life *l, const struct err *err)
{
	struct terminate_run *r = arg;
	struct terminate_result result = { .sandbox = str_of(r->id), .terminated = true };

	if (err)
		call_fail(r->call, err);
	else
		call_answer(r->call, &result);
}

static void run(struct call *c, const void *params)
{
	const struct terminate_params *p = params;
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);
	struct terminate_run *r = l ? arena_alloc(call_arena(c), sizeof(*r), &e) : NULL;

	if (!r) {
		call_fail(c, &e);
		return;
	}
	r->call = c;
	snprintf(r->id, sizeof(r->id), "%.*s", STR_ARG(p->sandbox));
	life_terminate_start(l, on_terminated, r);
}

const struct tool sandbox_terminate_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.terminate",
			.effect = OP_DESTROY,
			.request = &terminate_input,
			.target = OP_TARGET(struct terminate_params, sandbox),
			.result = &terminate_output,
			.run = run,
		},
	.name = "sandbox_terminate",
	.title = "Terminate a sandbox",
	.doc = "Ends a sandbox: its processes are killed and its files are gone. Commands that still "
	       "run in it fail.",
	.says = "Terminated sandbox {sandbox}",
};
