#include "call/call.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "box/host/box.h"
#include "call/aside.h"
#include "call/guard.h"
#include "call/once.h"
#include "call/profile.h"
#include "hub/core/hub.h"
#include "hub/sandbox/forward.h"
#include "hub/sandbox/sandbox.h"
#include "json/document/utf8.h"

const struct principal principal_local = {
	.name = "local", .scopes = KEY_ALL, .sees_all = true, .is_operator = true, .alone = true
};

enum {
	TICK_MS = 1000,
	/* Together as many as the hub's door has connections; that of previews has 128 more. Who
	 * waits can't have those that work. */
	MAX_CALLS = 256,
	MAX_URGENT = 64,
	MAX_WAITING = 768,
	/* For each call that is free: of a session, and of a principal with all of its sessions. */
	SHARE = 7,
	SHARE_OF_ALL = 15,
	MAX_EVENT = 64 << 20, /* bytes of one, copied */
};
#define MAX_OUTPUT ((size_t)512 << 20)

/* Those that work, and those that only wait, each with a room of their own. */
enum call_kind { CALL_WORKS, CALL_WAITS, CALL_KINDS };

/* What one session of a principal has of both rooms; it ends with its last call. */
struct share {
	struct share *next;
	const struct principal *who;
	const void *session; /* only compared */
	unsigned calls[CALL_KINDS];
};

struct ops {
	struct hub *hub;
	uv_loop_t *loop;
	struct op_hooks hooks;
	struct net_grant network;
	struct coding *coding;
	struct code *code;
	struct upstreams *upstreams;
	struct conversations *conversations;
	struct feed *feed;
	unsigned calls[CALL_KINDS], max[CALL_KINDS], max_urgent;
	struct call *newest; /* of those that have not ended */
	/* The one that was used last comes first. */
	struct share *shares;
	/* Bytes that calls have reserved. */
	size_t output, max_output;
	bool draining;
	struct ops_end *end; /* NULL: nobody waits for the last call */
};

/* Owned by the loop. */
struct ops_end {
	uv_timer_t timer;
	struct ops *ops;
	void (*on_ended)(void *arg);
	void *arg;
};

enum call_state { CALL_ARRIVES, CALL_POLICY, CALL_APPROVAL, CALL_RUNS, CALL_AUDIT, CALL_STATES };
static const char *const state_names[CALL_STATES] = {
	[CALL_ARRIVES] = "arrives", [CALL_POLICY] = "policy", [CALL_APPROVAL] = "approval",
	[CALL_RUNS] = "runs",	    [CALL_AUDIT] = "audit",
};

/* A buffer that stays until the end of a call. */
struct kept {
	struct kept *next;
	struct buf buf;
};

struct call {
	struct hub_sandboxes_sync sync; /* while it waits for the disk */
	struct ops *ops;
	struct call *older, *newer;
	struct op_start start;
	enum call_state state;
	void *request;
	bool decoded;
	char audit_id[AUDIT_ID_MAX];
	struct str receipt;
	struct call_about about;
	/* What was looked at for the policy, by its hub_sandbox_info.seq; 0: there was none. */
	uint64_t target;
	bool looked_at_target;
	struct op_defaults defaults;
	uint64_t begun_ms, timeout_ms;
	struct str endpoint;
	struct once_key once;
	size_t reserved;
	/* Where it is counted, as one of that kind; NULL: not yet. */
	struct share *share;
	enum call_kind kind;
	unsigned questions; /* that are open */
	bool cancelled;
	bool for_person; /* it waits for a person */
	bool begun; /* something of it may have been done */
	/* What it uses, busy until its end, and the machine of it, which may end before. */
	struct hub_sandbox *hs;
	struct sandbox *sandbox;

	void (*on_cancel)(void *data);
	void *on_cancel_data;
	void (*on_room)(void *data);
	void *on_room_data;
	int (*on_message)(void *data, const void *message, struct err *e);
	void *on_message_data;

	void *hook_state;

	/* What redaction made of the last event, and of the last piece of a stream. */
	struct arena *event;
	struct redact_stream *streams[CALL_STREAMS];
	struct buf piece;
	bool passed; /* the event's bytes are redacted already */
	bool raw; /* its bytes leave as they are (op_is_raw()) */
	/* Of the answer, and what redacts it where it is long. */
	struct aside_parts parts;
	struct aside_count *count;
	struct aside aside;
	struct kept *kept;

	bool has_quiet;
	unsigned closing; /* timers */
	uv_timer_t quiet;
	void (*on_quiet)(void *data);
	void *on_quiet_data;

	/* While the audit writes it down. */
	struct op_outcome outcome;
	struct err failed;

	bool ticking;
	uv_timer_t tick;
	void (*on_tick)(void *data);
	void *on_tick_data;
	double progress, total; /* told last */
};

/* ---- all calls ----------------------------------------------------------------------------- */

struct ops *ops_new(struct hub *hub, const struct ops_options *o, struct err *e)
{
	struct ops *ops = calloc(1, sizeof(*ops));

	if (!ops)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	ops->hub = hub;
	ops->loop = hub ? hub_loop(hub) : o->loop;
	if (o->hooks)
		ops->hooks = *o->hooks;
	ops->network = o->network;
	ops->coding = o->coding;
	ops->code = o->code;
	ops->upstreams = o->upstreams;
	ops->conversations = o->conversations;
	ops->feed = o->feed;
	ops->max[CALL_WORKS] = o->max_calls ? o->max_calls : MAX_CALLS;
	ops->max[CALL_WAITS] = o->max_waiting ? o->max_waiting : MAX_WAITING;
	ops->max_urgent = o->max_urgent ? o->max_urgent : MAX_URGENT;
	ops->max_output = o->max_output ? o->max_output : MAX_OUTPUT;
	return ops;
}

void ops_free(struct ops *ops)
{
	free(ops);
}

struct hub *ops_hub(struct ops *ops)
{
	return ops->hub;
}

struct coding *ops_coding(const struct ops *ops)
{
	return ops->coding;
}

struct upstreams *ops_upstreams(const struct ops *ops)
{
	return ops->upstreams;
}

/* ---- room ---------------------------------------------------------------------------------- */

/* Looking and ending have room of their own: they are what helps where there is none. */
static unsigned call_room_of(const struct call *c)
{
	enum op_effect effect = c->start.op->effect;
	bool urgent = effect == OP_READ || effect == OP_DESTROY || effect == OP_ADMINISTER;

	return c->ops->max[CALL_WORKS] + (urgent ? c->ops->max_urgent : 0);
}

