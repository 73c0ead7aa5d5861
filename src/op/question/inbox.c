/* The inbox of people: question.list, .get, .answer and .cancel. Requests for approval stand in it
 * beside questions. */
#include "op/question/question.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "call/call.h"
#include "call/guard.h"
#include "op/ops.h"

enum { LIST_MAX = 2048, WAIT_MAX = 60, CURSOR_MAX = 48 };

#define V struct question_view
static const struct field view_fields[] = {
	FIELD(V, request_id, .flags = FIELD_REQUIRED, .doc = "Id of the question."),
	FIELD(V, session_id, .doc = "The conversation that it belongs to."),
	FIELD_ENUM(V, kind, question_kind_names, .flags = FIELD_REQUIRED,
		   .doc = "How it is answered."),
	FIELD_ENUM(V, origin, question_origin_names, .flags = FIELD_REQUIRED,
		   .doc = "Who asks: an agent over MCP or ACP, or the hub."),
	FIELD_ENUM(V, state, question_state_names, .flags = FIELD_REQUIRED,
		   .doc = "Whether it was answered, or why it never will be."),
	FIELD(V, principal, .flags = FIELD_REQUIRED, .doc = "Principal that asks."),
	FIELD(V, title, .doc = "A heading."),
	FIELD(V, question, .flags = FIELD_REQUIRED,
	      .doc = "Text of the question, in the asker's words."),
	FIELD_OBJECTS(V, options, question_option_table, .flags = FIELD_REQUIRED,
		      .max = QUESTION_OPTIONS_MAX, .doc = "Options to choose from."),
	FIELD(V, allow_free_text, .flags = FIELD_REQUIRED,
	      .doc = "A text may be the answer instead of an option."),
	FIELD(V, text, .doc = "Initial text of a textbox, or what a permission is about."),
	FIELD(V, schema, .doc = "JSON Schema of a form's values."),
	FIELD_ENUM(V, style, question_style_names, .has = FIELD_HAS(V, has_style),
		   .doc = "Style of a notification."),
	FIELD(V, tool_call_id, .doc = "Id of the agent's tool call that it is about."),
	FIELD(V, created_at, .flags = FIELD_REQUIRED, .doc = "When it was asked, RFC 3339."),
	FIELD(V, expires_at, .doc = "Deadline, RFC 3339; absent: none."),
	FIELD(V, answered_by, .doc = "Who answered or cancelled it."),
	FIELD(V, answered_over, .doc = "Door over which the answer came."),
	FIELD(V, answered_at, .doc = "When it ended, RFC 3339."),
	FIELD(V, option_id, .doc = "Id of the chosen option."),
	FIELD(V, label, .doc = "Label of the chosen option."),
	FIELD(V, free_text, .doc = "Text that was given as the answer."),
	FIELD(V, values, .doc = "Values of the form, by name."),
	FIELD_OBJECT(V, approval, approval_view_table, .has = FIELD_HAS(V, has_approval),
		     .doc = "The request for approval that it stands for."),
};
#undef V
const struct field_table question_view_table = FIELD_TABLE(struct question_view, view_fields);

/* ---- one ----------------------------------------------------------------------------------- */

struct question_copy {
	struct arena *arena;
	struct err *e;
	bool failed;
};

static struct str question_copy_text(void *data, const struct field *row, struct str text)
{
	struct question_copy *k = data;
	char *p = text.p ? arena_dup(k->arena, text, k->e) : NULL;

	k->failed |= text.p && !p;
	return (struct str){ p, p ? text.n : 0 };
}

static struct str question_or_none(struct str text)
{
	return text.n ? text : STR_NONE;
}

