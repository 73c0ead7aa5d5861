/* The events of conversations, and those who watch: in the hub, and through the feed. */
#include <stdio.h>

#include "agents/conversation/feed.h"
#include "agents/conversation/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/when.h"
#include "json/document/put.h"

enum {
	NEWS_MAX = FEED_DATA_MAX + 512,
	NOTE_MAX = 1024,
	LOOK_PAGES = 80, /* of the log, in which the beginning of its last turn is looked for */
};

void conversation_watch_add(struct conversation *t, struct conversation_watch *w)
{
	w->next = t->watches;
	t->watches = w;
}

void conversation_watch_remove(struct conversation *t, struct conversation_watch *w)
{
	struct conversation_watch **at = &t->watches;

	while (*at && *at != w)
		at = &(*at)->next;
	if (*at)
		*at = w->next;
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void watch_publish(const struct conversation *t, struct json_writer *w)
{
	struct err e;

	json_write_object_end(w);
	if (json_write_done(w, &e) < 0)
		log_warn("conversation %s: news are lost: %s", conversation_id(t), e.msg);
	else
		feed_publish(t->all->o.feed,
			     &(struct feed_news){ .topic = "conversation",
						  .id = str_of(conversation_id(t)),
						  .owner = conversation_record(t)->owner,
						  .data = buf_str(w->buf) });
}

static void watch_begin(struct json_writer *w, const char *kind)
{
	json_write_object(w);
	json_put_text(w, "kind", kind);
}

void conversation_tell(struct conversation *t, const char *kind)
{
	autobuf struct buf b = BUF_INIT(NEWS_MAX);
	struct json_writer w = json_writer(&b);
	const struct conversation_record *r = conversation_record(t);

	if (t->all->closing)
		return;
	watch_begin(&w, kind);
	json_put_text(&w, "state", conversation_state_names[conversation_state(t)]);
	json_put_str(&w, "title", r->name);
	json_put_bool(&w, "archived", r->archived);
	json_put_uint(&w, "queue_length", conversation_queue_length(t));
	watch_publish(t, &w);
	for (struct conversation_watch *at = t->watches, *next; at; at = next) {
		next = at->next;
		if (at->on_change)
			at->on_change(at->data);
	}
}

void conversation_tell_gone(struct conversation *t)
{
	for (struct conversation_watch *at = t->watches, *next; at; at = next) {
		next = at->next;
		if (at->on_gone)
			at->on_gone(at->data);
	}
	t->watches = NULL;
}

static void watch_event(struct conversation *t, const struct conversation_event *ev)
{
	autobuf struct buf b = BUF_INIT(NEWS_MAX);
	struct json_writer w = json_writer(&b);
	char now[WHEN_MAX];

	when_text(now, clock_unix_ms());
	watch_begin(&w, ev->seq ? "event" : "live");
	if (ev->seq)
		json_put_uint(&w, "seq", ev->seq);
	json_put_text(&w, "type", ev->type);
	json_put_text(&w, "timestamp", now);
	/* A long one is fetched by its seq. */
	if (ev->data.n < FEED_DATA_MAX - 256)
		json_put_raw(&w, "data", ev->data);
	watch_publish(t, &w);
	for (struct conversation_watch *at = t->watches, *next; at; at = next) {
		next = at->next;
		if (at->on_event)
			at->on_event(at->data, ev);
	}
}

/* ---- the log --------------------------------------------------------------------------------- */

/* The type of an event, which stands behind its seq as events_append() writes it. */
static struct str event_type(struct str line)
{
	static const char before[] = ",\"type\":\"";
	size_t from = 0, n = 0;

	while (from < line.n && line.p[from] != ',')
		from++;
	line = (struct str){ line.p + from, line.n - from };
	if (!str_starts(line, before))
		return STR_NONE;
	line = (struct str){ line.p + sizeof(before) - 1, line.n - sizeof(before) + 1 };
	while (n < line.n && line.p[n] != '"')
		n++;
	return (struct str){ line.p, n };
}

/* The newest turn of a log. */
struct last_turn {
	struct conversation *conversation;
	bool found; /* a beginning or an end */
	bool open; /* it has begun and not ended */
};

static void watch_on_line(void *owner, uint64_t seq, struct str line)
{
	struct last_turn *last = owner;
	struct str type = event_type(line);
	AUTO(json_free) struct json_doc *doc = NULL;
	struct str id;
	struct err e;

	last->found |= str_is(type, "stop") || str_is(type, "user_prompt");
	if (str_is(type, "stop"))
		last->open = false;
	if (!str_is(type, "user_prompt"))
		return;
	last->open = true;
	doc = json_parse(line, NULL, &e);
	id = json_str(json_get(json_get(json_root(doc), "data"), "prompt_id"));
	snprintf(last->conversation->last_prompt, sizeof(last->conversation->last_prompt), "%.*s",
		 STR_CUT(id, QUEUE_ID));
}

/* Where a hub was killed in the middle of a turn, the log is told that it has ended. */
static int watch_look(struct conversation *t, struct events *v, struct err *e)
{
	struct last_turn last = { .conversation = t };
	struct events_range newest = { .limit = EVENTS_PAGE_MAX, .newest = true };
	struct events_page page = { .more = true };
	uint64_t seq;

	if (t->looked)
		return 0;
	for (int i = 0; i < LOOK_PAGES && page.more && !last.found; i++) {
		if (events_read(v, &newest, watch_on_line, &last, &page, e) < 0)
			return -1;
		newest.before = page.first;
		newest.limit = page.n ? page.n : 1; /* as large ones as those before them */
	}
	t->looked = true;
	/* The prompt that is now being given to the agent may be there since before the kill. */
	if (!last.open || t->begun || (t->turning && strcmp(t->last_prompt, t->prompt) == 0))
		return 0;
	if (events_append(v, "stop", STR_LIT("{\"stop_reason\":\"interrupted\"}"), &seq, e) < 0) {
		log_warn("conversation %s: %s", conversation_id(t), e->msg);
		t->missing = true;
	}
	return 0;
}

struct events *conversation_events(struct conversation *t, struct err *e)
{
	struct events *v = conversation_folder_events(t->of, e);

	return v && watch_look(t, v, e) == 0 ? v : NULL;
}

static int watch_append(struct conversation *t, struct events *v, struct conversation_event *ev,
			struct err *e)
{
	if (events_append(v, ev->type, ev->data, &ev->seq, e) < 0)
		return -1;
	t->count = events_count(v);
	t->last = ev->seq;
	t->counted = true;
	t->updated_ms = clock_unix_ms();
	watch_event(t, ev);
	return 0;
}

/* That some are missing stands where they would be. */
static int watch_append_missing(struct conversation *t, struct events *v, struct err *e)
{
	struct conversation_event ev = {
		.type = "error",
		.data = STR_LIT("{\"code\":\"events_missing\",\"message\":\"what happened here "
				"could not be written\"}"),
	};

	if (!t->missing)
		return 0;
	if (watch_append(t, v, &ev, e) < 0)
		return -1;
	t->missing = false;
	return 0;
}

int conversation_append(struct conversation *t, const char *type, struct str data,
			uint64_t *ret_seq, struct err *e)
{
	struct events *v = conversation_events(t, e);
	struct conversation_event ev = { .type = type, .data = data };

	if (!v || watch_append_missing(t, v, e) < 0 || watch_append(t, v, &ev, e) < 0) {
		t->missing = true;
		return -1;
	}
	if (ret_seq)
		*ret_seq = ev.seq;
	return 0;
}

int conversation_counts(struct conversation *t, uint64_t *ret_count, uint64_t *ret_last,
			struct err *e)
{
	struct events *v = t->counted ? NULL : conversation_events(t, e);

	if (!t->counted && !v)
		return -1;
	if (v) {
		t->count = events_count(v);
		t->last = events_last(v);
		t->counted = true;
	}
	*ret_count = t->count;
	*ret_last = t->last;
	return 0;
}

void conversation_live(struct conversation *t, const char *type, struct str data)
{
	watch_event(t, &(struct conversation_event){ .type = type, .data = data });
}

void conversation_note(struct conversation *t, const char *type, const char *name,
		       const char *value)
{
	autobuf struct buf b = BUF_INIT(NOTE_MAX);
	struct json_writer w = json_writer(&b);
	struct err e;

	json_write_object(&w);
	json_put_text(&w, name, value);
	json_write_object_end(&w);
	if (json_write_done(&w, &e) < 0 || conversation_append(t, type, buf_str(&b), NULL, &e) < 0)
		log_warn("conversation %s: no event %s: %s", conversation_id(t), type, e.msg);
}
