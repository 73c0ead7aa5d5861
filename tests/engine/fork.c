/* Forks of an idle sandbox: its layer is frozen in place. What a running one needs is in
 * fork_busy.c. */
#include "engine.h"
#include "tree.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static void test_same_then_apart(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;
	char text[16];

	sh(sb, "echo common > f; mkdir d; echo x > d/x");
	f = fork_of(sb, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_true(sandbox_live(f->children[i]));
		assert_false(sandbox_from_pool(f->children[i]));
		assert_ptr_not_equal(f->children[i], sb);
		assert_string_not_equal(sandbox_id(f->children[i]), sandbox_id(sb));
		assert_ptr_equal(box_find(box, str_of(sandbox_id(f->children[i]))), f->children[i]);
		assert_string_equal(sh(f->children[i], "cat f d/x"), "common\nx");
	}
	put(sb, "f", "parent");
	for (size_t i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "child %zu", i);
		put(f->children[i], "f", text);
		sh(f->children[i], i ? "echo new > d/new" : "rm -r d");
	}
	assert_string_equal(sh(sb, "cat f; ls d"), "parentx");
	assert_string_equal(sh(f->children[0], "cat f; ls"), "child 0f");
	assert_string_equal(sh(f->children[1], "cat f; ls d"), "child 1new\nx");
	assert_string_equal(sh(f->children[2], "cat f; ls d"), "child 2new\nx");
}

static void test_inherited(void **state)
{
	const struct env_var env[] = { { STR_LIT("A"), STR_LIT("b") } };
	const struct sandbox_spec spec = {
		.limits = { .memory = 300 * MIB, .disk = 100 * MIB, .pids = 77 },
		.ttl_ms = 60000,
		.env = env,
		.n_env = 1,
		.cwd = STR_LIT("/tmp"),
	};
	struct sandbox *sb = make(&spec), *child;
	const struct limits *l;

	sh(sb, "echo f > f");
	child = fork_of(fork_of(sb, 1)->children[0], 1)->children[0];
	l = sandbox_limits(child);
	assert_int_equal(l->memory, 300 * MIB);
	assert_int_equal(l->disk, 100 * MIB);
	assert_int_equal(l->pids, 77);
	assert_in_range(sandbox_ttl_left_ms(child), 30000, 60000);
	assert_string_equal(sandbox_template(child), "host");
	assert_string_equal(sh(child, "echo $A; pwd; cat f; hostname; id -un; ulimit -c"),
			    "b\n/tmp\nf\nsandbox\nagent\n0");
}

static void test_independent_lives(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;

	put(sb, "f", "kept");
	f = fork_of(sb, 4);
	destroy(sb);
	destroy(f->children[1]);
	assert_string_equal(get(f->children[0], "f"), "kept");
	assert_string_equal(get(fork_of(f->children[2], 1)->children[0], "f"), "kept");
	destroy(f->children[0]);
	assert_string_equal(get(f->children[3], "f"), "kept");
}

static void test_arguments(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f = fork_start(sb, 0), *g = fork_start(sb, 65), *h;

	wait_for(&f->done, "an answer");
	wait_for(&g->done, "an answer");
	assert_int_equal(f->err.code, ERR_INVALID);
	assert_int_equal(g->err.code, ERR_INVALID);
	h = fork_start(sb, 1);
	f = fork_start(sb, 1);
	wait_for(&f->done, "an answer");
	assert_int_equal(f->err.code, ERR_CONFLICT);
	wait_for(&h->done, "a fork");
	assert_int_equal(h->err.code, 0);
	destroy(sb);
	f = fork_start(sb, 1);
	wait_for(&f->done, "an answer");
	assert_int_equal(f->err.code, ERR_SANDBOX_NOT_FOUND);
}

static void test_sixty_four(void **state)
{
	struct sandbox *sb = make(NULL);
	struct box_stats s;
	struct forked *f;

	put(sb, "f", "x");
	f = fork_of(sb, 64);
	for (size_t i = 0; i < 64; i += 9)
		assert_string_equal(get(f->children[i], "f"), "x");
	box_stats(box, &s);
	assert_int_equal(s.live, 65);
	assert_int_equal(s.forked, 64);
}

