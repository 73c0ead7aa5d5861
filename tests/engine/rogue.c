/* The hub against a first process that lies: see rogue_init.c. Each lie is an error or nonsense for
 * who asked, and no more. */
#include "engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static void test_files(void **state)
{
	static const char *const lies[] = { "no-fd",	  "many-fds",	 "pipe",       "device",
					    "directory",  "path-only",	 "twice",      "huge-size",
					    "odd-stat",	  "odd-errno",	 "some-bytes", "more-bytes",
					    "most-bytes", "bytes-and-fd" };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct filed *r = filed(get_start(sb, lies[i], 0, 100));

		/* bytes that it made up are its right */
		ROW_CHECK(r->err.code || r->bytes.n <= 100, lies[i]);
		filed(put_start(sb, lies[i], STR_LIT("x"), NULL));
		filed(stat_start(sb, lies[i]));
		filed(mkdir_start(sb, lies[i], true));
		filed(remove_start(sb, lies[i], true));
		filed(move_start(sb, lies[i], "x"));
	}
	assert_true(sandbox_live(sb));
}

static void test_specials_are_not_read(void **state)
{
	static const char *const lies[] = { "no-fd", "pipe", "device", "directory", "path-only" };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		ROW_CHECK(filed_code(get_start(sb, lies[i], 0, 100)) != 0, lies[i]);
		if (strcmp(lies[i], "no-fd") != 0) /* to say that it has written is its right */
			ROW_CHECK(filed_code(put_start(sb, lies[i], STR_LIT("x"), NULL)) != 0,
				  lies[i]);
	}
}

/* Not one byte more than was wanted is taken, though the message has room. */
static void test_bytes_are_bounded(void **state)
{
	static const struct {
		const char *lie;
		size_t n;
		enum err_code code;
	} rows[] = { { "some-bytes", 100 },
		     { "more-bytes", 0, ERR_GUEST },
		     { "most-bytes", 0, ERR_GUEST },
		     { "bytes-and-fd", 100 },
		     { "bytes-and-pipe", 0, ERR_INVALID },
		     { "no-fd", 0, ERR_GUEST } };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct filed *f = filed(get_start(sb, rows[i].lie, 0, 100));

		ROW_CHECK(f->err.code == rows[i].code && f->bytes.n == rows[i].n, rows[i].lie);
	}
	assert_true(sandbox_live(sb));
}

static void test_lists(void **state)
{
	static const char *const lies[] = { "count", "full", "cut", "length" };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct filed *f = filed(list_start(sb, lies[i]));

		ROW_CHECK(f->n <= FILE_LIST_MAX, lies[i]);
	}
}

struct seen {
	bool done;
	size_t n, sum;
	struct err err;
};

static void on_processes(void *arg, const struct process *p, size_t n, bool truncated,
			 const struct err *err)
{
	struct seen *s = arg;

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < p[i].command.n; k++)
			s->sum += (unsigned char)p[i].command.p[k]; /* all of it is there */
	}
	s->n = n;
	s->err = err ? *err : (struct err)ERR_INIT;
	s->done = true;
}

static void test_processes(void **state)
{
	static const size_t told[] = { 0, 0, 0, 0, PROCESS_LIST_MAX, 0 };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct seen s = { .done = false };

		process_list_start(sb, on_processes, &s);
		wait_for(&s.done, "the processes");
		assert_int_equal(s.n, told[i]);
		assert_int_equal(s.err.code != ERR_NONE, i == 3 || i == 5);
	}
	assert_false(sandbox_live(sb));
}

/* Only a directory of the kernel's terminals is opened; the last lie is no answer at all. */
static void test_terminals(void **state)
{
	static const struct exec_terminal t = { .columns = 80, .rows = 24 };
	const struct exec_spec x = { .shell = STR_LIT("plain"), .terminal = &t };
	struct sandbox *sb = make(NULL);

	for (int i = 0; i < 5; i++) {
		assert_true(sandbox_live(sb));
		assert_int_equal(ran_until(sb, &x)->err.code, ERR_GUEST);
	}
	assert_false(sandbox_live(sb));
}

