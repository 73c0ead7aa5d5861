/* conversation.history: the events of a conversation, in pages, or with follow as a stream that
 * goes on. A follower has a place in the log, not a queue: it reads on when its client has room.
 * Events are read, looked through and redacted beside the loop where there are many bytes. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "call/aside.h"
#include "call/guard.h"
#include "json/document/raw.h"
#include "json/document/put.h"
#include "op/conversation/conversation.h"

enum {
	TYPES_MAX = 32,
	LIMIT_DEFAULT = 50,
	TEXT_MAX = 500,
	PAGES_MAX = 16, /* of the log, that are looked through for one answer */
	BYTES_MAX = 4 << 20, /* of one answer; it ends with the event that reaches them */
	STEP = 64, /* events that are sent at once; then others have their turn */
	STEP_BYTES = 1 << 20, /* likewise; it ends with the event that reaches them */
	ALIVE_MS = 10000,
	REDACTED_MAX = 64 << 20,
};

#define Q struct history_request
struct history_request {
	struct str session_id, conversation_id, text_contains, since, until;
	struct field_strs event_types;
	uint64_t after_seq, before_seq;
	bool has_after_seq, follow;
	uint32_t limit;
};
static const struct field request_fields[] = {
	SESSION_ROW(Q),
	CONVERSATION_ROW(Q, .doc = "Id of the conversation. Default: your own."),
	FIELD(Q, event_types, .max = TYPES_MAX, .item_max = EVENTS_TYPE_MAX,
	      .doc = "Only events of these types, such as user_prompt and agent_message."),
	FIELD(Q, text_contains, .max = TEXT_MAX,
	      .doc = "Only events whose JSON contains this text."),
	FIELD(Q, after_seq, .max = INT64_MAX, .has = FIELD_HAS(Q, has_after_seq),
	      .doc = "The first events after this seq; absent: the newest."),
	FIELD(Q, before_seq, .max = INT64_MAX, .doc = "Only events before this seq; 0: no limit."),
	FIELD(Q, since, .max = WHEN_MAX,
	      .doc = "Only events since this time: RFC 3339 in UTC, or an age: 30s, 5m, 2h, 1d."),
	FIELD(Q, until, .max = WHEN_MAX,
	      .doc = "Only events until this time, in the forms of since."),
	FIELD(Q, limit, .min = 1, .max = EVENTS_PAGE_MAX, .def = DEFAULT_INT(LIMIT_DEFAULT),
	      .doc = "Maximum number of events to return."),
	FIELD(Q, follow, .def = DEFAULT_BOOL(false),
	      .doc = "Stream (text/event-stream) all events after after_seq, as they happen."),
};
#undef Q
static const struct field_table request_table = FIELD_TABLE(struct history_request, request_fields);

#define V struct history_event
static const struct field event_fields[] = {
	FIELD(V, seq, .flags = FIELD_REQUIRED,
	      .doc = "Sequence number. In a stream, 0 for what is not in the log: live (a "
		     "piece of a new event), changed (the state), alive (nothing happened)."),
	FIELD(V, type, .flags = FIELD_REQUIRED,
	      .doc = "Type of the event, such as user_prompt, agent_message or stop."),
	FIELD(V, timestamp, .flags = FIELD_REQUIRED, .doc = "When it happened, RFC 3339."),
	FIELD(V, data, .max = EVENTS_DATA_MAX, .doc = "Data of the event, depending on its type."),
	FIELD(V, live, .doc = "For live: type of the event that this is a piece of."),
	FIELD(V, state, .doc = "For changed: the new state."),
};
#undef V
const struct field_table history_event_table = FIELD_TABLE(struct history_event, event_fields);

struct history_part {
	struct str type, text;
	uint32_t piece;
};
static const struct field part_fields[] = {
	FIELD(struct history_part, type, .flags = FIELD_REQUIRED, .doc = "Type of the event."),
	FIELD(struct history_part, text, .flags = FIELD_REQUIRED, .doc = "Its text so far."),
	FIELD(struct history_part, piece, .flags = FIELD_REQUIRED,
	      .doc = "Number of its last piece: those that follow have higher ones."),
};
static const struct field_table part_table = FIELD_TABLE(struct history_part, part_fields);

