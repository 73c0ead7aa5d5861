#include "ask/approval.h"

#include <stdlib.h>

#include "ask/approval_internal.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "json/document/hidden.h"
#include "json/document/utf8.h"

/* For who asks. */
#define HIDES_REMEDY                                                                               \
	"Grant a credential by name instead: secrets of sandbox.exec and sandbox.create "          \
	"(docs/secrets.md)"

enum {
	EXPIRE_MS = 3600 * 1000,
	GRANT_MS = 24 * 3600 * 1000, /* of a conversation, whose end nobody hears of */
	MAX_OPEN = 256,
	MAX_EACH = 32,
	ARENA_MAX = 256 << 10,
	TEXT_MAX = 256, /* of a name of anything */
};

const char *const approval_state_names[APPROVAL_STATES] = {
	[APPROVAL_PENDING] = "pending", [APPROVAL_APPROVED] = "approved",
	[APPROVAL_DENIED] = "denied",	[APPROVAL_EXPIRED] = "expired",
	[APPROVAL_VOID] = "void",	[APPROVAL_SUPERSEDED] = "superseded",
};
const char *const approval_scope_names[APPROVAL_SCOPES] = {
	[APPROVAL_ONCE] = "once",
	[APPROVAL_CONVERSATION] = "conversation",
	[APPROVAL_ALWAYS] = "always",
};

struct approvals {
	struct asks asks; /* first */
	int64_t expire_ms;
};

static struct approval *all_first(const struct approvals *all)
{
	return (struct approval *)all->asks.first;
}

static struct approval *one_next(const struct approval *a)
{
	return (struct approval *)a->ask.next;
}

/* ---- one ----------------------------------------------------------------------------------- */

static void one_free(struct ask *ask)
{
	struct approval *a = (struct approval *)ask;

	arena_free(a->arena);
	free(a);
}

static struct approval *one_new(struct err *e)
{
	struct approval *a = calloc(1, sizeof(*a));

	if (a)
		a->arena = arena_new(ARENA_MAX);
	if (a && a->arena)
		return a;
	free(a);
	err_set(e, ERR_LIMIT, "out of memory");
	return NULL;
}

/* Sets *to to a copy; "" for none. */
static int one_keep(struct approval *a, struct str *to, struct str from, struct err *e)
{
	const char *p = from.n ? arena_dup(a->arena, from, e) : "";

	if (!p)
		return -1;
	*to = (struct str){ p, from.n };
	return 0;
}

static bool is_grant(const struct approval *a)
{
	return a->state == APPROVAL_APPROVED && a->scope != APPROVAL_ONCE;
}

/* An approval that is good for one call, and was not used yet. */
static bool is_unused(const struct approval *a)
{
	return a->state == APPROVAL_APPROVED && a->scope == APPROVAL_ONCE && !a->row.used_ms;
}

static void one_look(struct approval *a)
{
	a->ask.takes_room = a->state == APPROVAL_PENDING || is_unused(a);
	a->ask.open = a->ask.takes_room || is_grant(a);
}

static int one_write(struct approvals *all, struct approval *a, struct err *e)
{
	struct store_approval r = a->row;

	r.seq = a->ask.seq;
	r.rev = all->asks.rev + 1;
	r.id = a->ask.id;
	r.principal = a->ask.principal;
	r.created_ms = a->ask.created_ms;
	r.deadline_ms = a->ask.deadline_ms;
	r.state = str_of(approval_state_names[a->state]);
	r.scope = str_of(approval_scope_names[a->scope]);
	if (all->asks.store && store_approval_put(all->asks.store, &r, e) < 0)
		return -1;
	a->ask.rev = ++all->asks.rev;
	one_look(a);
	return 0;
}

/* For an end, which is one even where the registry fails: by its deadline the next hub ends it,
 * too. */
static void one_write_end(struct approvals *all, struct approval *a)
{
	struct err e;

	if (one_write(all, a, &e) == 0)
		return;
	log_warn("approval %.*s: %s", STR_ARG(a->ask.id), e.msg);
	a->ask.rev = ++all->asks.rev;
	one_look(a);
}

/* Nobody waits for it any more. */
static struct approval_wait *one_release(struct approval *a)
{
	struct approval_wait *w = take_ptr(a->waiter);

	if (w)
		w->on = NULL;
	return w;
}