/* The share of who asks, moved to the front. NULL without memory. */
static struct share *share_of(const struct call *c, struct err *e)
{
	const struct op_start *s = &c->start;
	struct share **at = &c->ops->shares, *found;

	while (*at && ((*at)->who != s->who || (*at)->session != s->session))
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	else
		found = calloc(1, sizeof(*found));
	if (!found)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	found->who = s->who;
	found->session = s->session;
	found->next = c->ops->shares;
	c->ops->shares = found;
	return found;
}

static void share_leave(struct ops *ops, struct share *s, enum call_kind kind)
{
	struct share **at = &ops->shares;

	ops->calls[kind]--;
	s->calls[kind]--;
	if (s->calls[CALL_WORKS] || s->calls[CALL_WAITS])
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
}

static void call_count(struct call *c, struct share *s, enum call_kind kind)
{
	struct share *was = c->share;

	c->ops->calls[kind]++;
	s->calls[kind]++;
	if (was)
		share_leave(c->ops, was, c->kind);
	c->share = s;
	c->kind = kind;
}

static unsigned calls_of(const struct ops *ops, const struct principal *who, enum call_kind kind)
{
	unsigned n = 0;

	for (const struct share *s = ops->shares; s; s = s->next)
		n += principal_payer(s->who) == principal_payer(who) ? s->calls[kind] : 0;
	return n;
}

/* A session has at most seven times as many calls as are free: alone seven eighths of the room, of
 * two each seven fifteenths. All sessions of a principal have at most fifteen times as many. So
 * whoever comes next finds room. */
static int call_take_room(struct call *c, enum call_kind kind, unsigned room, struct err *e)
{
	static const char *const do_what[] = { "are under way", "wait" };
	unsigned all = c->ops->calls[kind], of_all;
	struct share *s = c->share;

	if (all >= room)
		return err_set(e, ERR_LIMIT, "%u calls %s", all, do_what[kind]);
	if (!s)
		s = share_of(c, e);
	if (!s)
		return -1;
	if (!s->who->alone && s->calls[kind] >= SHARE * (room - all))
		return err_set(e, ERR_LIMIT, "%u of this client's calls %s; others have the rest",
			       s->calls[kind], do_what[kind]);
	of_all = calls_of(c->ops, s->who, kind);
	if (!s->who->alone && of_all >= SHARE_OF_ALL * (room - all))
		return err_set(e, ERR_LIMIT,
			       "%u calls of this principal's sessions %s; others have the rest",
			       of_all, do_what[kind]);
	call_count(c, s, kind);
	return 0;
}

/* ---- the stages ------------------------------------------------------------------------------ */

static void call_enter(struct call *c, enum call_state state)
{
	log_debug("%s: %s", c->start.op->action, state_names[state]);
	c->state = state;
}

/* Checks who asks, and whether there is room for one more call. */
static int call_identify(struct call *c, struct err *e)
{
	const char *action = c->start.op->action;
	struct ops *ops = c->ops;

	if (!c->start.who)
		return err_set(e, ERR_DENIED, "nobody is known to ask for %s", action);
	if (c->start.who->ended)
		return err_set(e, ERR_UNAUTHORIZED, "the key was revoked or has expired");
	if (c->cancelled)
		return err_set(e, ERR_CANCELLED, "%s was cancelled", action);
	if (ops->hub && hub_closing(ops->hub))
		return err_set(e, ERR_CANCELLED, "Holt is ending");
	return call_take_room(c, CALL_WORKS, call_room_of(c), e);
}

/* The beginning of a generated id stands for the only sandbox that has it and that the caller may
 * know of: people type what a table shows. NULL: there is none, or with *e several. */
static struct hub_sandbox *op_begun(struct ops *ops, const struct principal *who, struct str id,
				    struct err *e)
{
	enum { SHORTEST = sizeof("sbx-") - 1 + 6, WHOLE = sizeof("sbx-") - 1 + 32, BATCH = 64 };
	struct hub_sandbox *some[BATCH], *found = NULL;
	struct hub_sandbox_info i = { .seq = 0 };
	bool begins = id.n >= SHORTEST && id.n < WHOLE && str_starts(id, "sbx-");
	size_t n = begins ? BATCH : 0;

	while (n == BATCH) {
		n = hub_sandboxes_list(hub_sandboxes(ops->hub), i.seq, some, BATCH);
		for (size_t k = 0; k < n; k++) {
			hub_sandbox_info(some[k], &i);
			if (i.id.n < id.n || memcmp(i.id.p, id.p, id.n) != 0 ||
			    i.state == SANDBOX_TERMINATED || !op_sees(ops, who, some[k]))
				continue;
			if (found) {
				err_set(e, ERR_INVALID,
					"several sandboxes have ids that begin with \"%.*s\"; "
					"write more of it",
					STR_ARG(id));
				return NULL;
			}
			found = some[k];
		}
	}
	return found;
}

/* Hooks, digests and records have the whole id. */
static int call_complete_target(struct call *c, struct err *e)
{
	const struct op *op = c->start.op;
	struct str id = op_target(op, c->request);
	struct hub_sandbox_info i;
	struct err none, many = ERR_INIT;
	struct hub_sandbox *l;

	if (!id.n || !c->ops->hub || hub_sandboxes_find(call_sandboxes(c), id, &none))
		return 0;
	l = op_begun(c->ops, c->start.who, id, &many);
	if (!l && many.code) {
		*e = many;
		return -1;
	}
	if (!l)
		return 0;
	hub_sandbox_info(l, &i);
	id = (struct str){ arena_dup(c->start.arena, i.id, e), i.id.n };
	*(struct str *)((char *)c->request + op->target - 1) = id;
	return id.p ? 0 : -1;
}

/* A sandbox that does not run may have another working directory than this tells: call_sandbox()
 * looks again. */
static struct str call_path_base(struct call *c)
{
	const struct op *op = c->start.op;
	struct str id = op_target(op, c->request);
	struct err none;
	struct hub_sandbox *l = id.n ? hub_sandboxes_find(hub_sandboxes(c->ops->hub), id, &none)
				     : NULL;
	struct sandbox *sb = l && call_sees(c, l) ? hub_sandbox_box(l) : NULL;

	if (op->base)
		return op->base(c, c->request);
	if (!op->target)
		return op->path ? STR_LIT(OP_PATH_BASE) : STR_NONE;
	return sb ? str_of(sandbox_cwd(sb)) : STR_LIT(OP_PATH_BASE);
}