/* All n or none, and no trace of those that were begun. */
static void test_all_or_none(void **state)
{
	struct sandbox *sb;
	struct box_stats s;
	struct forked *f;

	engine_stop();
	engine_start(&(struct box_config){ .max_sandboxes = 6 });
	sb = make(NULL);
	put(sb, "f", "x");
	f = fork_start(sb, 8);
	wait_for(&f->done, "an answer");
	assert_int_equal(f->err.code, ERR_LIMIT);
	box_stats(box, &s);
	assert_int_equal(s.live, 1);
	wait_ms(200);
	f = fork_of(sb, 5);
	assert_string_equal(get(f->children[4], "f"), "x");
	f = fork_start(sb, 1);
	wait_for(&f->done, "an answer");
	assert_int_equal(f->err.code, ERR_LIMIT);
	assert_int_equal(make_error(&(struct sandbox_spec){ 0 }).code, ERR_LIMIT);
	assert_string_equal(get(sb, "f"), "x");
}

/* However long after the fork began its source ends, it is answered, once. */
static void test_source_destroyed(void **state)
{
	for (unsigned ms = 0; ms < 8; ms++) {
		struct sandbox *sb = make(NULL);
		struct ran *r = ms & 1 ? ran_shell(sb, "sleep 30") : NULL;
		struct forked *f;
		struct made *d;

		put(sb, "f", "x");
		f = fork_start(sb, 2);
		if (ms)
			wait_ms(ms / 2);
		d = destroy_start(sb);
		wait_for(&f->done, "the answer to a fork whose source ended");
		wait_for(&d->done, "the end of the source");
		assert_int_equal(d->err.code, 0);
		assert_true(f->err.code == 0 || f->err.code == ERR_CANCELLED ||
			    f->err.code == ERR_SANDBOX_NOT_FOUND || f->err.code == ERR_GUEST);
		for (size_t i = 0; i < f->n; i++)
			assert_string_equal(get(f->children[i], "f"), "x");
		if (r)
			ran_wait(r);
	}
}

static void test_closed_while_forking(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;

	put(sb, "f", "x");
	f = fork_start(sb, 16);
	(void)f; /* answered by box_close, or the fixture fails */
	engine_stop();
}

/* What is asked of a sandbox that is being forked happens after, in order. */
static void test_queued(void **state)
{
	struct sandbox *sb = make(NULL);
	struct str big = pattern(100000);
	struct ran *a, *b;
	struct forked *f;
	struct filed *w;

	sh(sb, "head -c 100000000 /dev/zero > big");
	f = fork_start(sb, 2);
	a = ran_shell(sb, "echo ran > ran; cat put; ls");
	w = put_start(sb, "put", big, NULL);
	b = ran_shell(sb, "echo $$");
	wait_for(&f->done, "the fork");
	assert_int_equal(f->err.code, 0);
	filed(w);
	ran_wait(a);
	ran_wait(b);
	assert_int_equal(w->err.code, 0);
	assert_int_equal(a->result.exit_code | b->result.exit_code,
			 a->result.exit_code); /* cat may come before put */
	assert_string_equal(sh(f->children[0], "ls"), "big");
	assert_string_equal(sh(f->children[1], "ls"), "big");
	assert_string_equal(sh(sb, "ls | tr '\\n' ' '"), "big put ran ");
}

/* A program whose timeout passes while it waits for a fork to end. */
static void test_queued_timeout(void **state)
{
	const struct exec_spec x = { .shell = STR_LIT("sleep 30"), .timeout_ms = 1 };
	struct sandbox *sb = make(NULL);
	struct forked *f = fork_start(sb, 8);
	struct ran *r = ran_start(sb, &x);

	wait_for(&f->done, "the fork");
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_string_equal(sh(sb, "pgrep -c sleep || true"), "0");
}

static void check_tree(bool layered)
{
	struct sandbox *sb = make(NULL), *child;
	const char *want;

	tree_make(sb, layered);
	want = tree_describe(sb);
	child = fork_of(sb, 1)->children[0];
	assert_string_equal(tree_describe(child), want);
	assert_string_equal(tree_describe(sb), want);
	child = fork_of(child, 1)->children[0];
	assert_string_equal(tree_describe(child), want);
}

static void test_tree(void **state)
{
	check_tree(false);
}

static void test_tree_of_layers(void **state)
{
	check_tree(true);
}

/* ---- deep ------------------------------------------------------------------------------------ */