static int say_denied(const struct approval *a, struct err *e)
{
	const struct store_approval *r = &a->row;

	if (a->state == APPROVAL_EXPIRED)
		return err_set(e, ERR_DENIED,
			       "%.*s needs a person's approval, and nobody "
			       "answered request %.*s in time",
			       STR_ARG(r->action), STR_ARG(a->ask.id));
	return err_set(e, ERR_DENIED, "%.*s was not approved: request %.*s was denied by %.*s%s",
		       STR_ARG(r->action), STR_ARG(a->ask.id), STR_CUT(r->who, TEXT_MAX),
		       a->hides ? ". Redaction hides a part of its arguments. " HIDES_REMEDY : "");
}

static void one_expire(struct asks *asks, struct ask *ask)
{
	struct approval *a = (struct approval *)ask;
	struct approval_wait *w;
	struct err e;

	a->state = APPROVAL_EXPIRED;
	one_write_end((struct approvals *)asks, a);
	w = one_release(a);
	say_denied(a, &e);
	asks_tell(asks, ask);
	if (w)
		w->on_end(w->data, &e);
}

static const struct asks_kind approval_kind = {
	.noun = "request for approval",
	.many = "requests for approval",
	.missing = ERR_APPROVAL_NOT_FOUND,
	.closed_max = APPROVAL_CLOSED_MAX,
	.expire = one_expire,
	.drop = store_approval_drop,
	.free = one_free,
};

/* ---- from and to the registry -------------------------------------------------------------- */

static int all_load_row(void *arg, const struct store_approval *r, struct err *e)
{
	struct approvals *all = arg;
	struct approval *a = one_new(e);
	struct str *to, from;
	int state = asks_name(r->state, approval_state_names, APPROVAL_STATES);
	int scope = asks_name(r->scope, approval_scope_names, APPROVAL_SCOPES);

	if (!a)
		return -1;
	a->ask = (struct ask){ .seq = r->seq,
			       .rev = r->rev,
			       .id = r->id,
			       .principal = r->principal,
			       .created_ms = r->created_ms,
			       .deadline_ms = r->deadline_ms };
	asks_add(&all->asks, &a->ask);
	a->row = *r;
	struct str *const texts[] = { &a->ask.id,	    &a->ask.principal, &a->row.action,
				      &a->row.target,	    &a->row.digest,    &a->row.arguments,
				      &a->row.conversation, &a->row.rule,      &a->row.pattern,
				      &a->row.who,	    &a->row.surface };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		to = texts[i];
		from = *to;
		if (one_keep(a, to, from, e) < 0)
			return -1;
	}
	if (state < 0 || scope < 0)
		return err_set(e, ERR_STORE_CORRUPT, "the registry has an approval that is none");
	a->state = (enum approval_state)state;
	a->scope = (enum approval_scope)scope;
	one_look(a);
	a->cut = str_ends(a->row.arguments, "…");
	/* The registry does not say which marks are of values. Who asks again tells. */
	a->hides = approval_has_mark(a->row.arguments);
	return 0;
}

static int all_load(struct approvals *all, struct err *e)
{
	if (!all->asks.store)
		return 0;
	if (store_approvals(all->asks.store, all_load_row, all, e) < 0)
		return -1;
	for (struct approval *a = all_first(all); a; a = one_next(a)) {
		if (!is_grant(a) || a->scope != APPROVAL_CONVERSATION)
			continue;
		a->state = APPROVAL_VOID;
		one_write_end(all, a);
	}
	asks_expire(&all->asks);
	return 0;
}

void approvals_free(struct approvals *all)
{
	if (all)
		asks_fini(&all->asks);
}