/* So that whatever decides by a path sees the file that is meant, however it was written. */
static int call_spell_paths(struct call *c, struct err *e)
{
	struct str base = call_path_base(c);
	struct op_defaults *d = &c->defaults;
	char *copy = base.p ? arena_dup(c->start.arena, base, e) : NULL;

	if (base.p && !copy)
		return -1;
	d->path = (struct str){ copy, base.n };
	return op_spell_paths(c->start.op, c->request, d->path, c->start.arena, &d->path_counts, e);
}

static int call_decode(struct call *c, struct err *e)
{
	const struct op *op = c->start.op;

	c->request = arena_alloc(c->start.arena, op->request->size, e);
	if (!c->request)
		return -1;
	memset(c->request, 0, op->request->size);
	if (c->start.decode(c->start.client, c->request, e) < 0 || call_complete_target(c, e) < 0 ||
	    (op->expand && op->expand(c, c->request, e) < 0) ||
	    (op->normalize && op->normalize(c->request, c->start.arena, e) < 0) ||
	    call_spell_paths(c, e) < 0)
		return -1;
	c->decoded = true;
	c->about.sandbox = op_target(op, c->request);
	return op->complete ? op->complete(c, c->request, e) : 0;
}

/* Nobody's rule can give it to another: it is about who reads what leaves. */
static int call_check_raw(struct call *c, struct err *e)
{
	c->raw = op_is_raw(c->start.op, c->request);
	return !c->raw || call_is_operator(c)
		     ? 0
		     : err_set(e, ERR_DENIED,
			       "raw: only the operator gets content as it is, over the hub's "
			       "Unix socket (holt cp); leave it out for a redacted copy");
}

/* Agents' sandboxes count for the principal that they work for, so it can see and end them. */
static bool op_sees_owner(const struct ops *ops, const struct principal *who, struct str owner)
{
	const struct guard *g = ops->hooks.guard;

	if (!who->sees_all && !who->of && g && g->works_for)
		owner = g->works_for(g->data, owner);
	if (!who->sees_all && (owner.n == 0 || !str_eq(owner, principal_owner(who))))
		return false;
	return !ops->hooks.sees || ops->hooks.sees(ops->hooks.data, who, owner);
}

bool op_sees(const struct ops *ops, const struct principal *who, const struct hub_sandbox *l)
{
	struct hub_sandbox_info i;

	hub_sandbox_info(l, &i);
	return op_sees_owner(ops, who, i.owner);
}

bool call_sees(const struct call *c, const struct hub_sandbox *l)
{
	return op_sees(c->ops, c->start.who, l);
}

bool call_sees_owner(const struct call *c, struct str owner)
{
	return op_sees_owner(c->ops, c->start.who, owner);
}

struct str call_owner_seen(const struct call *c)
{
	return c->start.who->sees_all ? STR_NONE : call_owner(c);
}

struct str call_owner(const struct call *c)
{
	return principal_owner(c->start.who);
}

int op_check_sandbox(struct ops *ops, const struct principal *who, struct str id, struct err *e)
{
	struct hub_sandbox *l = hub_sandboxes_find(hub_sandboxes(ops->hub), id, e);

	if (!l)
		l = op_begun(ops, who, id, e);
	else if (!op_sees(ops, who, l))
		return hub_sandboxes_unknown(id, e);
	return l && (hub_sandbox_wakes(l) || hub_sandbox_sandbox(l, e)) ? 0 : -1;
}

/* A sandbox that is not there is the operation's to tell: what was done under a key before is
 * answered again. One that the principal may not know of is not there, for the hooks neither. */
static void call_look_at_target(struct call *c)
{
	struct str id = op_target(c->start.op, c->request);
	struct hub_sandbox_info i;
	struct err none;
	struct hub_sandbox *l = id.n ? hub_sandboxes_find(call_sandboxes(c), id, &none) : NULL;

	c->looked_at_target = true;
	if (!l || !call_sees(c, l))
		return;
	hub_sandbox_info(l, &i);
	c->target = i.seq;
	c->defaults.user = i.limits->root ? STR_LIT("root") : STR_LIT("user");
}

static void call_on_woken(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct call *c = arg;

	(void)l;
	if (err) {
		call_fail(c, err);
		return;
	}
	c->begun = true;
	c->start.op->run(c, c->request);
}

/* The target, if the end of a hub has stopped it and this needs it running. */
static struct hub_sandbox *call_sleeper(struct call *c)
{
	struct str id = op_target(c->start.op, c->request);
	struct err none;
	struct hub_sandbox *l = NULL;

	if (id.n && !(c->start.op->flags & OP_NO_WAKE))
		l = call_hub_sandbox(c, id, &none);
	return l && hub_sandbox_wakes(l) ? l : NULL;
}

static void call_run(struct call *c)
{
	struct hub_sandbox *l;

	call_enter(c, CALL_RUNS);
	log_debug("%s asked for by %s", c->start.op->action, c->start.who->name);
	l = call_sleeper(c);
	if (l)
		hub_sandbox_wake_start(l, call_on_woken, c);
	else
		call_on_woken(c, NULL, NULL);
}

static int call_say_draining(const struct call *c, struct err *e)
{
	return err_set(e, ERR_TRANSPORT, "Holt is ending, and nobody is asked about %s any more",
		       c->start.op->action);
}

int call_waits(struct call *c, struct err *e)
{
	return call_take_room(c, CALL_WAITS, c->ops->max[CALL_WAITS], e);
}

int call_waits_for_person(struct call *c, struct err *e)
{
	c->for_person = true;
	return c->ops->draining ? call_say_draining(c, e) : call_waits(c, e);
}

bool call_is_waiting(const struct call *c)
{
	return c->share && c->kind == CALL_WAITS;
}

/* ---- questions in the middle --------------------------------------------------------------- */

int call_begin_asking(struct call *c, struct err *e)
{
	if (c->questions == 0 && call_waits_for_person(c, e) < 0) {
		c->for_person = false;
		return -1;
	}
	c->questions++;
	return 0;
}

/* It goes on even where there is no room: it was let in before. */
void call_end_asking(struct call *c)
{
	if (--c->questions > 0)
		return;
	c->for_person = false;
	call_count(c, c->share, CALL_WORKS);
}

int call_ask_for(struct call *c, struct call_question *q, struct err *e)
{
	q->via = c;
	if (!c->start.sink->question)
		return err_set(e, ERR_CLIENT_CANT, "nobody at the client can be asked");
	if (call_begin_asking(c, e) < 0)
		return -1;
	if (c->start.sink->question(c->start.client, q, e) == 0)
		return 0;
	call_end_asking(c);
	return -1;
}

int call_ask(struct call *c, struct call_question *q, struct err *e)
{
	q->params = call_redact(c, q->params);
	q->of = c;
	return call_ask_for(c, q, e);
}

