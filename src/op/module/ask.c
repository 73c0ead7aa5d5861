/*
 * Questions of modules, in the middle of a call. The client of the call is asked, and where there
 * is a hub also whoever looks at its inbox: the first answer counts, and takes the question from
 * the other. The inbox has forms, and addresses to open; words of a model are the client's alone.
 */
#include "base/log.h"
#include "call/guard.h"
#include "op/module/module.h"
#include "op/question/question.h"

enum { ANSWER_MAX = 64 << 10, TICKS_QUIET = 10 /* seconds between two reports of progress */ };

/* In the call's arena. */
struct module_asking {
	struct call_question q; /* first */
	struct upstream_question *of;
	struct call *call;
	bool at_client; /* the client has it */
	struct question_wait wait;
	struct str inbox; /* id of the question there; STR_NONE: it is not */
	unsigned ticks;
};

static const enum call_ask_kind asking_kinds[] = {
	[MCP_ASK_FORM] = CALL_ASK_FORM,
	[MCP_ASK_URL] = CALL_ASK_URL,
	[MCP_ASK_SAMPLING] = CALL_ASK_SAMPLING,
};

/* What a person may say to an address, and to a form without members. */
static const struct question_option asking_options[] = {
	{ STR_LIT("accept"), STR_LIT("Accept") },
	{ STR_LIT("decline"), STR_LIT("Decline") },
};

/* ---- what the module is told --------------------------------------------------------------- */

/* action: as MCP has it; values: of a form, or STR_NONE. */
static void asking_tell(struct module_asking *a, struct str action, struct str values)
{
	autobuf struct buf b = BUF_INIT(ANSWER_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_write_name(&w, "action");
	json_write_str(&w, action);
	if (values.n) {
		json_write_name(&w, "content");
		json_write_raw(&w, values);
	}
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0)
		upstream_question_fail(a->of, e.msg);
	else
		upstream_question_answer(a->of, buf_str(&b));
}

static struct str asking_values(const struct module_asking *a, const struct question *q)
{
	if (q->kind == QUESTION_FORM)
		return q->reply.values.text;
	return a->q.kind == CALL_ASK_FORM ? STR_LIT("{}") : STR_NONE;
}

/* Answered, also by the client's person, or it never will be. */
static void asking_on_end(void *data, const struct question *q)
{
	struct module_asking *a = data;
	bool accepts = q->state == QUESTION_ANSWERED &&
		       (q->kind == QUESTION_FORM || str_is(q->reply.option_id, "accept"));

	a->inbox = STR_NONE;
	call_end_asking(a->call);
	if (a->at_client)
		call_unask(&a->q);
	if (accepts)
		asking_tell(a, STR_LIT("accept"), asking_values(a, q));
	else if (q->state == QUESTION_ANSWERED || q->state == QUESTION_CANCELLED)
		asking_tell(a, STR_LIT("decline"), STR_NONE);
	else
		asking_tell(a, STR_LIT("cancel"), STR_NONE);
}

static void asking_leave_inbox(struct module_asking *a, enum question_state to)
{
	if (!a->inbox.p)
		return;
	a->inbox = STR_NONE;
	question_give_up(&a->wait, to);
	call_end_asking(a->call);
}

/* ---- the client ---------------------------------------------------------------------------- */

/* What its person said ends the question in the inbox, and a->wait hears of that. 0: it has. */
static int asking_hear(struct module_asking *a, struct str said, struct err *e)
{
	struct questions *all = call_guard(a->call)->questions;
	const struct question *q = question_find(all, a->inbox, e);
	AUTO(json_free) struct json_doc *doc = q ? json_parse(said, NULL, e) : NULL;
	struct str action = json_str(json_get(json_root(doc), "action"));
	struct question_answer answer = {
		.id = a->inbox,
		.reply = { .option_id = asking_options[0].id },
		.who = str_of(call_principal(a->call)->name),
		.surface = STR_LIT("elicitation"),
	};

	if (!doc)
		return -1;
	if (str_is(action, "decline"))
		return question_cancel(all, a->inbox, answer.who, answer.surface, e);
	if (!str_is(action, "accept"))
		return err_set(e, ERR_CANCELLED, "the form was dismissed");
	if (q->kind == QUESTION_FORM &&
	    question_read_form(q, json_get(json_root(doc), "content"), call_arena(a->call),
			       &answer.reply, e) < 0)
		return -1;
	return question_answer(all, &answer, e);
}