#define V struct history_view
struct history_view {
	struct history_part partial;
	bool has_partial;
	struct {
		struct history_event *p;
		size_t n;
	} events;
	uint64_t first_seq, last_seq, max_seq, total_events, spoilt;
	bool has_more;
};
static const struct field view_fields[] = {
	FIELD_OBJECTS(V, events, history_event_table, .flags = FIELD_REQUIRED,
		      .max = EVENTS_PAGE_MAX, .doc = "In order of seq."),
	FIELD(V, first_seq, .flags = FIELD_REQUIRED,
	      .doc = "Value of before_seq for the previous page; 0: no event was looked at."),
	FIELD(V, last_seq, .flags = FIELD_REQUIRED, .doc = "Value of after_seq for the next page."),
	FIELD(V, max_seq, .flags = FIELD_REQUIRED,
	      .doc = "Seq of the last event of the conversation."),
	FIELD(V, total_events, .flags = FIELD_REQUIRED,
	      .doc = "Number of events in the conversation."),
	FIELD(V, has_more, .flags = FIELD_REQUIRED,
	      .doc = "There are more events in this direction."),
	FIELD_OBJECT(V, partial, part_table, .has = FIELD_HAS(V, has_partial),
		     .doc = "What its agent is saying, which is no event yet."),
	FIELD(V, spoilt, .flags = FIELD_REQUIRED,
	      .doc = "Damaged lines of the log that were skipped."),
};
#undef V
static const struct field_table view_table = FIELD_TABLE(struct history_view, view_fields);

/* ---- what is looked for ---------------------------------------------------------------------- */

/* A point in time as the log has them, so that texts compare as times do. */
static int history_when(struct str text, char ret[WHEN_MAX], struct err *e)
{
	static const char form[] = "0000-00-00T00:00:00", units[] = "smhd";
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	const char *unit = text.n > 1 ? memchr(units, text.p[text.n - 1], 4) : NULL;
	int64_t n = 0;
	size_t i = 0;

	ret[0] = '\0';
	if (!text.n)
		return 0;
	for (; unit && i + 1 < text.n && i < 9 && text.p[i] >= '0' && text.p[i] <= '9'; i++)
		n = n * 10 + text.p[i] - '0';
	if (unit && i + 1 == text.n) {
		when_text(ret, clock_unix_ms() - n * seconds[unit - units] * 1000);
		return 0;
	}
	for (i = 0; i < sizeof(form) - 1 && i < text.n; i++) {
		bool digit = text.p[i] >= '0' && text.p[i] <= '9';

		if (form[i] == '0' ? !digit : text.p[i] != form[i])
			break;
	}
	if (i < sizeof(form) - 1 || text.p[text.n - 1] != 'Z')
		return err_set(e, ERR_INVALID,
			       "since, until: such as 2026-11-26T10:00:00Z, or 5m for minutes ago");
	/* Without the Z, a fraction compares as it should. */
	snprintf(ret, WHEN_MAX, "%.*s", (int)text.n - 1, text.p);
	return 0;
}

struct history_filter {
	struct redactor *redactor; /* of the thread that filters */
	const struct history_request *q;
	char since[WHEN_MAX], until[WHEN_MAX];
	bool any; /* nothing is filtered */
};

static int filter_init(struct history_filter *f, const struct history_request *q, struct err *e)
{
	f->q = q;
	f->any = !q->event_types.n && !q->text_contains.n && !q->since.n && !q->until.n;
	return history_when(q->since, f->since, e) < 0 ? -1 : history_when(q->until, f->until, e);
}

/* To the precision of the bound, so that a second holds its milliseconds. */
static int filter_compare(struct str timestamp, const char *bound)
{
	size_t n = strlen(bound);

	return str_cmp((struct str){ timestamp.p, timestamp.n < n ? timestamp.n : n },
		       (struct str){ bound, n });
}

/* The data is searched as it leaves, so that no secret is found by guessing. */
static bool filter_finds(const struct history_filter *f, const struct json_doc *doc)
{
	const struct json_val *data = json_get(json_root(doc), "data");
	autobuf struct buf all = BUF_INIT(8 * EVENTS_DATA_MAX);
	struct json_writer w = json_writer(&all);
	AUTO(arena_free) struct arena *a = arena_new(REDACTED_MAX);
	struct aside_texts texts = { f->redactor, a };
	struct str text = f->q->text_contains, said;
	struct err none;

	if (!data || !a)
		return false;
	field_copy_val(data, aside_redact, &texts, &w);
	if (json_write_done(&w, &none) < 0)
		return false;
	said = aside_redact(&texts, NULL, buf_str(&all));
	return said.n >= text.n && memmem(said.p, said.n, text.p, text.n);
}

