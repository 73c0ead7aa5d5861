/* question.ask and question.result: an agent, or whoever else, asks a person and waits. */
#include "op/question/question.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "call/call.h"
#include "call/guard.h"
#include "op/ops.h"

enum {
	QUESTION_CHARS = 1000,
	OPTION_CHARS = 80,
	RESULT_SECONDS_MAX = 50,
	TICKS_QUIET = 10, /* seconds between two reports of progress */
};

struct ask_request {
	enum question_kind kind;
	struct str session_id, title, question, text, yes_label, no_label;
	struct field_strs options;
	bool allow_free_text, wait;
	struct field_json schema;
	enum question_style style;
	uint32_t timeout_seconds;
};

#define Q struct ask_request
static const struct field ask_fields[] = {
	FIELD_ENUM(Q, kind, question_kind_names, .flags = FIELD_REQUIRED,
		   .doc = "How it is answered."),
	SESSION_ROW(Q),
	FIELD(Q, question, .max = QUESTION_CHARS, .doc = "What is asked."),
	FIELD(Q, title, .max = QUESTION_LABEL_MAX, .doc = "A heading."),
	FIELD(Q, options, .max = QUESTION_OPTIONS_MAX, .item_min = 1, .item_max = OPTION_CHARS,
	      .doc = "Labels to choose from."),
	FIELD(Q, yes_label, .min = 1, .max = OPTION_CHARS, .doc = "Label for yes. Default: Yes."),
	FIELD(Q, no_label, .min = 1, .max = OPTION_CHARS, .doc = "Label for no. Default: No."),
	FIELD(Q, allow_free_text, .doc = "Allow a text as the answer instead of an option."),
	FIELD(Q, text, .max = QUESTION_TEXT_MAX, .doc = "Initial text of a textbox."),
	FIELD(Q, schema, .max = QUESTION_TEXT_MAX,
	      .doc = "For a form: JSON Schema of an object with members of type string, "
		     "number, integer, boolean, or array of an enum."),
	FIELD_ENUM(Q, style, question_style_names,
		   .doc = "Style of a notification. Default: info."),
	FIELD(Q, wait, .def = DEFAULT_BOOL(true),
	      .doc = "Return when the person has answered; false: at once, and "
		     "question.result has the answer."),
	FIELD(Q, timeout_seconds, .min = 1, .max = QUESTION_SECONDS_MAX,
	      .def = DEFAULT_INT(QUESTION_SECONDS),
	      .doc = "Seconds until the question's deadline."),
};
#undef Q
static const struct field_table ask_table = FIELD_TABLE(struct ask_request, ask_fields);

