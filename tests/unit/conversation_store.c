/* Conversations on disk and their queues: what was acknowledged is there after any end. */
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agents/store/conversation_store.h"
#include "agents/store/queue.h"
#include "base/clock.h"

static char root[64], dir[96];
static unsigned lost;
static enum err_code lost_why;

static void on_lost(void *data, const char *id, const struct err *why)
{
	lost++;
	lost_why = why->code;
}

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/unit-conversations-XXXXXX");
	assert_non_null(mkdtemp(root));
	snprintf(dir, sizeof(dir), "%s/conversations", root);
	lost = 0;
	return 0;
}

static int teardown(void **state)
{
	return test_remove_folder(root);
}

static struct conversation_store *opened(void)
{
	struct err e;
	struct conversation_store *c = conversation_store_open(dir, on_lost, NULL, &e);

	if (!c)
		fail_msg("%s", e.msg);
	return c;
}

static struct conversation_folder *made(struct conversation_store *c, const char *name,
					const char *parent)
{
	const struct conversation_record r = { .owner = STR_LIT("local"),
					       .name = str_of(name),
					       .parent_session_id = str_of(parent) };
	struct err e;
	struct conversation_folder *v = conversation_store_add(c, &r, &e);

	if (!v)
		fail_msg("%s", e.msg);
	return v;
}

static char *path_of(const char *id, const char *file)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s/%s", dir, id, file);
	return path;
}

static void put(const char *path, const char *text)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* ---- records ----------------------------------------------------------------------------- */

