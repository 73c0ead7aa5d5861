/* Pause and resume: what runs stands still and goes on as it was, and a paused sandbox can be
 * forked and ended. The fixture looks for leftovers after every test. */
#include "engine.h"

#include <signal.h>

static void on_done(void *arg, struct sandbox *sb, const struct err *err)
{
	struct err *e = arg;

	if (err)
		*e = *err;
	else
		err_set(e, ERR_NONE, "done");
}

static struct err turned(struct sandbox *sb, bool pause)
{
	struct err e = ERR_INIT;

	if (pause)
		sandbox_pause_start(sb, on_done, &e);
	else
		sandbox_resume_start(sb, on_done, &e);
	assert_true(e.msg[0] == '\0');
	for (int i = 0; i < 3000 && e.msg[0] == '\0'; i++)
		wait_ms(10);
	assert_true(e.msg[0] != '\0');
	return e;
}

static void turn(struct sandbox *sb, bool pause)
{
	struct err e = turned(sb, pause);

	if (e.code)
		fail_msg("%s: %s", pause ? "pause" : "resume", e.msg);
	assert_int_equal(sandbox_paused(sb), pause);
}

/* What a program said until nothing more came. */
static size_t said(const struct ran *r)
{
	size_t n = r->out.n + 1;

	while (n != r->out.n) {
		n = r->out.n;
		wait_ms(60);
	}
	return n;
}

static struct ran *ticker(struct sandbox *sb)
{
	struct ran *r = ran_shell(sb, "while echo tick; do sleep 0.01; done");

	for (int i = 0; i < 3000 && r->out.n == 0; i++)
		wait_ms(10);
	assert_true(r->out.n > 0);
	return r;
}

static void test_stands_still(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ticker(sb);
	size_t n;

	turn(sb, true);
	n = said(r);
	wait_ms(200);
	assert_int_equal(r->out.n, n);
	turn(sb, false);
	for (int i = 0; i < 3000 && r->out.n == n; i++)
		wait_ms(10);
	assert_true(r->out.n > n);
	assert_false(r->done);
	assert_string_equal(sh(sb, "echo well"), "well");
	exec_kill(r->x);
	ran_wait(r);
}

static void test_refuses(void **state)
{
	struct err e = ERR_INIT;
	struct exec_events none = { 0 };
	struct sandbox *sb = make(NULL);
	const struct exec_spec spec = { .shell = STR_LIT("true") };

	put(sb, "/tmp/f", "x");
	turn(sb, true);
	assert_null(exec_start(sb, &spec, &none, NULL, &e));
	assert_int_equal(e.code, ERR_PAUSED);
	assert_int_equal(filed_code(stat_start(sb, "/tmp/f")), ERR_PAUSED);
	assert_int_equal(filed_code(put_start(sb, "/tmp/g", STR_LIT("y"), NULL)), ERR_PAUSED);
	assert_int_equal(turned(sb, true).code, ERR_CONFLICT);
	turn(sb, false);
	assert_int_equal(turned(sb, false).code, ERR_CONFLICT);
	assert_string_equal(get(sb, "/tmp/f"), "x");
	destroy(sb);
	assert_int_equal(turned(sb, true).code, ERR_SANDBOX_NOT_FOUND);
}

static void test_forks(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ticker(sb);
	struct forked *f;
	size_t n;

	put(sb, "/workspace/f", "as it was");
	turn(sb, true);
	n = said(r);
	f = fork_of(sb, 2);
	for (size_t i = 0; i < f->n; i++) {
		assert_false(sandbox_paused(f->children[i]));
		assert_string_equal(sh(f->children[i], "cat f"), "as it was");
	}
	assert_true(sandbox_paused(sb));
	assert_int_equal(said(r), n);
	turn(sb, false);
	for (int i = 0; i < 3000 && r->out.n == n; i++)
		wait_ms(10);
	assert_true(r->out.n > n);
	exec_kill(r->x);
	ran_wait(r);
}

/* Also one in which nothing runs, whose layer a fork freezes in place otherwise. */
static void test_forks_idle(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;

	put(sb, "/workspace/f", "as it was");
	turn(sb, true);
	f = fork_of(sb, 1);
	assert_string_equal(sh(f->children[0], "cat f"), "as it was");
	turn(sb, false);
	assert_string_equal(sh(sb, "cat f"), "as it was");
}

static void test_while_forking(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ticker(sb);
	struct forked *f = fork_start(sb, 1);

	assert_int_equal(turned(sb, true).code, ERR_CONFLICT);
	wait_for(&f->done, "the fork");
	assert_int_equal(f->err.code, 0);
	turn(sb, true);
	turn(sb, false);
	exec_kill(r->x);
	ran_wait(r);
}

static void test_ends(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ticker(sb);

	turn(sb, true);
	destroy(sb);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_CANCELLED);
}

static void test_killed_warden(void **state)
{
	struct sandbox *sb = make(NULL);

	ticker(sb);
	turn(sb, true);
	kill(warden_pid(), SIGKILL);
	for (int i = 0; i < 3000 && sandbox_live(sb); i++)
		wait_ms(10);
	assert_false(sandbox_live(sb));
}

/* The time of a program's own timeout stands still, too. */
static void test_timeouts(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec spec = { .shell = STR_LIT("sleep 30"), .timeout_ms = 4000 };
	struct ran *r = ran_start(sb, &spec);

	turn(sb, true);
	wait_ms(4500);
	assert_false(r->done);
	turn(sb, false);
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* A program that is killed while it stands still ends when it goes on; nobody takes the silence for
 * a broken sandbox. */
static void test_kills(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ticker(sb);

	turn(sb, true);
	exec_kill(r->x);
	wait_ms(100);
	assert_false(r->done);
	turn(sb, false);
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_SIGNALED);
	assert_string_equal(sh(sb, "echo well"), "well");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_stands_still),	 engine_test(test_refuses),
		engine_test(test_forks),	 engine_test(test_forks_idle),
		engine_test(test_while_forking), engine_test(test_ends),
		engine_test(test_killed_warden), engine_test(test_timeouts),
		engine_test(test_kills),
	};

	return ENGINE_MAIN(argc, argv, "pause", tests);
}