const struct question_view *question_describe(struct call *c, const struct question *q,
					      struct err *e)
{
	struct question_copy k = { .arena = call_arena(c), .e = e };
	const struct question_spec *s = &q->spec;
	struct question_view v = {
		.request_id = q->ask.id,
		.session_id = question_or_none(q->session),
		.principal = approval_name(q->ask.principal),
		.kind = q->kind,
		.origin = q->origin,
		.state = q->state,
		.title = s->title,
		.question = s->question,
		.options = { s->options.p, s->options.n },
		.allow_free_text = s->allow_free_text,
		.text = s->text,
		.schema = s->schema,
		.has_style = q->kind == QUESTION_NOTIFY,
		.style = s->style,
		.tool_call_id = s->tool_call_id,
		.answered_by = question_or_none(q->who),
		.answered_over = question_or_none(q->surface),
		.option_id = q->reply.option_id,
		.label = q->reply.label,
		.free_text = q->reply.free_text,
		.values = q->reply.values,
		.deadline_ms = q->ask.deadline_ms,
	};
	const struct question_view *ret;

	if (when_dup(k.arena, q->ask.created_ms, &v.created_at, e) < 0 ||
	    when_dup(k.arena, q->ask.deadline_ms, &v.expires_at, e) < 0 ||
	    when_dup(k.arena, q->ended_ms, &v.answered_at, e) < 0)
		return NULL;
	ret = field_copy(&question_view_table, &v, k.arena, question_copy_text, &k, e);
	return k.failed ? NULL : ret;
}

static const struct question_option approval_options[] = {
	{ STR_LIT("approve"), STR_LIT("Approve") },
	{ STR_LIT("deny"), STR_LIT("Deny") },
};

static enum question_state approval_state_here(enum approval_state s)
{
	static const enum question_state states[APPROVAL_STATES] = {
		[APPROVAL_PENDING] = QUESTION_PENDING, [APPROVAL_APPROVED] = QUESTION_ANSWERED,
		[APPROVAL_DENIED] = QUESTION_ANSWERED, [APPROVAL_EXPIRED] = QUESTION_EXPIRED,
		[APPROVAL_VOID] = QUESTION_CANCELLED,  [APPROVAL_SUPERSEDED] = QUESTION_SUPERSEDED,
	};

	return states[s];
}

/* A request for approval as a question. */
static int question_of_approval(struct call *c, const struct approval *a, struct question_view *v,
				struct err *e)
{
	const struct question_option *said = a->state == APPROVAL_APPROVED ? &approval_options[0]
					   : a->state == APPROVAL_DENIED   ? &approval_options[1]
									   : NULL;
	struct approval_view view;
	char *text;

	if (approval_describe(c, a, &view, e) < 0)
		return -1;
	text = arena_printf(call_arena(c), e, "Approve %.*s%s%.*s for %.*s?", STR_ARG(view.action),
			    view.target.n ? " of " : "", STR_ARG(view.target),
			    STR_ARG(view.principal));
	if (!text)
		return -1;
	*v = (struct question_view){
		.request_id = view.id,
		.kind = QUESTION_PERMISSION,
		.origin = QUESTION_OF_HUB,
		.state = approval_state_here(a->state),
		.principal = view.principal,
		.question = str_of(text),
		.options = { approval_options, ARRAY_LEN(approval_options) },
		.text = view.arguments,
		.created_at = view.created_at,
		.expires_at = view.expires_at,
		.answered_by = view.answered_by,
		.answered_over = view.answered_over,
		.answered_at = view.answered_at,
		.option_id = said ? said->id : STR_NONE,
		.label = said ? said->label : STR_NONE,
		.has_approval = true,
		.approval = view,
		.deadline_ms = a->ask.deadline_ms,
	};
	return 0;
}

static bool question_is_approval(struct str id)
{
	return str_starts(id, "apr-");
}

/* Requests for approval are for those who may answer them. */
static bool question_sees_approvals(const struct call *c)
{
	return call_guard(c)->approvals && call_principal(c)->sees_all &&
	       call_principal(c)->scopes & KEY_ADMIN;
}

