#include "ask/question.h"

#include <stdlib.h>

#include "ask/question_internal.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/when.h"
#include "json/document/utf8.h"

enum {
	MAX_OPEN = 512,
	MAX_EACH = 64,
	TEXT_BYTES_MAX = 512 << 10, /* of a spec or reply as JSON */
	ARENA_MAX = 1 << 20,
	NAME_BYTES = 256, /* of who answers */
};

const char *const question_kind_names[QUESTION_KINDS] = {
	[QUESTION_YES_NO] = "yes_no", [QUESTION_BUTTONS] = "options_buttons",
	[QUESTION_SELECT] = "select", [QUESTION_PERMISSION] = "permission",
	[QUESTION_FORM] = "form",     [QUESTION_TEXTBOX] = "textbox",
	[QUESTION_NOTIFY] = "notify",
};
const char *const question_origin_names[QUESTION_ORIGINS] = {
	[QUESTION_OF_MCP] = "mcp",
	[QUESTION_OF_ACP] = "acp",
	[QUESTION_OF_HUB] = "hub",
};
const char *const question_state_names[QUESTION_STATES] = {
	[QUESTION_PENDING] = "pending",	      [QUESTION_ANSWERED] = "answered",
	[QUESTION_EXPIRED] = "expired",	      [QUESTION_CANCELLED] = "cancelled",
	[QUESTION_SUPERSEDED] = "superseded",
};
const char *const question_style_names[QUESTION_STYLES] = {
	[QUESTION_INFO] = "info",
	[QUESTION_SUCCESS] = "success",
	[QUESTION_WARNING] = "warning",
	[QUESTION_ERROR] = "error",
};

#define O struct question_option
static const struct field option_fields[] = {
	FIELD(O, id, .flags = FIELD_REQUIRED, .min = 1, .max = QUESTION_ID_MAX,
	      .doc = "What an answer names."),
	FIELD(O, label, .flags = FIELD_REQUIRED, .min = 1, .max = QUESTION_LABEL_MAX,
	      .doc = "What a person reads."),
	FIELD(O, description, .max = QUESTION_TEXT_MAX, .doc = "More about it."),
	FIELD(O, kind, .max = QUESTION_ID_MAX,
	      .doc = "Of a permission: allow_once, allow_always, reject_once, reject_always."),
};
#undef O
const struct field_table question_option_table = FIELD_TABLE(struct question_option, option_fields);

#define S struct question_spec
static const struct field spec_fields[] = {
	FIELD(S, title, .max = QUESTION_LABEL_MAX),
	FIELD(S, question, .max = QUESTION_TEXT_MAX),
	FIELD_OBJECTS(S, options, question_option_table, .max = QUESTION_OPTIONS_MAX),
	FIELD(S, allow_free_text),
	FIELD(S, text, .max = QUESTION_WHOLE_MAX),
	FIELD(S, schema, .max = QUESTION_TEXT_MAX),
	FIELD_ENUM(S, style, question_style_names),
	FIELD(S, tool_call_id, .max = QUESTION_LABEL_MAX),
};
#undef S
static const struct field_table spec_table = FIELD_TABLE(struct question_spec, spec_fields);

#define R struct question_reply
static const struct field reply_fields[] = {
	FIELD(R, option_id, .max = QUESTION_ID_MAX),
	FIELD(R, label, .max = QUESTION_LABEL_MAX),
	FIELD(R, free_text, .max = QUESTION_TEXT_MAX),
	FIELD(R, values, .max = QUESTION_TEXT_MAX),
};
#undef R
static const struct field_table reply_table = FIELD_TABLE(struct question_reply, reply_fields);

struct questions {
	struct asks asks; /* all that there is */
};

static struct question *all_first(const struct questions *all)
{
	return (struct question *)all->asks.first;
}

static struct question *one_next(const struct question *q)
{
	return (struct question *)q->ask.next;
}

