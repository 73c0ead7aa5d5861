/* approval.list, approval.get and approval.answer: what waits for a person. No door for agents
 * shows them. */
#include "op/approval.h"

#include "base/when.h"
#include "call/call.h"
#include "call/guard.h"
#include "guard/key/key.h"
#include "op/ops.h"

enum { LIST_MAX = 1024, WAIT_MAX = 60, PATTERN_MAX = 32, GLOB_MAX = 512 };

#define V struct approval_view
static const struct field view_fields[] = {
	FIELD(V, id, .flags = FIELD_REQUIRED, .doc = "Id of the approval request."),
	FIELD(V, state, .flags = FIELD_REQUIRED,
	      .doc = "pending, approved, denied, expired, void or superseded."),
	FIELD(V, principal, .flags = FIELD_REQUIRED, .doc = "Principal that made the call."),
	FIELD(V, action, .flags = FIELD_REQUIRED, .doc = "Operation that was called."),
	FIELD(V, target, .doc = "Sandbox that the request names; absent: none."),
	FIELD(V, rule, .doc = "Name of the policy rule that requires approval."),
	FIELD(V, arguments, .flags = FIELD_REQUIRED,
	      .doc = "Arguments of the call as JSON, without secrets; invisible characters "
		     "are escaped. Bytes are text, or an object with why_base64, type, bytes, "
		     "sha256 and base64."),
	FIELD(V, arguments_cut, .flags = FIELD_REQUIRED, .doc = "The arguments are cut."),
	FIELD(V, arguments_hidden, .flags = FIELD_REQUIRED,
	      .doc = "Redaction by patterns hides a part of the arguments, so the request can "
		     "only be denied."),
	FIELD(V, arguments_bytes, .flags = FIELD_REQUIRED,
	      .doc = "Size of the complete arguments in bytes."),
	FIELD(V, digest, .flags = FIELD_REQUIRED, .doc = "SHA-256 of the request, in hex."),
	FIELD(V, created_at, .flags = FIELD_REQUIRED, .doc = "When it was made, RFC 3339."),
	FIELD(V, expires_at,
	      .doc = "When a pending request is denied, or an unused approval ends, RFC 3339; "
		     "absent: never."),
	FIELD(V, scope, .doc = "How long the approval holds: once, conversation or always."),
	FIELD(V, pattern, .doc = "JSON of the pattern that says which arguments may differ."),
	FIELD(V, conversation, .doc = "MCP session that the call came from."),
	FIELD(V, answered_by, .doc = "Who answered."),
	FIELD(V, answered_over, .doc = "Door over which the answer came."),
	FIELD(V, answered_at, .doc = "When it was answered, RFC 3339."),
	FIELD(V, used_at, .doc = "When a call last used the approval, RFC 3339."),
};
#undef V
const struct field_table approval_view_table = FIELD_TABLE(struct approval_view, view_fields);

/* ERR_UNSUPPORTED: nobody can be asked here. */
static struct approvals *approval_all(const struct call *c, struct err *e)
{
	struct approvals *all = call_guard(c)->approvals;

	if (!all)
		err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder asks for approval");
	return all;
}

static int approval_keep(struct arena *a, struct str from, struct str *ret, struct err *e)
{
	char *p = from.n ? arena_dup(a, from, e) : NULL;

	*ret = (struct str){ p, from.n };
	return from.n && !p ? -1 : 0;
}

int approval_describe(struct call *c, const struct approval *q, struct approval_view *ret,
		      struct err *e)
{
	struct arena *a = call_arena(c);
	const struct store_approval *r = &q->row;

