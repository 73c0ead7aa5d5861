/* Conversations of a running hub: turns and queues with a driver that the test plays. */
#include "test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/conversation/conversation.h"
#include "agents/conversation/feed.h"

static char root[64], dir[96];
static uv_loop_t loop;
static struct feed *feed;
static struct conversations *all;

/* What the driver was asked for. */
static struct {
	unsigned starts, cancels, closes, refuse;
	char message[64];
	uint32_t attempt;
	const char *mode; /* that the record gets at the end; NULL: none */
} asked;

static int driver_start(void *data, struct conversation *t, const struct conversation_prompt *p,
			struct err *e)
{
	asked.starts++;
	asked.attempt = p->attempt;
	snprintf(asked.message, sizeof(asked.message), "%.*s", STR_ARG(p->message));
	if (asked.refuse) {
		asked.refuse--;
		return err_set(e, ERR_GUEST, "the agent does not start");
	}
	return 0;
}

static void driver_cancel(void *data, struct conversation *t)
{
	asked.cancels++;
	conversation_turn_end(t, "cancelled");
}

static void driver_close(void *data, struct conversation *t)
{
	struct conversation_record r = *conversation_record(t);
	struct err e;

	asked.closes++;
	if (!asked.mode)
		return;
	r.current_mode_id = str_of(asked.mode);
	assert_int_equal(conversation_change(t, &r, &e), 0);
}

static const struct conversation_driver driver = { driver_start, driver_cancel, driver_close };