int question_chosen(const struct question *q)
{
	for (size_t i = 0; i < q->spec.options.n; i++) {
		if (q->reply.option_id.n && str_eq(q->spec.options.p[i].id, q->reply.option_id))
			return (int)i;
	}
	return -1;
}

/* ---- one ----------------------------------------------------------------------------------- */

static void part_fini(struct question_part *p)
{
	arena_free(p->arena);
	json_free(p->doc);
}

static void one_free(struct question *q)
{
	if (!q)
		return;
	part_fini(&q->asked);
	part_fini(&q->said);
	free(q);
}
AUTO_DEFINE(one_free, struct question)

static void one_forget(struct ask *a)
{
	one_free((struct question *)a);
}

static struct question *one_new(struct err *e)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		err_set(e, ERR_LIMIT, "out of memory");
	return q;
}

static int one_keep(struct question *q, struct str *to, struct str from, struct err *e)
{
	const char *p = from.n ? arena_dup(q->asked.arena, from, e) : "";

	if (!p)
		return -1;
	*to = (struct str){ p, from.n };
	return 0;
}

/* Spec and reply are read from their texts, so that those of callers have the bounds of those of
 * the registry. */
static int part_read(struct question_part *p, const struct field_table *t, struct str text,
		     void *ret, struct err *e)
{
	p->arena = arena_new(ARENA_MAX);
	if (!p->arena)
		return err_set(e, ERR_LIMIT, "out of memory");
	p->doc = json_parse(text, NULL, e);
	return p->doc ? field_decode(t, json_root(p->doc), p->arena, ret, e) : -1;
}

static int one_write(struct questions *all, struct question *q, struct err *e)
{
	autofree char *spec = field_encode_text(&spec_table, &q->spec, TEXT_BYTES_MAX, e);
	autofree char *reply = spec ? field_encode_text(&reply_table, &q->reply, TEXT_BYTES_MAX, e)
				    : NULL;
	const struct store_question r = {
		.seq = q->ask.seq,
		.rev = all->asks.rev + 1,
		.id = q->ask.id,
		.principal = q->ask.principal,
		.session = q->session,
		.kind = str_of(question_kind_names[q->kind]),
		.origin = str_of(question_origin_names[q->origin]),
		.state = str_of(question_state_names[q->state]),
		.spec = str_of(spec),
		.reply = str_of(reply),
		.who = q->who,
		.surface = q->surface,
		.created_ms = q->ask.created_ms,
		.deadline_ms = q->ask.deadline_ms,
		.ended_ms = q->ended_ms,
	};

	if (!reply || (all->asks.store && store_question_put(all->asks.store, &r, e) < 0))
		return -1;
	q->ask.rev = ++all->asks.rev;
	return 0;
}

static void one_become(struct question *q, enum question_state to)
{
	q->state = to;
	q->ask.open = q->ask.takes_room = to == QUESTION_PENDING;
}

/* Its state is final and kept. Waiters start and end calls, which may ask again. */
static void one_wake(struct questions *all, struct question *q)
{
	struct question_wait *w;

	q->ask.held++;
	asks_tell(&all->asks, &q->ask);
	while ((w = q->waiters)) {
		q->waiters = w->next;
		w->on = NULL;
		w->on_end(w->data, q);
	}
	q->ask.held--;
}

/* An end that nobody chose is one even where the registry fails: by its deadline the next hub ends
 * it, too. */
static void one_end(struct questions *all, struct question *q, enum question_state to)
{
	struct err e;

	one_become(q, to);
	q->ended_ms = clock_unix_ms();
	if (one_write(all, q, &e) < 0) {
		log_warn("question %.*s: %s", STR_ARG(q->ask.id), e.msg);
		q->ask.rev = ++all->asks.rev;
	}
	one_wake(all, q);
}

static void one_expire(struct asks *all, struct ask *ask)
{
	one_end((struct questions *)all, (struct question *)ask, QUESTION_EXPIRED);
}