	*ret = (struct approval_view){
		.state = str_of(approval_state_names[q->state]),
		.arguments_cut = q->cut,
		.arguments_hidden = q->hides,
		.arguments_bytes = r->size,
		.scope = q->state == APPROVAL_APPROVED ? str_of(approval_scope_names[q->scope])
						       : STR_NONE,
	};
	return approval_keep(a, q->ask.id, &ret->id, e) < 0 ||
			       approval_keep(a, approval_name(q->ask.principal), &ret->principal,
					     e) < 0 ||
			       approval_keep(a, r->action, &ret->action, e) < 0 ||
			       approval_keep(a, r->target, &ret->target, e) < 0 ||
			       approval_keep(a, r->rule, &ret->rule, e) < 0 ||
			       approval_keep(a, r->arguments, &ret->arguments, e) < 0 ||
			       approval_keep(a, r->digest, &ret->digest, e) < 0 ||
			       approval_keep(a, r->pattern, &ret->pattern, e) < 0 ||
			       approval_keep(a, r->conversation, &ret->conversation, e) < 0 ||
			       approval_keep(a, r->who, &ret->answered_by, e) < 0 ||
			       approval_keep(a, r->surface, &ret->answered_over, e) < 0 ||
			       when_dup(a, q->ask.created_ms, &ret->created_at, e) < 0 ||
			       when_dup(a, q->ask.deadline_ms, &ret->expires_at, e) < 0 ||
			       when_dup(a, r->answered_ms, &ret->answered_at, e) < 0 ||
			       when_dup(a, r->used_ms, &ret->used_at, e) < 0
		     ? -1
		     : 0;
}

/* ---- approval.list ------------------------------------------------------------------------- */

#define Q struct approvals_request
struct approvals_request {
	bool all, has_after;
	uint64_t after;
	uint32_t wait_seconds;
};
static const struct field list_request_fields[] = {
	FIELD(Q, all, .def = DEFAULT_BOOL(false),
	      .doc = "Include requests that have ended, as far as they are kept."),
	FIELD(Q, after, .max = INT64_MAX, .has = FIELD_HAS(Q, has_after),
	      .doc = "Only requests that changed since the answer with this rev, ended ones "
		     "included."),
	FIELD(Q, wait_seconds, .max = WAIT_MAX, .def = DEFAULT_INT(0),
	      .doc = "With after: seconds to wait for the first change."),
};
#undef Q
static const struct field_table list_request_table = FIELD_TABLE(struct approvals_request,
								 list_request_fields);

struct approvals_view {
	struct {
		const struct approval_view *p;
		size_t n;
	} approvals;
	uint64_t rev;
};
static const struct field list_fields[] = {
	FIELD_OBJECTS(struct approvals_view, approvals, approval_view_table,
		      .flags = FIELD_REQUIRED, .max = LIST_MAX, .doc = "In order of creation."),
	FIELD(struct approvals_view, rev, .flags = FIELD_REQUIRED,
	      .doc = "Value of after to get the changes that follow."),
};
static const struct field_table list_table = FIELD_TABLE(struct approvals_view, list_fields);

static bool approval_listed(const struct approvals_request *q, const struct approval *a)
{
	return q->has_after ? a->ask.rev > q->after : q->all || a->ask.open;
}

static void approval_list_now(struct call *c, const struct approvals_request *q,
			      struct approvals *all)
{
	struct err e = ERR_INIT;
	struct approval_view *views = arena_array(call_arena(c), LIST_MAX, sizeof(*views), &e);
	const struct approval *a = views ? approval_after(all, 0) : NULL;
	size_t n = 0;
	int failed = !views;

	for (; a && !failed && n < LIST_MAX; a = approval_after(all, a->ask.seq)) {
		if (approval_listed(q, a))
			failed = approval_describe(c, a, &views[n++], &e) < 0;
	}
	if (failed)
		call_fail(c, &e);
	else
		call_answer(c, &(struct approvals_view){ { views, n }, approvals_asks(all)->rev });
}

/* A client that waits for the next change; in its arena. */
struct approval_listing {
	struct asks_watch watch;
	struct call *call;
	const struct approvals_request *request;
	struct approvals *all;
};

static void approval_listing_end(void *data)
{
	struct approval_listing *l = data;

	asks_watch_remove(approvals_asks(l->all), &l->watch);
	approval_list_now(l->call, l->request, l->all);
}

/* Inside of a change nothing may be answered: a client's next request could change more. */
static void approval_listing_on_change(void *data)
{
	struct approval_listing *l = data;

	call_on_quiet(l->call, 0, approval_listing_end, l);
}

