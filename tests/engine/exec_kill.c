/* Programs that are ended: by their timeout, by a signal, by exec_kill; and what they leave. */
#include "engine.h"

#include <signal.h>
#include <unistd.h>

#include "base/clock.h"

static struct ran *run_for(struct sandbox *sb, const char *line, uint64_t ms)
{
	const struct exec_spec x = { .shell = str_of(line), .timeout_ms = ms };

	return ran_until(sb, &x);
}

/* Whether the sandbox has no process of that name, or soon has none: on a busy machine a killed
 * process ends some moments after the program. Those of the tests would end by themselves, but
 * later. */
static bool none_left(struct sandbox *sb, const char *name)
{
	char line[96];

	snprintf(line, sizeof(line),
		 "timeout 20 sh -c 'until pgrep -x %s; [ $? = 1 ]; do sleep 0.02; done'", name);
	return sh_code(sb, line) == 0;
}

static void assert_timed_out(const struct ran *r, uint64_t ms)
{
	assert_int_equal(r->err.code, 0);
	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_int_equal(r->result.exit_code, 124);
	assert_in_range(r->result.wall_us, ms * 1000, (ms + 20000) * 1000);
}

static void test_timeout(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	usleep(100000); /* so that the time which the loop has kept is old */
	r = run_for(sb, "echo before; sleep 30; echo after", 3000);
	assert_timed_out(r, 3000);
	assert_string_equal(buf_str(&r->out).p, "before\n");
	assert_true(none_left(sb, "sleep"));
	assert_true(sandbox_live(sb));
}

/* What a program may do to get away from its timeout. Each leaves processes named sleep. */
static void test_timeout_trees(void **state)
{
	const char *const rows[] = {
		"sleep 30 & sleep 30 & wait",
		"setsid sleep 30 & sleep 30",
		"setsid -w setsid -w setsid -w sleep 30",
		"(setsid sh -c 'sleep 30 & sleep 30' &); sleep 30", /* a double fork */
		"sh -c 'setsid sh -c \"sleep 30 & sleep 30 &\" &'; sleep 30",
		"nohup sleep 30 >/dev/null 2>&1 & trap '' TERM INT HUP; wait; sleep 30",
		"for i in 1 2 3 4 5 6 7 8 9; do (sleep 30; sleep 30) & done; wait",
		"sleep 30 | sleep 30 | sleep 30",
		"kill -STOP $$; sleep 30",
		"sleep 30 & kill -STOP $!; wait",
	};
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ran *r = run_for(sb, rows[i], 300);

		ROW_CHECK(r->result.end == EXEC_TIMED_OUT, rows[i]);
		ROW_CHECK(none_left(sb, "sleep"), rows[i]);
	}
}

/* Others in the same sandbox are not touched by it. */
static void test_timeout_spares_others(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *other = ran_shell(sb, "sleep 1; echo well");
	struct ran *r;

	sh(sb, "sleep 33 >/dev/null 2>&1 & until pgrep -f '^sleep 33' >/dev/null; do :; done");
	r = run_for(sb, "setsid sleep 31 & sleep 32", 200);
	assert_timed_out(r, 200);
	sh(sb, "while pgrep -f '^sleep 3[12]'; do sleep 0.02; done");
	assert_string_equal(sh(sb, "pgrep -f '^sleep 3' | wc -l"), "1");
	ran_wait(other);
	assert_string_equal(buf_str(&other->out).p, "well\n");
}

/* A tree that forks without pause is ended too. */
static void test_timeout_of_a_bomb(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = run_for(sb, "f() { f | f & }; f; sleep 30", 300);

	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_true(r->result.wall_us < 20 * 1000000); /* long before it would end by itself */
	if (sandbox_live(sb))
		assert_true(none_left(sb, "sleep"));
}