/* Each generation adds, changes and removes; the last knows all of it, past some squashing. */
static void test_sixty_deep(void **state)
{
	struct sandbox *sb = make(NULL), *first = NULL;
	char line[200];

	tree_make(sb, false);
	for (int i = 1; i <= 60; i++) {
		struct forked *f;

		snprintf(line, sizeof(line),
			 "echo %d > last; echo %d > f%d; rm -f f%d; echo %d >> all; rm -rf d; "
			 "mkdir d;"
			 "echo %d > d/%d",
			 i, i, i, i - 5, i, i, i);
		sh(sb, line);
		f = fork_of(sb, 1);
		if (i == 1)
			first = f->children[0];
		else
			destroy(i & 1 ? sb : f->children[0]);
		if (i > 1 && i & 1)
			sb = f->children[0]; /* sometimes along the line, sometimes aside */
		wait_ms(5);
	}
	assert_string_equal(sh(sb, "cat last; wc -l < all; ls d; ls | tr '\\n' ' '"),
			    "60\n60\n60\nall d f56 f57 f58 f59 f60 last tree ");
	assert_string_equal(sh(first, "cat last f1 all; ls d"), "1\n1\n1\n1");
	assert_string_equal(tree_describe(sb), tree_describe(first));
	put(sb, "more", "still writable");
}

/* The disk limit is one for all layers that a sandbox stands on. */
static void test_disk_over_layers(void **state)
{
	const struct sandbox_spec spec = { .limits = { .disk = 64 * MIB } };
	struct sandbox *sb = make(&spec), *child;

	sh(sb, "head -c 50000000 /dev/zero > a");
	child = fork_of(sb, 1)->children[0];
	assert_int_not_equal(sh_code(child, "head -c 30000000 /dev/zero > b 2>/dev/null"), 0);
	assert_int_equal(sh_code(child, "rm b; head -c 10000000 /dev/zero > b"), 0);
	assert_int_not_equal(sh_code(sb, "head -c 30000000 /dev/zero > b 2>/dev/null"), 0);
	assert_int_equal(sh_code(sb, "rm b; head -c 10000000 /dev/zero > b"), 0);
}

static void test_cost_of_size(void **state)
{
	struct sandbox *sb = make(NULL);
	uint64_t start, wrote = UINT64_MAX, best = UINT64_MAX;

	sh(sb, "head -c 400000000 /dev/zero > big");
	fork_of(sb, 1);
	/* copying takes longer each time, and something else may do so this time or that */
	for (int i = 0; i < 10 && best >= 200; i++) {
		start = clock_ms();
		sh(sb, "head -c 50000000 /dev/zero > more");
		if (clock_ms() - start < wrote)
			wrote = clock_ms() - start;
		start = clock_ms();
		fork_of(sb, 1);
		if (clock_ms() - start < best)
			best = clock_ms() - start;
	}
	/* on a slow machine: half of what copying would take, by what an eighth of it takes */
	assert_true(best < 200 || best < 4 * wrote);
}

static void test_many_sources(void **state)
{
	struct sandbox *sb[12];
	struct forked *f[12];
	char text[16];

	for (size_t i = 0; i < ARRAY_LEN(sb); i++) {
		sb[i] = make(NULL);
		snprintf(text, sizeof(text), "%zu", i);
		put(sb[i], "f", text);
	}
	for (size_t i = 0; i < ARRAY_LEN(sb); i++)
		f[i] = fork_start(sb[i], 3);
	for (size_t i = 0; i < ARRAY_LEN(sb); i++) {
		wait_for(&f[i]->done, "a fork");
		assert_int_equal(f[i]->err.code, 0);
		snprintf(text, sizeof(text), "%zu", i);
		for (size_t k = 0; k < 3; k++)
			assert_string_equal(get(f[i]->children[k], "f"), text);
	}
}

static void test_no_leak(void **state)
{
	struct sandbox *sb = make(NULL);
	size_t ours, wardens, inits;
	pid_t init[8];

	destroy(fork_of(sb, 2)->children[0]);
	wait_ms(100);
	ours = fds_of(getpid());
	wardens = fds_of(warden_pid());
	assert_int_equal(init_pids(init, 8), 2);
	inits = fds_of(init[0]);
	for (int i = 0; i < 40; i++) {
		struct forked *f = fork_of(sb, 2);

		destroy(f->children[0]);
		destroy(f->children[1]);
	}
	wait_ms(300); /* squashing */
	assert_fds(getpid(), ours);
	assert_fds(warden_pid(), wardens);
	assert_fds(init[0], inits);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_same_then_apart),
		engine_test(test_inherited),
		engine_test(test_independent_lives),
		engine_test(test_arguments),
		engine_test(test_sixty_four),
		engine_test(test_all_or_none),
		engine_test(test_source_destroyed),
		engine_test(test_closed_while_forking),
		engine_test(test_queued),
		engine_test(test_queued_timeout),
		engine_test(test_tree),
		engine_test(test_tree_of_layers),
		engine_test(test_sixty_deep),
		engine_test(test_disk_over_layers),
		engine_test(test_cost_of_size),
		engine_test(test_many_sources),
		engine_test(test_no_leak),
	};

	return ENGINE_MAIN(argc, argv, "fork", tests);
}
