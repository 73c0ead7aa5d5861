/* Sandboxes that stand ready: handed out at once, with the limits asked for, and as new as any. */
#include "engine.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void start_pool(uint32_t n)
{
	engine_stop();
	engine_start(&(struct box_config){ .pool = n });
}

static struct box_stats stats(void)
{
	struct box_stats s;

	box_stats(box, &s);
	return s;
}

static void wait_full(uint32_t n)
{
	for (int i = 0; i < 12000 && stats().pool_ready < n; i++)
		wait_ms(5);
	assert_int_equal(stats().pool_ready, n);
}

static void test_hits(void **state)
{
	struct sandbox *sb[5];
	struct box_stats s;

	start_pool(4);
	wait_full(4);
	s = stats();
	assert_int_equal(s.pool_size, 4);
	assert_int_equal(s.live, 0);
	for (int i = 0; i < 4; i++) {
		sb[i] = make(NULL);
		assert_true(sandbox_from_pool(sb[i]));
		assert_string_equal(sh(sb[i], "pwd; id -un; ls -A | wc -l"),
				    "/workspace\nagent\n0");
	}
	wait_full(4);
	sb[4] = make(NULL);
	assert_true(sandbox_from_pool(sb[4]));
	s = stats();
	assert_int_equal(s.created, 5);
	assert_int_equal(s.pool_hits, 5);
	assert_int_equal(s.pool_misses, 0);
	assert_int_equal(s.live, 5);
}

/* More than there are ready: the rest are made, and all are answered. */
static void test_burst(void **state)
{
	struct made *m[16];
	struct box_stats s;

	start_pool(4);
	wait_full(4);
	for (size_t i = 0; i < ARRAY_LEN(m); i++)
		m[i] = make_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(m); i++) {
		wait_for(&m[i]->done, "a sandbox");
		assert_int_equal(m[i]->err.code, 0);
		for (size_t k = 0; k < i; k++)
			assert_ptr_not_equal(m[i]->sb, m[k]->sb);
	}
	s = stats();
	assert_int_equal(s.pool_hits + s.pool_misses, 16);
	assert_true(s.pool_hits >= 4);
	assert_string_equal(sh(m[15]->sb, "echo well"), "well");
	wait_full(4);
}

static void test_sizes(void **state)
{
	start_pool(64);
	wait_full(64);
	start_pool(1000); /* the most is 64 */
	assert_int_equal(stats().pool_size, 64);
	start_pool(0);
	wait_ms(50);
	assert_int_equal(stats().pool_ready, 0);
	assert_false(sandbox_from_pool(make(NULL)));
}

/* Names, variables and directories are of the spec, not of the pool. */
static void test_spec_applies(void **state)
{
	const struct env_var env[] = { { STR_LIT("A"), STR_LIT("b") } };
	const struct sandbox_spec spec = { .env = env,
					   .n_env = 1,
					   .cwd = STR_LIT("/tmp"),
					   .ttl_ms = 60000,
					   .template = STR_LIT("host") };
	struct sandbox *sb;

	start_pool(1);
	wait_full(1);
	sb = make(&spec);
	assert_true(sandbox_from_pool(sb));
	assert_string_equal(sh(sb, "echo $A; pwd"), "b\n/tmp");
	assert_in_range(sandbox_ttl_left_ms(sb), 1, 60000);
	wait_full(1);
	assert_string_equal(sh(make(NULL), "echo ${A-none}; pwd"), "none\n/workspace");
}

/* What one has done is nowhere in the next. */
static void test_nothing_carried_over(void **state)
{
	start_pool(1);
	for (int i = 0; i < 4; i++) {
		struct sandbox *sb;

		wait_full(1);
		sb = make(NULL);
		assert_string_equal(
			sh(sb,
			   "ls -A /workspace /tmp /var/tmp /run/shm /home/agent | "
			   "grep -vE '^$|:$' | wc -l; ps -e --no-headers >/tmp/ps; wc -l </tmp/ps;"
			   "cat /proc/net/unix | wc -l; ipcs -m | grep -c agent || true"),
			"0\n3\n1\n0");
		sh(sb,
		   "touch /workspace/x /tmp/x /var/tmp/x /run/shm/x; sleep 100 >/dev/null 2>&1 &");
		destroy(sb);
	}
}