/* Whether the caller may know of it: its asker, who has its conversation, and people. */
static bool question_visible(const struct call *c, const struct question *q)
{
	const struct conversations *conversations = q->session.n ? call_conversations(c) : NULL;
	const struct conversation *t = conversations ? conversations_find(conversations, q->session)
						     : NULL;

	return call_sees_owner(c, q->ask.principal) ||
	       (t && call_sees_owner(c, conversation_record(t)->owner));
}

const struct question *question_seen(const struct call *c, struct str id, struct err *e)
{
	struct questions *all = question_all(c, e);
	const struct question *q = all ? question_find(all, id, e) : NULL;

	if (!q || question_visible(c, q))
		return q;
	err_set(e, ERR_QUESTION_NOT_FOUND, "there is no question \"%.*s\"", STR_CUT(id, 64));
	return NULL;
}

static void question_tell(struct call *c, struct str id)
{
	bool approval = question_is_approval(id) && question_sees_approvals(c);
	struct err e = ERR_INIT;
	struct question_view own;
	const struct question_view *v = NULL;

	if (approval) {
		const struct approval *a = approval_find(call_guard(c)->approvals, id, &e);

		v = a && question_of_approval(c, a, &own, &e) == 0 ? &own : NULL;
	} else {
		const struct question *q = question_seen(c, id, &e);

		v = q ? question_describe(c, q, &e) : NULL;
	}
	if (v)
		call_answer(c, v);
	else
		call_fail(c, &e);
}

/* ---- question.list ------------------------------------------------------------------------- */

enum listed { LISTED_ALL = QUESTION_STATES, LISTED };
static const char *const listed_names[LISTED] = {
	[QUESTION_PENDING] = "pending",	      [QUESTION_ANSWERED] = "answered",
	[QUESTION_EXPIRED] = "expired",	      [QUESTION_CANCELLED] = "cancelled",
	[QUESTION_SUPERSEDED] = "superseded", [LISTED_ALL] = "all",
};

#define Q struct list_request
struct list_request {
	enum listed state;
	struct str session_id, after;
	uint32_t wait_seconds;
	uint64_t revs[2]; /* of after: questions and approvals */
};
static const struct field list_request_fields[] = {
	FIELD_ENUM(Q, state, listed_names,
		   .doc = "Only questions in this state. Default: pending."),
	FIELD(Q, session_id, .min = 1, .max = CONVERSATION_ID,
	      .doc = "Only questions of this conversation."),
	FIELD(Q, after, .min = 1, .max = CURSOR_MAX,
	      .doc = "Only questions that changed since the answer with this cursor, in any "
		     "state."),
	FIELD(Q, wait_seconds, .max = WAIT_MAX, .def = DEFAULT_INT(0),
	      .doc = "With after: seconds to wait for the first change."),
};
#undef Q
static const struct field_table list_request_table = FIELD_TABLE(struct list_request,
								 list_request_fields);

struct list_view {
	struct {
		const struct question_view *p;
		size_t n;
	} prompts;
	struct str cursor;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct list_view, prompts, question_view_table, .flags = FIELD_REQUIRED,
		      .max = LIST_MAX, .doc = "Sorted by deadline."),
	FIELD(struct list_view, cursor, .flags = FIELD_REQUIRED,
	      .doc = "Value of after to get the changes that follow."),
};
static const struct field_table list_table = FIELD_TABLE(struct list_view, list_fields);

static int list_normalize(void *request, struct arena *a, struct err *e)
{
	struct list_request *q = request;
	char *text = q->after.p ? arena_dup(a, q->after, e) : NULL, *end = text;

	if (!q->after.p)
		return 0;
	if (!text)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(q->revs); i++) {
		q->revs[i] = strtoull(end, &end, 10);
		if (*end != (i ? '\0' : '.'))
			return err_set(e, ERR_INVALID, "after: that is no cursor");
		end += *end == '.';
	}
	return 0;
}

