/* Programs in a sandbox: what they are told, what they say, how they end. */
#include "engine.h"

#include <unistd.h>

#include "base/clock.h"

/* ---- what a program is started with ---------------------------------------------------------- */

static void test_argv(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_argv(sb, (const char *const[]){ "printf", "[%s]", "a b", "", "$HOME *",
							    "\xc3\xa9", NULL });

	assert_string_equal(buf_str(&r->out).p, "[a b][][$HOME *][\xc3\xa9]");
	assert_int_equal(r->errs.n, 0);
	assert_int_equal(r->result.end, EXEC_EXITED);
	assert_int_equal(r->result.exit_code, 0);
	assert_int_equal(r->result.signal, 0);
	assert_true(r->result.wall_us > 0);
	assert_true(r->result.peak_bytes > 0);
	assert_false(r->result.hit_memory);
	assert_false(r->result.hit_pids);
}

static void test_many_words(void **state)
{
	static struct str words[EXEC_ARGS_MAX + 1];
	struct sandbox *sb = make(NULL);
	struct exec_spec spec = { .argv = words, .n_argv = EXEC_ARGS_MAX };
	struct ran *r;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		words[i] = STR_LIT("x");
	words[0] = STR_LIT("sh");
	words[1] = STR_LIT("-c");
	words[2] = STR_LIT("echo $#");
	r = ran_until(sb, &spec);
	assert_string_equal(buf_str(&r->out).p, "4092\n"); /* without those three and $0 */
	spec.n_argv++;
	r = ran_until(sb, &spec);
	assert_int_equal(r->err.code, ERR_INVALID);
}

static void test_bytes_max(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str words[3] = { STR_LIT("true"), pattern(90 * 1024), pattern(EXEC_BYTES_MAX) };
	struct exec_spec spec = { .argv = words, .n_argv = 2 };
	struct ran *r;

	memset((char *)words[1].p, 'x', words[1].n);
	memset((char *)words[2].p, 'x', words[2].n);
	r = ran_until(sb, &spec);
	assert_int_equal(r->err.code, 0);
	assert_int_equal(r->result.exit_code, 0);
	spec.n_argv = 3;
	r = ran_until(sb, &spec);
	assert_int_equal(r->err.code, ERR_TOO_LARGE);
}

static void test_shell(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_string_equal(sh(sb, "echo \"$0\" $(echo a | tr a b); exit 0"), "/bin/bash b");
	assert_int_equal(sh_code(sb, "exit 7"), 7);
	assert_string_equal(sh(sb, ""), "");
}

