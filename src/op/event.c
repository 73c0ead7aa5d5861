/*
 * event.list, from the registry: a page, or with follow a stream that goes on. A follower has
 * nothing in memory but a place: what comes next is read from the registry when its client has
 * room for it, so one that does not read costs nothing. It is told the numbers of events that the
 * registry has removed meanwhile.
 */
#include "op/event.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "call/call.h"
#include "hub/sandbox/sandbox.h"
#include "op/page.h"

enum {
	STEP = 64, /* that are read at once for a stream; then others have their turn */
	ALIVE_MS = 15000,
};

#define Q struct events_request
struct events_request {
	bool has_after;
	uint64_t after;
	uint32_t limit;
	struct str sandbox;
	bool follow;
};
static const struct field request_fields[] = {
	FIELD(Q, after, .max = INT64_MAX, .has = FIELD_HAS(Q, has_after),
	      .doc = "Only events with a higher seq; absent: from the oldest that is kept."),
	FIELD(Q, limit, .min = 1, .max = PAGE_MAX, .def = DEFAULT_INT(PAGE_DEFAULT),
	      .doc = "Maximum number of events to return; a stream has no limit."),
	FIELD(Q, sandbox, .min = 1, .max = 64, .doc = "Only events of this sandbox."),
	FIELD(Q, follow, .def = DEFAULT_BOOL(false),
	      .doc = "Stream the events, one per line, as they happen."),
};
#undef Q
static const struct field_table request_table = FIELD_TABLE(struct events_request, request_fields);

static const struct field event_fields[] = {
	FIELD(struct event_view, seq, .flags = FIELD_REQUIRED,
	      .doc = "Sequence number, which only grows."),
	FIELD(struct event_view, at, .flags = FIELD_REQUIRED, .doc = "When it happened, RFC 3339."),
	FIELD(struct event_view, sandbox, .doc = "Id of the sandbox."),
	FIELD(struct event_view, kind, .flags = FIELD_REQUIRED,
	      .doc = "created, resumed, deadline (a new one was set), left_out (its last "
		     "revision lacks files with credentials), volume_gone (it starts without "
		     "that), reap_failed, or the sandbox's new state. A stream also has "
		     "missed (events up to this seq are no longer kept) and alive (no event "
		     "since this seq)."),
	FIELD(struct event_view, detail, .doc = "The reason, if more is known."),
};
const struct field_table event_view_table = FIELD_TABLE(struct event_view, event_fields);

static const struct field page_fields[] = {
	FIELD_OBJECTS(struct events_page, events, event_view_table, .flags = FIELD_REQUIRED,
		      .doc = "In order of seq."),
	FIELD(struct events_page, next, .flags = FIELD_REQUIRED,
	      .doc = "Value of after for the next page, even if it has no events yet."),
	FIELD(struct events_page, oldest, .flags = FIELD_REQUIRED,
	      .doc = "Lowest seq that is kept; 0: no event is kept."),
	FIELD(struct events_page, newest, .flags = FIELD_REQUIRED, .doc = "Highest seq."),
};
static const struct field_table page_table = FIELD_TABLE(struct events_page, page_fields);

/* ---- a page ---------------------------------------------------------------------------------- */

struct reading {
	struct call *call;
	struct event_view *views;
	size_t n;
	uint64_t last; /* also of one that is not for who asks */
	struct err err;
};

static struct str events_copy(struct reading *r, struct str s)
{
	char *text = s.p ? arena_dup(call_arena(r->call), s, &r->err) : NULL;

	return text ? (struct str){ text, s.n } : STR_NONE;
}

static void events_on_event(void *arg, const struct hub_sandbox_event *v)
{
	struct reading *r = arg;
	char *at;

	r->last = v->seq;
	if (!call_sees_owner(r->call, v->owner))
		return;
	at = arena_alloc(call_arena(r->call), WHEN_MAX, &r->err);
	if (!at)
		return;
	when_text(at, v->at_ms);
	r->views[r->n++] = (struct event_view){ v->seq, str_of(at), events_copy(r, v->sandbox),
						events_copy(r, v->kind),
						events_copy(r, v->detail) };
}

/* The owner whose events are read. All events of a visible sandbox are, as it may be an agent's. */
static struct str events_owner(struct call *c, struct str sandbox)
{
	struct err none;
	struct hub_sandbox *l = sandbox.n ? hub_sandboxes_find(call_sandboxes(c), sandbox, &none)
					  : NULL;

	return l && call_sees(c, l) ? STR_NONE : call_owner_seen(c);
}

static void events_run_page(struct call *c, const struct events_request *q)
{
	struct reading r = { .call = c, .err = ERR_INIT };
	struct events_page page = { .next = q->after };

	r.views = arena_array(call_arena(c), q->limit, sizeof(*r.views), &r.err);
	if (!r.views ||
	    hub_sandboxes_events(call_sandboxes(c),
				 &(struct hub_sandbox_events){ q->after, q->sandbox,
							       events_owner(c, q->sandbox) },
				 q->limit, events_on_event, &r, &r.err) < 0 ||
	    hub_sandboxes_events_kept(call_sandboxes(c), &page.oldest, &page.newest, &r.err) < 0 ||
	    r.err.code) {
		call_fail(c, &r.err);
		return;
	}
	page.events.p = r.views;
	page.events.n = r.n;
	if (r.last > 0)
		page.next = r.last;
	call_answer(c, &page);
}