#define V struct question_said
static const struct field said_fields[] = {
	FIELD(V, request_id, .flags = FIELD_REQUIRED, .doc = "Id of the question."),
	FIELD_ENUM(V, state, question_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Whether it was answered, or why it never will be."),
	FIELD(V, response, .doc = "Answer to yes or no: yes, no, timeout or cancelled."),
	FIELD(V, selected, .doc = "Label of the chosen option."),
	FIELD(V, index, .doc = "Index of the chosen option, from 0; -1: none."),
	FIELD(V, free_text, .doc = "Text given instead of an option, or in the textbox."),
	FIELD(V, values, .doc = "Values of the form, by name."),
	FIELD(V, timed_out, .doc = "Nobody answered in time."),
	FIELD(V, cancelled, .doc = "A person or the asker cancelled it."),
	FIELD(V, expires_at, .doc = "Deadline, RFC 3339."),
	FIELD(V, answered_by, .doc = "Who answered or cancelled it."),
	FIELD(V, answered_at, .doc = "When it was answered or cancelled, RFC 3339."),
};
#undef V
static const struct field_table said_table = FIELD_TABLE(struct question_said, said_fields);

struct questions *question_all(const struct call *c, struct err *e)
{
	struct questions *all = call_guard(c)->questions;

	if (!all)
		err_set(e, ERR_UNSUPPORTED, "only a hub asks people");
	return all;
}

/* ---- what came of it ----------------------------------------------------------------------- */

static struct str question_response(const struct question_view *v)
{
	if (v->state == QUESTION_EXPIRED)
		return STR_LIT("timeout");
	if (v->state == QUESTION_PENDING)
		return STR_LIT("");
	return v->state == QUESTION_ANSWERED ? v->option_id : STR_LIT("cancelled");
}

static void question_told(struct call *c, const struct question *q)
{
	struct err e = ERR_INIT;
	const struct question_view *v = question_describe(c, q, &e);

	if (!v) {
		call_fail(c, &e);
		return;
	}
	call_answer(
		c, &(struct question_said){
			   .request_id = v->request_id,
			   .state = v->state,
			   .response = v->kind == QUESTION_YES_NO ? question_response(v) : STR_NONE,
			   .selected = v->label.p ? v->label : STR_LIT(""),
			   .label = v->label.p ? v->label : STR_LIT(""),
			   .index = question_chosen(q),
			   .timed_out = v->state == QUESTION_EXPIRED,
			   .cancelled = v->state > QUESTION_EXPIRED,
			   .has_changed = v->kind == QUESTION_TEXTBOX,
			   .changed = v->free_text.p && !str_eq(v->free_text, v->text),
			   .submitted = v->kind == QUESTION_FORM && v->state == QUESTION_ANSWERED,
			   .success = true,
			   .free_text = v->free_text,
			   .values = v->values,
			   .expires_at = v->expires_at,
			   .answered_by = v->answered_by,
			   .answered_at = v->answered_at,
		   });
}

/* A call that waits for the end of a question; in its arena. */
struct asking {
	struct call *call;
	struct question_wait wait;
	struct str id;
	int64_t created_ms, deadline_ms;
	unsigned ticks;
	bool asks; /* it is the one that has asked */
};

static void asking_on_end(void *data, const struct question *q)
{
	struct asking *a = data;

	question_told(a->call, q);
}

/* Where the hub ends, the question stays. */
static void asking_on_cancel(void *data)
{
	struct asking *a = data;
	bool keep = !a->asks || call_going_down(a->call);
	struct err e;

	question_give_up(&a->wait, keep ? QUESTION_PENDING : QUESTION_CANCELLED);
	if (call_going_down(a->call))
		err_set(&e, ERR_TRANSPORT,
			"Holt is ending; question %.*s stays, ask_result tells its answer",
			STR_ARG(a->id));
	else
		err_set(&e, ERR_CANCELLED, "nobody waits for question %.*s any more",
			STR_ARG(a->id));
	call_fail(a->call, &e);
}

static void asking_on_tick(void *data)
{
	struct asking *a = data;
	int64_t now = clock_unix_ms();
	char text[160];

	if (a->ticks++ % TICKS_QUIET)
		return;
	snprintf(text, sizeof(text), "question %.*s waits for a person, %" PRId64 " s more",
		 STR_ARG(a->id), (a->deadline_ms - now) / 1000);
	call_progress(a->call, (double)(now - a->created_ms) / 1000,
		      (double)(a->deadline_ms - a->created_ms) / 1000, text);
}

static struct asking *asking_new(struct call *c, bool asks, struct err *e)
{
	struct asking *a = arena_alloc(call_arena(c), sizeof(*a), e);

	if (a)
		*a = (struct asking){ .call = c,
				      .asks = asks,
				      .wait = { .on_end = asking_on_end, .data = a } };
	return a;
}

static int asking_begin(struct asking *a, const struct question *q, struct err *e)
{
	char *id = arena_dup(call_arena(a->call), q->ask.id, e);

	if (!id || call_waits_for_person(a->call, e) < 0) {
		question_give_up(&a->wait, a->asks ? QUESTION_CANCELLED : QUESTION_PENDING);
		return -1;
	}
	a->id = str_of(id);
	a->created_ms = q->ask.created_ms;
	a->deadline_ms = q->ask.deadline_ms;
	call_on_cancel(a->call, asking_on_cancel, a);
	return 0;
}

/* ---- the person at the client -------------------------------------------------------------- */

static bool question_elicits(const struct call *c, const struct ask_request *q)
{
	const struct guard *g = call_guard(c);

	return q->wait && q->kind != QUESTION_NOTIFY && !call_asked(c).n && g->elicits(g->data, c);
}

/* The question waits for nobody until the door starts the call anew with the answer; meanwhile
 * others may answer. */
static int question_elicit(struct call *c, const struct question *q, struct err *e)
{
	struct str text, schema;
	char *id = arena_dup(call_arena(c), q->ask.id, e);

	if (!id || question_form(q, call_arena(c), &text, &schema, e) < 0)
		return -1;
	call_ask_client(c, str_of(id), text, schema);
	return err_set(e, ERR_DENIED, "question %s waits for the person at the client", id);
}

/* Takes what that person said, if it is an answer. Somebody else may have given one. */
static void question_hear(struct call *c, const struct question *q)
{
	struct questions *all = call_guard(c)->questions;
	struct question_answer a = {
		.id = q->ask.id,
		.who = str_of(call_principal(c)->name),
		.surface = STR_LIT("elicitation"),
	};
	struct err e;

	if (call_said(c) == OP_SAID_NO
		    ? question_cancel(all, q->ask.id, a.who, a.surface, &e) < 0
		    : question_read_form(q, call_said_values(c), call_arena(c), &a.reply, &e) < 0 ||
			      question_answer(all, &a, &e) < 0)
		log_debug("question %.*s: %s", STR_ARG(a.id), e.msg);
}

/* The question that the client's person was asked about; NULL: none. */
static const struct question *question_asked(struct call *c, struct questions *all)
{
	struct str id = call_asked(c);
	struct err e;
	const struct question *q = str_starts(id, "qst-") ? question_find(all, id, &e) : NULL;

	return q && str_eq(q->ask.principal, principal_owner(call_principal(c))) ? q : NULL;
}

/* ---- question.ask -------------------------------------------------------------------------- */

static int ask_options(const struct ask_request *r, struct arena *a, struct question_spec *s,
		       struct err *e)
{
	bool yes_no = r->kind == QUESTION_YES_NO;
	size_t n = yes_no ? 2 : r->options.n;
	struct question_option *p = arena_array(a, n, sizeof(*p), e);
	char *id;

	if (!p)
		return -1;
	if ((r->yes_label.p || r->no_label.p) && !yes_no)
		return err_set(e, ERR_INVALID, "yes_label, no_label: only yes_no has these");
	if (yes_no && r->options.n)
		return err_set(e, ERR_INVALID, "options: yes_no has yes_label and no_label");
	for (size_t i = 0; i < n && !yes_no; i++) {
		id = arena_printf(a, e, "%zu", i + 1);
		if (!id)
			return -1;
		p[i] = (struct question_option){ .id = str_of(id), .label = r->options.p[i] };
	}
	if (yes_no) {
		p[0] = (struct question_option){ STR_LIT("yes"),
						 r->yes_label.p ? r->yes_label : STR_LIT("Yes") };
		p[1] = (struct question_option){ STR_LIT("no"),
						 r->no_label.p ? r->no_label : STR_LIT("No") };
	}
	s->options.p = p;
	s->options.n = n;
	return 0;
}

int question_asker(struct call *c, struct str session_id, struct question_ask *ask, struct err *e)
{
	struct conversation_caller who = { NULL };
	const struct conversation *t;

	ask->principal = principal_owner(call_principal(c));
	ask->origin = call_by_agent(c) ? QUESTION_OF_MCP : QUESTION_OF_HUB;
	if (call_conversations(c) && conversation_caller(c, session_id, &who, e) < 0)
		return -1;
	if (who.by_token)
		ask->origin = QUESTION_OF_MCP;
	if (!who.me && !session_id.n)
		return 0;
	t = conversation_permits(c, session_id, CONVERSATION_FLAG_can_prompt_user, e);
	if (!t)
		return -1;
	ask->session = str_of(conversation_id(t));
	return 0;
}

static int ask_make(struct call *c, const struct ask_request *r, struct question_wait *w,
		    const struct question **ret, struct err *e)
{
	struct question_ask ask = {
		.kind = r->kind,
		.spec = { .title = r->title,
			  .question = r->question,
			  .allow_free_text = r->allow_free_text,
			  .text = r->text,
			  .schema = r->schema,
			  .style = r->style },
		.timeout_ms = r->timeout_seconds * 1000ull,
	};

	if (r->kind == QUESTION_PERMISSION)
		return err_set(e, ERR_INVALID,
			       "kind: permission is for what Holt and agents' programs ask");
	return question_asker(c, r->session_id, &ask, e) < 0 ||
			       ask_options(r, call_arena(c), &ask.spec, e) < 0
		     ? -1
		     : question_ask(call_guard(c)->questions, &ask, w, ret, e);
}

/* 1: it has its answer, or is not to wait. 0: it waits. */
static int ask_start(struct call *c, const struct ask_request *r, struct asking *a,
		     const struct question **q, struct err *e)
{
	struct questions *all = call_guard(c)->questions;
	bool waits = r->wait && r->kind != QUESTION_NOTIFY;
	bool elicits = question_elicits(c, r);

	if (!questions_asks(all)->store && !elicits && call_said(c) == OP_SAID_NOTHING)
		return err_set(e, ERR_UNSUPPORTED, "nobody can be asked: there is no `holt serve`");
	*q = waits ? question_asked(c, all) : NULL;
	if (*q) {
		char *id = arena_dup(call_arena(c), (*q)->ask.id, e);

		/* Waits for the one that the client's person was asked about, whoever answers
		 * it. */
		if (!id)
			return -1;
		if (call_said(c) != OP_SAID_NOTHING)
			question_hear(c, *q);
		return question_join(call_guard(c)->questions, str_of(id), &a->wait, q, e);
	}
	if (ask_make(c, r, waits && !elicits ? &a->wait : NULL, q, e) < 0)
		return -1;
	return elicits ? question_elicit(c, *q, e) : !waits;
}

static void ask_run(struct call *c, const void *request)
{
	struct err e = ERR_INIT;
	struct asking *a = question_all(c, &e) ? asking_new(c, true, &e) : NULL;
	const struct question *q = NULL;
	int rc = a ? ask_start(c, request, a, &q, &e) : -1;

	if (rc == 0)
		rc = asking_begin(a, q, &e);
	if (rc < 0) {
		call_fail(c, &e);
	} else if (rc > 0) {
		question_told(c, q);
	} else {
		call_on_tick(c, asking_on_tick, a);
		asking_on_tick(a);
	}
}

const struct op question_ask_op = {
	.action = "question.ask",
	.doc = "Asks a person and waits for the answer.",
	.effect = OP_WRITE,
	.flags = OP_WAITS,
	.request = &ask_table,
	.result = &said_table,
	.run = ask_run,
};

/* ---- question.result ----------------------------------------------------------------------- */

struct result_request {
	struct str id;
	uint32_t wait_seconds;
};
static const struct field result_fields[] = {
	FIELD(struct result_request, id, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id of the question."),
	FIELD(struct result_request, wait_seconds, .max = RESULT_SECONDS_MAX, .def = DEFAULT_INT(0),
	      .doc = "Seconds to wait for the answer."),
};
static const struct field_table result_table = FIELD_TABLE(struct result_request, result_fields);

static void result_on_time(void *data)
{
	struct asking *a = data;
	struct err e;
	const struct question *q = question_find(call_guard(a->call)->questions, a->id, &e);

	question_give_up(&a->wait, QUESTION_PENDING);
	if (q)
		question_told(a->call, q);
	else
		call_fail(a->call, &e);
}

static void result_run(struct call *c, const void *request)
{
	const struct result_request *r = request;
	struct err e = ERR_INIT;
	struct questions *all = question_all(c, &e);
	struct asking *a = all ? asking_new(c, false, &e) : NULL;
	const struct question *q = a ? question_seen(c, r->id, &e) : NULL;
	bool waits = q && r->wait_seconds && q->state == QUESTION_PENDING;

	if (!q || (waits && (question_join(all, r->id, &a->wait, &q, &e) < 0 ||
			     asking_begin(a, q, &e) < 0))) {
		call_fail(c, &e);
	} else if (!waits) {
		question_told(c, q);
	} else {
		call_on_quiet(c, r->wait_seconds * 1000ull, result_on_time, a);
	}
}

const struct op question_result_op = {
	.action = "question.result",
	.doc = "Returns the answer to a question that was asked before.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &result_table,
	.result = &said_table,
	.run = result_run,
};
