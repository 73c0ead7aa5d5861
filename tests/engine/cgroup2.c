/*
 * Limits as the files of a v2 tree hold them. Where there is none that has the controllers, nothing
 * here can be tried: tests/kernel runs it in a guest that has nothing else, as root, as a service
 * and in a group given to a user.
 *
 */
#include "engine.h"

#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

enum { GROUP_MAX = 256, TRIES = 3000 };

static void assert_v2(void)
{
	if (!limits_by("cgroup2"))
		fail_msg("limits are not held by cgroup v2 here");
}

static const char *file_of(const char *group, const char *name)
{
	static char text[4096];
	char path[GROUP_MAX + 64];
	autoclose int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/%s", group, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return "";
	text[n] = '\0';
	text[strcspn(text, "\n") == (size_t)n - 1 ? (size_t)n - 1 : (size_t)n] = '\0';
	return text;
}

/* The number behind a word in a file of such lines; -1 where it is not there. */
static long count_of(const char *group, const char *name, const char *word)
{
	const char *at = file_of(group, name);
	size_t n = strlen(word);

	for (; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL) {
		if (strncmp(at, word, n) == 0 && at[n] == ' ')
			return atol(at + n + 1);
	}
	return -1;
}

/* The group of the only sandbox there is: of this warden's slots the one that holds processes.
 * It may stand at the top, or where this process stands or stood. */
static const char *group_of_the_one(void)
{
	static char found[GROUP_MAX];
	static const char *const above[] = { "", "/service", "/user" };
	char pattern[GROUP_MAX];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(above); i++) {
		glob_t g = { 0 };

		snprintf(pattern, sizeof(pattern), "/sys/fs/cgroup%s/holt-w%d-*/[0-9]*", above[i],
			 (int)warden_pid());
		if (glob(pattern, 0, NULL, &g) != 0)
			continue;
		for (size_t k = 0; k < g.gl_pathc; k++) {
			if (*file_of(g.gl_pathv[k], "cgroup.procs")) {
				snprintf(found, sizeof(found), "%s", g.gl_pathv[k]);
				n++;
			}
		}
		globfree(&g);
	}
	if (n != 1)
		fail_msg("%zu groups of sandboxes, not one", n);
	return found;
}

static struct sandbox *make_limited(uint64_t memory, uint32_t pids, uint32_t cpu_milli)
{
	const struct sandbox_spec spec = {
		.limits = { .memory = memory, .pids = pids, .cpu_milli = cpu_milli },
	};

	assert_v2();
	return make(&spec);
}

static void test_files(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 30, 250);
	const char *group = group_of_the_one();

	assert_string_equal(file_of(group, "memory.max"), "67108864");
	assert_string_equal(file_of(group, "pids.max"), "30");
	assert_string_equal(file_of(group, "cpu.max"), "25000 100000");
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* Its own group is mounted there, and hidden behind files of ours that say the same. */
static void test_seen_inside(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 30, 250);
	const char *seen = sh(sb, "cd /sys/fs/cgroup; cat memory.max cpu.max; ls | wc -l;"
				  "grep -c ' / /sys/fs/cgroup ro.* cgroup2 ' /proc/self/mountinfo;"
				  "cat /proc/self/cgroup; grep -w memory /proc/cgroups | cut -f 2");

	assert_string_equal(seen, "67108864\n25000 100000\n8\n1\n0::/\n0");
}

/* Of what does not fit one is killed, the largest; the sandbox and its first process stay,
 * however often. */
static void test_out_of_memory(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 0);
	const char *group = group_of_the_one();
	struct ran *r;

	assert_string_equal(file_of(group, "memory.oom.group"), "0");
	for (long i = 1; i <= 3; i++) {
		r = ran_shell(sb, "dd if=/dev/zero of=/dev/null bs=100M count=1");
		ran_wait(r);
		assert_int_equal(r->err.code, 0);
		assert_true(r->result.hit_memory);
		assert_int_not_equal(r->result.exit_code, 0);
		assert_true(count_of(group, "memory.events", "oom_kill") >= i);
		assert_string_equal(sh(sb, "echo well"), "well");
	}
}

static void test_pids(void **state)
{
	struct sandbox *sb = make_limited(0, 20, 0);
	const char *group = group_of_the_one();
	struct ran *r = ran_shell(sb, "for i in $(seq 60); do sleep 3 & done; wait");

	ran_wait(r);
	assert_true(r->result.hit_pids);
	assert_true(count_of(group, "pids.events", "max") > 0);
}