static void approval_listing_on_cancel(void *data)
{
	struct approval_listing *l = data;
	struct err e;

	asks_watch_remove(approvals_asks(l->all), &l->watch);
	err_set(&e, ERR_CANCELLED, "nobody waits for a change any more");
	call_fail(l->call, &e);
}

static int approval_list_wait(struct call *c, const struct approvals_request *q,
			      struct approvals *all, struct err *e)
{
	struct approval_listing *l = arena_alloc(call_arena(c), sizeof(*l), e);

	if (!l || call_waits(c, e) < 0)
		return -1;
	*l = (struct approval_listing){
		.watch = { .on_change = approval_listing_on_change, .data = l },
		.call = c,
		.request = q,
		.all = all,
	};
	asks_watch_add(approvals_asks(all), &l->watch);
	call_on_cancel(c, approval_listing_on_cancel, l);
	call_on_quiet(c, q->wait_seconds * 1000ull, approval_listing_end, l);
	return 0;
}

static void approval_list_run(struct call *c, const void *request)
{
	const struct approvals_request *q = request;
	struct err e = ERR_INIT;
	struct approvals *all = approval_all(c, &e);
	bool waits = all && q->has_after && q->wait_seconds && approvals_asks(all)->rev <= q->after;

	if (!all || (waits && approval_list_wait(c, q, all, &e) < 0))
		call_fail(c, &e);
	else if (!waits)
		approval_list_now(c, q, all);
}

const struct op approval_list_op = {
	.action = "approval.list",
	.doc = "Lists requests that wait for a person's approval, and approvals that still hold.",
	.effect = OP_ADMINISTER,
	.flags = OP_WAITS,
	.request = &list_request_table,
	.result = &list_table,
	.run = approval_list_run,
};

/* ---- approval.get -------------------------------------------------------------------------- */