/* A list that grows; in the call's arena. */
struct listing {
	struct call *call;
	const struct list_request *request;
	struct question_view *views;
	size_t n;
	uint64_t until_ms; /* it waits */
	struct asks_watch approvals;
	struct asks_watch questions;
};

static bool listing_wants(const struct listing *l, enum question_state state, uint64_t rev,
			  uint64_t after)
{
	enum listed of = l->request->state;

	if (l->n == LIST_MAX)
		return false;
	return l->request->after.p ? rev > after : of == LISTED_ALL || of == (enum listed)state;
}

static int listing_add_questions(struct listing *l, struct err *e)
{
	const struct questions *all = call_guard(l->call)->questions;
	const struct question *q = question_after(all, 0);
	struct str session = l->request->session_id;

	for (; q; q = question_after(all, q->ask.seq)) {
		const struct question_view *v;

		if (!listing_wants(l, q->state, q->ask.rev, l->request->revs[0]) ||
		    !question_visible(l->call, q) || (session.n && !str_eq(q->session, session)))
			continue;
		v = question_describe(l->call, q, e);
		if (!v)
			return -1;
		l->views[l->n++] = *v;
	}
	return 0;
}

static int listing_add_approvals(struct listing *l, struct err *e)
{
	const struct approvals *all = call_guard(l->call)->approvals;
	const struct approval *a = approval_after(all, 0);

	for (; a; a = approval_after(all, a->ask.seq)) {
		if (!listing_wants(l, approval_state_here(a->state), a->ask.rev,
				   l->request->revs[1]))
			continue;
		if (question_of_approval(l->call, a, &l->views[l->n], e) < 0)
			return -1;
		l->n++;
	}
	return 0;
}

static int listing_by_deadline(const void *x, const void *y)
{
	const struct question_view *a = x, *b = y;

	return (a->deadline_ms > b->deadline_ms) - (a->deadline_ms < b->deadline_ms);
}

/* At least as many as there are. */
static size_t listing_room(const struct guard *g)
{
	const struct approval *a = g->approvals ? approval_after(g->approvals, 0) : NULL;
	size_t n = 0;

	for (const struct question *q = question_after(g->questions, 0); q;
	     q = question_after(g->questions, q->ask.seq))
		n++;
	for (; a; a = approval_after(g->approvals, a->ask.seq))
		n++;
	return n;
}

/* The last change of what its client may see: nothing of others shows in its cursor. */
static uint64_t listing_rev(const struct listing *l)
{
	struct questions *all = call_guard(l->call)->questions;
	uint64_t rev = l->request->revs[0];

	if (rev > questions_asks(all)->rev)
		rev = 0; /* a cursor of another registry */
	for (const struct question *q = question_after(all, 0); q;
	     q = question_after(all, q->ask.seq))
		rev = q->ask.rev > rev && question_visible(l->call, q) ? q->ask.rev : rev;
	return rev;
}

static void listing_answer(struct listing *l)
{
	const struct guard *g = call_guard(l->call);
	bool approvals = !l->request->session_id.n && question_sees_approvals(l->call);
	struct err e = ERR_INIT;
	char *cursor = arena_printf(call_arena(l->call), &e, "%" PRIu64 ".%" PRIu64, listing_rev(l),
				    approvals ? approvals_asks(g->approvals)->rev : 0);

	l->views = arena_array(call_arena(l->call), listing_room(g), sizeof(*l->views), &e);
	if (!cursor || !l->views || listing_add_questions(l, &e) < 0 ||
	    (approvals && listing_add_approvals(l, &e) < 0)) {
		call_fail(l->call, &e);
		return;
	}
	qsort(l->views, l->n, sizeof(*l->views), listing_by_deadline);
	call_answer(l->call, &(struct list_view){ { l->views, l->n }, str_of(cursor) });
}