static void call_question_over(const struct call_question *q)
{
	call_end_asking(q->via);
	if (q->of != q->via)
		call_end_asking(q->of);
}

void call_unask(struct call_question *q)
{
	struct call *c = q->via;

	call_question_over(q);
	c->start.sink->unask(c->start.client, q);
}

void call_question_said(struct call_question *q, struct str said, const struct err *e)
{
	call_question_over(q);
	q->on_said(q, said, e);
}

/* A person may take long, and others must have room meanwhile. What is approved goes on even where
 * there is none: it was let in before. */
static void call_ask_approval(struct call *c)
{
	const struct op_hooks *h = &c->ops->hooks;
	struct err e;

	call_enter(c, CALL_APPROVAL);
	if (!h->approval || (h->asks && !h->asks(h->data, c)))
		call_run(c);
	else if (call_waits_for_person(c, &e) < 0)
		call_fail(c, &e);
	else
		h->approval(h->data, c);
}

static void call_ask_policy(struct call *c)
{
	const struct op_hooks *h = &c->ops->hooks;

	call_enter(c, CALL_POLICY);
	if (h->policy)
		h->policy(h->data, c);
	else
		call_ask_approval(c);
}

void call_allow(struct call *c)
{
	struct err e;

	log_request(c->start.label);
	c->on_cancel = NULL;
	c->on_tick = NULL;
	if (c->cancelled || (c->ops->hub && hub_closing(c->ops->hub))) {
		err_set(&e, ERR_CANCELLED, "%s was cancelled", c->start.op->action);
		call_fail(c, &e);
	} else if (c->state == CALL_POLICY) {
		call_ask_approval(c);
	} else {
		c->for_person = false;
		call_count(c, c->share, CALL_WORKS);
		call_run(c);
	}
}

void call_deny(struct call *c, const struct err *e)
{
	log_request(c->start.label);
	c->on_cancel = NULL;
	call_fail(c, e);
}

void op_audit_id(const struct ops *ops, char ret[AUDIT_ID_MAX])
{
	char id[ID_MAX];

	ret[0] = '\0';
	if (!ops->hooks.audit)
		return;
	id_make(id, "run");
	id[3] = '_';
	memcpy(ret, id, 3 + 1 + 32 + 1);
}

struct call *op_new(struct ops *ops, const struct op_start *s, struct err *e)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	c->ops = ops;
	c->start = *s;
	if (s->audit_id)
		snprintf(c->audit_id, sizeof(c->audit_id), "%s", s->audit_id);
	else
		op_audit_id(ops, c->audit_id);
	c->begun_ms = clock_ms();
	c->older = ops->newest;
	if (c->older)
		c->older->newer = c;
	ops->newest = c;
	return c;
}