static void test_ids(void **state)
{
	static const struct {
		const char *text;
		bool valid;
	} rows[] = {
		{ "20261126-100000-1a2b3c4d", true },  { "20261126-100000-1A2B3C4D", false },
		{ "20261126-100000-1a2b3c4", false },  { "20261126-100000-1a2b3c4d5", false },
		{ "20261126_100000-1a2b3c4d", false }, { "../../../../../../../etc", false },
		{ "2026112a-100000-1a2b3c4d", false }, { "", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(conversation_id_valid(str_of(rows[i].text)) == rows[i].valid,
			  rows[i].text);
}

static void test_a_record_is_kept(void **state)
{
	struct conversation_store *c = opened();
	struct conversation_folder *v = made(c, "first \"name\"\n\xc3\xa4", NULL);
	struct conversation_record r = *conversation_folder_record(v);
	char id[CONVERSATION_ID + 1];
	struct err e;

	snprintf(id, sizeof(id), "%s", conversation_folder_id(v));
	assert_true(conversation_id_valid(str_of(id)));
	assert_false(conversation_flag(&r.advanced_settings, CONVERSATION_FLAG_can_send_prompt));
	assert_true(conversation_flag(&r.advanced_settings, CONVERSATION_FLAG_can_prompt_user));
	r.description = STR_LIT("changed");
	r.session_id = STR_LIT("another");
	r.owner = STR_LIT("another");
	r.status = CONVERSATION_ERROR;
	r.advanced_settings.has_can_prompt_user = true;
	assert_int_equal(conversation_folder_change(v, &r, &e), 0);
	conversation_store_close(c);

	c = opened();
	assert_int_equal(conversation_store_count(c), 1);
	v = conversation_store_find(c, str_of(id));
	assert_ptr_equal(v, conversation_store_at(c, 0));
	r = *conversation_folder_record(v);
	assert_true(str_is(r.session_id, id) && str_is(r.owner, "local"));
	assert_true(str_is(r.name, "first \"name\"\n\xc3\xa4") && str_is(r.description, "changed"));
	assert_int_equal(r.status, CONVERSATION_ERROR);
	assert_false(conversation_flag(&r.advanced_settings, CONVERSATION_FLAG_can_prompt_user));
	conversation_store_close(c);
	assert_int_equal(lost, 0);
}

static void test_one_process_has_them(void **state)
{
	struct conversation_store *c = opened();
	struct err e;

	assert_null(conversation_store_open(dir, on_lost, NULL, &e));
	assert_int_equal(e.code, ERR_STORE_LOCKED);
	conversation_store_close(c);
}

static void test_others_may_not_look(void **state)
{
	struct conversation_store *c = opened();
	struct stat st;
	struct err e;
	struct conversation_folder *v = made(c, "x", NULL);

	assert_non_null(conversation_folder_events(v, &e));
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(path_of(conversation_folder_id(v), "."), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(path_of(conversation_folder_id(v), "metadata.json"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	conversation_store_close(c);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_null(conversation_store_open(dir, on_lost, NULL, &e));
	assert_int_equal(e.code, ERR_DENIED);
}

/* One that can't be read stays, and takes no other with it. */
static void test_a_spoilt_record_is_told(void **state)
{
	static const char another[] =
		"{\"session_id\":\"20261126-100000-1a2b3c4d\",\"owner\":\"a\","
		"\"created_at\":\"\",\"updated_at\":\"\"}";
	static const char *const texts[] = { "", "{", "[]", "{\"session_id\":\"x\"}", another };
	struct conversation_store *c = opened();
	char id[CONVERSATION_ID + 1];

	made(c, "good", NULL);
	snprintf(id, sizeof(id), "%s", conversation_folder_id(made(c, "spoilt", NULL)));
	conversation_store_close(c);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		put(path_of(id, "metadata.json"), texts[i]);
		lost = 0;
		c = opened();
		assert_int_equal(conversation_store_count(c), 1);
		assert_int_equal(lost, 1);
		conversation_store_close(c);
		assert_int_equal(access(path_of(id, "metadata.json"), F_OK), 0);
	}
	unlink(path_of(id, "metadata.json"));
	assert_int_equal(symlink("/etc/passwd", path_of(id, "metadata.json")), 0);
	lost = 0;
	c = opened();
	assert_true(lost == 1 && conversation_store_count(c) == 1);
	conversation_store_close(c);
}

static void test_no_child_is_lost(void **state)
{
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	struct conversation_folder *parent = made(c, "parent", NULL);
	struct conversation_folder *child = made(c, "child", conversation_folder_id(parent));
	struct conversation_record r = { .owner = STR_LIT("local"),
					 .parent_session_id = STR_LIT("20261126-100000-1a2b3c4d") };
	char ids[2][CONVERSATION_ID + 1];
	struct err e;

	snprintf(ids[0], sizeof(ids[0]), "%s", conversation_folder_id(parent));
	snprintf(ids[1], sizeof(ids[1]), "%s", conversation_folder_id(child));
	assert_null(conversation_store_add(c, &r, &e));
	assert_int_equal(e.code, ERR_CONVERSATION_NOT_FOUND);
	assert_int_equal(conversation_folder_delete(parent, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(conversation_folder_delete(child, &e), 0);
	assert_int_equal(conversation_folder_delete(parent, &e), 0);
	assert_int_equal(conversation_store_count(c), 0);

	assert_null(conversation_store_take_back(c, str_of(ids[0]), STR_LIT("key:other"), &e));
	assert_int_equal(e.code, ERR_CONVERSATION_NOT_FOUND);
	assert_non_null(conversation_store_take_back(c, str_of(ids[1]), STR_LIT("local"), &e));
	assert_int_equal(conversation_folder_delete(conversation_store_find(c, str_of(ids[1])), &e),
			 0);
	assert_non_null(conversation_store_take_back(c, str_of(ids[0]), STR_NONE, &e));
	assert_null(conversation_store_take_back(c, str_of(ids[0]), STR_NONE, &e));
	assert_int_equal(e.code, ERR_CONVERSATION_NOT_FOUND);
	assert_null(conversation_store_take_back(c, STR_LIT("../metadata.json"), STR_NONE, &e));
	assert_int_equal(conversation_store_empty_trash(c, 3600, &e), 0);
	assert_int_equal(conversation_store_empty_trash(c, 0, &e), 1);
	assert_null(conversation_store_take_back(c, str_of(ids[1]), STR_NONE, &e));
	assert_int_equal(conversation_store_count(c), 1);
}

/* More than may be open at once, by turns. */
static void test_many_logs(void **state)
{
	enum { N = 70 };
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	struct conversation_folder *all[N];
	struct err e;
	uint64_t seq;

	for (int i = 0; i < N; i++)
		all[i] = made(c, "one of many", NULL);
	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < N; i++) {
			assert_int_equal(events_append(conversation_folder_events(all[i], &e),
						       "error", STR_LIT("{}"), &seq, &e),
					 0);
			assert_int_equal(seq, round);
		}
	}
}

/* ---- the queue --------------------------------------------------------------------------- */

static struct queue *queue_of(int folder)
{
	struct err e;
	struct queue *q = queue_open(folder, &e);

	if (!q)
		fail_msg("%s", e.msg);
	return q;
}

static int add_of(struct queue *q, const char *source, const char *message, const char *key,
		  char id[QUEUE_ID + 1], size_t *position, struct err *e)
{
	const struct queue_item item = { .message = str_of(message),
					 .key = str_of(key),
					 .source = str_of(source) };

	return queue_add(q, &item, id, position, e);
}

static int add(struct queue *q, const char *message, const char *key, char id[QUEUE_ID + 1],
	       size_t *position, struct err *e)
{
	return add_of(q, "local", message, key, id, position, e);
}

static void test_the_queue_keeps_its_order(void **state)
{
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	const int folder = conversation_folder_fd(made(c, "x", NULL));
	struct queue *q = queue_of(folder);
	char ids[QUEUE_MAX][QUEUE_ID + 1], more[QUEUE_ID + 1];
	struct queue_item later = { .message = STR_LIT("later"), .source = STR_LIT("local") };
	size_t position;
	struct err e;

	for (int i = 0; i < QUEUE_MAX - 1; i++) {
		assert_int_equal(add(q, "prompt", NULL, ids[i], &position, &e), 0);
		assert_int_equal(position, i);
	}
	later.not_before_ms = 1000;
	assert_int_equal(queue_add(q, &later, ids[9], &position, &e), 0);
	assert_int_equal(add(q, "one too many", NULL, more, &position, &e), -1);
	assert_int_equal(e.code, ERR_QUEUE_FULL);
	assert_int_equal(queue_move(q, str_of(ids[9]), 0, &e), 0);
	assert_int_equal(queue_move(q, str_of(ids[8]), 1, &e), 0);
	assert_int_equal(queue_move(q, str_of(ids[0]), 99, &e), 0);
	queue_close(q);

	q = queue_of(folder);
	assert_true(str_is(queue_next(q, 2000)->id, ids[8]));
	for (int i = 0; i < QUEUE_MAX - 1; i++) {
		const struct queue_item *next = queue_next(q, 2000);
		char id[QUEUE_ID + 1];

		snprintf(id, sizeof(id), "%.*s", STR_ARG(next->id));
		assert_string_equal(id, i == 0 ? ids[8] : i == 8 ? ids[0] : ids[i]);
		assert_int_equal(queue_send(q, str_of(id), &e), 0);
		assert_null(queue_next(q, 2000));
		assert_int_equal(queue_remove(q, str_of(id), &e), -1);
		assert_int_equal(e.code, ERR_CONFLICT);
		assert_int_equal(queue_sent(q, str_of(id), &e), 0);
	}
	assert_null(queue_next(q, 999));
	assert_true(str_is(queue_next(q, 1000)->message, "later"));
	assert_int_equal(queue_remove(q, STR_LIT("q-none"), &e), -1);
	assert_int_equal(e.code, ERR_PATH_NOT_FOUND);
	queue_close(q);
}

static void test_a_key_is_sent_once(void **state)
{
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	const int folder = conversation_folder_fd(made(c, "x", NULL));
	struct queue *q = queue_of(folder);
	char first[QUEUE_ID + 1], second[QUEUE_ID + 1], key[16];
	size_t position;
	struct err e;

	assert_int_equal(add(q, "other", NULL, second, &position, &e), 0);
	assert_int_equal(add(q, "prompt", "k", first, &position, &e), 0);
	assert_int_equal(add(q, "prompt", "k", second, &position, &e), 0);
	assert_true(strcmp(first, second) == 0 && position == 1 && queue_count(q) == 2);
	assert_int_equal(queue_send(q, str_of(first), &e), 0);
	assert_int_equal(queue_sent(q, str_of(first), &e), 0);
	queue_close(q);
	q = queue_of(folder);
	assert_int_equal(add(q, "prompt", "k", second, &position, &e), 0);
	assert_true(strcmp(first, second) == 0 && queue_count(q) == 1);
	for (int i = 0; i < QUEUE_KEYS; i++) {
		snprintf(key, sizeof(key), "key%d", i);
		assert_int_equal(add(q, "prompt", key, second, &position, &e), 0);
		assert_int_equal(queue_sent(q, str_of(second), &e), 0);
	}
	assert_int_equal(add(q, "prompt", "k", second, &position, &e), 0);
	assert_string_not_equal(first, second);
	queue_close(q);
}

/* What one sender calls its prompt is nothing to another, also once it was sent. */
static void test_keys_of_another(void **state)
{
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	const int folder = conversation_folder_fd(made(c, "x", NULL));
	struct queue *q = queue_of(folder);
	char mine[QUEUE_ID + 1], other[QUEUE_ID + 1];
	size_t position;
	struct err e;

	assert_int_equal(add(q, "prompt", "k", mine, &position, &e), 0);
	assert_int_equal(add(q, "another", "k", other, &position, &e), -1);
	assert_int_equal(e.code, ERR_CONFLICT);
	assert_int_equal(add_of(q, "key:ci", "another", "k", other, &position, &e), 0);
	assert_int_equal(position, 1);
	assert_int_equal(queue_sent(q, str_of(mine), &e), 0);
	assert_int_equal(queue_sent(q, str_of(other), &e), 0);
	queue_close(q);
	q = queue_of(folder);
	assert_int_equal(add_of(q, "conversation:x", "a third", "k", other, &position, &e), 0);
	assert_int_equal(queue_count(q), 1);
	assert_int_equal(add(q, "prompt", "k", other, &position, &e), 0);
	assert_string_equal(other, mine);
	queue_close(q);
}

static void test_failures_are_seen_and_tried_again(void **state)
{
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	const int folder = conversation_folder_fd(made(c, "x", NULL));
	struct queue *q = queue_of(folder);
	char id[QUEUE_ID + 1];
	size_t position;
	struct err e;

	assert_int_equal(add(q, "prompt", NULL, id, &position, &e), 0);
	assert_int_equal(queue_send(q, str_of(id), &e), 0);
	assert_int_equal(queue_failed(q, str_of(id), STR_LIT("the agent ended"), &e), 0);
	queue_close(q);
	q = queue_of(folder);
	assert_null(queue_next(q, INT64_MAX));
	assert_true(str_is(queue_at(q, 0)->error, "the agent ended") &&
		    queue_at(q, 0)->attempts == 1);
	assert_int_equal(queue_again(q, str_of(id), &e), 0);
	assert_true(str_is(queue_next(q, 0)->id, id));
	/* A process that ends while it sends. */
	assert_int_equal(queue_send(q, str_of(id), &e), 0);
	queue_close(q);
	q = queue_of(folder);
	assert_true(str_is(queue_next(q, 0)->id, id) && queue_at(q, 0)->attempts == 2);
	queue_close(q);
}

static void test_a_spoilt_queue_is_left(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "{\"messages\":[{}]}",
					     "{\"other\":1}" };
	AUTO(conversation_store_close) struct conversation_store *c = opened();
	struct conversation_folder *v = made(c, "x", NULL);
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		put(path_of(conversation_folder_id(v), "queue.json"), texts[i]);
		assert_null(queue_open(conversation_folder_fd(v), &e));
		ROW_CHECK(e.code == ERR_STORE_CORRUPT, texts[i]);
	}
}

/* kill -9 in the middle of changes: the old list or the new one, and no acknowledged prompt is
 * missing. */
static void test_killed_writers(void **state)
{
	for (int round = 0; round < 10; round++) {
		struct conversation_store *c = opened();
		struct conversation_folder *v = made(c, "x", NULL);
		char folder[CONVERSATION_ID + 1], id[QUEUE_ID + 1], acknowledged[QUEUE_ID + 1] = "";
		int pipes[2], status;
		struct queue *q;
		pid_t pid;

		snprintf(folder, sizeof(folder), "%s", conversation_folder_id(v));
		assert_int_equal(pipe(pipes), 0);
		pid = fork();
		if (pid == 0) {
			struct err e;
			size_t position;

			q = queue_open(conversation_folder_fd(v), &e);
			while (q && add(q, "a prompt", NULL, id, &position, &e) == 0 &&
			       write(pipes[1], id, sizeof(id)) == sizeof(id) &&
			       (queue_count(q) < 5 || queue_sent(q, queue_at(q, 0)->id, &e) == 0))
				;
			_exit(1);
		}
		close(pipes[1]);
		for (int i = 0; i < 3 + round; i++)
			assert_int_equal(read(pipes[0], acknowledged, sizeof(acknowledged)),
					 sizeof(acknowledged));
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		while (read(pipes[0], id, sizeof(id)) == sizeof(id))
			memcpy(acknowledged, id, sizeof(id));
		close(pipes[0]);
		conversation_store_close(c);

		c = opened();
		q = queue_of(conversation_folder_fd(conversation_store_find(c, str_of(folder))));
		assert_true(queue_count(q) >= 1 && queue_count(q) <= 5);
		status = 0;
		for (size_t i = 0; i < queue_count(q); i++)
			status += str_is(queue_at(q, i)->id, acknowledged);
		assert_int_equal(status, 1);
		queue_close(q);
		conversation_store_close(c);
	}
	assert_int_equal(lost, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_ids),
		TEST(test_a_record_is_kept),
		TEST(test_one_process_has_them),
		TEST(test_others_may_not_look),
		TEST(test_a_spoilt_record_is_told),
		TEST(test_no_child_is_lost),
		TEST(test_many_logs),
		TEST(test_the_queue_keeps_its_order),
		TEST(test_a_key_is_sent_once),
		TEST(test_keys_of_another),
		TEST(test_failures_are_seen_and_tried_again),
		TEST(test_a_spoilt_queue_is_left),
		TEST(test_killed_writers),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
