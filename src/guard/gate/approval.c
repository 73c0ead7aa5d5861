/*
 * Whether a person lets a call be: the hooks asks and approval. A hub with a registry has doors
 * through which somebody can answer. Besides, MCP clients of principals that the operator names
 * can ask their own person: then the call ends, and its request waits for nobody until the door
 * starts the call anew with that person's answer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agents/store/attachment.h"
#include "ask/approval.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/sha256.h"
#include "call/aside.h"
#include "guard/gate/internal.h"
#include "hub/core/hub.h"
#include "json/document/utf8.h"
#include "json/document/write.h"

enum {
	REQUEST_MAX = 80 << 20,
	SHOWN_MAX = 8 << 10,
	BYTES_MAX = 1 << 20, /* that are shown as text: each may become six */
};
#define ARGUMENTS_MAX ((size_t)512 << 20) /* each byte may become six, and redaction copies */

/* The form for the client's user. */
static const char approve_schema[] =
	"{\"type\":\"object\",\"properties\":{\"approve\":{\"type\":\"boolean\","
	"\"title\":\"Approve\",\"description\":\"Let this call go, once.\","
	"\"default\":false}},\"required\":[\"approve\"]}";

struct gate_approval {
	struct approvals *all;
};

/* A call that waits for a person; in its arena. What is asked is made in the work pool, where the
 * request is long. */
struct waiting {
	struct aside_work work; /* first: the two are cast */
	char digest[OP_DIGEST];
	struct str arguments; /* in memory of their own */
	struct arena *arena;
	bool hides;
	struct err err;
	struct call *call;
	struct gate *gate;
	struct approval_wait wait;
	struct str id;
	int64_t created_ms, deadline_ms;
	bool *ended; /* set at its end; NULL: nobody needs to know */
};

/* Answers need no answer: else nobody could give the first. What is a question to people itself
 * needs none either. About a sandbox that is not there nobody is asked: the call fails, also if one
 * of that name is made meanwhile (call_hub_sandbox()). */
static bool gate_asks(void *data, struct call *c)
{
	const struct gate_call *s = *call_hook_state(c);
	struct str action = str_of(call_op(c)->action);
	bool about_nothing = op_target(call_op(c), call_request(c)).n && !call_target(c);

	return s && s->decision == CONFIG_ASK && !about_nothing &&
	       !str_starts(action, "approval.") && !str_starts(action, "question.");
}

static void waiting_on_end(void *data, const struct err *e)
{
	struct waiting *w = data;

	struct err denied;

	if (w->ended)
		*w->ended = true;
	if (!e && gate_recheck_policy(w->gate, w->call, &denied) < 0)
		e = &denied;
	if (e)
		call_deny(w->call, e);
	else
		call_allow(w->call);
}

/* Where the hub ends, the request stays: the next hub has it for whoever asks for the same. */
static void waiting_on_cancel(void *data)
{
	struct waiting *w = data;
	bool keep = call_going_down(w->call);
	struct err e;

	approval_leave(&w->wait, keep);
	if (keep)
		err_set(&e, ERR_TRANSPORT,
			"Holt is ending; request %.*s for approval stays, ask for the same again",
			STR_ARG(w->id));
	else
		err_set(&e, ERR_CANCELLED,
			"%s was cancelled while request %.*s waited for a person",
			call_op(w->call)->action, STR_ARG(w->id));
	call_deny(w->call, &e);
}

static void waiting_on_tick(void *data)
{
	struct waiting *w = data;
	int64_t now = clock_unix_ms();
	char text[160];

	snprintf(text, sizeof(text),
		 "request %.*s waits for a person's approval, %" PRId64 " s more", STR_ARG(w->id),
		 (w->deadline_ms - now) / 1000);
	call_progress(w->call, (double)(now - w->created_ms) / 1000,
		      (double)(w->deadline_ms - w->created_ms) / 1000, text);
}

static void show_base64(struct json_writer *w, struct str bytes, const char *why)
{
	struct attachment content;
	char digest[SHA256_HEX];

	attachment_sniff(bytes, &content);
	sha256_hex(bytes, digest);
	json_write_object(w);
	json_write_name(w, "why_base64");
	json_write_text(w, why);
	json_write_name(w, "type");
	json_write_text(w, content.type);
	json_write_name(w, "bytes");
	json_write_uint(w, bytes.n);
	json_write_name(w, "sha256");
	json_write_text(w, digest);
	json_write_name(w, "base64");
	json_write_base64(w, bytes);
	json_write_object_end(w);
}

static bool is_text(struct str bytes)
{
	return utf8_valid(bytes) && !(bytes.n && memchr(bytes.p, 0, bytes.n));
}

static void show_bytes(struct json_writer *w, struct str bytes)
{
	if (is_text(bytes) && bytes.n <= BYTES_MAX)
		json_write_str(w, bytes);
	else
		show_base64(w, bytes, is_text(bytes) ? "too long" : "not text");
}

static void show_no_text(struct json_writer *w, struct str bytes)
{
	show_base64(w, bytes,
		    is_text(bytes) ? "as text, a part of it looks like a password" : "not text");
}