/* ---- a stream -------------------------------------------------------------------------------- */

struct follower {
	uv_timer_t timer; /* until it has to say that it lives, or its next turn */
	struct hub_sandboxes_watch watch;
	struct call *call;
	struct hub_sandboxes *all;
	struct str sandbox; /* STR_NONE: of all */
	bool asked_after; /* so what is missing behind it is missed */
	uint64_t after;
	size_t sent; /* of this turn */
};

static void events_say(struct follower *f, uint64_t seq, int64_t at_ms, struct str sandbox,
		       struct str kind, struct str detail)
{
	char at[WHEN_MAX];
	struct event_view v = { seq, { at, 0 }, sandbox, kind, detail };

	when_text(at, at_ms);
	v.at.n = strlen(at);
	call_send(f->call, &v);
}

static void events_on_followed(void *arg, const struct hub_sandbox_event *v)
{
	struct follower *f = arg;

	f->after = v->seq;
	f->sent++;
	if (call_sees_owner(f->call, v->owner))
		events_say(f, v->seq, v->at_ms, v->sandbox, v->kind, v->detail);
}

static void events_free(uv_handle_t *h)
{
	free(h->data);
}

static void events_follow_end(struct follower *f, const struct err *err)
{
	struct call *c = f->call;

	hub_sandboxes_watch_remove(f->all, &f->watch);
	uv_close((uv_handle_t *)&f->timer, events_free);
	if (err)
		call_fail(c, err);
	else
		call_answer(c, NULL);
}

static void events_follow_stop(void *data)
{
	events_follow_end(data, NULL);
}

/* The reader missed the events between its place and the oldest that is kept. */
static void events_say_missed(struct follower *f, uint64_t oldest)
{
	char text[96];

	if (oldest <= f->after + 1)
		return;
	if (f->asked_after) {
		snprintf(text, sizeof(text), "events %llu to %llu are not kept any more",
			 (unsigned long long)f->after + 1, (unsigned long long)oldest - 1);
		events_say(f, oldest - 1, clock_unix_ms(), STR_NONE, STR_LIT("missed"),
			   str_of(text));
	}
	f->after = oldest - 1;
}

static void events_on_timer(uv_timer_t *t);

/* Sends what there is and the client has room for. */
static void events_follow(struct follower *f)
{
	struct err e = ERR_INIT;
	uint64_t oldest, newest;

	uv_timer_start(&f->timer, events_on_timer, ALIVE_MS, 0);
	if (call_full(f->call))
		return; /* on_room() goes on */
	f->sent = 0;
	if (hub_sandboxes_events_kept(f->all, &oldest, &newest, &e) < 0) {
		events_follow_end(f, &e);
		return;
	}
	events_say_missed(f, oldest);
	if (hub_sandboxes_events(f->all,
				 &(struct hub_sandbox_events){ f->after, f->sandbox,
							       events_owner(f->call, f->sandbox) },
				 STEP, events_on_followed, f, &e) < 0) {
		events_follow_end(f, &e);
		return;
	}
	f->asked_after = true;
	if (f->sent == STEP)
		uv_timer_start(&f->timer, events_on_timer, 0, 0);
	else if (newest > f->after)
		f->after = newest; /* what is before it are others' */
}

static void events_on_timer(uv_timer_t *t)
{
	struct follower *f = t->data;

	if (f->sent < STEP && !call_full(f->call))
		events_say(f, f->after, clock_unix_ms(), STR_NONE, STR_LIT("alive"), STR_NONE);
	events_follow(f);
}

static void events_on_news(void *arg)
{
	events_follow(arg);
}

static void events_follow_start(struct call *c, const struct events_request *q)
{
	struct follower *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	if (!f)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!f || call_waits(c, &e) < 0 || call_open(c, events_on_news, f, &e) < 0) {
		free(f);
		call_fail(c, &e);
		return;
	}
	f->call = c;
	f->all = call_sandboxes(c);
	f->sandbox = q->sandbox;
	f->after = q->after;
	f->asked_after = q->has_after;
	uv_timer_init(call_loop(c), &f->timer);
	f->timer.data = f;
	f->watch = (struct hub_sandboxes_watch){ .on_events = events_on_news, .arg = f };
	hub_sandboxes_watch_add(f->all, &f->watch);
	call_on_cancel(c, events_follow_stop, f);
	events_follow(f);
}

static void event_list_run(struct call *c, const void *request)
{
	const struct events_request *q = request;

	if (q->follow)
		events_follow_start(c, q);
	else
		events_run_page(c, q);
}

const struct op event_list_op = {
	.action = "event.list",
	.doc = "Lists what happened to sandboxes: the last 10000 events, in pages, or "
	       "with follow as a continuous stream. A slow reader misses nothing that "
	       "is still kept.",
	.effect = OP_READ,
	.flags = OP_WAITS | OP_NO_WAKE,
	.request = &request_table,
	.target = OP_TARGET(struct events_request, sandbox),
	.result = &page_table,
	.event = &event_view_table,
	.run = event_list_run,
};