struct approvals *approvals_new(uv_loop_t *loop, struct store *store,
				const struct approvals_options *o, struct err *e)
{
	struct approvals *all = calloc(1, sizeof(*all));
	struct asks_options asks = o->asks;

	asks.max_open = asks.max_open ? asks.max_open : MAX_OPEN;
	asks.max_each = asks.max_each ? asks.max_each : MAX_EACH;
	if (!all || asks_init(&all->asks, loop, &approval_kind, store, &asks, e) < 0) {
		free(all);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	approvals_set_expire(all, o->expire_ms);
	if (all_load(all, e) == 0)
		return all;
	approvals_free(all);
	return NULL;
}

void approvals_set_expire(struct approvals *all, int64_t expire_ms)
{
	all->expire_ms = expire_ms ? expire_ms : EXPIRE_MS;
}

/* ---- who asks ------------------------------------------------------------------------------ */

static bool asks_same(const struct approval *a, const struct approval_ask *q)
{
	return str_eq(a->row.digest, q->digest) && a->row.sandbox == q->sandbox &&
	       str_eq(a->ask.principal, q->principal) && str_eq(a->row.action, q->action);
}

/* A pattern may free the member that names the sandbox; then there is no other of the same name. */
static bool grant_is_of(const struct store_approval *r, const struct approval_ask *q)
{
	return r->sandbox == q->sandbox || !str_eq(r->target, q->target);
}

static bool grant_fits(const struct approval *a, const struct approval_ask *q)
{
	const struct store_approval *r = &a->row;

	if (!str_eq(a->ask.principal, q->principal) || !str_eq(r->action, q->action))
		return false;
	if (a->scope == APPROVAL_CONVERSATION &&
	    (q->conversation.n == 0 || !str_eq(r->conversation, q->conversation)))
		return false;
	if (!r->pattern.n)
		return asks_same(a, q);
	return grant_is_of(r, q) && approval_pattern_fits(r->pattern, r->arguments, q->arguments);
}

/* Nobody was shown this request, so nothing approves it, not even an answer from before. */
static struct approval *find_fitting(const struct approvals *all, const struct approval_ask *q)
{
	if (q->hides)
		return NULL;
	for (struct approval *a = all_first(all); a; a = one_next(a)) {
		if (is_grant(a) ? grant_fits(a, q) : is_unused(a) && asks_same(a, q))
			return a;
	}
	return NULL;
}

static struct approval *find_left(const struct approvals *all, const struct approval_ask *q)
{
	for (struct approval *a = all_first(all); a; a = one_next(a)) {
		if (a->state == APPROVAL_PENDING && !a->waiter && asks_same(a, q))
			return a;
	}
	return NULL;
}

static int one_set_used(struct approvals *all, struct approval *a, int64_t at_ms, struct err *e)
{
	int64_t was = a->row.used_ms;

	a->row.used_ms = at_ms;
	if (one_write(all, a, e) == 0)
		return 0;
	a->row.used_ms = was;
	return -1;
}

/* As they are shown, so what nobody sees can't be in them. */
static int keep_arguments(struct approval *a, struct str arguments, struct err *e)
{
	autobuf struct buf b = BUF_INIT(8 * (size_t)APPROVAL_ARGUMENTS_MAX);

	a->row.size = arguments.n;
	a->cut = arguments.n > APPROVAL_ARGUMENTS_MAX;
	if (hidden_escape_json(&b, utf8_cut(arguments, APPROVAL_ARGUMENTS_MAX), e) < 0 ||
	    (a->cut && buf_addf(&b, e, "…") < 0))
		return -1;
	return one_keep(a, &a->row.arguments, buf_str(&b), e);
}

static int approval_fill(struct approvals *all, struct approval *a, const struct approval_ask *q,
			 struct err *e)
{
	struct store_approval *r = &a->row;
	char id[ID_MAX];

	id_make(id, "apr");
	a->ask.seq = all->asks.rev + 1;
	r->sandbox = q->sandbox;
	a->ask.created_ms = clock_unix_ms();
	a->ask.deadline_ms = a->ask.created_ms + all->expire_ms;
	r->pattern = r->who = r->surface = STR_LIT("");
	if (one_keep(a, &a->ask.id, str_of(id), e) < 0 ||
	    one_keep(a, &a->ask.principal, q->principal, e) < 0 ||
	    one_keep(a, &r->action, q->action, e) < 0 ||
	    one_keep(a, &r->target, q->target, e) < 0 ||
	    one_keep(a, &r->digest, q->digest, e) < 0 ||
	    one_keep(a, &r->conversation, q->conversation, e) < 0 ||
	    one_keep(a, &r->rule, utf8_cut(q->rule, TEXT_MAX), e) < 0 ||
	    keep_arguments(a, q->arguments, e) < 0)
		return -1;
	return one_write(all, a, e);
}

static struct approval *one_make(struct approvals *all, const struct approval_ask *q, struct err *e)
{
	struct approval *a = asks_check_room(&all->asks, q->principal, e) < 0 ? NULL : one_new(e);

	if (!a)
		return NULL;
	if (approval_fill(all, a, q, e) < 0) {
		one_free(&a->ask);
		return NULL;
	}
	asks_add(&all->asks, &a->ask);
	return a;
}

int approval_ask(struct approvals *all, const struct approval_ask *q, struct approval_wait *w,
		 const struct approval **ret, struct err *e)
{
	struct approval *a;
	bool made;

	asks_expire(&all->asks);
	a = find_fitting(all, q);
	if (a) {
		/* Only from here on may the call go: in the registry the approval is used. */
		if (one_set_used(all, a, clock_unix_ms(), e) < 0)
			return -1;
		*ret = a;
		asks_tell(&all->asks, &a->ask);
		return 1;
	}
	a = find_left(all, q);
	made = !a;
	if (!a)
		a = one_make(all, q, e);
	if (!a)
		return -1;
	/* It is answered by what was kept of it. */
	a->hides = q->hides || (a->hides && !str_eq(a->row.arguments, q->arguments));
	a->waiter = w;
	w->of = all;
	w->on = a;
	*ret = a;

	if (made)
		asks_tell(&all->asks, &a->ask);
	return 0;
}

void approval_leave(struct approval_wait *w, bool keep)
{
	struct approval *a = w->on;
	struct approvals *all = w->of;

	if (!a)
		return;
	one_release(a);
	if (keep)
		return;
	a->state = APPROVAL_VOID;
	one_write_end(all, a);
	asks_tell(&all->asks, &a->ask);
	asks_expire(&all->asks);
}

void approval_give_back(struct approvals *all, struct str id)
{
	struct err e;
	struct approval *a = (struct approval *)approval_find(all, id, &e);

	if (!a || a->state != APPROVAL_APPROVED || a->scope != APPROVAL_ONCE || a->ask.open)
		return;
	if (one_set_used(all, a, 0, &e) < 0) {
		log_warn("approval %.*s stays used up: %s", STR_ARG(id), e.msg);
		return;
	}
	asks_tell(&all->asks, &a->ask);
	asks_expire(&all->asks);
}

/* Whoever hears of it may change others: each round begins from the front. */
static bool all_end_one(struct approvals *all, uint64_t sandbox)
{
	struct approval *a = all_first(all);

	while (a && (a->row.sandbox != sandbox || a->waiter ||
		     !(a->state == APPROVAL_PENDING || is_unused(a))))
		a = one_next(a);
	if (!a)
		return false;
	a->state = APPROVAL_VOID;
	one_write_end(all, a);
	asks_tell(&all->asks, &a->ask);
	return true;
}

void approvals_end_of(struct approvals *all, uint64_t sandbox)
{
	bool any = false;

	while (all_end_one(all, sandbox))
		any = true;
	if (any)
		asks_expire(&all->asks);
}

/* ---- who answers --------------------------------------------------------------------------- */

static int one_conflict(const struct approval *a, struct err *e)
{
	static const char *const did[APPROVAL_STATES] = {
		[APPROVAL_APPROVED] = "was approved",	  [APPROVAL_DENIED] = "was denied",
		[APPROVAL_EXPIRED] = "has expired",	  [APPROVAL_VOID] = "is void",
		[APPROVAL_SUPERSEDED] = "was superseded", [APPROVAL_PENDING] = "is not answered",
	};
	const struct store_approval *r = &a->row;
	time_t at = (time_t)(r->answered_ms / 1000);
	char when[32] = "";
	struct tm tm;

	if (!r->answered_ms)
		return err_set(e, ERR_ANSWERED, "request %.*s %s", STR_ARG(a->ask.id),
			       did[a->state]);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &tm));
	return err_set(e, ERR_ANSWERED, "request %.*s %s by %.*s over %.*s at %s",
		       STR_ARG(a->ask.id), did[a->state], STR_CUT(r->who, TEXT_MAX),
		       STR_CUT(r->surface, 32), when);
}

