#include "door/mcp/tools.h"

#include "door/mcp/common.h"

struct timeout_params {
	struct str sandbox;
	uint32_t seconds;
};
static const struct field timeout_fields[] = {
	SANDBOX_ROW(struct timeout_params),
	FIELD(struct timeout_params, seconds, .flags = FIELD_REQUIRED, .max = 30 * 24 * 3600,
	      .doc = "From now; 0: it never ends by itself."),
};
static const struct field_table timeout_input = FIELD_TABLE(struct timeout_params, timeout_fields);

struct timeout_result {
	struct str sandbox;
	uint32_t seconds;
};
static const struct field result_fields[] = {
	FIELD(struct timeout_result, sandbox, .flags = FIELD_REQUIRED, .doc = "Its id."),
	FIELD(struct timeout_result, seconds, .flags = FIELD_REQUIRED, .doc = "As asked for."),
};
static const struct field_table timeout_output = FIELD_TABLE(struct timeout_result, result_fields);

static void run(struct call *c, const void *params)
{
	const struct timeout_params *p = params;
	const struct timeout_result r = { p->sandbox, p->seconds };
	struct err e = ERR_INIT;
	struct life *l = call_life(c, p->sandbox, &e);

	if (!l || life_set_timeout(l, p->seconds * 1000ull, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &r);
}

static int text_of(const void *result, struct buf *to, struct err *e)
{
	const struct timeout_result *r = result;

	if (r->seconds == 0)
		return buf_addf(to, e, "Sandbox %.*s has no time to live", STR_ARG(r->sandbox));
	return buf_addf(to, e, "Sandbox %.*s ends in %u s", STR_ARG(r->sandbox), r->seconds);
}

const struct tool sandbox_set_timeout_tool = {
	.op =
		&(const struct op){
			.action = "sandbox.set_timeout",
			.effect = OP_WRITE,
			.flags = OP_IDEMPOTENT,
			.request = &timeout_input,
			.target = OP_TARGET(struct timeout_params, sandbox),
			.result = &timeout_output,
			.run = run,
		},
	.name = "sandbox_set_timeout",
	.title = "Set a time to live",
	.doc = "Gives a sandbox its time to live anew, longer or shorter than before.",
	.text = text_of,
};