void op_start(struct call *c)
{
	struct err e = ERR_INIT;

	if (call_identify(c, &e) < 0 || call_decode(c, &e) < 0 || call_check_raw(c, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_look_at_target(c);
	call_ask_policy(c);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void call_timer_closed(uv_handle_t *h)
{
	struct call *c = h->data;

	if (--c->closing == 0)
		free(c);
}

static void ops_on_end_closed(uv_handle_t *h)
{
	struct ops_end *end = h->data;

	end->on_ended(end->arg);
	free(end);
}

static void ops_on_end(uv_timer_t *t)
{
	struct ops_end *end = t->data;

	end->ops->end = NULL;
	uv_close((uv_handle_t *)t, ops_on_end_closed);
}

static void call_free(struct call *c)
{
	if (c->older)
		c->older->newer = c->newer;
	if (c->newer)
		c->newer->older = c->older;
	else
		c->ops->newest = c->older;
	if (c->share)
		share_leave(c->ops, c->share, c->kind);
	c->ops->output -= c->reserved;
	sandbox_unref(take_ptr(c->sandbox));
	arena_free(take_ptr(c->event));
	if (c->hs)
		hub_sandbox_busy(take_ptr(c->hs), -1);
	for (size_t i = 0; i < CALL_STREAMS; i++)
		redact_stream_free(c->streams[i]);
	buf_wipe(&c->piece);
	aside_fini(&c->aside);
	free(c->parts.p);
	while (c->kept) {
		struct kept *k = c->kept;

		c->kept = k->next;
		buf_wipe(&k->buf);
		free(k);
	}
	if (c->ops->end && !c->ops->newest)
		uv_timer_start(&c->ops->end->timer, ops_on_end, 0, 0);
	c->closing = (unsigned)c->ticking + c->has_quiet;
	if (c->ticking)
		uv_close((uv_handle_t *)&c->tick, call_timer_closed);
	if (c->has_quiet)
		uv_close((uv_handle_t *)&c->quiet, call_timer_closed);
	if (c->closing == 0)
		free(c);
	log_request(NULL);
}

/* Nobody needs the values of secrets any more (FIELD_SECRET), and the document that they are in
 * would leave them in freed memory. */
static void call_wipe(struct call *c)
{
	const struct field_table *t = c->start.op->request;

	for (size_t i = 0; c->decoded && i < t->n; i++) {
		const struct field *f = &t->rows[i];
		struct str *s = (struct str *)(void *)((char *)c->request + f->at);

		if ((f->flags & FIELD_SECRET) && s->n > 0)
			explicit_bzero((char *)s->p, s->n);
	}
}

static void call_deliver(struct call *c)
{
	const struct op_start *s = &c->start;

	call_wipe(c);

	log_info("%s: %s, %llu ms", s->op->action,
		 c->outcome.err ? err_info(c->outcome.err->code)->name : "ok",
		 (unsigned long long)c->outcome.taken_ms);
	/* The result is the call's own copy, or in the operation's memory. */
	if (c->outcome.table && c->outcome.table == s->op->result && s->op->receipt)
		*(struct str *)(void *)((char *)c->outcome.result + s->op->receipt - 1) =
			c->receipt;
	if (c->outcome.err)
		s->sink->fail(s->client, c->outcome.err);
	else
		s->sink->answer(s->client, c->outcome.table, c->outcome.result);
	call_free(c);
}

void call_audited(struct call *c)
{
	log_request(c->start.label);
	call_deliver(c);
}

static void call_audit(struct call *c)
{
	const struct op_hooks *h = &c->ops->hooks;

	if (h->audit)
		h->audit(h->data, c, &c->outcome);
	else
		call_deliver(c);
}

static void call_synced(struct hub_sandboxes_sync *w, const struct err *err)
{
	struct call *c = (struct call *)(void *)w; /* its first member */

	log_request(c->start.label);
	if (err) {
		err_set(&c->failed, ERR_UNSURE, "it may have been done, but not on the disk: %s",
			err->msg);
		c->outcome = (struct op_outcome){ .err = &c->failed,
						  .taken_ms = c->outcome.taken_ms };
	}
	call_audit(c);
}

/* Whether what it changed has to reach the disk first. A change of another call may be waited for,
 * too, which costs no more: they share one write. */
static bool call_must_last(struct call *c)
{
	c->sync.on_done = call_synced;
	return c->ops->hub && !c->outcome.err && c->start.op->effect != OP_READ &&
	       hub_sandboxes_sync(call_sandboxes(c), &c->sync);
}

/* Its end is known, though maybe not redacted yet. False: it has ended. */
static bool call_settle(struct call *c)
{
	log_request(c->start.label);
	if (call_ended(c)) {
		log_error("%s was ended twice", c->start.op->action);
		return false;
	}
	call_enter(c, CALL_AUDIT);
	/* The operation's own memory may be gone while the audit takes its time. */
	c->on_cancel = NULL;
	c->on_message = NULL;
	c->on_room = NULL;
	if (c->ticking)
		uv_timer_stop(&c->tick);
	if (c->has_quiet)
		uv_timer_stop(&c->quiet);
	return true;
}

static void call_finish(struct call *c, const struct op_outcome *o)
{
	c->outcome = *o;
	c->outcome.taken_ms = clock_ms() - c->begun_ms;
	if (!call_must_last(c))
		call_audit(c);
}

static void call_end(struct call *c, const struct op_outcome *o)
{
	if (call_settle(c))
		call_finish(c, o);
}

/* Redacts a message, which may quote just the beginning of a secret. */
static struct str call_redact_message(struct call *c, struct str text)
{
	const struct redact_part part = { .text = text, .quotes = true };

	return call_guard(c)->redactor ? call_redact_part(c, &part) : call_redact(c, text);
}

static void call_redact_text(struct call *c, char *text, size_t size)
{
	struct str said = call_redact_message(c, str_of(text));

	if (said.p != text)
		snprintf(text, size, "%.*s", STR_ARG(said));
}

/* A failure quotes what it is about: a path, a program's words, the name of a member. */
void call_fail(struct call *c, const struct err *e)
{
	struct str *about[] = { &c->about.sandbox, &c->about.snapshot, &c->about.path };

	once_drop(c);
	for (size_t i = 0; i < ARRAY_LEN(about); i++)
		*about[i] = about[i]->n ? call_redact(c, *about[i]) : *about[i];
	if (c->about.detail.n)
		c->about.detail = call_redact_message(c, c->about.detail);
	c->failed = *e;
	call_redact_text(c, c->failed.msg, sizeof(c->failed.msg));
	call_redact_text(c, c->failed.pointer, sizeof(c->failed.pointer));
	call_end(c, &(struct op_outcome){ .err = &c->failed });
}

static struct str call_redact_row(void *data, const struct field *row, struct str text)
{
	struct call *c = data;
	const struct op_hooks *h = &c->ops->hooks;

	if (!h->redact || (row && row->flags & FIELD_PLAIN) ||
	    (c->passed && row && (row->flags & FIELD_BYTES)))
		return text;
	return h->redact(h->data, c, row, text);
}

static struct str call_answer_row(void *data, const struct field *row, struct str text)
{
	struct call *c = data;
	const struct redact_part *part = aside_part_of(&c->parts, text);

	if (c->count && !aside_takes(c->count, text)) {
		struct aside *a = &c->aside;

		/* A text of the answer that is redacted later. */
		if (!part)
			return text;
		if (!a->places)
			a->places = calloc(c->parts.n + 1, sizeof(*a->places));
		if (!a->places || a->n_places > c->parts.n)
			return STR_LIT("[REDACTED]");
		a->places[a->n_places++] = (struct aside_place){ c->count->texts - 1, *part };
		return text;
	}
	return part && call_guard(c)->redactor ? call_redact_part(c, part)
					       : call_redact_row(c, row, text);
}

/* With every string as redaction lets it. */
static const void *call_copy(struct call *c, const struct field_table *t, const void *from)
{
	struct err e;

	return field_copy(t, from, c->start.arena, call_redact_row, c, &e);
}

/* Whether its answer may be redacted in the work pool. Bytes of archives leave as events, and the
 * hook keeps their length. */
static bool call_may_leave(const struct call *c)
{
	return c->ops->hooks.redact && call_guard(c)->redactor && c->ops->loop &&
	       !(c->start.op->flags & OP_ARCHIVE);
}

/* Its answer can't be redacted. */
static void call_finish_failed(struct call *c, struct err *e)
{
	once_drop(c);
	call_say_done(c, c->aside.table, c->aside.from, e);
	c->failed = *e;
	call_redact_text(c, c->failed.msg, sizeof(c->failed.msg));
	call_finish(c, &(struct op_outcome){ .err = &c->failed });
}

static void call_is_redacted(struct aside *a)
{
	struct call *c = (struct call *)(void *)((char *)a - offsetof(struct call, aside));
	struct err e;

	log_request(c->start.label);
	if (aside_take(a, c->start.arena, &e) < 0) {
		call_finish_failed(c, &e);
		return;
	}
	once_store(c, a->result);
	call_finish(c, &(struct op_outcome){ .table = a->table, .result = a->result });
}

/* The operation is over, and its answer is a copy that is not redacted from a text on. */
static void call_redact_aside(struct call *c, const struct field_table *t, const void *from,
			      size_t first)
{
	struct err e;

	if (!call_settle(c))
		return;
	c->aside.table = t;
	c->aside.from = from;
	c->aside.first = first;
	c->aside.write = c->start.sink->write;
	c->aside.client = c->start.client;
	c->aside.on_done = call_is_redacted;
	if (aside_start(&c->aside, c->ops->loop, call_guard(c)->redactor, c->start.arena->max, &e) <
	    0)
		call_finish_failed(c, &e);
}

void call_answer_by(struct call *c, const struct field_table *t, const void *result)
{
	const struct op_hooks *h = &c->ops->hooks;
	struct aside_count count = { 0 };
	const void *whole = result;
	struct err e;

	/* An audit may take its time: the operation's own struct is gone by then. */
	c->count = call_may_leave(c) ? &count : NULL;
	if (t && result && (h->redact || h->audit))
		result = field_copy(t, result, c->start.arena, call_answer_row, c, &e);
	c->count = NULL;
	if (count.is_long && result) {
		call_redact_aside(c, t, result, count.first);
		return;
	}
	if (t && !result) {
		call_say_done(c, t, whole, &e);
		call_fail(c, &e);
		return;
	}
	once_store(c, result);
	call_end(c, &(struct op_outcome){ .table = t, .result = result });
}

void call_answer(struct call *c, const void *result)
{
	call_answer_by(c, result ? c->start.op->result : NULL, result);
}

/* ---- what leaves --------------------------------------------------------------------------- */

bool call_ended(const struct call *c)
{
	return c->state == CALL_AUDIT;
}

static const void *call_redacted(struct call *c, const struct field_table *t, const void *from)
{
	struct arena *own = c->start.arena;

	if (!c->ops->hooks.redact)
		return from;
	/* A stream may tell more than a call may keep. */
	arena_free(c->event);
	c->event = arena_new(MAX_EVENT);
	if (!c->event)
		return NULL;
	c->start.arena = c->event;
	from = call_copy(c, t, from);
	c->start.arena = own;
	return from;
}

static void call_tell_sent(struct call *c, const struct field_table *t, const void *event)
{
	const struct op_hooks *h = &c->ops->hooks;

	if (event && h->sent)
		h->sent(h->data, c, t, event);
}

const void *call_redact_by(struct call *c, const struct field_table *t, const void *from)
{
	from = call_redacted(c, t, from);
	call_tell_sent(c, t, from);
	return from;
}

static struct redact_stream *call_stream_of(struct call *c, enum call_stream stream)
{
	struct redactor *r = call_guard(c)->redactor;
	struct err e;

	if (r && !c->streams[stream])
		c->streams[stream] = redact_stream_new(r, stream == CALL_ARCHIVE, &e);
	return c->streams[stream];
}

/* Where it fails nothing leaves. */
struct str call_redact_piece(struct call *c, enum call_stream stream, struct str bytes,
			     enum redact_flush flush)
{
	struct redact_stream *s = call_stream_of(c, stream);
	struct err e = ERR_INIT;

	if (c->raw)
		return bytes;
	if (!call_guard(c)->redactor)
		return call_redact(c, bytes);
	c->piece.n = 0;
	c->piece.max = MAX_EVENT;
	if (!s || redact_stream_add(s, bytes, flush, &c->piece, &e) < 0) {
		log_error("output can't be redacted and is left out: %s", e.msg);
		c->piece.n = 0;
	}
	return buf_str(&c->piece);
}

void call_redact_before(struct call *c, enum call_stream stream, struct str bytes)
{
	struct redact_stream *s = call_stream_of(c, stream);
	struct err e;

	if (s && redact_stream_before(s, bytes, &e) < 0)
		log_error("output is redacted without what stands before it: %s", e.msg);
}

size_t call_redact_held(const struct call *c, enum call_stream stream)
{
	return c->streams[stream] ? redact_stream_held(c->streams[stream]) : 0;
}

uint64_t call_redact_replaced(const struct call *c, enum call_stream stream)
{
	return c->streams[stream] ? redact_stream_replaced(c->streams[stream]) : 0;
}

static void call_is_quiet(uv_timer_t *t)
{
	struct call *c = t->data;

	log_request(c->start.label);
	c->on_quiet(c->on_quiet_data);
	log_request(NULL);
}

void call_on_quiet(struct call *c, uint64_t ms, void (*on_quiet)(void *data), void *data)
{
	if (!c->has_quiet && uv_timer_init(call_loop(c), &c->quiet) < 0)
		return;
	c->has_quiet = true;
	c->quiet.data = c;
	c->on_quiet = on_quiet;
	c->on_quiet_data = data;
	uv_timer_start(&c->quiet, call_is_quiet, ms, 0);
}

bool ops_redact(const struct ops *ops, char *text, size_t size)
{
	struct redactor *r = ops_guard(ops)->redactor;
	const struct redact_part part = { .text = str_of(text), .quotes = true };
	autowipe struct buf b = BUF_INIT(MAX_EVENT);
	struct err e;
	int rc = r && *text ? redact_text(r, &part, &b, &e) : 0;
	struct str said = rc < 0 ? STR_LIT("[REDACTED]") : buf_str(&b);

	if (rc != 0)
		snprintf(text, size, "%.*s", STR_ARG(utf8_cut(said, size - 1)));
	return rc == 0 || (rc > 0 && said.n < size);
}

struct str call_redact_part(struct call *c, const struct redact_part *part)
{
	struct redactor *r = call_guard(c)->redactor;
	autowipe struct buf b = BUF_INIT(MAX_EVENT);
	struct err e;
	char *copy;
	int rc = r ? redact_text(r, part, &b, &e) : 0;

	if (rc == 0)
		return part->text;
	copy = rc < 0 ? NULL : arena_dup(c->start.arena, buf_str(&b), &e);
	return copy ? (struct str){ copy, b.n } : STR_LIT("[REDACTED]");
}

int call_answer_part(struct call *c, const struct redact_part *part, struct err *e)
{
	struct aside_parts *all = &c->parts;

	if (part->text.n == 0)
		return 0;
	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 4;
		struct redact_part *p = realloc(all->p, cap * sizeof(*p));

		if (!p)
			return err_set(e, ERR_LIMIT, "out of memory");
		all->p = p;
		all->cap = cap;
	}
	all->p[all->n++] = *part;
	return 0;
}

int call_keep(struct call *c, struct buf *b, struct err *e)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		return err_set(e, ERR_LIMIT, "out of memory");
	*k = (struct kept){ c->kept, *b };
	*b = (struct buf)BUF_INIT(b->max);
	c->kept = k;
	return 0;
}

struct str call_redact(struct call *c, struct str bytes)
{
	return call_redact_row(c, NULL, bytes);
}

bool call_streams(const struct call *c)
{
	return c->start.sink->event != NULL;
}

int call_open(struct call *c, void (*on_room)(void *data), void *data, struct err *e)
{
	c->on_room = on_room;
	c->on_room_data = data;
	return c->start.sink->open(c->start.client, e);
}

void call_send_redacted(struct call *c, const void *event)
{
	c->passed = true;
	call_send(c, event);
	c->passed = false;
}

void call_send(struct call *c, const void *event)
{
	const struct op *op = c->start.op;

	event = call_redact_by(c, op->event, event);
	if (event)
		c->start.sink->event(c->start.client, event);
	else
		call_cancel(c); /* a stream with a hole would seem to be whole */
}

void call_send_as_is(struct call *c, const void *event)
{
	call_tell_sent(c, c->start.op->event, event);
	c->start.sink->event(c->start.client, event);
}

void call_count_out(struct call *c, uint64_t bytes)
{
	struct str id = op_target(c->start.op, c->request);
	struct err e;
	struct hub_sandbox *l = id.n ? call_hub_sandbox(c, id, &e) : NULL;
	struct sandbox *sb = l ? hub_sandbox_box(l) : NULL;

	if (sb)
		sandbox_carried(sb, 0, bytes);
}

bool call_full(struct call *c)
{
	return c->start.sink->full(c->start.client);
}

void call_room(struct call *c)
{
	if (c->on_room)
		c->on_room(c->on_room_data);
}

void call_progress(struct call *c, double progress, double total, const char *message)
{
	struct str said = message ? call_redact_message(c, str_of(message)) : STR_NONE;
	char text[256];

	c->progress = progress;
	c->total = total;
	if (!c->start.sink->progress)
		return;
	snprintf(text, sizeof(text), "%.*s", STR_ARG(said));
	c->start.sink->progress(c->start.client, progress, total, message ? text : NULL);
}

/* MCP wants each value to be above the last one. */
void call_still(struct call *c, const char *message)
{
	call_progress(c, c->progress + 1e-6, c->total, message);
}

bool call_wants_log(const struct call *c, unsigned *ret_least)
{
	*ret_least = c->start.log_level;
	return c->start.sink->log != NULL;
}

/* Redaction sees bytes: what is no JSON any more is not told. */
void call_log(struct call *c, unsigned level, struct str logger, struct str data)
{
	struct str said = call_redact(c, data), by = logger.n ? call_redact(c, logger) : STR_NONE;
	AUTO(json_free) struct json_doc *doc = NULL;
	char name[128];
	struct err e;

	if (!c->start.sink->log || level < c->start.log_level)
		return;
	doc = json_parse(said, NULL, &e);
	if (!doc)
		return;
	snprintf(name, sizeof(name), "%.*s", STR_CUT(by, sizeof(name) - 1));
	c->start.sink->log(c->start.client, level, by.n ? name : NULL, said);
}

/* ---- what is said to it -------------------------------------------------------------------- */

void call_listen(struct call *c, int (*on_message)(void *data, const void *message, struct err *e),
		 void *data)
{
	c->on_message = on_message;
	c->on_message_data = data;
	call_hold(c, false);
}

int call_hear(struct call *c, const void *message, struct err *e)
{
	return c->on_message ? c->on_message(c->on_message_data, message, e) : 0;
}

void call_hold(struct call *c, bool hold)
{
	if (c->start.sink->hold)
		c->start.sink->hold(c->start.client, hold);
}

void call_cancel(struct call *c)
{
	void (*on_cancel)(void *data) = take_ptr(c->on_cancel);

	if (c->cancelled)
		return;
	c->cancelled = true;
	if (on_cancel)
		on_cancel(c->on_cancel_data);
}

/* Those of a principal; NULL: of all, or those that wait for a person. Cancelling one may end it,
 * and others. */
static void ops_cancel(struct ops *ops, const struct principal *who, bool for_person)
{
	struct call *c = ops->newest;

	while (c) {
		if (c->cancelled || (who && c->start.who != who) ||
		    (for_person && !c->for_person)) {
			c = c->older;
			continue;
		}
		call_cancel(c);
		c = ops->newest;
	}
}

int ops_may(const struct ops *ops, const struct principal *who, const struct op *op, struct err *e)
{
	return ops->hooks.may ? ops->hooks.may(ops->hooks.data, who, op, e) : 0;
}

bool ops_never(const struct ops *ops, const struct principal *who, const struct op *op,
	       const char *tool)
{
	const struct op_hooks *h = &ops->hooks;
	struct err e;

	return ops_may(ops, who, op, &e) < 0 || (h->never && h->never(h->data, who, op, tool));
}

bool ops_knows(const struct ops *ops, struct str owner)
{
	const struct guard *g = ops->hooks.guard;

	return !g || !g->knows || g->knows(g->data, owner);
}

bool ops_acts(const struct ops *ops, struct str owner)
{
	const struct guard *g = ops->hooks.guard;

	return !g || !g->acts || g->acts(g->data, owner);
}

const struct principal *ops_owner(const struct ops *ops, struct str owner)
{
	const struct guard *g = ops->hooks.guard;

	return g && g->owner ? g->owner(g->data, owner) : NULL;
}

void ops_end_calls_of(struct ops *ops, const struct principal *who)
{
	ops_cancel(ops, who, false);
}

void ops_end_of(struct ops *ops, const struct principal *who)
{
	ops_end_calls_of(ops, who);
	if (ops->hub)
		forwards_end_of(hub_sandboxes(ops->hub), principal_owner(who));
}

void ops_drain(struct ops *ops)
{
	ops->draining = true;
	ops_cancel(ops, NULL, true);
}

int ops_end(struct ops *ops, bool cancel, unsigned ms, void (*on_ended)(void *arg), void *arg,
	    struct err *e)
{
	struct ops_end *end = calloc(1, sizeof(*end));

	if (!end || uv_timer_init(ops->loop, &end->timer) < 0) {
		free(end);
		return err_set(e, ERR_LIMIT, "out of memory");
	}
	end->ops = ops;
	end->on_ended = on_ended;
	end->arg = arg;
	end->timer.data = end;
	ops->end = end;
	ops->draining = true;
	if (cancel)
		ops_cancel(ops, NULL, false);
	uv_timer_start(&end->timer, ops_on_end, ops->newest ? ms : 0, 0);
	return 0;
}

void call_on_cancel(struct call *c, void (*on_cancel)(void *data), void *data)
{
	c->on_cancel = on_cancel;
	c->on_cancel_data = data;
}

bool call_cancelled(const struct call *c)
{
	return c->cancelled;
}

/* ---- while it runs ------------------------------------------------------------------------- */

const struct op *call_op(const struct call *c)
{
	return c->start.op;
}

const char *call_audit_id(const struct call *c)
{
	return c->audit_id;
}

void call_set_receipt(struct call *c, struct str receipt)
{
	struct err e;
	char *copy = arena_dup(c->start.arena, receipt, &e);

	c->receipt = copy ? (struct str){ copy, receipt.n } : STR_NONE;
}

struct str call_receipt(const struct call *c)
{
	return c->receipt;
}

bool call_by_agent(const struct call *c)
{
	return c->start.agent;
}

unsigned call_conversation(const struct call *c)
{
	return c->start.conversation;
}

bool call_can_ask(const struct call *c)
{
	return c->start.can_ask && c->start.sink->ask;
}

struct str call_asked(const struct call *c)
{
	return c->start.asked;
}

enum op_said call_said(const struct call *c)
{
	return c->start.said;
}

const struct json_val *call_said_values(const struct call *c)
{
	return c->start.said_values;
}

void call_ask_client(struct call *c, struct str id, struct str text, struct str schema)
{
	c->start.sink->ask(c->start.client, id, call_redact(c, text), call_redact(c, schema));
}

bool call_going_down(const struct call *c)
{
	return c->ops->draining || (c->ops->hub && hub_closing(c->ops->hub));
}

void **call_hook_state(struct call *c)
{
	return &c->hook_state;
}

const struct guard *ops_guard(const struct ops *ops)
{
	static const struct guard none;

	return ops->hooks.guard ? ops->hooks.guard : &none;
}

const struct guard *call_guard(const struct call *c)
{
	return ops_guard(c->ops);
}

const struct net_grant *call_network(const struct call *c)
{
	return &c->ops->network;
}

bool call_is_operator(const struct call *c)
{
	return c->start.who && c->start.who->is_operator && !c->start.agent;
}

const struct field_strs *call_profiles(const struct call *c)
{
	return &c->start.profiles;
}

bool call_unprofiled(const struct call *c)
{
	return c->start.unprofiled;
}

const struct principal *call_principal(const struct call *c)
{
	return c->start.who;
}

void call_undo(struct call *c)
{
	c->begun = false;
}

bool call_begun(const struct call *c)
{
	return c->begun;
}

struct op_defaults *call_defaults(struct call *c)
{
	return &c->defaults;
}

uint64_t call_target(const struct call *c)
{
	return c->target;
}

const void *call_request(const struct call *c)
{
	return c->decoded ? c->request : NULL;
}

void *call_client(struct call *c)
{
	return c->start.client;
}

struct box *call_box(struct call *c)
{
	return hub_box(c->ops->hub);
}

struct arena *call_arena(struct call *c)
{
	return c->start.arena;
}

uv_loop_t *call_loop(struct call *c)
{
	return c->ops->loop;
}

struct hub_sandboxes *call_sandboxes(struct call *c)
{
	return hub_sandboxes(c->ops->hub);
}

const char *call_images(struct call *c)
{
	return hub_images(c->ops->hub);
}

struct workspaces *call_workspaces(struct call *c)
{
	return hub_workspaces(c->ops->hub);
}

const struct previews *call_previews(struct call *c)
{
	return hub_previews(c->ops->hub);
}

struct coding *call_coding(const struct call *c)
{
	return c->ops->coding;
}

struct code *call_code(const struct call *c)
{
	return c->ops->code;
}

struct upstreams *call_upstreams(const struct call *c)
{
	return c->ops->upstreams;
}

struct conversations *call_conversations(const struct call *c)
{
	return c->ops->conversations;
}

struct feed *call_feed(const struct call *c)
{
	return c->ops->feed;
}

struct store *call_store(const struct call *c)
{
	return c->ops->hub ? hub_store(c->ops->hub) : NULL;
}

const void *call_session(const struct call *c)
{
	return c->start.session;
}

struct call *call_inner(const struct call *c, const struct op_start *s, struct err *e)
{
	struct op_start start = *s;

	start.who = c->start.who;
	start.agent = c->start.agent;
	start.session = c->start.session;
	start.label = s->op->action;
	return op_new(c->ops, &start, e);
}

void call_set_timeout(struct call *c, uint64_t ms)
{
	c->timeout_ms = ms;
}

uint64_t call_timeout_ms(const struct call *c)
{
	return c->timeout_ms;
}

void call_set_key(struct call *c, struct str key)
{
	c->once.text = key;
}

struct once_key *call_once(struct call *c)
{
	return &c->once;
}

void call_set_endpoint(struct call *c, struct str url)
{
	c->endpoint = url;
}

struct str call_endpoint(const struct call *c)
{
	return c->endpoint;
}

struct call_about *call_about(struct call *c)
{
	return &c->about;
}

/* Ids are of the client's choice: what a person allowed for one sandbox, or where there was none,
 * is not done to the next of that name. */
static bool call_is_target(const struct call *c, struct str id, const struct hub_sandbox *l)
{
	struct hub_sandbox_info i;

	if (!c->looked_at_target || str_cmp(id, op_target(c->start.op, c->request)) != 0)
		return true;
	hub_sandbox_info(l, &i);
	return i.seq == c->target;
}

struct hub_sandbox *call_hub_sandbox(struct call *c, struct str id, struct err *e)
{
	struct hub_sandbox *l = hub_sandboxes_find(call_sandboxes(c), id, e);

	c->about.sandbox = id;
	if (!l || (call_sees(c, l) && call_is_target(c, id, l)))
		return l;
	hub_sandboxes_unknown(id, e);
	return NULL;
}

struct sandbox *call_sandbox(struct call *c, struct str id, struct err *e)
{
	struct hub_sandbox *l = call_hub_sandbox(c, id, e);
	struct sandbox *sb = l ? hub_sandbox_sandbox(l, e) : NULL;
	struct hub_sandbox_info i;

	if (sb && c->start.op->effect != OP_READ) {
		hub_sandbox_info(l, &i);
		if (profile_check_sandbox(c, &i.modules, e) < 0)
			return NULL;
	}
	if (sb && c->defaults.path_counts && str_eq(id, op_target(c->start.op, c->request)) &&
	    !str_is(c->defaults.path, sandbox_cwd(sb))) {
		err_set(e, ERR_CONFLICT,
			"the sandbox was not running when its paths were read; its "
			"working directory is %s",
			sandbox_cwd(sb));
		return NULL;
	}
	if (sb && !c->hs) {
		c->hs = l;
		c->sandbox = sandbox_ref(sb);
		hub_sandbox_busy(l, 1);
	}
	return sb;
}

int call_reserve(struct call *c, size_t n, struct err *e)
{
	struct ops *ops = c->ops;

	if (n > ops->max_output - ops->output)
		return err_set(e, ERR_LIMIT,
			       "other calls keep %zu MiB of output; ask for less, or later",
			       ops->output >> 20);
	ops->output += n;
	c->reserved += n;
	return 0;
}

static void call_on_timer(uv_timer_t *t)
{
	struct call *c = t->data;

	log_request(c->start.label);
	if (c->on_tick)
		c->on_tick(c->on_tick_data);
	log_request(NULL);
}

void call_on_tick(struct call *c, void (*tick)(void *data), void *data)
{
	if (!c->start.sink->progress)
		return;
	c->on_tick = tick;
	c->on_tick_data = data;
	if (c->ticking || uv_timer_init(call_loop(c), &c->tick) < 0)
		return;
	c->ticking = true;
	c->tick.data = c;
	uv_timer_start(&c->tick, call_on_timer, TICK_MS, TICK_MS);
}