/* A chain in which each process forks the next and exits: always new pids. */
static void test_timeout_of_a_runner(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	put(sb, "run.py",
	    "import os, time\n"
	    "while True:\n"
	    "    if os.fork(): os._exit(0)\n"
	    "    os.setsid()\n");
	if (!has_python(sb))
		return;
	r = run_for(sb, "python3 run.py & sleep 30", 500);
	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_true(r->result.wall_us < 20 * 1000000);
	if (sandbox_live(sb))
		assert_true(none_left(sb, "python3"));
}

/* A leader that gives up being a subreaper would lose its orphans to PID 1. */
static void test_timeout_without_subreaper(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	put(sb, "away.py",
	    "import ctypes, os, time\n"
	    "ctypes.CDLL(None).prctl(36, 0, 0, 0, 0)\n"
	    "if os.fork() == 0:\n"
	    "    if os.fork(): os._exit(0)\n"
	    "    os.setsid()\n"
	    "    os.execvp('sleep', ['sleep', '30'])\n"
	    "time.sleep(30)\n");
	if (!has_python(sb))
		return;
	r = run_for(sb, "exec python3 away.py", 700);
	assert_timed_out(r, 700);
	assert_true(none_left(sb, "sleep"));
}

static void test_many_timeouts(void **state)
{
	const struct exec_spec x = { .shell = STR_LIT("sleep 30 & setsid sleep 30"),
				     .timeout_ms = 300 };
	struct sandbox *sb = make(NULL);
	struct ran *r[50];

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		r[i] = ran_start(sb, &x);
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		ran_wait(r[i]);
		assert_int_equal(r[i]->result.end, EXEC_TIMED_OUT);
	}
	assert_true(sandbox_live(sb));
	assert_true(none_left(sb, "sleep"));
}

/* A timeout that comes while the sandbox is being forked, which takes longer than the grace that
 * init has to kill, costs the program only. */
static void test_timeout_during_a_fork(void **state)
{
	const struct sandbox_spec spec = { .limits = { .memory = 2048 * MIB, .disk = 1024 * MIB } };
	const struct exec_spec x = { .shell = STR_LIT("sleep 30"), .timeout_ms = 300 };
	struct sandbox *sb = make(&spec);
	struct forked *f;
	struct ran *r;

	sh(sb, "mkdir many; cd many; seq 60000 | xargs touch; head -c 600000000 /dev/zero > big");
	r = ran_start(sb, &x);
	wait_ms(100);
	f = fork_start(sb, 1);
	wait_for(&f->done, "the fork");
	ran_wait(r);
	assert_int_equal(f->err.code, 0);
	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_true(sandbox_live(sb));
	assert_true(none_left(sb, "sleep"));
}

/* ---- signals --------------------------------------------------------------------------------- */

static void test_exit_codes(void **state)
{
	const int codes[] = { 0, 1, 2, 42, 124, 126, 127, 128, 137, 255 };
	struct sandbox *sb = make(NULL);
	char line[32];

	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		struct ran *r;

		snprintf(line, sizeof(line), "exit %d", codes[i]);
		r = run_for(sb, line, 0);
		assert_int_equal(r->result.end, EXEC_EXITED);
		assert_int_equal(r->result.exit_code, codes[i]);
		assert_int_equal(r->result.signal, 0);
	}
}

static void test_own_signals(void **state)
{
	const int signals[] = {
		SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGPIPE, SIGUSR1, SIGRTMIN + 3
	};
	struct sandbox *sb = make(NULL);
	char line[32];

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct ran *r;

		snprintf(line, sizeof(line), "kill -%d $$; sleep 1", signals[i]);
		r = run_for(sb, line, 0);
		assert_int_equal(r->result.end, EXEC_SIGNALED);
		assert_int_equal(r->result.signal, signals[i]);
		assert_int_equal(r->result.exit_code, 128 + signals[i]);
	}
	assert_string_equal(sh(sb, "find / -xdev -name 'core*' -user agent 2>/dev/null | wc -l"),
			    "0");
}