static void test_refused_outright(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct str empty[] = { { "", 0 } }, nul[] = { { "tr\0ue", 5 } };
	const struct env_var bad_name[] = { { STR_LIT("A=B"), STR_LIT("c") } };
	const struct env_var no_name[] = { { STR_LIT(""), STR_LIT("c") } };
	const struct env_var nul_value[] = { { STR_LIT("A"), { "a\0b", 3 } } };
	const struct {
		const char *name;
		struct exec_spec spec;
	} rows[] = {
		{ "no argv", { .argv = empty, .n_argv = 0 } },
		{ "empty argv[0]", { .argv = empty, .n_argv = 1 } },
		{ "NUL in argv", { .argv = nul, .n_argv = 1 } },
		{ "NUL in the line", { .shell = { "tr\0ue", 5 } } },
		{ "= in a name", { .shell = STR_LIT("true"), .env = bad_name, .n_env = 1 } },
		{ "empty name", { .shell = STR_LIT("true"), .env = no_name, .n_env = 1 } },
		{ "NUL in a value", { .shell = STR_LIT("true"), .env = nul_value, .n_env = 1 } },
		{ "NUL in cwd", { .shell = STR_LIT("true"), .cwd = { "/\0", 2 } } },
		{ "empty cwd", { .shell = STR_LIT("true"), .cwd = { "", 0 } } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ROW_CHECK(ran_until(sb, &rows[i].spec)->err.code == ERR_INVALID, rows[i].name);
	assert_string_equal(sh(sb, "echo well"), "well");
}

static void test_environment(void **state)
{
	const struct env_var of_box[] = { { STR_LIT("A"), STR_LIT("box") },
					  { STR_LIT("B"), STR_LIT("box") },
					  { STR_LIT("LANG"), STR_LIT("C") } };
	const struct env_var of_call[] = { { STR_LIT("B"), STR_LIT("call") },
					   { STR_LIT("C"), STR_LIT("a=b c\nd") },
					   { STR_LIT("E"), STR_LIT("") } };
	const struct sandbox_spec spec = { .env = of_box, .n_env = 3 };
	struct sandbox *sb = make(&spec);
	const struct str env[] = { STR_LIT("env"), STR_LIT("-0") };
	const struct exec_spec x = { .argv = env, .n_argv = 2, .env = of_call, .n_env = 3 };
	struct ran *r = ran_until(sb, &x);
	const char *const want[] = { "A=box",  "B=call",	   "C=a=b c\nd", "E=",
				     "LANG=C", "HOME=/home/agent", "USER=agent" };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		size_t len = strlen(want[i]) + 1;

		ROW_CHECK(memmem(r->out.p, r->out.n, want[i], len) != NULL, want[i]);
	}
	for (size_t i = 0; i < r->out.n; i++)
		n += r->out.p[i] == '\0';
	assert_int_equal(n, 10); /* with PATH, LOGNAME and TERM */
	assert_string_equal(sh(sb, "echo $B"), "box");
}

/* A secret is in the environment of one program, or in a file that is there while it runs. */
static void test_secrets(void **state)
{
	const struct env_var of_box[] = { { STR_LIT("A"), STR_LIT("box") },
					  { STR_LIT("B"), STR_LIT("box") } };
	const struct exec_secret secrets[] = {
		{ STR_LIT("A"), STR_LIT("first=value\n"), true },
		{ STR_LIT("B"), STR_LIT("second value"), false },
		{ STR_LIT("C"), STR_LIT("x"), true },
	};
	static const char line[] =
		"cat /proc/self/environ | tr '\\0' '\\n' | grep -c 'value'; echo \"$B\"; cat $A $C;"
		"echo; (cat <$A); stat -Lc '%a %u' $A; echo y 2>&- >$A || echo refused;"
		"env -i cat $A; python3 -c 'import subprocess, sys;"
		" subprocess.run([\"cat\", sys.argv[1]])' $C; echo $A >/workspace/name";
	struct exec_spec x = { .shell = str_of(line),
			       .secrets = secrets,
			       .n_secrets = ARRAY_LEN(secrets) };
	struct sandbox *sb = make(&(struct sandbox_spec){ .env = of_box, .n_env = 2 });
	struct ran *r = ran_until(sb, &x);

	assert_string_equal(r->out.p, "1\nsecond value\nfirst=value\nx\nfirst=value\n400 1000\n"
				      "refused\nfirst=value\nx");
	assert_string_equal(sh(sb, "echo $A $B$C; cat $(cat name) 2>&- || echo gone"),
			    "box box\ngone");
	/* what init still has is not readable, and nothing of the sandbox's files has it */
	assert_string_equal(sh(sb, "grep -rs 'second value' /tmp /workspace /home /run; echo $?"),
			    "1");
	x.n_secrets = 33;
	assert_int_equal(ran_until(sb, &x)->err.code, ERR_INVALID);
}

static void test_path_of_call(void **state)
{
	const struct env_var path[] = { { STR_LIT("PATH"), STR_LIT("/nowhere:/workspace/b") } };
	struct sandbox *sb = make(NULL);
	const struct str tool[] = { STR_LIT("tool") };
	struct exec_spec x = { .argv = tool, .n_argv = 1, .env = path, .n_env = 1 };
	struct ran *r;

	sh(sb, "mkdir b && printf '#!/bin/sh\\necho mine' > b/tool && chmod +x b/tool");
	assert_string_equal(buf_str(&ran_until(sb, &x)->out).p, "mine\n");
	x.n_env = 0;
	r = ran_until(sb, &x);
	assert_int_equal(r->err.code, ERR_COMMAND_NOT_FOUND);
	x.argv = (const struct str[]){ STR_LIT("./b/tool") };
	assert_string_equal(buf_str(&ran_until(sb, &x)->out).p, "mine\n");
}

static void test_cwd(void **state)
{
	const struct sandbox_spec spec = { .cwd = STR_LIT("/tmp") };
	struct sandbox *sb = make(NULL), *other = make(&spec);
	const struct {
		struct str cwd;
		const char *is;
	} rows[] = {
		{ { NULL, 0 }, "/workspace\n" },
		{ STR_LIT("/usr/lib"), "/usr/lib\n" },
		{ STR_LIT("a/b"), "/workspace/a/b\n" },
		{ STR_LIT("."), "/workspace\n" },
		{ STR_LIT("/"), "/\n" },
		{ STR_LIT("link"), "/usr\n" },
	};

	sh(sb, "mkdir -p a/b && ln -s /usr link && : > file && mkdir -m 0 shut");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct str pwd[] = { STR_LIT("/bin/pwd"), STR_LIT("-P") };
		const struct exec_spec x = { .argv = pwd, .n_argv = 2, .cwd = rows[i].cwd };

		ROW_CHECK(strcmp(buf_str(&ran_until(sb, &x)->out).p, rows[i].is) == 0, rows[i].is);
	}
	assert_string_equal(sh(other, "pwd"), "/tmp");
}