static const struct asks_kind question_kind = {
	.noun = "question",
	.many = "questions",
	.missing = ERR_QUESTION_NOT_FOUND,
	.closed_max = QUESTION_CLOSED_MAX,
	.expire = one_expire,
	.drop = store_question_drop,
	.free = one_forget,
};

/* ---- from the registry --------------------------------------------------------------------- */

static int one_load(struct question *q, const struct store_question *r, struct err *e)
{
	int kind = asks_name(r->kind, question_kind_names, QUESTION_KINDS);
	int origin = asks_name(r->origin, question_origin_names, QUESTION_ORIGINS);
	int state = asks_name(r->state, question_state_names, QUESTION_STATES);

	if (kind < 0 || origin < 0 || state < 0)
		return err_set(e, ERR_STORE_CORRUPT, "the registry has a question that is none");
	q->ask.seq = r->seq;
	q->ask.rev = r->rev;
	q->kind = (enum question_kind)kind;
	q->origin = (enum question_origin)origin;
	one_become(q, (enum question_state)state);
	q->ask.created_ms = r->created_ms;
	q->ask.deadline_ms = r->deadline_ms;
	q->ended_ms = r->ended_ms;
	return part_read(&q->asked, &spec_table, r->spec, &q->spec, e) < 0 ||
			       part_read(&q->said, &reply_table, r->reply, &q->reply, e) < 0 ||
			       one_keep(q, &q->ask.id, r->id, e) < 0 ||
			       one_keep(q, &q->ask.principal, r->principal, e) < 0 ||
			       one_keep(q, &q->session, r->session, e) < 0 ||
			       one_keep(q, &q->who, r->who, e) < 0 ||
			       one_keep(q, &q->surface, r->surface, e) < 0
		     ? -1
		     : 0;
}

static int all_load_row(void *arg, const struct store_question *r, struct err *e)
{
	struct questions *all = arg;
	AUTO(one_free) struct question *q = one_new(e);

	if (!q || one_load(q, r, e) < 0)
		return -1;
	asks_add(&all->asks, &take_ptr(q)->ask);
	return 0;
}

void questions_free(struct questions *all)
{
	if (all)
		asks_fini(&all->asks);
}

struct questions *questions_new(uv_loop_t *loop, struct store *store, const struct asks_options *o,
				struct err *e)
{
	struct questions *all = calloc(1, sizeof(*all));
	struct asks_options own = *o;

	own.max_open = own.max_open ? own.max_open : MAX_OPEN;
	own.max_each = own.max_each ? own.max_each : MAX_EACH;
	if (!all || asks_init(&all->asks, loop, &question_kind, store, &own, e) < 0) {
		free(all);
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (store && store_questions(store, all_load_row, all, e) < 0) {
		questions_free(all);
		return NULL;
	}
	asks_expire(&all->asks);
	return all;
}

/* ---- who asks ------------------------------------------------------------------------------ */

/* Notifications have a room of their own in that of their principal, and in that of who pays: a
 * later one tells more. */
static void all_supersede_note(struct questions *all, const struct question_ask *ask)
{
	struct str payer = asks_payer(&all->asks, ask->principal);
	struct question *own = NULL, *paid = NULL;
	unsigned n_own = 0, n_paid = 0;

	for (struct question *q = all_first(all); q; q = one_next(q)) {
		if (q->state != QUESTION_PENDING || q->kind != QUESTION_NOTIFY)
			continue;
		if (str_eq(q->ask.principal, ask->principal) && !n_own++)
			own = q;
		if (str_eq(asks_payer(&all->asks, q->ask.principal), payer) && !n_paid++)
			paid = q;
	}
	if (n_own >= QUESTION_NOTES_MAX)
		one_end(all, own, QUESTION_SUPERSEDED);
	else if (n_paid >= QUESTION_NOTES_PAID_MAX)
		one_end(all, paid, QUESTION_SUPERSEDED);
}

/* A notification is answered by its only option. */
static struct question_spec spec_of(const struct question_ask *ask)
{
	static const struct question_option seen[] = { { STR_LIT("seen"), STR_LIT("Seen") } };
	struct question_spec s = ask->spec;

