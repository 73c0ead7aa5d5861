/* Forks of a sandbox in which something runs: frozen, or stopped by its init where nothing can
 * freeze, while its changed files are copied. */
#include "engine.h"
#include "tree.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"

/* On a busy machine what runs may not come to stand still in the time that it is given. */
static struct forked *fork_busy(struct sandbox *sb, uint32_t n)
{
	return fork_despite(sb, n, ERR_TIMEOUT);
}

/* Two files that a program writes by turns: at every instant they have the same number of lines, or
 * the first has one more. */
static const char writer[] = "import os\n"
			     "a = os.open('a', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
			     "b = os.open('b', os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
			     "i = 0\n"
			     "while not os.path.exists('stop'):\n"
			     "    i += 1\n"
			     "    os.write(a, b'%d\\n' % i)\n"
			     "    os.write(b, b'%d\\n' % i)\n";

static const char shell_writer[] =
	"while ! test -e stop; do i=$((i + 1)); echo $i >> a; echo $i >> b; done";

static struct ran *start_writer(struct sandbox *sb)
{
	bool python = has_python(sb);

	put(sb, "writer.py", writer);
	return ran_shell(sb, python ? "exec python3 writer.py" : shell_writer);
}

static void check_instant(struct sandbox *sb)
{
	int a = atoi(sh(sb, "wc -l < a")), b = atoi(sh(sb, "wc -l < b"));
	int last_a = atoi(sh(sb, "tail -n 1 a")), last_b = atoi(sh(sb, "tail -n 1 b"));

	assert_true(a == b || a == b + 1);
	assert_int_equal(a, last_a);
	assert_int_equal(b, last_b);
}

/* Waits until the writer has written more lines than n; returns how many. */
static long lines_above(struct sandbox *sb, long n)
{
	long now = 0;

	for (int i = 0; i < 1000 && now <= n; i++) {
		now = atol(sh(sb, "cat a 2>/dev/null | wc -l"));
		wait_ms(5);
	}
	assert_true(now > n);
	return now;
}

static void test_one_instant(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	sh(sb, "head -c 30000000 /dev/zero > zz; touch aa");
	r = start_writer(sb);
	lines_above(sb, 1); /* so that both files are there */
	for (int i = 0; i < 8; i++) {
		struct forked *f = fork_busy(sb, 2);

		check_instant(f->children[0]);
		assert_string_equal(sh(f->children[0], "cat b"), sh(f->children[1], "cat b"));
		assert_string_equal(
			sh(f->children[0], "ps -e --no-headers >/tmp/ps; wc -l </tmp/ps"), "3");
		destroy(f->children[0]);
		destroy(f->children[1]);
		/* the source goes on */
		lines_above(sb, lines_above(sb, 0));
		assert_false(r->done);
	}
	put(sb, "stop", "");
	ran_wait(r);
	assert_int_equal(r->result.exit_code, 0);
	check_instant(sb);
}

/* A program in the background, of which the hub knows nothing, is busy too. */
static void test_background(void **state)
{
	struct sandbox *sb = make(NULL), *child;

	sh(sb, "(while ! test -e stop; do i=$((i + 1)); echo $i >> a; echo $i >> b; done) "
	       ">/dev/null 2>&1 &");
	lines_above(sb, 1);
	child = fork_busy(sb, 1)->children[0];
	check_instant(child);
	assert_string_equal(sh(child, "ps -e --no-headers >/tmp/ps; wc -l </tmp/ps"), "3");
	put(sb, "stop", "");
}

static void check_tree(bool layered)
{
	struct sandbox *sb = make(NULL), *child;
	const char *want;
	struct ran *r;

	tree_make(sb, layered);
	want = tree_describe(sb);
	r = ran_shell(sb, "cd tree; exec 5<>pipe; sleep 1000");
	wait_ms(50);
	child = fork_busy(sb, 1)->children[0];
	assert_string_equal(tree_describe(child), want);
	child = fork_of(child, 1)->children[0]; /* idle, on the copy */
	assert_string_equal(tree_describe(child), want);
	assert_string_equal(tree_describe(sb), want);
	exec_kill(r->x);
	ran_wait(r);
}

static void test_tree(void **state)
{
	check_tree(false);
}

static void test_tree_of_layers(void **state)
{
	check_tree(true);
}

static void test_many(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "sleep 1000");
	struct forked *f;

	put(sb, "f", "x");
	f = fork_busy(sb, 8);
	for (size_t i = 0; i < 8; i++)
		assert_string_equal(get(f->children[i], "f"), "x");
	put(f->children[0], "f", "y");
	assert_string_equal(get(f->children[1], "f"), "x");
	assert_string_equal(get(sb, "f"), "x");
	exec_kill(r->x);
	ran_wait(r);
}