static void test_bad_cwd(void **state)
{
	const char *const rows[] = { "nowhere", "/nowhere", "file",
				     "shut",	"loop",	    "../../../nowhere" };
	struct sandbox *sb = make(NULL);

	sh(sb, ": > file; mkdir -m 0 shut; ln -s loop loop");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct exec_spec x = { .shell = STR_LIT("true"), .cwd = str_of(rows[i]) };
		struct ran *r = ran_until(sb, &x);

		ROW_CHECK(r->err.code == ERR_COMMAND_NOT_RUN, rows[i]);
	}
}

static void test_not_run(void **state)
{
	const struct {
		const char *argv0;
		enum err_code code;
	} rows[] = {
		{ "no-such-program", ERR_COMMAND_NOT_FOUND },
		{ "/no/such/program", ERR_COMMAND_NOT_FOUND },
		{ "./plain", ERR_COMMAND_NOT_RUN }, /* no x bit */
		{ "/usr", ERR_COMMAND_NOT_RUN }, /* a directory */
		{ "./junk", ERR_COMMAND_NOT_RUN }, /* no format that the kernel knows */
		{ "./orphan", ERR_COMMAND_NOT_FOUND }, /* its interpreter is missing */
		{ "./plain/x", ERR_COMMAND_NOT_RUN }, /* below a file */
	};
	struct sandbox *sb = make(NULL);

	sh(sb, "echo true > plain; printf junk > junk; chmod +x junk;"
	       "printf '#!/no/such/shell\\n' > orphan; chmod +x orphan");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ran *r = ran_argv(sb, (const char *const[]){ rows[i].argv0, NULL });

		ROW_CHECK(r->err.code == rows[i].code, rows[i].argv0);
		ROW_CHECK(strstr(r->err.msg, rows[i].argv0) != NULL, r->err.msg);
	}
}

/* ---- what it says ---------------------------------------------------------------------------- */

static void test_two_streams(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "echo one; echo two >&2; echo three; echo four >/dev/stderr");

	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "one\nthree\n");
	assert_string_equal(buf_str(&r->errs).p, "two\nfour\n");
}

static void test_ten_mib_out(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "head -c 10485760 /dev/zero; head -c 3145728 /dev/zero >&2");

	ran_wait(r);
	assert_int_equal(r->result.exit_code, 0);
	assert_int_equal(r->out.n, 10485760);
	assert_int_equal(r->errs.n, 3145728);
}

/* All that a program said is handed on before its end, however late the reader is. */
static void test_output_is_whole(void **state)
{
	struct sandbox *sb = make(NULL);

	for (int i = 0; i < 50; i++) {
		struct ran *r = ran_shell(sb,
					  "head -c 65536 /dev/zero; head -c 65536 /dev/zero >&2");

		ran_wait(r);
		assert_int_equal(r->out.n, 65536);
		assert_int_equal(r->errs.n, 65536);
	}
}

/* What goes on in the background does not keep a program from having ended. */
static void test_background(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "(until test -e go; do sleep 0.05; done; echo late; "
				      "echo still here > file) & echo $! > pid; echo now");

	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "now\n");
	sh(sb, "touch go; while kill -0 $(cat pid) 2>/dev/null; do sleep 0.05; done");
	assert_string_equal(buf_str(&r->out).p, "now\n");
	/* its pipe is gone, which ends it as it would anywhere */
	assert_int_equal(sh_code(sb, "test -e file"), 1);
	r = ran_shell(sb, "(sleep 0.2; echo here > file) > /dev/null 2>&1 &");
	ran_wait(r);
	assert_string_equal(sh(sb, "until test -s file; do sleep 0.05; done; cat file"), "here");
}

