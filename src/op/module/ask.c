/* Questions of modules, in the middle of a call, to the client of the call. */
#include "op/module/module.h"

/* In the call's arena. */
struct module_asking {
	struct call_question q; /* first */
	struct upstream_question *of;
};

static const enum call_ask_kind asking_kinds[] = {
	[MCP_ASK_FORM] = CALL_ASK_FORM,
	[MCP_ASK_URL] = CALL_ASK_URL,
	[MCP_ASK_SAMPLING] = CALL_ASK_SAMPLING,
};

static void asking_on_said(struct call_question *q, struct str said, const struct err *e)
{
	struct module_asking *a = (struct module_asking *)q;

	if (e)
		upstream_question_fail(a->of, e->msg);
	else
		upstream_question_answer(a->of, said);
}

/* Who is asked: the client of the call. Whoever else may answer, such as an inbox of questions, is
 * asked from here, too. */
static int asking_put(struct call *c, struct module_asking *a, struct err *e)
{
	return call_ask(c, &a->q, e);
}

void module_ask(struct call *c, struct upstream_question *q)
{
	struct err e = ERR_INIT;
	struct module_asking *a = arena_alloc(call_arena(c), sizeof(*a), &e);

	if (a) {
		*a = (struct module_asking){
			.q = { .kind = asking_kinds[upstream_question_kind(q)],
			       .params = upstream_question_params(q),
			       .on_said = asking_on_said },
			.of = q,
		};
		upstream_question_set_data(q, a);
	}
	if (!a || asking_put(c, a, &e) < 0) {
		upstream_question_set_data(q, NULL);
		upstream_question_fail(q, e.msg);
	}
}

void module_unask(struct upstream_question *q)
{
	struct module_asking *a = upstream_question_data(q);

	if (a)
		call_unask(&a->q);
}