static int check_grant(const struct approvals *all, const struct approval *a,
		       const struct approval_answer *q, struct err *e)
{
	unsigned grants = 0;

	if (q->scope == APPROVAL_ONCE && q->pattern.n)
		return err_set(e, ERR_INVALID, "pattern: an approval that is good once has none");
	if (q->scope == APPROVAL_ONCE)
		return 0;
	if (q->scope == APPROVAL_CONVERSATION && a->row.conversation.n == 0)
		return err_set(e, ERR_INVALID, "scope: this request belongs to no conversation");
	for (struct approval *b = all_first(all); b; b = one_next(b))
		grants += is_grant(b);
	if (grants >= APPROVAL_GRANTS_MAX)
		return err_set(e, ERR_LIMIT, "%u grants stand already; take some back", grants);
	return q->pattern.n ? approval_pattern_check(q->pattern, a->row.arguments, e) : 0;
}

static int check_answer(const struct approvals *all, const struct approval *a,
			const struct approval_answer *q, struct err *e)
{
	if (q->to == APPROVAL_VOID && (is_grant(a) || is_unused(a)))
		return 0;
	if (q->to == APPROVAL_VOID && a->state == APPROVAL_PENDING)
		return err_set(e, ERR_INVALID, "request %.*s is not answered; deny it",
			       STR_ARG(a->ask.id));
	if (a->state != APPROVAL_PENDING)
		return one_conflict(a, e);
	if (q->to != APPROVAL_APPROVED)
		return 0;
	if (a->cut)
		return err_set(
			e, ERR_DENIED,
			"the arguments have %llu bytes, and only %d of them can be shown: what "
			"can't be shown whole can't be approved; deny it",
			(unsigned long long)a->row.size, APPROVAL_ARGUMENTS_MAX);
	if (a->hides)
		return err_set(e, ERR_DENIED,
			       "redaction hides a part of the arguments, and what can't be shown "
			       "whole can't be approved; deny it. " HIDES_REMEDY);
	return check_grant(all, a, q, e);
}