	if (ask->kind == QUESTION_NOTIFY && s.options.n == 0) {
		s.options.p = seen;
		s.options.n = ARRAY_LEN(seen);
	}
	return s;
}

static int one_fill(struct questions *all, struct question *q, const struct question_ask *ask,
		    struct err *e)
{
	const struct question_spec s = spec_of(ask);
	autofree char *spec = field_encode_text(&spec_table, &s, TEXT_BYTES_MAX, e);
	char id[ID_MAX];

	id_make(id, "qst");
	q->ask.seq = all->asks.rev + 1;
	one_become(q, QUESTION_PENDING);
	q->kind = ask->kind;
	q->origin = ask->origin;
	q->who = q->surface = STR_LIT("");
	q->ask.created_ms = clock_unix_ms();
	q->ask.deadline_ms = q->ask.created_ms + (int64_t)ask->timeout_ms;
	return !spec || part_read(&q->asked, &spec_table, str_of(spec), &q->spec, e) < 0 ||
			       question_check(q->kind, &q->spec, e) < 0 ||
			       one_keep(q, &q->ask.id, str_of(id), e) < 0 ||
			       one_keep(q, &q->ask.principal, ask->principal, e) < 0 ||
			       one_keep(q, &q->session, ask->session, e) < 0
		     ? -1
		     : 0;
}

static bool spec_eq(const struct question_spec *a, const struct question_spec *b)
{
	struct err e;
	autofree char *x = field_encode_text(&spec_table, a, TEXT_BYTES_MAX, &e);
	autofree char *y = field_encode_text(&spec_table, b, TEXT_BYTES_MAX, &e);

	return x && y && strcmp(x, y) == 0;
}

/* One whose caller was cut off. */
static struct question *find_left(const struct questions *all, const struct question *like)
{
	for (struct question *q = all_first(all); q; q = one_next(q)) {
		if (q->state == QUESTION_PENDING && !q->waiters && !q->unawaited &&
		    q->kind == like->kind && q->origin == like->origin &&
		    str_eq(q->ask.principal, like->ask.principal) &&
		    str_eq(q->session, like->session) && spec_eq(&q->spec, &like->spec))
			return q;
	}
	return NULL;
}

static void one_wait(struct questions *all, struct question *q, struct question_wait *w)
{
	w->of = all;
	w->on = q;
	w->next = q->waiters;
	q->waiters = w;
}

int question_ask(struct questions *all, const struct question_ask *ask, struct question_wait *w,
		 const struct question **ret, struct err *e)
{
	AUTO(one_free) struct question *made = one_new(e);
	struct question *q;

	if (ask->timeout_ms == 0 || ask->timeout_ms > QUESTION_SECONDS_MAX * 1000ull)
		return err_set(e, ERR_INVALID, "a question has a deadline, in %d seconds at most",
			       QUESTION_SECONDS_MAX);
	asks_expire(&all->asks);
	if (!made || one_fill(all, made, ask, e) < 0)
		return -1;
	q = w ? find_left(all, made) : NULL;
	if (!q) {
		if (ask->kind == QUESTION_NOTIFY)
			all_supersede_note(all, ask);
		made->ask.seq = all->asks.rev + 1;
		made->unawaited = !w;
		if (asks_check_room(&all->asks, ask->principal, e) < 0 ||
		    one_write(all, made, e) < 0)
			return -1;
		q = take_ptr(made);
		asks_add(&all->asks, &q->ask);
		asks_tell(&all->asks, &q->ask);
	}
	if (w)
		one_wait(all, q, w);
	*ret = q;
	return 0;
}

int question_join(struct questions *all, struct str id, struct question_wait *w,
		  const struct question **ret, struct err *e)
{
	struct question *q;

	asks_expire(&all->asks);
	q = (struct question *)question_find(all, id, e);
	if (!q)
		return -1;
	*ret = q;
	if (q->state != QUESTION_PENDING)
		return 1;
	one_wait(all, q, w);
	return 0;
}

void question_give_up(struct question_wait *w, enum question_state to)
{
	struct question *q = w->on;
	struct question_wait **at = q ? &q->waiters : NULL;

	if (!q)
		return;
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->on = NULL;
	if (to == QUESTION_PENDING)
		return;
	one_end(w->of, q, to);
	asks_expire(&w->of->asks);
}

/* ---- who answers --------------------------------------------------------------------------- */

static int check_pending(const struct question *q, struct err *e)
{
	static const char *const did[QUESTION_STATES] = {
		[QUESTION_PENDING] = "is not answered",	  [QUESTION_ANSWERED] = "was answered",
		[QUESTION_EXPIRED] = "has expired",	  [QUESTION_CANCELLED] = "was cancelled",
		[QUESTION_SUPERSEDED] = "was superseded",
	};
	char when[WHEN_MAX];

	if (q->state == QUESTION_PENDING)
		return 0;
	when_text(when, q->ended_ms);
	if (q->state == QUESTION_EXPIRED)
		return err_set(e, ERR_QUESTION_EXPIRED, "question %.*s has expired at %s",
			       STR_ARG(q->ask.id), when);
	return err_set(e, ERR_ANSWERED, "question %.*s %s%s%.*s%s%.*s at %s", STR_ARG(q->ask.id),
		       did[q->state], q->who.n ? " by " : "", STR_CUT(q->who, 64),
		       q->surface.n ? " over " : "", STR_CUT(q->surface, 32), when);
}

static struct question *find_pending(struct questions *all, struct str id, struct err *e)
{
	struct question *q;