/* A background process that writes without end does not keep the exec from its end either. */
static void test_background_flood(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "yes & sleep 0.1");

	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_EXITED);
	sh(sb, "while pgrep -x yes >/dev/null; do sleep 0.05; done");
}

static void end_at_once(struct ran *r)
{
	if (sandbox_live(r->sb))
		sandbox_destroy_start(r->sb, NULL, NULL);
}

/* A callback may do anything, also end the sandbox that it hears from. */
static void test_destroy_from_output(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct sandbox *sb = make(NULL);
		struct ran *r = ran_shell(sb, i & 1 ? "echo a; echo b >&2" : "yes");

		r->on_output = end_at_once;
		ran_wait(r);
		if (r->err.code)
			assert_int_equal(r->err.code, ERR_CANCELLED);
		wait_ms(20);
	}
}

/* The same, when the end of the program is heard of before its last words. */
static void test_destroy_from_last_output(void **state)
{
	bool heard = false;

	for (int i = 1; !heard; i++) {
		struct sandbox *sb = make(NULL);
		struct ran *r = ran_shell(sb, "(sleep 0.1; echo late; echo late >&2) &");

		r->on_output = end_at_once;
		/* the loop stands still, so that all has come */
		usleep((unsigned)i * 300000);
		ran_wait(r);
		heard = r->out.n + r->errs.n > 0;
		assert_true(heard || i < 8);
		wait_ms(20);
	}
}

static void kill_it(struct ran *r)
{
	if (r->x)
		exec_kill(r->x);
}

static void test_kill_from_output(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "yes");

	r->on_output = kill_it;
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_SIGNALED);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* ---- what it is told ------------------------------------------------------------------------- */

static void test_no_stdin(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_string_equal(sh(sb, "cat; readlink /proc/self/fd/0"), "/dev/null");
}

static void test_stdin(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("cat; echo end"), .stdin_open = true };
	struct ran *r = ran_start(sb, &x);
	struct err e = ERR_INIT;

	assert_int_equal(exec_write(r->x, "one ", 4, &e), 0);
	while (r->out.n < 4)
		wait_ms(5);
	assert_string_equal(buf_str(&r->out).p, "one ");
	assert_int_equal(exec_write(r->x, "", 0, &e), 0);
	assert_int_equal(exec_write(r->x, "two ", 4, &e), 0);
	exec_close_stdin(r->x);
	assert_int_equal(exec_write(r->x, "dropped", 7, &e), 0);
	exec_close_stdin(r->x);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "one two end\n");
}

static void test_empty_stdin(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("cat; echo end"), .stdin_open = true };
	struct ran *r = ran_start(sb, &x);

	exec_close_stdin(r->x);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "end\n");
}

/* Without stdin_open the two calls are harmless. */
static void test_stdin_not_open(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "cat; echo end");
	struct err e = ERR_INIT;

	assert_int_equal(exec_write(r->x, "one", 3, &e), 0);
	exec_close_stdin(r->x);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "end\n");
}

static struct {
	struct str bytes;
	size_t at;
	size_t refused;
} feed;

/* Writes until no more is taken; the rest follows when there is room. */
static void feed_more(struct ran *r)
{
	struct err e = ERR_INIT;

	while (r->x && feed.at < feed.bytes.n) {
		size_t n = feed.bytes.n - feed.at < 50000 ? feed.bytes.n - feed.at : 50000;

		if (exec_write(r->x, feed.bytes.p + feed.at, n, &e) < 0) {
			if (e.code != ERR_LIMIT)
				abort();
			feed.refused++;
			return;
		}
		feed.at += n;
	}
	if (r->x)
		exec_close_stdin(r->x);
}

static void test_ten_mib_in(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("until [ -e go ]; do sleep 0.05; done; cat"),
				     .stdin_open = true };
	struct ran *r = ran_start(sb, &x);

	feed.bytes = pattern(10 * 1024 * 1024);
	feed.at = 0;
	feed.refused = 0;
	r->on_drain = feed_more;
	feed_more(r);
	/* No more is queued than the contract says, beside what the pipe holds. */
	assert_true(feed.at <= 1024 * 1024 + 65536);
	sh(sb, "touch go");
	ran_wait(r);
	assert_true(feed.refused > 1);
	assert_int_equal(r->out.n, feed.bytes.n);
	assert_memory_equal(r->out.p, feed.bytes.p, feed.bytes.n);
}