/* All of it or nothing: what the registry does not take is not so. */
static int one_set(struct approvals *all, struct approval *a, const struct approval_answer *q,
		   struct err *e)
{
	struct approval was = *a;
	struct store_approval *r = &a->row;
	int64_t now = clock_unix_ms();

	a->state = q->to;
	if (q->to == APPROVAL_APPROVED) {
		a->scope = q->scope;
		r->used_ms = a->waiter ? now : 0;
		a->ask.deadline_ms = q->scope == APPROVAL_ALWAYS       ? 0
				   : q->scope == APPROVAL_CONVERSATION ? now + GRANT_MS
								       : now + all->expire_ms;
	}
	r->answered_ms = now;
	if ((q->to == APPROVAL_APPROVED && one_keep(a, &r->pattern, q->pattern, e) < 0) ||
	    one_keep(a, &r->who, utf8_cut(q->who, TEXT_MAX), e) < 0 ||
	    one_keep(a, &r->surface, q->surface, e) < 0 || one_write(all, a, e) < 0) {
		*a = was;
		return -1;
	}
	return 0;
}

static void one_end(struct approval *a)
{
	struct approval_wait *w = one_release(a);
	struct err e;

	if (!w)
		return;
	say_denied(a, &e);
	w->on_end(w->data, a->state == APPROVAL_DENIED ? &e : NULL);
}

/* A request that waits and that a new grant lets go. */
static struct approval *find_superseded(const struct approvals *all, const struct approval *grant)
{
	for (struct approval *a = all_first(all); a; a = one_next(a)) {
		const struct store_approval *r = &a->row;
		const struct approval_ask q = {
			.principal = a->ask.principal,
			.action = r->action,
			.target = r->target,
			.digest = r->digest,
			.sandbox = r->sandbox,
			.arguments = r->arguments,
			.conversation = r->conversation,
		};

		if (a->state == APPROVAL_PENDING && a->waiter && !a->hides && grant_fits(grant, &q))
			return a;
	}
	return NULL;
}

static void all_supersede(struct approvals *all, struct str id)
{
	const struct approval *grant;
	struct approval *a;
	struct err e;

	/* looked up anew, since a call that goes may change any */
	while ((grant = approval_find(all, id, &e)) && is_grant(grant) &&
	       (a = find_superseded(all, grant))) {
		a->state = APPROVAL_SUPERSEDED;
		a->row.who = grant->row.who.n
				   ? str_of(arena_dup(a->arena, grant->row.who, &e) ?: "")
				   : STR_LIT("");
		a->row.answered_ms = clock_unix_ms();
		a->row.used_ms = a->row.answered_ms;
		one_write_end(all, a);
		asks_tell(&all->asks, &a->ask);
		one_end(a);
	}
}

int approval_answer(struct approvals *all, const struct approval_answer *q, struct err *e)
{
	struct approval *a;
	char id[ID_MAX];

	asks_expire(&all->asks);
	a = (struct approval *)approval_find(all, q->id, e);
	if (!a || check_answer(all, a, q, e) < 0 || one_set(all, a, q, e) < 0)
		return -1;
	memcpy(id, a->ask.id.p, a->ask.id.n + 1);
	asks_tell(&all->asks, &a->ask);
	one_end(a);
	if (q->to == APPROVAL_APPROVED && q->scope != APPROVAL_ONCE)
		all_supersede(all, str_of(id));
	asks_expire(&all->asks);
	return 0;
}

struct str approval_name(struct str principal)
{
	const char *at = principal.n ? memchr(principal.p, '@', principal.n) : NULL;

	return (struct str){ principal.p, at ? (size_t)(at - principal.p) : principal.n };
}

/* ---- who looks ----------------------------------------------------------------------------- */

const struct approval *approval_find(struct approvals *all, struct str id, struct err *e)
{
	return (const struct approval *)asks_find(&all->asks, id, e);
}