/* A memory limit below the pool's is held by one from the pool. */
static void test_memory_holds(void **state)
{
	const struct sandbox_spec spec = { .limits = { .memory = 48 * MIB } };
	struct sandbox *sb;
	struct ran *r;

	start_pool(1);
	if (limits_by("rlimit"))
		return;
	wait_full(1);
	sb = make(&spec);
	assert_true(sandbox_from_pool(sb));
	assert_int_equal(sandbox_limits(sb)->memory, 48 * MIB);
	assert_int_equal(sandbox_limits(sb)->disk, 24 * MIB);
	r = ran_shell(sb, "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ${#x}");
	ran_wait(r);
	assert_true(r->result.hit_memory);
	assert_string_not_equal(buf_str(&r->out).p, "100000000\n");
	assert_string_equal(sh(sb, "echo well"), "well");
	wait_full(1);
	sb = make(NULL); /* the next has the usual */
	assert_string_equal(sh(sb, "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo ${#x}"),
			    "100000000");
}

static void test_disk_holds(void **state)
{
	const struct sandbox_spec small = { .limits = { .disk = 4 * MIB } },
				  large = { .limits = { .memory = 2048 * MIB, .disk = 900 * MIB } };
	struct sandbox *sb;

	start_pool(1);
	wait_full(1);
	sb = make(&small);
	assert_int_equal(sandbox_from_pool(sb), true);
	assert_int_not_equal(sh_code(sb, "head -c 6000000 /dev/zero > f 2>/dev/null"), 0);
	assert_int_equal(sh_code(sb, "rm f; head -c 3000000 /dev/zero > f"), 0);
	/* as many small files as the size allows, not as the pool's did */
	assert_int_not_equal(sh_code(sb, "mkdir d; cd d; seq 10000 | xargs touch 2>/dev/null"), 0);
	wait_full(1);
	sb = make(&large);
	assert_int_equal(sh_code(sb, "truncate -s 800M f && head -c 700000000 /dev/zero > g"), 0);
}

static void test_pids_hold(void **state)
{
	const struct sandbox_spec few = { .limits = { .pids = 12 } },
				  many = { .limits = { .pids = 2000 } };
	struct sandbox *sb;

	start_pool(1);
	wait_full(1);
	sb = make(&few);
	assert_int_not_equal(sh_code(sb, "for i in $(seq 30); do sleep 5 & done 2>/dev/null;"
					 "test $(jobs -p | wc -l) -ge 30"),
			     0);
	wait_full(1);
	sb = make(&many);
	assert_string_equal(sh(sb, "for i in $(seq 800); do sleep 1000 & done; jobs -p | wc -l;"
				   "kill $(jobs -p)"),
			    "800");
}

static void test_cpu_holds(void **state)
{
	const struct sandbox_spec spec = { .limits = { .cpu_milli = 200 } };
	struct sandbox *sb;
	struct ran *r;

	start_pool(1);
	if (limits_by("rlimit")) {
		assert_int_equal(make_error(&spec).code, ERR_UNSUPPORTED);
		return;
	}
	wait_full(1);
	sb = make(&spec);
	assert_true(sandbox_from_pool(sb));
	r = ran_shell(sb, "timeout 1.5 sh -c 'while :; do :; done'");
	ran_wait(r);
	assert_in_range(r->result.cpu_us, 1, r->result.wall_us / 2); /* a fifth */
}

/* A ready one that dies is replaced, and is not handed out. */
static void test_ready_one_dies(void **state)
{
	pid_t inits[4];
	struct sandbox *sb;

	start_pool(2);
	wait_full(2);
	assert_int_equal(init_pids(inits, 4), 2);
	kill(inits[0], SIGKILL);
	for (int i = 0; i < 3000 && kill(inits[0], 0) == 0; i++)
		wait_ms(10); /* its death becomes known */
	wait_full(2);
	sb = make(NULL);
	assert_string_equal(sh(sb, "echo well"), "well");
	assert_int_equal(stats().lost, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_hits),
		engine_test(test_burst),
		engine_test(test_sizes),
		engine_test(test_spec_applies),
		engine_test(test_nothing_carried_over),
		engine_test(test_memory_holds),
		engine_test(test_disk_holds),
		engine_test(test_pids_hold),
		engine_test(test_cpu_holds),
		engine_test(test_ready_one_dies),
	};

	return ENGINE_MAIN(argc, argv, "pool", tests);
}