static bool filter_takes(const struct history_filter *f, const struct json_doc *doc,
			 const struct history_event *v)
{
	const struct field_strs *types = &f->q->event_types;
	bool typed = types->n == 0;

	for (size_t i = 0; i < types->n; i++)
		typed = typed || str_eq(types->p[i], v->type);
	return typed && (!f->since[0] || filter_compare(v->timestamp, f->since) >= 0) &&
	       (!f->until[0] || filter_compare(v->timestamp, f->until) <= 0) &&
	       (!f->q->text_contains.n || (v->data.text.n && filter_finds(f, doc)));
}

/* The members of a line, which borrow from it or the document. */
static bool history_read_line(struct str line, const struct json_doc *doc, uint64_t seq,
			      struct history_event *ret)
{
	struct json_iter it = json_iter(json_root(doc));
	struct json_raw raw = json_raw(line);
	struct str text;

	*ret = (struct history_event){ .seq = seq };
	while (json_next(&it) && json_raw_next(&raw, &text)) {
		if (str_is(it.key, "type"))
			ret->type = json_str(it.val);
		else if (str_is(it.key, "timestamp"))
			ret->timestamp = json_str(it.val);
		else if (str_is(it.key, "data") && json_type(it.val) == JSON_OBJECT)
			ret->data.text = text;
	}
	return ret->type.n > 0;
}

/* ---- a page ---------------------------------------------------------------------------------- */

/* Matches of the pages so far. From the first on, or, backwards, as the last of `limit` places. */
struct history_reading {
	struct aside_work aside; /* first: the two are cast */
	struct call *call;
	struct events *events; /* as they were; owned, as the arena */
	struct arena *arena;
	struct history_filter filter;
	struct history_view view;
	struct history_event *p;
	size_t limit, n;
	/* Of one page: where its matches go, and how many there were. */
	size_t room, matches;
	size_t bytes;
	uint64_t spoilt;
	struct err err;
};

static struct str history_keep(struct history_reading *r, struct str s)
{
	char *text = s.p ? arena_dup(r->arena, s, &r->err) : NULL;

	return text ? (struct str){ text, s.n } : STR_NONE;
}

static struct history_event history_copy(struct history_reading *r, const struct history_event *v)
{
	return (struct history_event){ .seq = v->seq,
				       .type = history_keep(r, v->type),
				       .timestamp = history_keep(r, v->timestamp),
				       .data = { history_keep(r, v->data.text) } };
}

/* Backwards, the places before those that are taken are a ring of the last matches. */
static void history_on_line(void *owner, uint64_t seq, struct str line)
{
	struct history_reading *r = owner;
	bool backwards = !r->filter.q->has_after_seq;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct history_event v;
	struct err e;

	if (r->err.code || (!backwards && r->matches == r->room))
		return;
	doc = json_parse(line, NULL, &e);
	if (!doc || !history_read_line(line, doc, seq, &v)) {
		r->spoilt++;
		return;
	}
	if (!filter_takes(&r->filter, doc, &v))
		return;
	r->bytes += line.n;
	if (backwards)
		r->p[r->matches++ % r->room] = history_copy(r, &v);
	else
		r->p[r->n + r->matches++] = history_copy(r, &v);
}

/* Brings the ring of a page behind its beginning and before the later pages. */
static void history_take_ring(struct history_reading *r)
{
	size_t kept = r->matches < r->room ? r->matches : r->room;
	struct history_event *scratch = r->p + r->limit;

	for (size_t i = 0; i < kept; i++)
		scratch[i] = r->p[(r->matches - kept + i) % r->room];
	r->n += kept;
	memcpy(r->p + r->limit - r->n, scratch, kept * sizeof(*scratch));
}

