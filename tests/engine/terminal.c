/* Programs on terminals: what they see of one, what is typed, its size, its end. */
#include "engine.h"

#include <signal.h>
#include <unistd.h>

enum { PATIENCE = 6000 }; /* of 5 ms */

static const struct exec_terminal usual = { .columns = 80, .rows = 24, .term = STR_LIT("xterm") };

static struct ran *on_terminal(struct sandbox *sb, const char *line)
{
	const struct exec_spec x = {
		.shell = str_of(line),
		.timeout_ms = EXEC_MS,
		.terminal = &usual,
	};

	return ran_start(sb, &x);
}

static void until_says(struct ran *r, const char *text)
{
	for (int i = 0; !r->out.n || !memmem(r->out.p, r->out.n, text, strlen(text)); i++) {
		if (r->done || i == PATIENCE)
			fail_msg("it did not say \"%s\" but \"%s\"", text, buf_str(&r->out).p);
		wait_ms(5);
	}
}

static void type(struct ran *r, const char *p, size_t n)
{
	struct err e = ERR_INIT;

	assert_int_equal(exec_write(r->x, p, n, &e), 0);
}

/* ---- what a program sees --------------------------------------------------------------------- */

static void test_it_is_a_terminal(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb,
				    "tty; stty size; echo $TERM; test -t 0 -a -t 1 -a -t 2 && "
				    "echo here > /dev/tty; echo err >&2; ls /dev/pts | xargs echo");

	ran_wait(r);
	assert_int_equal(r->err.code, 0);
	assert_string_equal(buf_str(&r->out).p,
			    "/dev/pts/0\r\n24 80\r\nxterm\r\nhere\r\nerr\r\n0 ptmx\r\n");
	assert_int_equal(r->errs.n, 0);
	assert_int_equal(r->result.exit_code, 0);
	assert_string_equal(sh(sb, "ls /dev/pts; tty || true"), "ptmx\nnot a tty");
}

static void test_variables(void **state)
{
	const struct env_var own[] = { { STR_LIT("TERM"), STR_LIT("vt100") } };
	const struct exec_terminal none = { .columns = 1, .rows = 9999 };
	struct sandbox *sb = make(NULL);
	struct exec_spec x = { .shell = STR_LIT("echo $TERM; stty size"),
			       .timeout_ms = EXEC_MS,
			       .terminal = &none };

	assert_string_equal(buf_str(&ran_until(sb, &x)->out).p, "dumb\r\n9999 1\r\n");
	x.env = own;
	x.n_env = 1;
	x.terminal = &usual;
	assert_string_equal(buf_str(&ran_until(sb, &x)->out).p, "vt100\r\n24 80\r\n");
}

/* Whoever opens it: its user owns it, and can open it by its name. */
static void test_by_name(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "echo by name > \"$(tty)\"; stat -c '%U %a' \"$(tty)\"");

	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "by name\r\nagent 620\r\n");
}

/* Programs make terminals of their own, with or without one below them. */
static void test_terminals_of_programs(void **state)
{
	struct sandbox *sb = make(NULL);

	if (!has_python(sb))
		skip();
	assert_string_equal(sh(sb, "python3 -c 'import pty; pty.spawn([\"tty\"])' </dev/null"),
			    "/dev/pts/0\r");
}

