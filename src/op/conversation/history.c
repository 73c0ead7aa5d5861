/* conversation.history: the events of a conversation, in pages, or with follow as a stream that
 * goes on. A follower has a place in the log, not a queue: it reads on when its client has room. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "json/document/raw.h"
#include "op/conversation/conversation.h"

enum {
	TYPES_MAX = 32,
	LIMIT_DEFAULT = 50,
	TEXT_MAX = 500,
	PAGES_MAX = 16, /* of the log, that are looked through for one answer */
	BYTES_MAX = 4 << 20, /* of one answer; it ends with the event that reaches them */
	STEP = 64, /* events that are sent at once; then others have their turn */
	ALIVE_MS = 10000,
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

#define V struct history_view
struct history_view {
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
	struct call *call;
	const struct history_request *q;
	char since[WHEN_MAX], until[WHEN_MAX];
	bool any; /* nothing is filtered */
};

static int filter_init(struct history_filter *f, struct call *c, const struct history_request *q,
		       struct err *e)
{
	f->call = c;
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

static struct str history_redact(void *call, const struct field *row, struct str text)
{
	return call_redact(call, text);
}

/* The data is searched as it leaves, so that no secret is found by guessing. */
static bool filter_finds(const struct history_filter *f, const struct json_doc *doc)
{
	const struct json_val *data = json_get(json_root(doc), "data");
	autobuf struct buf all = BUF_INIT(8 * EVENTS_DATA_MAX);
	struct json_writer w = json_writer(&all);
	struct str text = f->q->text_contains, said;
	struct err none;

	if (!data)
		return false;
	field_copy_val(data, history_redact, f->call, &w);
	if (json_write_done(&w, &none) < 0)
		return false;
	said = call_redact(f->call, buf_str(&all));
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
	struct call *call;
	struct history_filter filter;
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
	char *text = s.p ? arena_dup(call_arena(r->call), s, &r->err) : NULL;

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

static int history_read(struct history_reading *r, struct events *v, struct history_view *ret,
			struct err *e)
{
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
		if (events_read(v, &range, history_on_line, r, &page, e) < 0)
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

static void history_page(struct call *c, struct talk *t, const struct history_request *q)
{
	struct history_reading r = { .call = c, .limit = q->limit, .err = ERR_INIT };
	struct history_view view = { .has_more = false };
	struct err e = ERR_INIT;
	struct events *v = talk_events(t, &e);

	r.p = v ? arena_array(call_arena(c), 2 * r.limit, sizeof(*r.p), &e) : NULL;
	if (!r.p || filter_init(&r.filter, c, q, &e) < 0 || history_read(&r, v, &view, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	view.max_seq = events_last(v);
	view.total_events = events_count(v);
	call_answer(c, &view);
}

/* ---- a stream -------------------------------------------------------------------------------- */

struct history_follower {
	uv_timer_t timer; /* until it has to say that it lives, or its next turn */
	struct talk_watch watch;
	struct call *call;
	struct talk *talk; /* NULL: deleted */
	struct history_filter filter;
	uint64_t after;
	bool changed; /* and its client was not told yet */
	bool held; /* the client has no room for the rest of a page */
	bool soon; /* the timer is for its next turn */
};

static void follow_say(struct history_follower *f, struct history_event *v)
{
	char now[WHEN_MAX];

	when_text(now, clock_unix_ms());
	v->timestamp = str_of(now);
	call_send(f->call, v);
}

/* A page has more bytes than the client's queue may take: what is held is read again. */
static void follow_on_line(void *owner, uint64_t seq, struct str line)
{
	struct history_follower *f = owner;
	AUTO(json_free) struct json_doc *doc = NULL;
	struct history_event v;
	struct err e;

	f->held = f->held || call_full(f->call);
	if (f->held)
		return;
	f->after = seq;
	doc = json_parse(line, NULL, &e);
	if (doc && history_read_line(line, doc, seq, &v) && filter_takes(&f->filter, doc, &v))
		call_send(f->call, &v);
}

static void follow_free(uv_handle_t *h)
{
	free(h->data);
}

static void follow_end(struct history_follower *f, const struct err *err)
{
	struct call *c = f->call;

	if (f->talk)
		talk_watch_remove(f->talk, &f->watch);
	uv_close((uv_handle_t *)&f->timer, follow_free);
	if (err)
		call_fail(c, err);
	else
		call_answer_by(c, NULL, NULL);
}

static void follow_stop(void *data)
{
	follow_end(data, NULL);
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
	struct conversation_caller who;

	if (!f->talk)
		return err_set(e, ERR_CONVERSATION_NOT_FOUND,
			       "the conversation was deleted meanwhile");
	return conversation_caller(f->call, q->session_id, &who, e) < 0 ||
			       !conversation_target(f->call, &who, q->conversation_id,
						    CONVERSATION_FLAG_can_do_introspection, e)
		     ? -1
		     : 0;
}

/* Sends what there is and the client has room for. */
static void follow_send(struct history_follower *f)
{
	struct events_range range = { .after = f->after, .limit = STEP };
	struct events_page page = { .more = false };
	struct err e = ERR_INIT;
	struct events *v;

	f->soon = f->held = false;
	uv_timer_start(&f->timer, follow_on_timer, ALIVE_MS, 0);
	if (call_full(f->call))
		return; /* there will be room */
	v = follow_check(f, &e) < 0 ? NULL : talk_events(f->talk, &e);
	if (!v || events_read(v, &range, follow_on_line, f, &page, &e) < 0) {
		follow_end(f, &e);
		return;
	}
	if (f->held)
		return; /* the same */
	f->after = page.last > f->after ? page.last : f->after;
	if (page.more) {
		follow_soon(f);
		return;
	}
	if (call_full(f->call))
		return;
	if (f->changed)
		follow_say(f, &(struct history_event){
				      .type = STR_LIT("changed"),
				      .state = str_of(talk_state_names[talk_state(f->talk)]) });
	f->changed = false;
}

static void follow_on_timer(uv_timer_t *timer)
{
	struct history_follower *f = timer->data;

	if (!f->soon && !call_full(f->call))
		follow_say(f, &(struct history_event){ .type = STR_LIT("alive") });
	follow_send(f);
}

static void follow_on_room(void *data)
{
	follow_send(data);
}

static void follow_on_event(void *data, const struct talk_event *ev)
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

	f->talk = NULL;
	follow_soon(f);
}

static void follow_start(struct call *c, struct talk *t, const struct history_request *q)
{
	struct history_follower *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	if (!f)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!f || filter_init(&f->filter, c, q, &e) < 0 || call_waits(c, &e) < 0 ||
	    call_open(c, follow_on_room, f, &e) < 0) {
		free(f);
		call_fail(c, &e);
		return;
	}
	f->call = c;
	f->talk = t;
	f->after = q->after_seq;
	f->changed = true; /* a stream begins with the state */
	uv_timer_init(call_loop(c), &f->timer);
	f->timer.data = f;
	f->watch = (struct talk_watch){ .on_event = follow_on_event,
					.on_change = follow_on_change,
					.on_gone = follow_on_gone,
					.data = f };
	talk_watch_add(t, &f->watch);
	call_on_cancel(c, follow_stop, f);
	follow_send(f);
}

static void history_run(struct call *c, const void *request)
{
	const struct history_request *q = request;
	struct conversation_caller who;
	struct err e = ERR_INIT;
	struct talk *t = conversation_caller(c, q->session_id, &who, &e) < 0
			       ? NULL
			       : conversation_target(c, &who, q->conversation_id,
						     CONVERSATION_FLAG_can_do_introspection, &e);

	if (!t)
		call_fail(c, &e);
	else if (q->follow)
		follow_start(c, t, q);
	else
		history_page(c, t, q);
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