static void listing_unwatch(struct listing *l)
{
	const struct guard *g = call_guard(l->call);

	asks_watch_remove(questions_asks(g->questions), &l->questions);
	if (g->approvals)
		asks_watch_remove(approvals_asks(g->approvals), &l->approvals);
}

static void listing_end(void *data)
{
	listing_unwatch(data);
	listing_answer(data);
}

static bool listing_is_old(const struct listing *l)
{
	const struct guard *g = call_guard(l->call);
	const struct list_request *q = l->request;

	return listing_rev(l) > q->revs[0] ||
	       (question_sees_approvals(l->call) && approvals_asks(g->approvals)->rev > q->revs[1]);
}

static void listing_look(void *data)
{
	struct listing *l = data;
	uint64_t now = clock_ms();

	if (listing_is_old(l) || now >= l->until_ms)
		listing_end(l);
	else
		call_on_quiet(l->call, l->until_ms - now, listing_end, l);
}

/* Inside of a change nothing may be answered: a client's next request could change more. */
static void listing_on_change(void *data)
{
	struct listing *l = data;

	call_on_quiet(l->call, 0, listing_look, l);
}

static void listing_on_cancel(void *data)
{
	struct listing *l = data;
	struct err e;

	listing_unwatch(l);
	err_set(&e, ERR_CANCELLED, "nobody waits for a change any more");
	call_fail(l->call, &e);
}

static int listing_wait(struct listing *l, struct err *e)
{
	const struct guard *g = call_guard(l->call);

	if (call_waits(l->call, e) < 0)
		return -1;
	l->questions = (struct asks_watch){ .on_change = listing_on_change, .data = l };
	l->approvals = (struct asks_watch){ .on_change = listing_on_change, .data = l };
	asks_watch_add(questions_asks(g->questions), &l->questions);
	if (g->approvals)
		asks_watch_add(approvals_asks(g->approvals), &l->approvals);
	call_on_cancel(l->call, listing_on_cancel, l);
	l->until_ms = clock_ms() + l->request->wait_seconds * 1000ull;
	call_on_quiet(l->call, l->request->wait_seconds * 1000ull, listing_end, l);
	return 0;
}

static void list_run(struct call *c, const void *request)
{
	const struct list_request *q = request;
	struct err e = ERR_INIT;
	struct conversation_caller who;
	struct listing *l = question_all(c, &e) ? arena_alloc(call_arena(c), sizeof(*l), &e) : NULL;

	if (!l || (q->session_id.n && conversation_caller(c, q->session_id, &who, &e) < 0)) {
		call_fail(c, &e);
		return;
	}
	*l = (struct listing){ .call = c, .request = q };
	if (!q->after.p || !q->wait_seconds || listing_is_old(l))
		listing_answer(l);
	else if (listing_wait(l, &e) < 0)
		call_fail(c, &e);
}

const struct op question_list_op = {
	.action = "question.list",
	.doc = "Lists the inbox: questions to people, and requests for their approval, "
	       "by deadline.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &list_request_table,
	.result = &list_table,
	.normalize = list_normalize,
	.run = list_run,
};

/* ---- question.get and question.cancel ------------------------------------------------------ */

struct name_request {
	struct str id;
};
#define ID_ROW(S)                                                                                  \
	FIELD(S, id, .flags = FIELD_REQUIRED, .min = 1, .max = 64, .doc = "Id of the question.")
static const struct field name_fields[] = { ID_ROW(struct name_request) };
static const struct field_table name_table = FIELD_TABLE(struct name_request, name_fields);

static void get_run(struct call *c, const void *request)
{
	const struct name_request *q = request;

	question_tell(c, q->id);
}

const struct op question_get_op = {
	.action = "question.get",
	.doc = "A question to people: who asks what, and who answered.",
	.effect = OP_READ,
	.request = &name_table,
	.result = &question_view_table,
	.run = get_run,
};