static void test_refused(void **state)
{
	static const struct exec_terminal wrong[] = {
		{ .columns = 0, .rows = 24 },
		{ .columns = 80, .rows = 0 },
		{ .columns = 10000, .rows = 24 },
		{ .columns = 80, .rows = 10000 },
	};
	const struct str none[] = { STR_LIT("no-such-program") };
	struct sandbox *sb = make(NULL);
	struct err e = ERR_INIT;
	struct ran *r;

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const struct exec_spec x = { .shell = STR_LIT("true"), .terminal = &wrong[i] };

		assert_int_equal(ran_until(sb, &x)->err.code, ERR_INVALID);
	}
	r = ran_until(sb, &(struct exec_spec){ .argv = none, .n_argv = 1, .terminal = &usual });
	assert_int_equal(r->err.code, ERR_COMMAND_NOT_FOUND);
	r = ran_start(sb, &(struct exec_spec){ .shell = STR_LIT("cat"), .stdin_open = true });
	assert_int_equal(exec_resize(r->x, 80, 24, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	exec_close_stdin(r->x);
	ran_wait(r);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void test_lines_and_their_end(void **state)
{
	static const struct {
		const char *typed, *seen;
	} rows[] = {
		{ "", "" },
		{ "hi\n", "hi\r\nhi\r\n" },
		{ "hi", "hihi" }, /* a line without an end */
	};
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ran *r = on_terminal(sb, "cat");

		if (*rows[i].typed) /* also before the terminal is there */
			type(r, rows[i].typed, strlen(rows[i].typed));
		exec_close_stdin(r->x);
		ran_wait(r);
		assert_int_equal(r->result.exit_code, 0);
		assert_string_equal(buf_str(&r->out).p, rows[i].seen);
	}
}

static void test_interrupt(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "echo on; exec sleep 1000");

	until_says(r, "on");
	type(r, "\x03", 1);
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_SIGNALED);
	assert_int_equal(r->result.signal, SIGINT);
}

/* As an editor has it: every key is a byte, none means anything. */
static void test_raw(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "stty raw -echo; echo on; head -c 6 | od -An -tx1");

	until_says(r, "on");
	type(r, "\x03\x04\x1a\r\n\xff", 6);
	ran_wait(r);
	assert_non_null(memmem(r->out.p, r->out.n, " 03 04 1a 0d 0a ff", 18));
}

static void test_signal_at_once(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "exec sleep 1000");

	exec_signal(r->x, SIGTERM);
	ran_wait(r);
	assert_int_equal(r->result.signal, SIGTERM);
}

static void test_kill_at_once(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "exec sleep 1000");

	exec_kill(r->x);
	ran_wait(r);
	assert_int_equal(r->result.signal, SIGKILL);
	r = on_terminal(sb, "exec sleep 1000");
	destroy(sb);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_CANCELLED);
}

static void test_timeout(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("sleep 1000"),
				     .timeout_ms = 1,
				     .terminal = &usual };

	assert_int_equal(ran_until(sb, &x)->result.end, EXEC_TIMED_OUT);
}

/* ---- size ------------------------------------------------------------------------------------ */

static void test_resize(void **state)
{
	struct sandbox *sb = make(NULL);
	struct err e = ERR_INIT;
	struct ran *r = on_terminal(sb, "trap 'stty size' WINCH; echo on; "
					"while :; do sleep 0.02; done");

	assert_int_equal(exec_resize(r->x, 90, 30, &e), 0); /* before it is there */
	until_says(r, "on");
	assert_int_equal(exec_resize(r->x, 100, 40, &e), 0);
	until_says(r, "40 100");
	assert_int_equal(exec_resize(r->x, 0, 40, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	exec_kill(r->x);
	ran_wait(r);
	assert_null(memmem(r->out.p, r->out.n, "24 80", 5));
}

/* ---- output ---------------------------------------------------------------------------------- */

static void test_flood(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "stty -opost; head -c 5000000 /dev/zero | tr '\\0' x");

	ran_wait(r);
	assert_int_equal(r->out.n, 5000000);
}

static void hold_it(struct ran *r)
{
	exec_hold(r->x, EXEC_STDOUT, true);
}

static void test_held(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "yes");
	size_t seen;

	r->on_output = hold_it;
	until_says(r, "y");
	seen = r->out.n;
	wait_ms(50);
	assert_int_equal(r->out.n, seen);
	assert_string_equal(sh(sb, "echo others go on"), "others go on");
	r->on_output = NULL;
	exec_hold(r->x, EXEC_STDOUT, false);
	while (r->out.n == seen)
		wait_ms(5);
	exec_kill(r->x);
	ran_wait(r);
}

/* What it said last comes all the same. */
static void test_held_at_the_end(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "echo on; head -c 3000 /dev/zero | tr '\\0' x");

	r->on_output = hold_it;
	ran_wait(r);
	assert_int_equal(r->out.n, strlen("on\r\n") + 3000);
}

/* ---- hanging up ------------------------------------------------------------------------------ */