/* One piece larger than the queue is taken when nothing else waits. */
static void test_large_piece(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("wc -c"), .stdin_open = true };
	struct ran *r = ran_start(sb, &x);
	struct str bytes = pattern(3 * 1024 * 1024);
	struct err e = ERR_INIT;

	assert_int_equal(exec_write(r->x, bytes.p, bytes.n, &e), 0);
	assert_int_equal(exec_write(r->x, "x", 1, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	exec_close_stdin(r->x);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "3145728\n");
}

/* A program that has closed its stdin, or ended: bytes are dropped, on_drain says so. */
static void test_closed_stdin(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = {
		.shell = STR_LIT(
			"exec <&-; echo closed; until test -e go; do sleep 0.02; done; echo end"),
		.stdin_open = true
	};
	struct ran *r = ran_start(sb, &x);

	feed.bytes = pattern(4 * 1024 * 1024);
	feed.at = 0;
	while (!r->out.n)
		wait_ms(10);
	r->on_drain = feed_more;
	feed_more(r);
	while (feed.at < feed.bytes.n)
		wait_ms(5);
	put(sb, "go", "");
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "closed\nend\n");
	assert_int_equal(r->result.exit_code, 0);
}

static void test_pipes_by_name(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT(
					     "cat /dev/stdin > /dev/stdout; echo e > /dev/fd/2"),
				     .stdin_open = true };
	struct ran *r = ran_start(sb, &x);
	struct err e = ERR_INIT;

	assert_int_equal(exec_write(r->x, "through", 7, &e), 0);
	exec_close_stdin(r->x);
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "through");
	assert_string_equal(buf_str(&r->errs).p, "e\n");
}

/* ---- many ------------------------------------------------------------------------------------ */

static void test_many_at_once(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r[100];
	char line[64], want[16];

	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		snprintf(line, sizeof(line), "sleep 0.0%zu; echo %zu; exit %zu", i % 10, i, i);
		r[i] = ran_shell(sb, line);
	}
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		ran_wait(r[i]);
		snprintf(want, sizeof(want), "%zu\n", i);
		assert_string_equal(buf_str(&r[i]->out).p, want);
		assert_int_equal(r[i]->result.exit_code, i);
	}
}

/* A thousand one after the other: no process of the engine keeps a descriptor of one. */
static void test_no_leak(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct str argv[] = { STR_LIT("true") }, none[] = { STR_LIT("no-such-program") };
	const struct exec_spec good = { .argv = argv, .n_argv = 1, .stdin_open = true },
			       bad = { .argv = none, .n_argv = 1 };
	size_t ours, wardens, inits;
	pid_t init;

	sh(sb, "true");
	assert_int_equal(init_pids(&init, 1), 1);
	ours = fds_of(getpid());
	wardens = fds_of(warden_pid());
	inits = fds_of(init);
	for (unsigned i = 0; i < soak(1000); i++) {
		const struct exec_spec *x = i % 10 ? &good : &bad;
		struct ran *r = ran_until(sb, x);

		assert_int_equal(r->err.code, x == &good ? 0 : ERR_COMMAND_NOT_FOUND);
	}
	assert_fds(getpid(), ours);
	assert_fds(warden_pid(), wardens);
	assert_fds(init, inits);
	/* what a program sees of descriptors is its own three, and the one that looks */
	assert_string_equal(sh(sb, "ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_argv),
		engine_test(test_many_words),
		engine_test(test_bytes_max),
		engine_test(test_shell),
		engine_test(test_refused_outright),
		engine_test(test_environment),
		engine_test(test_secrets),
		engine_test(test_path_of_call),
		engine_test(test_cwd),
		engine_test(test_bad_cwd),
		engine_test(test_not_run),
		engine_test(test_two_streams),
		engine_test(test_ten_mib_out),
		engine_test(test_output_is_whole),
		engine_test(test_background),
		engine_test(test_background_flood),
		engine_test(test_destroy_from_output),
		engine_test(test_destroy_from_last_output),
		engine_test(test_kill_from_output),
		engine_test(test_no_stdin),
		engine_test(test_stdin),
		engine_test(test_empty_stdin),
		engine_test(test_stdin_not_open),
		engine_test(test_ten_mib_in),
		engine_test(test_large_piece),
		engine_test(test_closed_stdin),
		engine_test(test_pipes_by_name),
		engine_test(test_many_at_once),
		engine_test(test_no_leak),
	};

	return ENGINE_MAIN(argc, argv, "exec", tests);
}