struct approval_get_request {
	struct str id;
};
static const struct field get_fields[] = {
	FIELD(struct approval_get_request, id, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id of the approval request."),
};
static const struct field_table get_table = FIELD_TABLE(struct approval_get_request, get_fields);

static void approval_tell(struct call *c, struct str id)
{
	struct err e = ERR_INIT;
	struct approvals *all = approval_all(c, &e);
	const struct approval *a = all ? approval_find(all, id, &e) : NULL;
	struct approval_view view;

	if (!a || approval_describe(c, a, &view, &e) < 0)
		call_fail(c, &e);
	else
		call_answer(c, &view);
}

static void approval_get_run(struct call *c, const void *request)
{
	const struct approval_get_request *q = request;

	approval_tell(c, q->id);
}

const struct op approval_get_op = {
	.action = "approval.get",
	.doc = "A request for approval: who asks for what, and who answered.",
	.effect = OP_ADMINISTER,
	.request = &get_table,
	.result = &approval_view_table,
	.run = approval_get_run,
};

/* ---- approval.answer ----------------------------------------------------------------------- */

struct approval_answer_request {
	struct str id, decision, scope;
	struct field_map pattern;
};
static const struct field answer_fields[] = {
	FIELD(struct approval_answer_request, id, .flags = FIELD_REQUIRED, .min = 1, .max = 64,
	      .doc = "Id of the approval request."),
	FIELD(struct approval_answer_request, decision, .flags = FIELD_REQUIRED, .min = 1,
	      .max = 16,
	      .doc = "approve or deny a pending request, or revoke an approval that still holds."),
	FIELD(struct approval_answer_request, scope, .min = 1, .max = 16,
	      .doc = "How long the approval holds. once (default): one call; conversation: "
		     "such calls of the MCP session, for a day at most; always: until it is "
		     "revoked."),
	FIELD(struct approval_answer_request, pattern, .max = PATTERN_MAX, .item_max = GLOB_MAX,
	      .doc = "Not with once: JSON pointers of arguments that may differ, each with a "
		     "pattern. A * stands for any text without control characters or "
		     "characters that start another shell command; a * alone stands for any "
		     "value."),
};
static const struct field_table answer_table = FIELD_TABLE(struct approval_answer_request,
							   answer_fields);

static int approval_read_answer(const struct approval_answer_request *q,
				struct approval_answer *ret, struct err *e)
{
	if (str_is(q->decision, "approve"))
		ret->to = APPROVAL_APPROVED;
	else if (str_is(q->decision, "deny"))
		ret->to = APPROVAL_DENIED;
	else if (str_is(q->decision, "revoke"))
		ret->to = APPROVAL_VOID;
	else
		return err_set(e, ERR_INVALID, "decision: approve, deny or revoke");
	if ((q->scope.n || q->pattern.n) && ret->to != APPROVAL_APPROVED)
		return err_set(e, ERR_INVALID, "scope, pattern: only an approval has these");
	while (q->scope.n && !str_is(q->scope, approval_scope_names[ret->scope])) {
		if (++ret->scope == APPROVAL_SCOPES)
			return err_set(e, ERR_INVALID, "scope: once, conversation or always");
	}
	return 0;
}

static int approval_write_pattern(const struct field_map *m, struct buf *b, struct str *ret,
				  struct err *e)
{
	struct json_writer w = json_writer(b);

	*ret = STR_NONE;
	if (!m->n)
		return 0;
	json_write_object(&w);
	for (size_t i = 0; i < m->n; i++) {
		json_write_key_str(&w, m->p[i].key);
		json_write_str(&w, m->p[i].value);
	}
	json_write_object_end(&w);
	*ret = buf_str(b);
	return json_write_done(&w, e);
}

int approval_check_answers(const struct call *c, struct str principal, struct err *e)
{
	struct str owner = principal_owner(call_principal(c));

	if (call_by_agent(c))
		return err_set(e, ERR_DENIED, "an agent can't answer for a person");
	if (str_starts(owner, "key:") && str_eq(principal, owner))
		return err_set(e, ERR_DENIED, "%s asked for this itself", call_principal(c)->name);
	return 0;
}

/* Agents of a key, and keys made by it or by its maker, are the same person as the key. */
static int approval_check_line(const struct call *c, struct str principal, struct err *e)
{
	struct str own = guard_line(call_guard(c), call_owner(c));

	if (!str_starts(own, "key:") || !str_eq(own, guard_line(call_guard(c), principal)))
		return 0;
	return err_set(
		e, ERR_DENIED,
		"%.*s asked for this: it works for the key that answers, or one of both keys "
		"was made by the other or by the same key; the operator can answer",
		STR_CUT(approval_name(principal), 64));
}

int approval_check_person(const struct call *c, struct str principal, struct err *e)
{
	return approval_check_answers(c, principal, e) < 0 ||
			       approval_check_line(c, principal, e) < 0
		     ? -1
		     : 0;
}

const struct approval *approval_answerable(struct call *c, struct str id, struct err *e)
{
	struct approvals *all = approval_all(c, e);
	const struct approval *a = all ? approval_find(all, id, e) : NULL;

	return a && approval_check_person(c, a->ask.principal, e) == 0 ? a : NULL;
}

static void approval_answer_run(struct call *c, const void *request)
{
	const struct approval_answer_request *q = request;
	struct approval_answer answer = {
		.id = q->id,
		.who = str_of(call_principal(c)->name),
		.surface = STR_LIT("rest"),
	};
	autobuf struct buf b = BUF_INIT(2 * APPROVAL_PATTERN_MAX);
	struct err e = ERR_INIT;

	if (!approval_answerable(c, q->id, &e) || approval_read_answer(q, &answer, &e) < 0 ||
	    approval_write_pattern(&q->pattern, &b, &answer.pattern, &e) < 0 ||
	    approval_answer(call_guard(c)->approvals, &answer, &e) < 0)
		call_fail(c, &e);
	else
		approval_tell(c, q->id);
}

const struct op approval_answer_op = {
	.action = "approval.answer",
	.doc = "Approves or denies a pending request, or revokes an approval; the first "
	       "answer counts.",
	.effect = OP_ADMINISTER,
	.request = &answer_table,
	.result = &approval_view_table,
	.run = approval_answer_run,
};