static int history_read(struct history_reading *r, struct err *e)
{
	struct history_view *ret = &r->view;
	const struct history_request *q = r->filter.q;
	bool backwards = !q->has_after_seq;
	struct events_range range = { .after = q->after_seq,
				      .before = q->before_seq,
				      .limit = r->filter.any ? r->limit : EVENTS_PAGE_MAX,
				      .newest = backwards };
	struct events_page page = { .more = true };

	for (int i = 0; i < PAGES_MAX && page.more && r->n < r->limit && r->bytes < BYTES_MAX;
	     i++) {
		r->room = r->limit - r->n;
		r->matches = 0;
		if (events_read(r->events, &range, history_on_line, r, &page, e) < 0)
			return -1;
		if (r->err.code) {
			*e = r->err;
			return -1;
		}
		r->spoilt += page.spoilt;
		if (!i || backwards)
			ret->first_seq = page.first;
		if (!i || !backwards)
			ret->last_seq = page.last;
		range.before = backwards ? page.first : range.before;
		range.after = backwards ? range.after : page.last;
		if (backwards && r->matches > r->room) {
			page.more = true;
			ret->first_seq = r->p[r->matches % r->room].seq;
		}
		if (backwards)
			history_take_ring(r);
		else
			r->n += r->matches;
	}
	/* A page in which there may be more matches than there was room. */
	if (!backwards && r->n == r->limit && r->p[r->n - 1].seq < ret->last_seq) {
		ret->last_seq = r->p[r->n - 1].seq;
		page.more = true;
	}
	ret->has_more = page.more;
	ret->spoilt = r->spoilt;
	ret->events.p = backwards ? r->p + r->limit - r->n : r->p;
	ret->events.n = r->n;
	return 0;
}

static void history_run_page(struct aside_work *w)
{
	struct history_reading *r = (struct history_reading *)w;
	struct err e = ERR_INIT;

	r->filter.redactor = w->redactor;
	if (history_read(r, &e) < 0)
		r->err = e;
}

/* What its agent is saying now goes with the newest events. */
static int history_add_partial(struct history_reading *r, struct err *e)
{
	const struct history_request *q = r->filter.q;
	struct conversation *t = conversation_to_read(r->call, q->session_id, q->conversation_id,
						      e);
	struct conversation_part part;
	char *text;

	if (!t)
		return -1;
	if (q->before_seq || !conversation_part(t, &part))
		return 0;
	text = arena_dup(call_arena(r->call), part.text, e);
	r->view.partial =
		(struct history_part){ str_of(part.type), { text, part.text.n }, part.piece };
	r->view.has_partial = text != NULL;
	return text ? 0 : -1;
}

static void history_answer(struct aside_work *w)
{
	struct history_reading *r = (struct history_reading *)w;
	struct err e = r->err;
	int rc = e.code ? -1 : arena_take(call_arena(r->call), r->arena, &e);

	events_close(take_ptr(r->events));
	arena_free(take_ptr(r->arena));
	if (rc < 0 || history_add_partial(r, &e) < 0)
		call_fail(r->call, &e);
	else
		call_answer(r->call, &r->view);
}

static int history_page_start(struct history_reading *r, struct conversation *t, struct err *e)
{
	struct events *v = conversation_events(t, e);

	r->events = v ? events_view(v, e) : NULL;
	if (!r->events || filter_init(&r->filter, call_request(r->call), e) < 0)
		return -1;
	r->limit = r->filter.q->limit;
	r->p = arena_array(r->arena, 2 * r->limit, sizeof(*r->p), e);
	r->view.max_seq = events_last(v);
	r->view.total_events = events_count(v);
	r->aside.run = history_run_page;
	r->aside.then = history_answer;
	return !r->p ? -1
		     : aside_work_start(&r->aside, call_loop(r->call),
					call_guard(r->call)->redactor, events_bytes(v), e);
}

static void history_page(struct call *c, struct conversation *t)
{
	struct err e = ERR_INIT;
	struct history_reading *r = arena_alloc(call_arena(c), sizeof(*r), &e);

	if (!r) {
		call_fail(c, &e);
		return;
	}
	r->call = c;
	r->arena = arena_new(call_arena(c)->max);
	if (!r->arena)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!r->arena || history_page_start(r, t, &e) < 0) {
		events_close(r->events);
		arena_free(r->arena);
		call_fail(c, &e);
	}
}

/* ---- a stream -------------------------------------------------------------------------------- */

struct history_follower {
	struct aside_work aside; /* first: the two are cast */
	uv_timer_t timer; /* until it has to say that it lives, or its next turn */
	/* Of one step: the events as they were, and what is found; NULL: there is no step. */
	struct events *events;
	struct arena *arena; /* of what is found */
	struct history_event *p[STEP]; /* redacted */
	size_t n, bytes;
	uint64_t last; /* seq that was looked at last */
	bool more;
	struct err err;
	bool stopped; /* meanwhile */
	struct conversation_watch watch;
	struct call *call;
	struct conversation *conversation; /* NULL: deleted */
	struct history_filter filter;
	uint64_t after;
	bool joined; /* it was told what the agent was saying */
	bool changed; /* and its client was not told yet */
	bool again; /* there is more to look for since the step began */
	bool soon; /* the timer is for its next turn */
};