	asks_expire(&all->asks);
	q = (struct question *)question_find(all, id, e);
	return q && check_pending(q, e) == 0 ? q : NULL;
}

/* All of it or nothing: what the registry does not take is not so. */
static int one_close(struct questions *all, struct question *q, enum question_state to,
		     const struct question_answer *a, struct err *e)
{
	struct question was = *q;

	one_become(q, to);
	q->reply = a->reply;
	q->ended_ms = clock_unix_ms();
	if (one_keep(q, &q->who, utf8_cut(a->who, NAME_BYTES), e) < 0 ||
	    one_keep(q, &q->surface, a->surface, e) < 0 || one_write(all, q, e) < 0) {
		*q = was;
		return -1;
	}
	one_wake(all, q);
	asks_expire(&all->asks);
	return 0;
}

int question_answer(struct questions *all, const struct question_answer *a, struct err *e)
{
	struct question *q = find_pending(all, a->id, e);
	autofree char *text = q ? field_encode_text(&reply_table, &a->reply, TEXT_BYTES_MAX, e)
				: NULL;
	struct question_part said = { NULL };
	struct question_answer own = *a;

	if (!text)
		return -1;
	if (part_read(&said, &reply_table, str_of(text), &own.reply, e) < 0 ||
	    question_check_reply(q, &own.reply, e) < 0) {
		part_fini(&said);
		return -1;
	}
	part_fini(&q->said);
	q->said = said;
	return one_close(all, q, QUESTION_ANSWERED, &own, e);
}

int question_cancel(struct questions *all, struct str id, struct str who, struct str surface,
		    struct err *e)
{
	struct question *q = find_pending(all, id, e);
	const struct question_answer a = { .who = who, .surface = surface };

	return q ? one_close(all, q, QUESTION_CANCELLED, &a, e) : -1;
}

/* ---- who looks ----------------------------------------------------------------------------- */

const struct question *question_find(const struct questions *all, struct str id, struct err *e)
{
	return (const struct question *)asks_find(&all->asks, id, e);
}