/* Output of a program goes on over a fork, none lost and none twice. */
static void test_streams(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "seq 1 300000");
	struct forked *f = fork_start(sb, 1);
	const char *at;
	long n = 0;

	wait_for(&f->done, "the fork");
	assert_int_equal(f->err.code, 0);
	ran_wait(r);
	at = buf_str(&r->out).p;
	while (*at) {
		assert_int_equal(strtol(at, (char **)&at, 10), ++n);
		assert_int_equal(*at++, '\n');
	}
	assert_int_equal(n, 300000);
}

/* What was stopped before is stopped after, and what slept has slept on. */
static void test_states_of_processes(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "sleep 1001 & p=$!; sleep 1002 & "
				      "until [ $(pgrep -cx sleep) = 2 ]; do :; done; "
				      "kill -STOP $p; echo; wait");
	/* a moment after a signal, or what wakes them, they may be seen on their way */
	const char *come_to_be = "until ps -o stat= -C sleep | cut -c1 | sort | tr -d '\\n' | "
				 "grep -qx ST; do sleep 0.02; done";

	while (!r->out.n)
		wait_ms(10);
	sh(sb, come_to_be);
	fork_busy(sb, 1);
	sh(sb, come_to_be);
	exec_kill(r->x);
	ran_wait(r);
}

/* Shells start programs by vfork, in which the parent can't be stopped until the child goes on. */
static void test_while_starting_programs(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(
		sb, "for i in 1 2 3; do sh -c 'while :; do /bin/true; done' & done; wait");

	wait_ms(50);
	for (int i = 0; i < 15; i++)
		destroy(fork_busy(sb, 1)->children[0]);
	exec_kill(r->x);
	ran_wait(r);
}

/* A tree that grows while it is frozen: nothing runs on, nothing is left stopped. */
static void test_while_forking(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "while :; do (echo $BASHPID >> log) & wait; done");

	for (int i = 0; i < 10; i++)
		destroy(fork_busy(sb, 1)->children[0]);
	assert_string_equal(sh(sb, "sleep 0.1; ps -eo stat= | grep -c '^T' || true"), "0");
	exec_kill(r->x);
	ran_wait(r);
}

/* Files that the hub writes meanwhile are whole in a child, or not there; so is the temporary. */
static void test_while_writing(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(20 * MIB);

	for (unsigned i = 0; i < 10; i++) {
		struct filed *w = put_start(sb, "f", bytes, NULL);
		struct forked *f;
		const char *names;

		wait_ms(i);
		f = fork_start(sb, 1);
		wait_for(&f->done, "the fork");
		assert_int_equal(f->err.code, 0);
		assert_int_equal(filed_code(w), 0);
		names = sh(f->children[0], "ls -A; stat -c %s f 2>/dev/null || true");
		if (strcmp(names, "") != 0)
			assert_string_equal(names, "f\n20971520");
		assert_string_equal(sh(sb, "ls -A"), "f");
		destroy(f->children[0]);
		assert_int_equal(filed_code(remove_start(sb, "f", false)), 0);
	}
}

/* The same of many small ones, over and over: a copy never begins between the two steps by which
 * a file takes the place of another. */
static void test_while_replacing(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str bytes = pattern(100);
	char names[64][8];

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		snprintf(names[i], sizeof(names[i]), "f%u", i);
	for (unsigned i = 0; i < 40; i++) {
		struct filed *w[ARRAY_LEN(names)];
		struct forked *f;

		for (unsigned k = 0; k < ARRAY_LEN(names); k++)
			w[k] = put_start(sb, names[k], bytes, NULL);
		wait_for(&w[i % 16]->done, "the first files"); /* the next are on their way */
		f = fork_busy(sb, 1);
		assert_string_equal(sh(f->children[0], "ls -A | grep -v ^f || true"), "");
		for (unsigned k = 0; k < ARRAY_LEN(names); k++)
			assert_int_equal(filed_code(w[k]), 0);
		destroy(f->children[0]);
	}
}

/* Deleted files that are still open are nobody's: they are not copied, and stay whole. */
static void test_deleted_but_open(void **state)
{
	struct sandbox *sb = make(NULL), *child;
	struct ran *r = ran_shell(sb,
				  "echo kept > f; exec 3<>f; rm f; echo; while ! test -e go; do "
				  "sleep 0.02; done; cat <&3");

	while (!r->out.n)
		wait_ms(10);
	child = fork_busy(sb, 1)->children[0];
	assert_string_equal(sh(child, "ls -A"), "");
	put(sb, "go", "");
	ran_wait(r);
	assert_string_equal(buf_str(&r->out).p, "\nkept\n");
}