static void follow_say(struct history_follower *f, struct history_event *v)
{
	char now[WHEN_MAX];

	when_text(now, clock_unix_ms());
	v->timestamp = str_of(now);
	call_send(f->call, v);
}

/* Those behind a step's bytes are read again by the next. */
static void follow_on_line(void *owner, uint64_t seq, struct str line)
{
	struct history_follower *f = owner;
	struct aside_texts texts = { f->filter.redactor, f->arena };
	AUTO(json_free) struct json_doc *doc = NULL;
	struct history_event v;
	struct err e;

	if (f->bytes >= STEP_BYTES || f->err.code) {
		f->more = true;
		return;
	}
	f->bytes += line.n;
	f->last = seq;
	doc = json_parse(line, NULL, &e);
	if (!doc || !history_read_line(line, doc, seq, &v) || !filter_takes(&f->filter, doc, &v))
		return;
	f->p[f->n] = field_copy(&history_event_table, &v, f->arena, aside_redact, &texts, &f->err);
	f->n += f->p[f->n] != NULL;
}

static void follow_run(struct aside_work *w)
{
	struct history_follower *f = (struct history_follower *)w;
	struct events_range range = { .after = f->after, .limit = STEP };
	struct events_page page = { .more = false };
	struct err e;

	f->filter.redactor = w->redactor;
	if (events_read(f->events, &range, follow_on_line, f, &page, &e) < 0) {
		f->err = f->err.code ? f->err : e;
		return;
	}
	if (!f->more) {
		f->last = page.last > f->last ? page.last : f->last;
		f->more = page.more;
	}
}

static void follow_free(uv_handle_t *h)
{
	free(h->data);
}

static void follow_end(struct history_follower *f, const struct err *err)
{
	struct call *c = f->call;

	if (f->conversation)
		conversation_watch_remove(f->conversation, &f->watch);
	uv_close((uv_handle_t *)&f->timer, follow_free);
	if (err)
		call_fail(c, err);
	else
		call_answer_by(c, NULL, NULL);
}

static void follow_stop(void *data)
{
	struct history_follower *f = data;

	if (f->events)
		f->stopped = true;
	else
		follow_end(f, NULL);
}

static void follow_on_timer(uv_timer_t *timer);

/* Inside of a change nothing is sent but live pieces, which are of the moment. */
static void follow_soon(struct history_follower *f)
{
	f->soon = true;
	uv_timer_start(&f->timer, follow_on_timer, 0, 0);
}

/* Whether its client may still know of it: the flags of who asks may be others by now. */
static int follow_check(struct history_follower *f, struct err *e)
{
	const struct history_request *q = f->filter.q;

	if (!f->conversation)
		return err_set(e, ERR_CONVERSATION_NOT_FOUND,
			       "the conversation was deleted meanwhile");
	return conversation_to_read(f->call, q->session_id, q->conversation_id, e) ? 0 : -1;
}

/* Sends what the client has room for. False: the rest is read again when there is room. */
static bool follow_send(struct history_follower *f)
{
	for (size_t i = 0; i < f->n; i++) {
		if (call_full(f->call))
			return false;
		f->after = f->p[i]->seq;
		call_send_as_is(f->call, f->p[i]);
	}
	f->after = f->last > f->after ? f->last : f->after;
	return true;
}

/* Its pieces of before, as one. */
static void follow_say_part(struct history_follower *f)
{
	autobuf struct buf b = BUF_INIT(EVENTS_DATA_MAX);
	struct json_writer w = json_writer(&b);
	struct conversation_part part;
	char type[EVENTS_TYPE_MAX + 1];
	struct err e;

	if (!conversation_part(f->conversation, &part))
		return;
	snprintf(type, sizeof(type), "%s_chunk", part.type);
	json_write_object(&w);
	json_put_str(&w, "text", part.text);
	json_put_uint(&w, "piece", part.piece);
	json_put_bool(&w, "joined", true);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) == 0)
		follow_say(f, &(struct history_event){ .type = STR_LIT("live"),
						       .live = str_of(type),
						       .data = { buf_str(&b) } });
}

