/*
 * What happened to sandboxes, from the registry: a page, or with follow=true a stream that goes on. A follower has
 * nothing in memory but a place: what comes next is read from the registry when its client has room for it, so one that
 * does not read costs nothing. What the registry has let go of meanwhile it is told by number.
 */
#include "door/http/common.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	PAGE_MAX = 1000,
	PAGE_DEFAULT = 100,
	STEP = 64, /* that are read at once for a stream; then others have their turn */
	ALIVE_MS = 15000,
};

/* ---- what is taken and answered -------------------------------------------------------------- */

struct events_query {
	bool has_after;
	uint64_t after;
	uint32_t limit;
	struct str sandbox;
	bool follow;
};
static const struct field query_fields[] = {
	FIELD(struct events_query, after, .max = INT64_MAX,
	      .has = FIELD_HAS(struct events_query, has_after),
	      .doc = "Only those with a higher seq; absent: from the oldest that is kept."),
	FIELD(struct events_query, limit, .min = 1, .max = PAGE_MAX,
	      .def = DEFAULT_INT(PAGE_DEFAULT), .doc = "How many at once; a stream has no end."),
	FIELD(struct events_query, sandbox, .min = 1, .max = API_ID_MAX,
	      .doc = "Only those of this sandbox."),
	FIELD(struct events_query, follow, .def = DEFAULT_BOOL(false),
	      .doc = "A stream of them, a line each, as they happen."),
};
static const struct field_table query_table = FIELD_TABLE(struct events_query, query_fields);

struct events_params {
	struct events_query query;
};
static const struct field events_parts[] = {
	FIELD_OBJECT(struct events_params, query, query_table, .doc = "Which of them."),
};
static const struct field_table events_input = FIELD_TABLE(struct events_params, events_parts);

struct event_view {
	uint64_t seq;
	struct str at, sandbox, kind, detail;
};
static const struct field event_fields[] = {
	FIELD(struct event_view, seq, .flags = FIELD_REQUIRED, .doc = "Counts up, for ever."),
	FIELD(struct event_view, at, .flags = FIELD_REQUIRED, .doc = "RFC 3339."),
	FIELD(struct event_view, sandbox, .doc = "Its id."),
	FIELD(struct event_view, kind, .flags = FIELD_REQUIRED,
	      .doc = "created, resumed, deadline (set anew), reap_failed, or the state that it has "
		     "now. In a stream also missed: up to this seq they are not kept any more; and "
		     "alive: nothing came since this seq."),
	FIELD(struct event_view, detail, .doc = "Why, where there is more to say."),
};
static const struct field_table event_table = FIELD_TABLE(struct event_view, event_fields);

struct page {
	struct {
		const struct event_view *p;
		size_t n;
	} events;
	uint64_t next, oldest, newest;
};
static const struct field page_fields[] = {
	FIELD_OBJECTS(struct page, events, event_table, .flags = FIELD_REQUIRED,
		      .doc = "In their order."),
	FIELD(struct page, next, .flags = FIELD_REQUIRED,
	      .doc = "What after is for those that follow, also where there are none yet."),
	FIELD(struct page, oldest, .flags = FIELD_REQUIRED,
	      .doc = "The lowest seq that is kept; 0: nothing is."),
	FIELD(struct page, newest, .flags = FIELD_REQUIRED, .doc = "The highest."),
};
static const struct field_table page_table = FIELD_TABLE(struct page, page_fields);

/* ---- a page ---------------------------------------------------------------------------------- */

struct reading {
	struct call *call;
	struct event_view *views;
	size_t n;
	uint64_t last; /* also of one that is not for who asks */
	struct err err;
};

static struct str copy(struct reading *r, struct str s)
{
	char *text = s.p ? arena_dup(call_arena(r->call), s, &r->err) : NULL;

	return text ? (struct str){ text, s.n } : STR_NONE;
}

static void on_event(void *arg, const struct life_event *v)
{
	struct reading *r = arg;
	char *at;

	r->last = v->seq;
	if (v->sandbox.n && !call_sees_id(r->call, v->sandbox))
		return;
	at = arena_alloc(call_arena(r->call), WHEN_MAX, &r->err);
	if (!at)
		return;
	when_text(at, v->at_ms);
	r->views[r->n++] = (struct event_view){ v->seq, str_of(at), copy(r, v->sandbox),
						copy(r, v->kind), copy(r, v->detail) };
}

static void run_page(struct call *c, const struct events_query *q)
{
	struct reading r = { .call = c, .err = ERR_INIT };
	struct page page = { .next = q->after };

	r.views = arena_array(call_arena(c), q->limit, sizeof(*r.views), &r.err);
	if (!r.views ||
	    lives_events(call_lives(c), q->after, q->sandbox, q->limit, on_event, &r, &r.err) < 0 ||
	    lives_events_kept(call_lives(c), &page.oldest, &page.newest, &r.err) < 0 ||
	    r.err.code) {
		call_fail(c, &r.err);
		return;
	}
	page.events.p = r.views;
	page.events.n = r.n;
	if (r.last > 0)
		page.next = r.last;
	ask_answer_by(c, &page_table, &page);
}