static void asking_on_said(struct call_question *cq, struct str said, const struct err *err)
{
	struct module_asking *a = (struct module_asking *)cq;
	struct err e = ERR_INIT;

	a->at_client = false;
	if (a->inbox.p && err)
		return; /* others may still answer */
	if (a->inbox.p && asking_hear(a, said, &e) == 0)
		return;
	asking_leave_inbox(a, QUESTION_CANCELLED);
	if (!err && e.code && e.code != ERR_CANCELLED)
		err = &e;
	if (err)
		upstream_question_fail(a->of, err->msg);
	else
		upstream_question_answer(a->of, said);
}

/* ---- the inbox ----------------------------------------------------------------------------- */

static void asking_on_tick(void *data)
{
	struct module_asking *a = data;

	if (call_is_waiting(a->call) && a->ticks++ % TICKS_QUIET == 0)
		call_still(a->call, "a question of the module waits for a person");
}

static int asking_in_inbox(struct module_asking *a, const struct json_val *params, struct err *e)
{
	const struct json_val *schema = json_get(params, "requestedSchema");
	autobuf struct buf b = BUF_INIT(QUESTION_TEXT_MAX);
	struct json_writer w = json_writer(&b);
	bool form = json_len(json_get(schema, "properties")) > 0;
	struct question_ask ask = {
		.kind = form ? QUESTION_FORM : QUESTION_PERMISSION,
		.spec = { .question = json_str(json_get(params, "message")),
			  .text = json_str(json_get(params, "url")) },
		.timeout_ms = QUESTION_SECONDS * 1000,
	};
	const struct question *q;
	char *id;

	if (form) {
		json_write_val(&w, schema);
		if (json_write_done(&w, e) < 0)
			return -1;
		ask.spec.schema.text = buf_str(&b);
	} else {
		ask.spec.options.p = asking_options;
		ask.spec.options.n = ARRAY_LEN(asking_options);
	}
	if (question_asker(a->call, STR_NONE, &ask, e) < 0)
		return -1;
	ask.origin = QUESTION_OF_MCP;
	if (question_ask(call_guard(a->call)->questions, &ask, &a->wait, &q, e) < 0)
		return -1;
	id = arena_dup(call_arena(a->call), q->ask.id, e);
	if (!id) {
		question_give_up(&a->wait, QUESTION_CANCELLED);
		return -1;
	}
	a->inbox = str_of(id);
	return 0;
}

/* -1: the inbox does not have it. */
static int asking_put(struct module_asking *a, struct err *e)
{
	struct questions *all = call_guard(a->call)->questions;
	AUTO(json_free) struct json_doc *doc = NULL;

	if (!all || !questions_asks(all)->store || a->q.kind == CALL_ASK_SAMPLING)
		return err_set(e, ERR_CLIENT_CANT, "nobody at the client can be asked");
	doc = json_parse(call_redact(a->call, a->q.params), NULL, e);
	if (!doc || call_begin_asking(a->call, e) < 0)
		return -1;
	if (asking_in_inbox(a, json_root(doc), e) == 0)
		return 0;
	call_end_asking(a->call);
	return -1;
}

/* ---- both ---------------------------------------------------------------------------------- */

void module_ask(struct call *c, struct upstream_question *q)
{
	struct err e = ERR_INIT, none = ERR_INIT;
	struct module_asking *a = arena_alloc(call_arena(c), sizeof(*a), &e);

	if (!a) {
		upstream_question_fail(q, e.msg);
		return;
	}
	*a = (struct module_asking){
		.q = { .kind = asking_kinds[upstream_question_kind(q)],
		       .params = upstream_question_params(q),
		       .on_said = asking_on_said },
		.of = q,
		.call = c,
		.wait = { .on_end = asking_on_end, .data = a },
	};
	upstream_question_set_data(q, a);
	if (asking_put(a, &e) < 0 && e.code != ERR_CLIENT_CANT)
		log_info("a question of a module is not in the inbox: %s", e.msg);
	a->at_client = call_ask(c, &a->q, &none) == 0;
	if (a->inbox.p || a->at_client) {
		call_on_tick(c, asking_on_tick, a);
		return;
	}
	upstream_question_set_data(q, NULL);
	upstream_question_fail(q, e.code == ERR_CLIENT_CANT ? none.msg : e.msg);
}

void module_unask(struct upstream_question *q)
{
	struct module_asking *a = upstream_question_data(q);

	if (!a)
		return;
	if (a->at_client)
		call_unask(&a->q);
	asking_leave_inbox(a, call_going_down(a->call) ? QUESTION_PENDING : QUESTION_CANCELLED);
}
