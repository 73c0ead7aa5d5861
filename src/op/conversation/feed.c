/* feed.follow: news of the hub as a stream. A follower has a place in the ring
 * (agents/conversation/feed.h); one whose place is gone is told to look at everything anew. */
#include "agents/conversation/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "op/conversation/conversation.h"

enum {
	CURSOR_LENGTH = FEED_EPOCH + 1 + 20,
	TOPICS_MAX = 16,
	TOPIC_MAX = 32,
	STEP = 64,
	ALIVE_MS = 10000,
};

struct feed_request {
	struct str after;
	struct field_strs topics;
};
static const struct field request_fields[] = {
	FIELD(struct feed_request, after, .max = CURSOR_LENGTH,
	      .doc = "Only news after this cursor; absent: from now on."),
	FIELD(struct feed_request, topics, .max = TOPICS_MAX, .item_max = TOPIC_MAX,
	      .doc = "Only these topics, such as conversation and question."),
};
static const struct field_table request_table = FIELD_TABLE(struct feed_request, request_fields);

static const struct field view_fields[] = {
	FIELD(struct feed_view, kind, .flags = FIELD_REQUIRED,
	      .doc = "news; alive: nothing happened; reset: the cursor is no longer known, so "
		     "read everything again and continue from here."),
	FIELD(struct feed_view, cursor, .flags = FIELD_REQUIRED,
	      .doc = "Value of after to continue from here."),
	FIELD(struct feed_view, topic, .doc = "Topic of the news."),
	FIELD(struct feed_view, id, .doc = "Id of the object that the news is about."),
	FIELD(struct feed_view, data, .max = FEED_DATA_MAX,
	      .doc = "Data of the news, depending on the topic."),
};
const struct field_table feed_view_table = FIELD_TABLE(struct feed_view, view_fields);

struct feed_follower {
	uv_timer_t timer; /* until it has to say that it lives, or its next turn */
	struct feed_watch watch;
	struct call *call;
	struct feed *feed;
	const struct field_strs *topics; /* of the request */
	uint64_t after;
	bool soon; /* the timer is for its next turn */
};

static void feed_say(struct feed_follower *f, const char *kind, const struct feed_news *n)
{
	char cursor[CURSOR_LENGTH + 1];

	snprintf(cursor, sizeof(cursor), "%s:%" PRIu64, feed_epoch(f->feed), f->after);
	call_send(f->call, &(struct feed_view){ .kind = str_of(kind),
						.cursor = str_of(cursor),
						.topic = n ? str_of(n->topic) : STR_NONE,
						.id = n ? n->id : STR_NONE,
						.data = { n ? n->data : STR_NONE } });
}

static void feed_free_follower(uv_handle_t *h)
{
	free(h->data);
}

static void feed_stop(void *data)
{
	struct feed_follower *f = data;
	struct call *c = f->call;

	feed_watch_remove(f->feed, &f->watch);
	uv_close((uv_handle_t *)&f->timer, feed_free_follower);
	call_answer_by(c, NULL, NULL);
}

static bool feed_wants(const struct feed_follower *f, const struct feed_news *n)
{
	bool wanted = f->topics->n == 0;

	for (size_t i = 0; i < f->topics->n; i++)
		wanted = wanted || str_is(f->topics->p[i], n->topic);
	return wanted && call_sees_owner(f->call, n->owner);
}

static void feed_on_timer(uv_timer_t *timer);

static void feed_soon(struct feed_follower *f)
{
	f->soon = true;
	uv_timer_start(&f->timer, feed_on_timer, 0, 0);
}

static void feed_send(void *data)
{
	struct feed_follower *f = data;
	const struct feed_news *n;

	f->soon = false;
	uv_timer_start(&f->timer, feed_on_timer, ALIVE_MS, 0);
	if (!call_full(f->call) && !feed_has_all_after(f->feed, f->after)) {
		f->after = feed_newest(f->feed);
		feed_say(f, "reset", NULL);
	}
	for (int i = 0; i < STEP && !call_full(f->call); i++) {
		n = feed_after(f->feed, f->after);
		if (!n)
			return;
		f->after = n->seq;
		if (feed_wants(f, n))
			feed_say(f, "news", n);
	}
	if (!call_full(f->call))
		feed_soon(f);
}

static void feed_on_timer(uv_timer_t *timer)
{
	struct feed_follower *f = timer->data;

	if (!f->soon && !call_full(f->call))
		feed_say(f, "alive", NULL);
	feed_send(f);
}

/* Inside of a change nothing is sent. */
static void feed_on_news(void *data)
{
	feed_soon(data);
}

/* The place of a cursor. One of another epoch is a number that the ring has not. */
static int feed_place_of(const struct feed *feed, struct str cursor, uint64_t *ret, struct err *e)
{
	uint64_t seq = 0;

	*ret = feed_newest(feed);
	if (!cursor.n)
		return 0;
	if (cursor.n < FEED_EPOCH + 2 || cursor.p[FEED_EPOCH] != ':')
		return err_set(e, ERR_INVALID, "query: after is no cursor of this stream");
	for (size_t i = FEED_EPOCH + 1; i < cursor.n; i++) {
		if (cursor.p[i] < '0' || cursor.p[i] > '9')
			return err_set(e, ERR_INVALID, "query: after is no cursor of this stream");
		seq = seq > UINT64_MAX / 20 ? UINT64_MAX / 20
					    : seq * 10 + (uint64_t)(cursor.p[i] - '0');
	}
	*ret = memcmp(cursor.p, feed_epoch(feed), FEED_EPOCH) == 0 ? seq : UINT64_MAX;
	return 0;
}

static void feed_run(struct call *c, const void *request)
{
	const struct feed_request *q = request;
	struct feed_follower *f = calloc(1, sizeof(*f));
	struct err e = ERR_INIT;

	if (!f)
		err_set(&e, ERR_LIMIT, "out of memory");
	if (!f || !conversation_person(c, &e) ||
	    feed_place_of(call_feed(c), q->after, &f->after, &e) < 0 || call_waits(c, &e) < 0 ||
	    call_open(c, feed_send, f, &e) < 0) {
		free(f);
		call_fail(c, &e);
		return;
	}
	f->call = c;
	f->feed = call_feed(c);
	f->topics = &q->topics;
	uv_timer_init(call_loop(c), &f->timer);
	f->timer.data = f;
	f->watch = (struct feed_watch){ .on_news = feed_on_news, .data = f };
	feed_watch_add(f->feed, &f->watch);
	call_on_cancel(c, feed_stop, f);
	if (feed_has_all_after(f->feed, f->after))
		feed_say(f, "alive", NULL); /* tells where it is */
	feed_send(f);
}

const struct op feed_follow_op = {
	.action = "feed.follow",
	.doc = "Streams news of the hub: conversations, questions and others.",
	.effect = OP_READ,
	.flags = OP_WAITS,
	.request = &request_table,
	.result = &op_nothing_table,
	.event = &feed_view_table,
	.run = feed_run,
};