/* However slow the machine: who may have a quarter of a CPU was made to wait. */
static void test_cpu(void **state)
{
	struct sandbox *sb = make_limited(0, 0, 250);
	const char *group = group_of_the_one();
	struct ran *r = ran_shell(sb, "while :; do :; done");

	for (int i = 0; i < TRIES && count_of(group, "cpu.stat", "nr_throttled") < 3; i++)
		wait_ms(10);
	assert_true(count_of(group, "cpu.stat", "nr_throttled") >= 3);
	exec_kill(r->x);
	ran_wait(r);
}

static void on_turned(void *arg, struct sandbox *sb, const struct err *err)
{
	*(int *)arg = err ? -1 : 1;
}

static void turn(struct sandbox *sb, bool pause)
{
	int done = 0;

	(pause ? sandbox_pause_start : sandbox_resume_start)(sb, on_turned, &done);
	for (int i = 0; i < TRIES && !done; i++)
		wait_ms(10);
	assert_int_equal(done, 1);
}

static void test_freezer(void **state)
{
	struct sandbox *sb = make_limited(0, 0, 0);
	struct ran *r = ran_shell(sb, "while :; do :; done");
	const char *group = group_of_the_one();

	turn(sb, true);
	assert_int_equal(count_of(group, "cgroup.events", "frozen"), 1);
	turn(sb, false);
	assert_int_equal(count_of(group, "cgroup.events", "frozen"), 0);
	exec_kill(r->x);
	ran_wait(r);
}

static void wait_yields(const char *group, const char *yields)
{
	for (int i = 0; i < TRIES && strcmp(file_of(group, "cpu.idle"), yields) != 0; i++)
		wait_ms(10);
	assert_string_equal(file_of(group, "cpu.idle"), yields);
}

/* Who computes without a pause does; while it stands still no time passes. */
static void test_gives_way(void **state)
{
	struct sandbox *sb = make_limited(0, 0, 0);
	const char *group = group_of_the_one();
	struct ran *r = ran_shell(sb, "while :; do :; done");

	wait_yields(group, "1");
	turn(sb, true);
	wait_ms(2000);
	assert_string_equal(file_of(group, "cpu.idle"), "1");
	turn(sb, false);
	exec_kill(r->x);
	ran_wait(r);
	wait_yields(group, "0");
}

/* Of one in which nothing runs its files are frozen as a layer, of one in which something does
 * they are copied while its group stands still. */
static void test_forks(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 30, 0);
	struct forked *idle, *busy;
	struct ran *r;

	sh(sb, "echo before > f; mkdir d; echo gone > d/g");
	idle = fork_of(sb, 2);
	sh(sb, "rm -r d; echo after > f");
	r = ran_shell(sb, "while :; do sleep 1; done");
	busy = fork_of(sb, 1);
	assert_string_equal(sh(idle->children[0], "cat f d/g"), "before\ngone");
	assert_string_equal(sh(idle->children[1], "echo own > f; cat f d/g"), "own\ngone");
	assert_string_equal(sh(busy->children[0], "cat f; ls"), "after\nf");
	exec_kill(r->x);
	ran_wait(r);
}

/* A fork bomb, at its limit, in a sandbox that stands still: all of it is gone with the sandbox. */
static void test_end(void **state)
{
	struct sandbox *sb = make_limited(0, 40, 0);
	char group[GROUP_MAX];
	struct ran *r = ran_shell(sb, "f() { f | f & }; f; sleep 1000");

	snprintf(group, sizeof(group), "%s", group_of_the_one());
	for (int i = 0; i < TRIES && count_of(group, "pids.events", "max") < 1; i++)
		wait_ms(10);
	turn(sb, true);
	destroy(sb);
	ran_wait(r);
	assert_int_not_equal(access(group, F_OK), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_files),	 engine_test(test_seen_inside),
		engine_test(test_out_of_memory), engine_test(test_pids),
		engine_test(test_cpu),		 engine_test(test_freezer),
		engine_test(test_gives_way),	 engine_test(test_forks),
		engine_test(test_end),
	};

	return ENGINE_MAIN(argc, argv, "cgroup2", tests);
}