static bool runs(struct sandbox *sb, const char *pid)
{
	char line[64];

	snprintf(line, sizeof(line), "kill -0 %s 2>/dev/null", pid);
	return sh_code(sb, line) == 0;
}

static void test_what_stays_hears_of_it(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "sleep 1000 & echo $! > pid");
	char pid[32];

	ran_wait(r);
	assert_int_equal(r->result.exit_code, 0);
	snprintf(pid, sizeof(pid), "%s", sh(sb, "cat pid"));
	for (int i = 0; runs(sb, pid); i++)
		assert_true(i < PATIENCE);
}

/* One that lets go of its terminal has none any more, and runs on. */
static void test_let_go(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = on_terminal(sb, "trap '' HUP; echo on; exec </dev/null >/dev/null 2>&1; "
					"until test -e go; do sleep 0.02; done; exit 7");

	until_says(r, "on");
	sh(sb, "touch go");
	ran_wait(r);
	assert_int_equal(r->result.exit_code, 7);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void test_two_hundred(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r[200];
	size_t run = 0, refused = 0;

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		r[i] = on_terminal(sb, "read; echo $REPLY");
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		if (!r[i]->done)
			type(r[i], "through\n", 8);
	}
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		ran_wait(r[i]);
		if (r[i]->err.code == ERR_LIMIT)
			refused++;
		else if (memmem(r[i]->out.p, r[i]->out.n, "\r\nthrough", 9))
			run++;
	}
	assert_int_equal(run + refused, ARRAY_LEN(r));
	assert_true(run >= 64 && refused > 0);
	r[0] = on_terminal(sb, "tty");
	ran_wait(r[0]);
	assert_int_equal(r[0]->err.code, 0);
}

static void test_each_has_its_own(void **state)
{
	struct sandbox *a = make(NULL), *b = make(NULL);
	struct ran *one = on_terminal(a, "echo on; read"),
		   *two = on_terminal(b, "tty; ls /dev/pts | xargs echo");

	until_says(one, "on");
	ran_wait(two);
	assert_string_equal(buf_str(&two->out).p, "/dev/pts/0\r\n0 ptmx\r\n");
	exec_kill(one->x);
	ran_wait(one);
}

static void test_forks_have_theirs(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f = fork_of(sb, 1);
	struct ran *r;

	for (int i = 0; i < 2; i++) {
		r = on_terminal(i ? f->children[0] : sb, "tty");
		ran_wait(r);
		assert_string_equal(buf_str(&r->out).p, "/dev/pts/0\r\n");
	}
}

static void test_no_leak(void **state)
{
	struct sandbox *sb = make(NULL);
	size_t ours, wardens, inits;
	pid_t init;

	ran_wait(on_terminal(sb, "true"));
	assert_int_equal(init_pids(&init, 1), 1);
	ours = fds_of(getpid());
	wardens = fds_of(warden_pid());
	inits = fds_of(init);
	for (int i = 0; i < 200; i++) {
		struct ran *r = on_terminal(sb, i % 10 ? "true" : "kill -9 $$");

		ran_wait(r);
		assert_int_equal(r->err.code, 0);
	}
	assert_fds(getpid(), ours);
	assert_fds(warden_pid(), wardens);
	assert_fds(init, inits);
	assert_string_equal(sh(sb, "ls /dev/pts"), "ptmx");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_it_is_a_terminal),
		engine_test(test_variables),
		engine_test(test_by_name),
		engine_test(test_terminals_of_programs),
		engine_test(test_refused),
		engine_test(test_lines_and_their_end),
		engine_test(test_interrupt),
		engine_test(test_raw),
		engine_test(test_signal_at_once),
		engine_test(test_kill_at_once),
		engine_test(test_timeout),
		engine_test(test_resize),
		engine_test(test_flood),
		engine_test(test_held),
		engine_test(test_held_at_the_end),
		engine_test(test_what_stays_hears_of_it),
		engine_test(test_let_go),
		engine_test(test_two_hundred),
		engine_test(test_each_has_its_own),
		engine_test(test_forks_have_theirs),
		engine_test(test_no_leak),
	};

	return ENGINE_MAIN(argc, argv, "terminal", tests);
}