static void test_exec_signal(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "trap 'echo got it; exit 3' USR1; echo ready; "
				      "while :; do sleep 0.05; done");

	while (!r->out.n)
		wait_ms(5);
	exec_signal(r->x, 0); /* no signal: nothing happens */
	exec_signal(r->x, -1);
	exec_signal(r->x, 1000);
	exec_signal(r->x, SIGUSR1);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "ready\ngot it\n");
	assert_int_equal(r->result.exit_code, 3);
}

/* The whole process group hears it, as from a terminal. */
static void test_signal_to_group(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "sleep 30 | sleep 30");

	wait_ms(100);
	exec_signal(r->x, SIGINT);
	ran_wait(r);
	assert_true(none_left(sb, "sleep"));
}

static void test_stop_and_continue(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("echo a; read -r go; echo b"),
				     .stdin_open = true };
	struct ran *r = ran_start(sb, &x);
	struct err e = ERR_INIT;

	while (!r->out.n)
		wait_ms(5);
	exec_signal(r->x, SIGSTOP);
	assert_string_equal(
		sh(sb, "until ps -e -o stat= | grep -q '^T'; do sleep 0.02; done; echo stopped"),
		"stopped");
	assert_int_equal(exec_write(r->x, "go\n", 3, &e), 0);
	wait_ms(100);
	assert_string_equal(buf_str(&r->out).p, "a\n");
	exec_signal(r->x, SIGCONT);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "a\nb\n");
}

static void test_exec_kill(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "echo a; (setsid sleep 30 &); trap '' TERM; sleep 30");

	while (!r->out.n)
		wait_ms(5);
	exec_kill(r->x);
	exec_kill(r->x);
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_SIGNALED);
	assert_int_equal(r->result.signal, SIGKILL);
	assert_int_equal(r->result.exit_code, 137);
	assert_string_equal(buf_str(&r->out).p, "a\n");
	assert_true(none_left(sb, "sleep"));
	assert_true(sandbox_live(sb));
}

/* A kill at once, before the program can have started. */
static void test_kill_at_once(void **state)
{
	struct sandbox *sb = make(NULL);

	for (int i = 0; i < 20; i++) {
		struct ran *r = ran_shell(sb, "sleep 30");

		exec_kill(r->x);
		ran_wait(r);
		assert_int_equal(r->result.end, EXEC_SIGNALED);
	}
}

/* PID 1 is deaf to all that comes from inside. */
static void test_init_stands(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *other = ran_shell(sb, "sleep 30");

	sh_code(sb, "for s in $(seq 1 31) 34 64; do kill -$s 1; done; kill -9 -1");
	ran_wait(other);
	assert_int_equal(other->result.signal, SIGKILL);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* ---- what a program inherits ----------------------------------------------------------------- */

static void test_signals_at_default(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_string_equal(sh(sb, "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t\\n'"),
			    "SigBlk:0000000000000000SigIgn:0000000000000000");
}

static void test_orphans_are_reaped(void **state)
{
	struct sandbox *sb = make(NULL);

	sh(sb, "for i in $(seq 200); do (sh -c 'sleep 0.05 &' &); done >/dev/null 2>&1");
	sh(sb, "until ps -e --no-headers >/tmp/ps; [ $(wc -l </tmp/ps) = 3 ]; do "
	       "sleep 0.05; done"); /* init, bash, ps */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_timeout),
		engine_test(test_timeout_trees),
		engine_test(test_timeout_spares_others),
		engine_test(test_timeout_of_a_bomb),
		engine_test(test_timeout_of_a_runner),
		engine_test(test_timeout_without_subreaper),
		engine_test(test_many_timeouts),
		engine_test(test_timeout_during_a_fork),
		engine_test(test_exit_codes),
		engine_test(test_own_signals),
		engine_test(test_exec_signal),
		engine_test(test_signal_to_group),
		engine_test(test_stop_and_continue),
		engine_test(test_exec_kill),
		engine_test(test_kill_at_once),
		engine_test(test_init_stands),
		engine_test(test_signals_at_default),
		engine_test(test_orphans_are_reaped),
	};

	return ENGINE_MAIN(argc, argv, "exec_kill", tests);
}