/* The request's members as JSON, as they are shown to a person: without secrets. */
static int waiting_show(struct waiting *w, op_bytes_fn bytes, struct str *ret, bool *ret_hides,
			struct err *e)
{
	static const char before[] = "{\"action\":\"\",\"request\":";
	const struct op *op = call_op(w->call);
	size_t skip = sizeof(before) - 1 + strlen(op->action);
	autobuf struct buf b = BUF_INIT(REQUEST_MAX);

	if (op_canonical(op, call_request(w->call), bytes, &b, e) < 0)
		return -1;
	*ret = gate_redact_asked(w->work.redactor, (struct str){ b.p + skip, b.n - skip - 1 },
				 w->arena, ret_hides);
	return 0;
}

/* Bytes that are text are shown as text. Where patterns would hide a part of that, bytes are shown
 * in base64, in which nothing is hidden but values of secrets: so a file with a password can be
 * approved, and nothing of what is approved is left out. */
static int waiting_arguments(struct waiting *w, struct err *e)
{
	struct str plain;
	bool hides;

	if (waiting_show(w, show_bytes, &w->arguments, &w->hides, e) < 0)
		return -1;
	if (!w->hides)
		return 0;
	if (waiting_show(w, show_no_text, &plain, &hides, e) < 0)
		return -1;
	if (!hides) {
		w->arguments = plain;
		w->hides = false;
	}
	return 0;
}

static void waiting_describe(struct aside_work *work)
{
	struct waiting *w = (struct waiting *)work;

	if (op_digest(call_op(w->call), call_request(w->call), w->digest, &w->err) == 0 &&
	    waiting_arguments(w, &w->err) == 0)
		w->err.code = ERR_NONE;
}

static int gate_ask(struct gate *g, struct call *c, struct waiting *w, const struct approval **ret,
		    struct err *e)
{
	struct gate_call *s = *call_hook_state(c);
	char conversation[24];
	struct approval_ask q = {
		.principal = principal_owner(call_principal(c)),
		.action = str_of(call_op(c)->action),
		.target = op_target(call_op(c), call_request(c)),
		.sandbox = call_target(c),
		.rule = s->rule,
		.digest = str_of(w->digest),
		.arguments = w->arguments,
		.hides = w->hides,
	};
	char *id;
	int rc;

	if (call_conversation(c)) {
		snprintf(conversation, sizeof(conversation), "mcp-%u", call_conversation(c));
		q.conversation = str_of(conversation);
	}
	rc = approval_ask(g->approval->all, &q, &w->wait, ret, e);
	if (rc < 0)
		return -1;
	id = arena_dup(call_arena(c), (*ret)->ask.id, e);
	w->id = id ? str_of(id) : STR_LIT("");
	s->approval = w->id;
	w->created_ms = (*ret)->ask.created_ms;
	w->deadline_ms = (*ret)->ask.deadline_ms;
	return rc;
}

void gate_approval_undone(struct gate *g, struct call *c)
{
	const struct gate_call *s = *call_hook_state(c);

	if (g->approval && s && s->approval.n)
		approval_give_back(g->approval->all, s->approval);
}

bool gate_elicits(const struct gate *g, const struct call *c)
{
	return call_can_ask(c) && policy_names(&config_file(g->config)->approvals.elicitation,
					       str_of(call_principal(c)->name));
}

bool gate_can_ask(const struct gate *g, const struct call *c)
{
	return g->approval && (hub_store(g->hub) || gate_elicits(g, c));
}

/* A request that has ended while the client's person was asked about it is not made again. */
static int gate_check_asked(const struct gate *g, const struct call *c, struct err *e)
{
	struct str id = call_asked(c);
	struct err none;
	const struct approval *a = id.n ? approval_find(g->approval->all, id, &none) : NULL;

	if (!a || a->state == APPROVAL_PENDING || a->state == APPROVAL_APPROVED ||
	    a->state == APPROVAL_SUPERSEDED)
		return 0;
	return err_set(e, ERR_DENIED, "%s was not approved: request %.*s is %s", call_op(c)->action,
		       STR_ARG(id), approval_state_names[a->state]);
}

static int waiting_elicit(struct waiting *w, const struct approval *a, struct err *e)
{
	const struct store_approval *r = &a->row;
	struct call *c = w->call;
	char *text = arena_printf(call_arena(c), e,
				  "Approve %.*s%s%.*s for %.*s? Its arguments: %.*s",
				  STR_ARG(r->action), r->target.n ? " of " : "", STR_ARG(r->target),
				  STR_ARG(approval_name(a->ask.principal)), STR_ARG(r->arguments));

	approval_leave(&w->wait, true);
	if (!text)
		return -1;
	call_ask_client(c, w->id, str_of(text), str_of(approve_schema));
	return err_set(e, ERR_DENIED, "request %.*s waits for the person at the client",
		       STR_ARG(w->id));
}