static void test_descriptors_do_not_pile_up(void **state)
{
	static const char *const lies[] = { "many-fds", "pipe", "huge-size", "odd-stat", "no-fd" };
	struct sandbox *sb = make(NULL);
	size_t ours;

	filed(stat_start(sb, "no-fd"));
	filed(get_start(sb, "huge-size", 0, 1));
	ours = fds_of(getpid());
	for (int i = 0; i < 50; i++) {
		for (size_t k = 0; k < ARRAY_LEN(lies); k++) {
			filed(stat_start(sb, lies[k]));
			filed(get_start(sb, lies[k], 0, 1));
			filed(mkdir_start(sb, lies[k], false));
		}
	}
	assert_fds(getpid(), ours);
}

static struct ran *ask(struct sandbox *sb, const char *lie, uint64_t timeout_ms)
{
	const struct str argv[] = { str_of(lie) };
	const struct exec_spec x = { .argv = argv, .n_argv = 1, .timeout_ms = timeout_ms };

	return ran_until(sb, &x);
}

static void test_programs(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_int_equal(ask(sb, "plain", 0)->result.exit_code, 0);
	assert_int_not_equal(ask(sb, "odd", 0)->err.code, 0);
	ask(sb, "status", 0);
	ask(sb, "stranger", 0);
	assert_int_equal(ask(sb, "plain", 0)->result.exit_code, 0);
}

/* What no init of ours says ends the sandbox, and only this one. */
static void test_nonsense(void **state)
{
	static const char *const lies[] = { "unknown", "byte" };
	struct sandbox *other = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct sandbox *sb = make(NULL);

		ROW_CHECK(ask(sb, lies[i], 0)->err.code == ERR_GUEST, lies[i]);
		assert_false(sandbox_live(sb));
	}
	filed(get_start(other, "short", 0, 1));
	assert_false(sandbox_live(other));
}

/* Nobody has asked whether it may sleep: it does not, whether that is ever to be or later. */
static void test_unasked(void **state)
{
	static const uint64_t after_ms[] = { 0, 60000 };
	struct box_stats s;

	for (size_t i = 0; i < ARRAY_LEN(after_ms); i++) {
		struct sandbox *sb;

		engine_stop();
		engine_start(&(struct box_config){ .sleep_after_ms = after_ms[i] });
		sb = make(NULL);
		ask(sb, "quiet", 0);
		wait_ms(50);
		ask(sb, "plain", 0);
		box_stats(box, &s);
		assert_int_equal(s.asleep, 0);
		assert_true(sandbox_live(sb));
	}
}

static void test_silence(void **state)
{
	struct sandbox *sb = make(NULL);
	struct filed *f = get_start(sb, "silence", 0, 1);
	struct ran *r = ask(sb, "silence", 100);

	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_false(sandbox_live(sb)); /* it can't be trusted any more */
	assert_int_not_equal(filed_code(f), 0);
}

/* It may talk without end, and others are served all the same. */
static void test_flood(void **state)
{
	struct sandbox *sb = make(NULL), *other = make(NULL);

	ask(sb, "flood", 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ask(other, "plain", 0)->result.exit_code, 0);
	destroy(sb);
}

static void test_fork(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f = fork_start(sb, 2);

	wait_for(&f->done, "the answer to a fork");
	f = fork_start(sb, 2);
	wait_for(&f->done, "the answer to a fork");
}

/* It answers often, and there are no more children for that: the rest of the room is free. */
static void test_forks_are_counted(void **state)
{
	struct forked *f;

	engine_stop();
	engine_start(&(struct box_config){ .max_sandboxes = 10 });
	f = fork_start(make(NULL), 2);
	wait_for(&f->done, "the answer to a fork");
	for (int i = 0; i < 5; i++)
		assert_non_null(make(NULL));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_files),
		engine_test(test_specials_are_not_read),
		engine_test(test_bytes_are_bounded),
		engine_test(test_lists),
		engine_test(test_processes),
		engine_test(test_terminals),
		engine_test(test_descriptors_do_not_pile_up),
		engine_test(test_programs),
		engine_test(test_nonsense),
		engine_test(test_silence),
		engine_test(test_flood),
		engine_test(test_fork),
		engine_test(test_forks_are_counted),
		engine_test(test_unasked),
	};

	return ENGINE_MAIN(argc, argv, "rogue", tests);
}