/* Shared memory and mapped files are files too. */
static void test_mapped(void **state)
{
	struct sandbox *sb = make(NULL), *child;
	struct ran *r;

	if (!has_python(sb))
		return;
	put(sb, "map.py",
	    "import mmap, os, time\n"
	    "f = open('m', 'w+b'); f.truncate(4096)\n"
	    "m = mmap.mmap(f.fileno(), 4096); m[0:6] = b'mapped'\n"
	    "print('ready', flush=True)\n"
	    "time.sleep(1000)\n");
	r = ran_shell(sb, "exec python3 map.py");
	while (!r->out.n)
		wait_ms(10);
	child = fork_busy(sb, 1)->children[0];
	assert_string_equal(sh(child, "head -c 6 m"), "mapped");
	exec_kill(r->x);
	ran_wait(r);
}

/* A nearly full disk can be copied, sparse files and links taking no more than they do. */
static void test_full_disk(void **state)
{
	const struct sandbox_spec spec = { .limits = { .disk = 32 * MIB } };
	struct sandbox *sb = make(&spec), *child;
	struct ran *r;

	sh(sb, "truncate -s 1G sparse; head -c 14000000 /dev/zero > a; ln a b; ln a c");
	sh_code(sb, "head -c 100000000 /dev/zero > rest 2>/dev/null");
	r = ran_shell(sb, "sleep 1000");
	wait_ms(30);
	child = fork_busy(sb, 1)->children[0];
	assert_string_equal(sh(child, "test a -ef b && stat -c '%s %b' sparse"), "1073741824 0");
	assert_int_equal(sh_code(child, "rm rest && echo x > new"), 0);
	exec_kill(r->x);
	ran_wait(r);
}

/* The copy's memory is a child's, not the warden's, whose own nobody limits. */
static void test_memory_of_the_copy(void **state)
{
	enum { BYTES = 40000000 };
	const struct sandbox_spec spec = { .limits = { .memory = 96 * MIB, .disk = 64 * MIB } };
	struct sandbox *sb;
	struct forked *f;
	struct ran *r;
	uint64_t before;

	if (limits_by("rlimit"))
		return;
	sb = make(&spec);
	sh(sb, "head -c 40000000 /dev/zero > f");
	r = ran_shell(sb, "sleep 1000");
	before = usage_of(sb).memory;
	f = fork_busy(sb, 2);
	assert_true(usage_of(f->children[0]).memory >= BYTES);
	assert_true(usage_of(f->children[1]).memory < BYTES);
	assert_true(usage_of(sb).memory < before + BYTES / 2);
	assert_string_equal(sh(f->children[1], "stat -c %s f"), "40000000");
	exec_kill(r->x);
	ran_wait(r);
}

static void test_destroyed_while_copied(void **state)
{
	for (unsigned i = 0; i < 4; i++) {
		struct sandbox *sb = make(NULL);
		struct ran *r = ran_shell(sb, "head -c 200000000 /dev/zero > big; echo; sleep 30");
		struct forked *f;
		struct made *d;

		while (!r->out.n)
			wait_ms(10);
		f = fork_start(sb, 1);
		wait_ms(i * 20);
		d = destroy_start(sb);
		wait_for(&f->done, "the answer to the fork");
		wait_for(&d->done, "the end of the source");
		assert_int_equal(d->err.code, 0);
		ran_wait(r);
	}
}

static void test_closed_while_copied(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "head -c 300000000 /dev/zero > big; echo; sleep 30");

	while (!r->out.n)
		wait_ms(10);
	fork_start(sb, 1);
	wait_ms(20);
	engine_stop();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_one_instant),
		engine_test(test_background),
		engine_test(test_tree),
		engine_test(test_tree_of_layers),
		engine_test(test_many),
		engine_test(test_streams),
		engine_test(test_states_of_processes),
		engine_test(test_while_starting_programs),
		engine_test(test_while_forking),
		engine_test(test_while_writing),
		engine_test(test_while_replacing),
		engine_test(test_deleted_but_open),
		engine_test(test_mapped),
		engine_test(test_full_disk),
		engine_test(test_memory_of_the_copy),
		engine_test(test_destroyed_while_copied),
		engine_test(test_closed_while_copied),
	};

	return ENGINE_MAIN(argc, argv, "fork_busy", tests);
}