static void turn_loop(void)
{
	for (int i = 0; i < 4; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
}

static void open_all(void)
{
	struct err e;

	all = conversations_open(&loop, dir, &(struct conversations_options){ .feed = feed }, &e);
	if (!all)
		fail_msg("%s", e.msg);
	memset(&asked, 0, sizeof(asked));
}

static void close_all(void)
{
	conversations_close(take_ptr(all));
	turn_loop();
}

static int setup(void **state)
{
	struct err e;

	snprintf(root, sizeof(root), "/tmp/unit-talks-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s/conversations", root);
	assert_int_equal(uv_loop_init(&loop), 0);
	feed = feed_new(&e);
	open_all();
	return feed == NULL;
}

static int teardown(void **state)
{
	if (all)
		close_all();
	feed_free(take_ptr(feed));
	assert_int_equal(test_remove_folder(root), 0);
	return uv_loop_close(&loop);
}

static struct conversation *made(const char *agent, const struct conversation *parent)
{
	struct conversation_record r = { .owner = STR_LIT("local"), .agent = str_of(agent) };
	struct err e;
	struct conversation *t;

	r.parent_session_id = parent ? str_of(conversation_id(parent)) : STR_NONE;
	t = conversation_new(all, &r, &e);
	if (!t)
		fail_msg("%s", e.msg);
	return t;
}

static void sends(struct conversation *t, const char *message)
{
	const struct queue_item item = { .message = str_of(message), .source = STR_LIT("local") };
	char id[QUEUE_ID + 1];
	size_t position;
	struct err e;

	if (conversation_send(t, &item, id, &position, &e) < 0)
		fail_msg("%s", e.msg);
	turn_loop();
}

static void drive(const struct conversation_driver *d)
{
	struct err e;

	assert_int_equal(conversations_drive(all, STR_LIT("mock"), d, NULL, &e), 0);
	turn_loop();
}

static void collect(void *owner, uint64_t seq, struct str line)
{
	struct buf *b = owner;
	struct err e;
	const char *type = memmem(line.p, line.n, "\"type\":\"", 8);

	assert_non_null(type);
	type += 8;
	assert_int_equal(buf_addf(b, &e, "%.*s ", (int)strcspn(type, "\""), type), 0);
}

static void assert_events(struct conversation *t, const char *types)
{
	struct events_range range = { .limit = EVENTS_PAGE_MAX };
	autobuf struct buf b = BUF_INIT(4096);
	struct events_page page;
	struct err e;
	struct events *v = conversation_events(t, &e);

	assert_non_null(v);
	assert_int_equal(events_read(v, &range, collect, &b, &page, &e), 0);
	assert_string_equal(b.p, types);
}

/* The type of the last event; of a static room. */
static const char *last_type(struct conversation *t)
{
	const struct events_range range = { .limit = 1, .newest = true };
	static char room[EVENTS_TYPE_MAX + 2];
	struct buf b = BUF_INIT(sizeof(room));
	struct events_page page;
	struct err e;
	struct events *v = conversation_events(t, &e);

	assert_non_null(v);
	assert_int_equal(events_read(v, &range, collect, &b, &page, &e), 0);
	snprintf(room, sizeof(room), "%.*s", (int)b.n - 1, b.p);
	buf_fini(&b);
	return room;
}

static size_t waiting(struct conversation *t)
{
	struct err e;

	return queue_count(conversation_queue(t, &e));
}

static void test_turns(void **state)
{
	struct conversation *t = made("mock", NULL);
	struct err e;

	sends(t, "one");
	sends(t, "two");
	assert_int_equal(conversation_state(t), CONVERSATION_NO_AGENT);
	drive(&driver);
	assert_int_equal(asked.starts, 1);
	assert_string_equal(asked.message, "one");
	assert_int_equal(conversation_state(t), CONVERSATION_RUNNING);
	assert_int_equal(waiting(t), 2); /* until the agent has it */
	assert_int_equal(conversation_turn_begin(t, &e), 0);
	assert_int_equal(waiting(t), 1);
	conversation_waits(t, true);
	assert_int_equal(conversation_state(t), CONVERSATION_REQUIRES_ACTION);
	conversation_waits(t, false);
	conversation_stalled(t, true);
	assert_int_equal(conversation_state(t), CONVERSATION_STALLED);
	conversation_turn_end(t, "end_turn");
	turn_loop();
	assert_int_equal(asked.starts, 2);
	assert_int_equal(conversation_turn_begin(t, &e), 0);
	assert_true(conversation_cancel(t));
	assert_int_equal(conversation_state(t), CONVERSATION_IDLE);
	assert_false(conversation_cancel(t));
	assert_events(t, "session_start user_prompt stop user_prompt stop ");
}

/* A prompt that no agent has taken stays, and a person may send it again. */
static void test_refused(void **state)
{
	struct conversation *t = made("mock", NULL);
	const struct queue_item *item;
	struct err e;

	drive(&driver);
	asked.refuse = 1;
	sends(t, "one");
	item = queue_at(conversation_queue(t, &e), 0);
	assert_non_null(item);
	assert_int_equal(item->state, QUEUE_FAILED);
	assert_events(t, "session_start error ");
	assert_int_equal(conversation_queue_again(t, item->id, &e), 0);
	turn_loop();
	assert_int_equal(asked.starts, 2);
	assert_int_equal(asked.attempt, 2);
	assert_int_equal(conversation_turn_begin(t, &e), 0);
	conversation_failed(t, &(struct err){ .code = ERR_GUEST, .msg = "it died" });
	assert_events(t, "session_start error user_prompt error stop ");
}

/* What an end of the hub leaves: a prompt that was being sent waits, a turn is interrupted. */
static void test_restart(void **state)
{
	struct conversation *sending = made("mock", NULL), *running = made("mock", NULL);
	char ids[2][CONVERSATION_ID + 1];
	struct err e;

	memcpy(ids[0], conversation_id(sending), sizeof(ids[0]));
	memcpy(ids[1], conversation_id(running), sizeof(ids[1]));
	drive(&driver);
	sends(sending, "one");
	sends(running, "two");
	assert_int_equal(conversation_turn_begin(running, &e), 0);
	close_all();
	open_all();
	assert_int_equal(waiting(conversations_find(all, str_of(ids[0]))), 1);
	assert_events(conversations_find(all, str_of(ids[1])), "session_start user_prompt stop ");
	drive(&driver);
	assert_int_equal(asked.starts, 1);
	assert_string_equal(asked.message, "one");
}

/* The log of a hub that was killed in a turn: a long one is a turn, too. */
static void test_restart_in_a_long_turn(void **state)
{
	struct conversation *t = made("mock", NULL);
	char id[CONVERSATION_ID + 1];
	struct err e;

	memcpy(id, conversation_id(t), sizeof(id));
	assert_int_equal(conversation_append(t, "user_prompt", STR_LIT("{}"), NULL, &e), 0);
	for (int i = 0; i < 2 * EVENTS_PAGE_MAX + 7; i++)
		assert_int_equal(conversation_append(t, "tool_call", STR_LIT("{}"), NULL, &e), 0);
	close_all();
	open_all();
	t = conversations_find(all, str_of(id));
	assert_string_equal(last_type(t), "stop");
	assert_int_equal(conversation_append(t, "tool_call", STR_LIT("{}"), NULL, &e), 0);
	close_all();
	open_all();
	assert_string_equal(last_type(conversations_find(all, str_of(id))), "tool_call");
}

/* The record is not what a turn needs: the prompt is in no queue any more. */
static void test_a_record_that_cannot_be_written(void **state)
{
	struct conversation *t = made("mock", NULL);
	char path[256];
	struct err e;

	drive(&driver);
	sends(t, "one");
	snprintf(path, sizeof(path), "%s/%s/.new-metadata.json", dir, conversation_id(t));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(conversation_turn_begin(t, &e), 0);
	conversation_turn_end(t, "end_turn");
	assert_events(t, "session_start user_prompt stop ");
	assert_int_equal(rmdir(path), 0);
}

/* What could not be written is missing, and the log says where. */
static void test_events_that_cannot_be_written(void **state)
{
	struct conversation *t = made("mock", NULL);
	struct rlimit was, none;
	uint64_t seq;
	struct err e;

	assert_int_equal(conversation_append(t, "tool_call", STR_LIT("{}"), &seq, &e), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	none = (struct rlimit){ 1, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(conversation_append(t, "agent_message", STR_LIT("{}"), NULL, &e),
				 -1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_events(t, "session_start tool_call ");
	assert_int_equal(conversation_append(t, "plan", STR_LIT("{}"), NULL, &e), 0);
	assert_int_equal(conversation_append(t, "plan", STR_LIT("{}"), NULL, &e), 0);
	assert_events(t, "session_start tool_call error plan plan ");
}

static void test_archive(void **state)
{
	struct conversation *t = made("mock", NULL);
	const struct queue_item item = { .message = STR_LIT("x"), .source = STR_LIT("local") };
	char id[QUEUE_ID + 1];
	size_t position;
	struct err e;

	drive(&driver);
	sends(t, "one");
	assert_int_equal(conversation_archive(t, true, CONVERSATION_BY_PERSON, &e), 0);
	assert_int_equal(asked.closes, 1);
	assert_int_equal(waiting(t), 1);
	assert_int_equal(conversation_send(t, &item, id, &position, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	turn_loop();
	assert_int_equal(asked.starts, 1);
	assert_int_equal(conversation_archive(t, false, 0, &e), 0);
	turn_loop();
	assert_int_equal(asked.starts, 2);
}

/* Its agent ends with the key, and changes the record at its end. */
static void test_archive_by_key(void **state)
{
	struct conversation *t = made("mock", NULL);
	struct conversation_record r = *conversation_record(t);
	struct err e;

	r.name = STR_LIT("a name");
	r.description = STR_LIT("a description");
	assert_int_equal(conversation_change(t, &r, &e), 0);
	drive(&driver);
	sends(t, "one");
	asked.mode = "code";
	assert_int_equal(conversation_archive(t, true, CONVERSATION_BY_KEY, &e), 0);
	assert_int_equal(asked.closes, 1);
	r = *conversation_record(t);
	assert_true(r.archived && r.archived_reason == CONVERSATION_BY_KEY);
	assert_true(str_is(r.name, "a name") && str_is(r.description, "a description"));
	assert_true(str_is(r.agent, "mock") && str_is(r.current_mode_id, "code"));
}

/* A hub that ends begins no turn, and one that fails before its agent has the prompt was none. */
static void test_drain(void **state)
{
	struct conversation *starts = made("mock", NULL), *runs = made("mock", NULL),
			    *rests = made("mock", NULL);
	struct err e;

	drive(&driver);
	sends(starts, "one");
	sends(runs, "two");
	assert_int_equal(conversation_turn_begin(runs, &e), 0);
	conversations_drain(all);
	sends(rests, "three");
	conversation_failed(starts, &(struct err){ .code = ERR_CANCELLED, .msg = "the hub ends" });
	assert_int_equal(conversation_append(runs, "plan", STR_LIT("{}"), NULL, &e), 0);
	conversation_turn_end(runs, "end_turn");
	turn_loop();
	assert_int_equal(asked.starts, 2);
	assert_int_equal(asked.closes, 0);
	assert_int_equal(queue_at(conversation_queue(starts, &e), 0)->state, QUEUE_QUEUED);
	assert_events(starts, "session_start ");
	assert_events(runs, "session_start user_prompt plan stop ");
	close_all();
	open_all();
	drive(&driver);
	assert_int_equal(asked.starts, 2);
}

static void test_tokens(void **state)
{
	struct conversation *t = made("mock", NULL);
	struct err e;
	AUTO(secret_free) struct secret *first = conversation_token(t, &e);
	AUTO(secret_free) struct secret *second = conversation_token(t, &e);

	assert_non_null(first);
	assert_null(conversations_by_token(all, secret_expose(first, "test")));
	assert_ptr_equal(conversations_by_token(all, secret_expose(second, "test")), t);
	assert_null(conversations_by_token(all, STR_LIT("holt_conv_")));
	assert_int_equal(conversation_archive(t, true, CONVERSATION_BY_PERSON, &e), 0);
	assert_null(conversations_by_token(all, secret_expose(second, "test")));
}

static void on_gone(void *data)
{
	++*(unsigned *)data;
}

static void test_delete(void **state)
{
	struct conversation *t = made("mock", NULL), *child = made("mock", t);
	char id[CONVERSATION_ID + 1];
	unsigned gone = 0;
	struct conversation_watch w = { .on_gone = on_gone, .data = &gone };
	struct err e;

	memcpy(id, conversation_id(t), sizeof(id));
	assert_int_equal(conversation_delete(t, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(conversation_delete(child, &e), 0);
	conversation_watch_add(t, &w);
	assert_int_equal(conversation_delete(t, &e), 0);
	assert_int_equal(gone, 1);
	assert_null(conversations_find(all, str_of(id)));
	t = conversation_take_back(all, str_of(id), STR_NONE, &e);
	assert_non_null(t);
	assert_ptr_equal(conversations_find(all, str_of(id)), t);
	assert_events(t, "session_start ");
}

static void test_feed(void **state)
{
	uint64_t before = feed_newest(feed);
	const struct feed_news *n;
	struct conversation *t = made("mock", NULL);

	n = feed_after(feed, before);
	assert_non_null(n);
	assert_string_equal(n->topic, "conversation");
	assert_true(str_is(n->id, conversation_id(t)));
	assert_true(feed_has_all_after(feed, before));
	for (int i = 0; i <= FEED_MAX; i++)
		conversation_live(t, "agent_message", STR_LIT("{\"text\":\"x\"}"));
	assert_false(feed_has_all_after(feed, before));
	assert_false(feed_has_all_after(feed, feed_newest(feed) + 1));
	assert_true(feed_has_all_after(feed, feed_newest(feed)));
	assert_null(feed_after(feed, feed_newest(feed)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart_in_a_long_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_record_that_cannot_be_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_events_that_cannot_be_written, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_archive, setup, teardown),
		cmocka_unit_test_setup_teardown(test_archive_by_key, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tokens, setup, teardown),
		cmocka_unit_test_setup_teardown(test_delete, setup, teardown),
		cmocka_unit_test_setup_teardown(test_feed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