static void follow_then(struct aside_work *w)
{
	struct history_follower *f = (struct history_follower *)w;
	struct err e = f->err;
	bool all;

	events_close(take_ptr(f->events));
	if (f->stopped || e.code || follow_check(f, &e) < 0) {
		arena_free(take_ptr(f->arena));
		follow_end(f, f->stopped ? NULL : &e);
		return;
	}
	all = follow_send(f);
	arena_free(take_ptr(f->arena));
	if (!all)
		return;
	if (f->more || f->again) {
		follow_soon(f);
		return;
	}
	if (call_full(f->call))
		return;
	if (f->changed)
		follow_say(f, &(struct history_event){
				      .type = STR_LIT("changed"),
				      .state = str_of(conversation_state_names[conversation_state(
					      f->conversation)]) });
	f->changed = false;
	if (!f->joined)
		follow_say_part(f);
	f->joined = true;
}

/* Looks for what there is, if the client has room. */
static void follow_step(struct history_follower *f)
{
	struct err e = ERR_INIT;
	struct events *v;

	f->soon = false;
	uv_timer_start(&f->timer, follow_on_timer, ALIVE_MS, 0);
	f->again = f->events != NULL;
	if (f->again || call_full(f->call))
		return; /* there will be room */
	v = follow_check(f, &e) < 0 ? NULL : conversation_events(f->conversation, &e);
	f->events = v ? events_view(v, &e) : NULL;
	f->arena = f->events ? arena_new(REDACTED_MAX) : NULL;
	if (f->events && !f->arena)
		err_set(&e, ERR_LIMIT, "out of memory");
	f->n = f->bytes = 0;
	f->last = f->after;
	f->more = false;
	f->err = ERR_INIT;
	f->aside.run = follow_run;
	f->aside.then = follow_then;
	if (f->arena && aside_work_start(&f->aside, call_loop(f->call),
					 call_guard(f->call)->redactor, events_bytes(v), &e) == 0)
		return;
	events_close(take_ptr(f->events));
	arena_free(take_ptr(f->arena));
	follow_end(f, &e);
}

static void follow_on_timer(uv_timer_t *timer)
{
	struct history_follower *f = timer->data;

	if (!f->soon && !call_full(f->call))
		follow_say(f, &(struct history_event){ .type = STR_LIT("alive") });
	follow_step(f);
}

static void follow_on_room(void *data)
{
	follow_step(data);
}

static void follow_on_event(void *data, const struct conversation_event *ev)
{
	struct history_follower *f = data;
	struct err e;

	if (ev->seq || follow_check(f, &e) < 0)
		follow_soon(f);
	else if (!call_full(f->call))
		follow_say(f, &(struct history_event){ .type = STR_LIT("live"),
						       .live = str_of(ev->type),
						       .data = { ev->data } });
}

static void follow_on_change(void *data)
{
	struct history_follower *f = data;

	f->changed = true;
	follow_soon(f);
}

static void follow_on_gone(void *data)
{
	struct history_follower *f = data;

	f->conversation = NULL;
	follow_soon(f);
}

static void follow_start(struct call *c, struct conversation *t, const struct history_request *q)
{
	struct history_follower *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	if (!f)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!f || filter_init(&f->filter, q, &e) < 0 || call_waits(c, &e) < 0 ||
	    call_open(c, follow_on_room, f, &e) < 0) {
		free(f);
		call_fail(c, &e);
		return;
	}
	f->call = c;
	f->conversation = t;
	f->after = q->after_seq;
	f->changed = true; /* a stream begins with the state */
	uv_timer_init(call_loop(c), &f->timer);
	f->timer.data = f;
	f->watch = (struct conversation_watch){ .on_event = follow_on_event,
						.on_change = follow_on_change,
						.on_gone = follow_on_gone,
						.data = f };
	conversation_watch_add(t, &f->watch);
	call_on_cancel(c, follow_stop, f);
	follow_step(f);
}

static void history_run(struct call *c, const void *request)
{
	const struct history_request *q = request;
	struct err e = ERR_INIT;
	struct conversation *t = conversation_to_read(c, q->session_id, q->conversation_id, &e);

	if (!t)
		call_fail(c, &e);
	else if (q->follow)
		follow_start(c, t, q);
	else
		history_page(c, t);
}

const struct op conversation_history_op = {
	.action = "conversation.history",
	.doc = "Returns events of a conversation: the newest, or those after after_seq.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &request_table,
	.result = &view_table,
	.event = &history_event_table,
	.run = history_run,
};