/* ---- a stream -------------------------------------------------------------------------------- */

struct follower {
	uv_timer_t timer; /* until it has to say that it lives, or its next turn */
	struct lives_watch watch;
	struct call *call;
	struct lives *all;
	struct str sandbox; /* STR_NONE: of all */
	bool asked_after; /* so what is missing behind it is missed */
	uint64_t after;
	size_t sent; /* of this turn */
};

static void say(struct follower *f, uint64_t seq, int64_t at_ms, struct str sandbox,
		struct str kind, struct str detail)
{
	char at[WHEN_MAX];
	struct event_view v = { seq, { at, 0 }, sandbox, kind, detail };

	when_text(at, at_ms);
	v.at.n = strlen(at);
	ask_send(f->call, &event_table, &v);
}

static void on_followed(void *arg, const struct life_event *v)
{
	struct follower *f = arg;

	f->after = v->seq;
	f->sent++;
	if (!v->sandbox.n || call_sees_id(f->call, v->sandbox))
		say(f, v->seq, v->at_ms, v->sandbox, v->kind, v->detail);
}

static void free_follower(uv_handle_t *h)
{
	free(h->data);
}

static void follow_end(struct follower *f, const struct err *err)
{
	struct call *c = f->call;

	lives_watch_remove(f->all, &f->watch);
	uv_close((uv_handle_t *)&f->timer, free_follower);
	if (err)
		call_fail(c, err);
	else
		call_answer(c, NULL);
}

static void follow_stop(void *data)
{
	follow_end(data, NULL);
}

/* What was between its place and the oldest that is kept. */
static void say_missed(struct follower *f, uint64_t oldest)
{
	char text[96];

	if (oldest <= f->after + 1)
		return;
	if (f->asked_after) {
		snprintf(text, sizeof(text), "events %llu to %llu are not kept any more",
			 (unsigned long long)f->after + 1, (unsigned long long)oldest - 1);
		say(f, oldest - 1, clock_unix_ms(), STR_NONE, STR_LIT("missed"), str_of(text));
	}
	f->after = oldest - 1;
}

static void on_timer(uv_timer_t *t);

/* Sends what there is and the client has room for. */
static void follow(struct follower *f)
{
	struct err e = ERR_INIT;
	uint64_t oldest, newest;

	uv_timer_start(&f->timer, on_timer, ALIVE_MS, 0);
	if (ask_stream_full(f->call))
		return; /* on_room() goes on */
	f->sent = 0;
	if (lives_events_kept(f->all, &oldest, &newest, &e) < 0) {
		follow_end(f, &e);
		return;
	}
	say_missed(f, oldest);
	if (lives_events(f->all, f->after, f->sandbox, STEP, on_followed, f, &e) < 0) {
		follow_end(f, &e);
		return;
	}
	f->asked_after = true;
	if (f->sent == STEP)
		uv_timer_start(&f->timer, on_timer, 0, 0);
	else if (newest > f->after)
		f->after = newest; /* what is before it are others' */
}

static void on_timer(uv_timer_t *t)
{
	struct follower *f = t->data;

	if (f->sent < STEP && !ask_stream_full(f->call))
		say(f, f->after, clock_unix_ms(), STR_NONE, STR_LIT("alive"), STR_NONE);
	follow(f);
}

static void on_news(void *arg)
{
	follow(arg);
}

static void run_follow(struct call *c, const struct events_query *q)
{
	struct follower *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	if (!f)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!f || call_waits(c, &e) < 0 || ask_stream_start(c, on_news, f, &e) < 0) {
		free(f);
		call_fail(c, &e);
		return;
	}
	f->call = c;
	f->all = call_lives(c);
	f->sandbox = q->sandbox;
	f->after = q->after;
	f->asked_after = q->has_after;
	uv_timer_init(call_loop(c), &f->timer);
	f->timer.data = f;
	f->watch = (struct lives_watch){ .on_events = on_news, .arg = f };
	lives_watch_add(f->all, &f->watch);
	call_on_cancel(c, follow_stop, f);
	ask_on_drain(c, follow_stop, f);
	follow(f);
}

static void run(struct call *c, const void *params)
{
	const struct events_query *q = &((const struct events_params *)params)->query;

	if (q->follow)
		run_follow(c, q);
	else
		run_page(c, q);
}

static const struct api_route rows[] = {
	{ .id = "events",
	  .op = &(const struct
		  op){ .action = "event.list",
		       .doc = "What happened to sandboxes: the last 10000 events, in pages, or with follow as a "
			      "stream that goes on. Who reads slowly misses nothing that is still kept.",
		       .effect = OP_READ,
		       .flags = OP_WAITS,
		       .request = &events_input,
		       .target = OP_TARGET(struct events_params, query.sandbox),
		       .result = &page_table,
		       .run = run },
	  .method = HTTP_GET,
	  .path = "/v1/events",
	  .lines = &event_table,
	  .errors = API_MAY(TOO_MANY_STREAMS) },
};
const struct api_resource api_events = API_RESOURCE(rows);