static void cancel_run(struct call *c, const void *request)
{
	const struct name_request *q = request;
	struct err e = ERR_INIT;

	if (!question_seen(c, q->id, &e) ||
	    question_cancel(call_guard(c)->questions, q->id, str_of(call_principal(c)->name),
			    STR_LIT("rest"), &e) < 0)
		call_fail(c, &e);
	else
		question_tell(c, q->id);
}

const struct op question_cancel_op = {
	.action = "question.cancel",
	.doc = "Cancels a question: nobody can answer it any more.",
	.effect = OP_WRITE,
	.request = &name_table,
	.result = &question_view_table,
	.run = cancel_run,
};

/* ---- question.answer ----------------------------------------------------------------------- */

#define Q struct answer_request
struct answer_request {
	struct str id, session_id, option_id, free_text;
	struct field_json values;
};
static const struct field answer_fields[] = {
	ID_ROW(Q),
	FIELD(Q, session_id, .min = 1, .max = CONVERSATION_ID,
	      .doc = "The conversation that it belongs to."),
	FIELD(Q, option_id, .min = 1, .max = QUESTION_ID_MAX, .doc = "Id of the chosen option."),
	FIELD(Q, free_text, .max = QUESTION_TEXT_MAX,
	      .doc = "Text as the answer: for a textbox, or if the question allows it."),
	FIELD(Q, values, .max = QUESTION_TEXT_MAX, .doc = "Values of a form, by name."),
};
#undef Q
static const struct field_table answer_table = FIELD_TABLE(struct answer_request, answer_fields);

/* Approves a call once, or denies it. */
static int answer_approval(struct call *c, const struct answer_request *q, struct err *e)
{
	struct approval_answer a = {
		.id = q->id,
		.to = APPROVAL_APPROVED,
		.who = str_of(call_principal(c)->name),
		.surface = STR_LIT("rest"),
	};

	if (q->session_id.n)
		return err_set(e, ERR_QUESTION_NOT_FOUND, "that belongs to no conversation");
	if (!approval_answerable(c, q->id, e))
		return -1;
	if (str_is(q->option_id, "deny"))
		a.to = APPROVAL_DENIED;
	else if (!str_is(q->option_id, "approve"))
		return err_set(e, ERR_INVALID, "option_id: \"approve\" or \"deny\" answers this");
	if (q->free_text.p || q->values.text.n)
		return err_set(e, ERR_INVALID, "free_text, values: an option answers this");
	return approval_answer(call_guard(c)->approvals, &a, e);
}

static int answer_question(struct call *c, const struct answer_request *r, struct err *e)
{
	const struct question *q = question_seen(c, r->id, e);
	const struct question_answer a = {
		.id = r->id,
		.reply = { .option_id = r->option_id,
			   .free_text = r->free_text,
			   .values = r->values },
		.who = str_of(call_principal(c)->name),
		.surface = STR_LIT("rest"),
	};

	if (q && r->session_id.n && !str_eq(q->session, r->session_id))
		return err_set(e, ERR_QUESTION_NOT_FOUND,
			       "the conversation has no question \"%.*s\"", STR_ARG(r->id));
	if (!q || approval_check_answers(c, q->ask.principal, e) < 0 ||
	    (q->kind == QUESTION_PERMISSION && approval_check_person(c, q->ask.principal, e) < 0))
		return -1;
	return question_answer(call_guard(c)->questions, &a, e);
}

static void answer_run(struct call *c, const void *request)
{
	const struct answer_request *q = request;
	struct err e = ERR_INIT;

	if ((question_is_approval(q->id) ? answer_approval(c, q, &e) : answer_question(c, q, &e)) <
	    0)
		call_fail(c, &e);
	else
		question_tell(c, q->id);
}

const struct op question_answer_op = {
	.action = "question.answer",
	.doc = "Answers a question for a person; the first answer counts.",
	.effect = OP_ADMINISTER,
	.request = &answer_table,
	.result = &question_view_table,
	.run = answer_run,
};