/* The call is let go or denied from inside, and w may be gone then. */
static int waiting_answer(struct waiting *w, enum op_said said, struct err *e)
{
	bool approves = said == OP_SAID_YES &&
			json_bool(json_get(call_said_values(w->call), "approve"));
	const struct approval_answer answer = {
		.id = w->id,
		.to = approves ? APPROVAL_APPROVED : APPROVAL_DENIED,
		.who = str_of(call_principal(w->call)->name),
		.surface = STR_LIT("elicitation"),
	};
	bool ended = false;

	w->ended = &ended;
	if (approval_answer(w->gate->approval->all, &answer, e) == 0 || ended)
		return 0;
	approval_leave(&w->wait, false);
	return -1;
}

/* The client's person is asked now, or was asked and has answered, or others are asked. What can't
 * be shown as a whole is not asked of the client. -1: the call waits for nobody. */
static int waiting_begin(struct waiting *w, const struct approval *a, struct err *e)
{
	struct call *c = w->call;
	bool asked = str_eq(call_asked(c), w->id);
	bool elicits = gate_elicits(w->gate, c) && !a->cut && !a->hides &&
		       a->row.arguments.n <= SHOWN_MAX;
	enum op_said said = elicits && asked ? call_said(c) : OP_SAID_NOTHING;

	if (elicits && !asked)
		return waiting_elicit(w, a, e);
	if (!hub_store(w->gate->hub) && said == OP_SAID_NOTHING) {
		approval_leave(&w->wait, false);
		return err_set(e, ERR_DENIED, "%s needs a person's approval, and nobody gave it",
			       call_op(c)->action);
	}
	log_info("%s waits for a person: request %.*s", call_op(c)->action, STR_ARG(w->id));
	if (said != OP_SAID_NOTHING)
		return waiting_answer(w, said, e);
	call_on_cancel(c, waiting_on_cancel, w);
	call_on_tick(c, waiting_on_tick, w);
	waiting_on_tick(w);
	return 0;
}

static int waiting_check(const struct waiting *w, struct err *e)
{
	*e = w->err;
	if (w->err.code != ERR_NONE)
		return -1;
	if (call_cancelled(w->call))
		return err_set(e, ERR_CANCELLED, "%s was cancelled", call_op(w->call)->action);
	return gate_check_asked(w->gate, w->call, e);
}

static void waiting_ask(struct aside_work *work)
{
	struct waiting *w = (struct waiting *)work;
	struct call *c = w->call;
	const struct approval *a = NULL;
	struct err e;
	int rc = waiting_check(w, &e) < 0 ? -1 : gate_ask(w->gate, c, w, &a, &e);

	arena_free(take_ptr(w->arena));
	if (rc > 0)
		call_allow(c);
	else if (rc < 0 || waiting_begin(w, a, &e) < 0)
		call_deny(c, &e);
}

static void gate_approval_hook(void *data, struct call *c)
{
	struct gate *g = data;
	struct err e = ERR_INIT;
	struct waiting *w = arena_alloc(call_arena(c), sizeof(*w), &e);
	size_t bytes = gate_bytes(call_op(c)->request, call_request(c));

	if (w) {
		*w = (struct waiting){ .work = { .run = waiting_describe, .then = waiting_ask },
				       .arena = arena_new(ARGUMENTS_MAX),
				       .err = ERR_INIT,
				       .call = c,
				       .gate = g,
				       .wait = { .on_end = waiting_on_end, .data = w } };
		if (!w->arena)
			err_set(&e, ERR_LIMIT, "out of memory");
		else if (aside_work_start(&w->work, call_loop(c), g->redactor, bytes, &e) == 0)
			return;
		arena_free(w->arena);
	}
	call_deny(c, &e);
}

static int64_t gate_approval_expire(const struct gate *g)
{
	return (int64_t)config_file(g->config)->approvals.expire_seconds * 1000;
}

static void gate_approval_on_change(void *data, const struct ask *ask)
{
	const struct approval *a = (const struct approval *)ask;

	gate_tell_news(data, &(struct gate_news){ .topic = "approval",
						  .id = a->ask.id,
						  .state = approval_state_names[a->state] });
	if (a->state == APPROVAL_PENDING)
		gate_webhook_tell(data, a);
}

void gate_approval_reload(struct gate *g)
{
	if (g->approval)
		approvals_set_expire(g->approval->all, gate_approval_expire(g));
}

int gate_approval_open(struct gate *g, struct err *e)
{
	const struct approvals_options o = {
		.expire_ms = gate_approval_expire(g),
		.asks = { .payer = gate_payer, .on_change = gate_approval_on_change, .data = g },
	};
	struct store *store = g->hub ? hub_store(g->hub) : NULL;
	struct gate_approval *a;

	if (!g->hub)
		return 0;
	a = calloc(1, sizeof(*a));
	if (!a)
		return err_set(e, ERR_LIMIT, "out of memory");
	a->all = approvals_new(g->loop, store, &o, e);
	if (!a->all) {
		free(a);
		return -1;
	}
	g->approval = a;
	g->guard.approvals = a->all;
	g->hooks.asks = gate_asks;
	g->hooks.approval = gate_approval_hook;
	return 0;
}

void gate_approval_close(struct gate *g)
{
	struct gate_approval *a = take_ptr(g->approval);

	gate_webhook_close(g);
	if (!a)
		return;
	approvals_free(a->all);
	free(a);
}
