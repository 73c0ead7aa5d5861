/* Limits as a program meets them, and as the result of an exec tells of them. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

static struct sandbox *make_limited(uint64_t memory, uint64_t disk, uint32_t pids)
{
	const struct sandbox_spec spec = {
		.limits = { .memory = memory, .disk = disk, .pids = pids },
	};

	return make(&spec);
}

static struct ran *run(struct sandbox *sb, const char *line)
{
	struct ran *r = ran_shell(sb, line);

	ran_wait(r);
	assert_int_equal(r->err.code, 0);
	return r;
}

static const char eat_200_mib[] = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}";

static void test_memory(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 0);
	struct ran *r = run(sb, eat_200_mib);

	assert_string_not_equal(buf_str(&r->out).p, "200000000\n");
	if (!limits_by("rlimit"))
		assert_true(r->result.hit_memory);
	assert_false(r->result.hit_pids);
	r = run(sb, "echo well"); /* the next is not blamed */
	assert_string_equal(buf_str(&r->out).p, "well\n");
	assert_false(r->result.hit_memory);
}

/* The program itself is killed, not a child of it. */
static void test_memory_of_the_leader(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 0);
	struct ran *r;

	if (!has_python(sb))
		return;
	r = run(sb, "exec python3 -c 'x = bytearray(200000000); print(len(x))'");
	assert_int_not_equal(r->result.exit_code, 0);
	if (limits_by("rlimit"))
		return;
	assert_int_equal(r->result.end, EXEC_SIGNALED);
	assert_int_equal(r->result.signal, 9);
	assert_true(r->result.hit_memory);
	assert_true(sandbox_live(sb));
}

/* Files are memory too: together they stay below the limit. */
static void test_memory_and_files(void **state)
{
	struct sandbox *sb = make_limited(96 * MIB, 80 * MIB, 0);
	struct ran *r;

	if (limits_by("rlimit"))
		return;
	sh(sb, "head -c 70000000 /dev/zero > f");
	r = run(sb, "x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo ${#x}");
	assert_true(r->result.hit_memory);
	sh(sb, "rm f");
	r = run(sb, "x=$(head -c 30000000 /dev/zero | tr '\\0' x); echo ${#x}");
	assert_string_equal(buf_str(&r->out).p, "30000000\n");
}

/* So are those that are written from outside, whose memory is the sandbox's and not the hub's. */
static void test_files_from_outside(void **state)
{
	enum { FILE_BYTES = 40 << 20 };
	struct sandbox *sb = make_limited(96 * MIB, 80 * MIB, 0);
	struct usage before, after;
	enum err_code code;

	if (limits_by("rlimit"))
		return;
	before = usage_of(sb);
	assert_int_equal(filed_code(put_start(sb, "f", pattern(FILE_BYTES), NULL)), 0);
	after = usage_of(sb);
	/* the kernel counts in batches, and init may give back pages of its own */
	assert_true(after.memory >= before.memory + FILE_BYTES / 10 * 9);
	assert_int_equal(filed_code(remove_start(sb, "f", false)), 0);
	/* what does not fit beside a program ends the program, or is refused; the sandbox goes
	 * on */
	sh(sb, "(x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 100) > /dev/null 2>&1 &");
	for (int i = 0; i < 500 && usage_of(sb).memory < before.memory + 18000000; i++)
		wait_ms(10);
	code = filed_code(put_start(sb, "f", pattern(60 << 20), NULL));
	assert_true(code == 0 || code == ERR_MEMORY_FULL);
	code = filed_code(put_start(sb, "g", pattern(60 << 20), NULL));
	assert_true(code == ERR_DISK_FULL || code == ERR_MEMORY_FULL);
	assert_true(usage_of(sb).memory <= 96 * MIB);
	assert_true(sandbox_live(sb));
	assert_string_equal(sh(sb, "ls -A | grep -v '^f$' | wc -l; echo on"), "0\non");
}

/* Without memory sandboxes end before the hub, and programs before PID 1. */
static void test_order_of_the_end(void **state)
{
	assert_string_equal(sh(make(NULL),
			       "cat /proc/self/oom_score_adj;"
			       "echo 0 > /proc/self/oom_score_adj || cat /proc/1/oom_score_adj"),
			    "600\n300");
}

static void test_peak(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;

	if (!has_python(sb))
		return;
	r = run(sb, "exec python3 -c 'x = bytearray(b\"x\") * 60000000'");
	assert_in_range(r->result.peak_bytes, 60000000, 120000000);
	r = run(sb, "exec true");
	assert_true(r->result.peak_bytes < 20000000);
}

static void test_cpu_time(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = run(sb, "timeout 3 sh -c 'while :; do :; done'");

	/* who spins gives way to others, of which a busy machine has many */
	assert_in_range(r->result.cpu_us, 50000, 4000000);
	assert_in_range(r->result.wall_us, 2950000, 20000000);
	r = run(sb, "sleep 1"); /* which is not the processor's time, however long all else takes */
	assert_true(r->result.cpu_us + 900000 < r->result.wall_us);
}

static void test_pids(void **state)
{
	struct sandbox *sb = make_limited(0, 0, 20);
	struct ran *r = run(sb, "for i in $(seq 60); do sleep 2 & done; wait");

	if (!limits_by("rlimit"))
		assert_true(r->result.hit_pids);
	assert_false(r->result.hit_memory);
	assert_non_null(strstr(buf_str(&r->errs).p, "fork"));
	r = run(sb, "echo well");
	assert_string_equal(buf_str(&r->out).p, "well\n");
	assert_false(r->result.hit_pids);
}

/* The number counts all: init, and two that a program starts until it can't. */
static void test_pids_are_exact(void **state)
{
	struct sandbox *sb = make_limited(0, 0, 20);
	struct ran *r;

	if (!has_python(sb))
		return;
	put(sb, "count.py",
	    "import os, time\n"
	    "n = 2\n"
	    "try:\n"
	    "    while n < 100:\n"
	    "        if os.fork() == 0: time.sleep(3); os._exit(0)\n"
	    "        n += 1\n"
	    "except OSError: pass\n"
	    "print(n)\n");
	r = run(sb, "exec python3 count.py");
	assert_string_equal(buf_str(&r->out).p, "20\n");
}

static size_t refused(struct ran *const *r, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += r[i]->done && r[i]->err.code != 0;
	return found;
}

/* A full set: an exec that finds no place is told so, and later ones work. */
static void test_exec_without_pids(void **state)
{
	const struct exec_spec reader = { .shell = STR_LIT("exec cat"), .stdin_open = true };
	struct sandbox *sb = make_limited(0, 0, LIMIT_PIDS_MIN);
	struct ran *r[6];

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		r[i] = ran_start(sb, &reader);
	for (int i = 0; i < 3000 && refused(r, ARRAY_LEN(r)) < 3; i++)
		wait_ms(10);
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		if (!r[i]->done)
			exec_close_stdin(r[i]->x);
		ran_wait(r[i]);
		if (r[i]->err.code)
			assert_int_equal(r[i]->err.code, ERR_PIDS_FULL);
	}
	assert_true(refused(r, ARRAY_LEN(r)) >= 3);
	assert_string_equal(
		buf_str(&ran_argv(sb, (const char *const[]){ "echo", "well", NULL })->out).p,
		"well\n");
}

static void test_disk(void **state)
{
	struct sandbox *sb = make_limited(0, 20 * MIB, 0);

	assert_int_not_equal(sh_code(sb, "head -c 30000000 /dev/zero > f 2>/dev/null"), 0);
	assert_int_equal(sh_code(sb, "rm f; head -c 15000000 /dev/zero > f"), 0);
	/* all that can be written is one disk */
	assert_int_not_equal(sh_code(sb, "head -c 15000000 /dev/zero > /tmp/g 2>/dev/null"), 0);
	sh_code(sb, "rm -f /tmp/g f");
	assert_int_not_equal(sh_code(sb, "head -c 30000000 /dev/zero > /run/shm/g 2>/dev/null"), 0);
	sh_code(sb, "rm -f /run/shm/g");
	assert_int_not_equal(
		sh_code(sb, "for i in $(seq 20000); do : > n$i || exit 1; done 2>/dev/null"), 0);
	sh(sb, "rm -f n*; df -k / | awk 'END { exit $2 > 20480 }'");
}

/* What a sandbox can take of the kernel without files or processes is bounded too. */
static void test_shared_memory(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 0);
	struct ran *r;

	if (!has_python(sb) || limits_by("rlimit"))
		return;
	r = run(sb, "exec python3 -c '\n"
		    "import mmap\n"
		    "m = mmap.mmap(-1, 200000000)\n"
		    "for i in range(0, 200000000, 4096): m[i] = 1\n"
		    "print(1)'");
	assert_true(r->result.hit_memory);
	r = run(sb, "exec python3 -c '\n"
		    "import os\n"
		    "f = os.memfd_create(\"x\")\n"
		    "for i in range(200): os.write(f, bytes(1000000))\n"
		    "print(1)'");
	assert_true(r->result.hit_memory);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* What no program holds stays below the limit: PID 1 would be all that the kernel could kill. */
static void test_what_outlives_programs(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 0);
	struct ran *r;

	if (!has_python(sb) || limits_by("rlimit"))
		return;
	r = run(sb, "exec python3 -c '\n"
		    "import ctypes\n"
		    "c = ctypes.CDLL(None)\n"
		    "n = 0\n"
		    "while (q := c.msgget(0, 0o1600)) >= 0:\n"
		    "    while c.msgsnd(q, b\"\\1\" + bytes(15), 1, 0o4000) == 0: n += 1\n"
		    "print(n > 100000)\n"
		    "while c.semget(0, 250, 0o1600) >= 0: n += 1'");
	assert_string_equal(buf_str(&r->out).p, "True\n");
	assert_int_equal(r->result.exit_code, 0);
	assert_false(r->result.hit_memory);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* Only a control group counts shared memory, but its own namespace bounds that of System V, from
 * Linux 6.9 on. */
static void test_segments_by_rlimit(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 0);
	struct ran *r;

	if (!has_python(sb) || !limits_by("rlimit"))
		return;
	r = run(sb, "exec python3 -c '\n"
		    "import ctypes, os\n"
		    "c = ctypes.CDLL(None)\n"
		    "n = 0\n"
		    "while n < 200 and c.shmget(0, 1 << 20, 0o1600) >= 0: n += 1\n"
		    "bounds = tuple(map(int, os.uname().release.split(\".\")[:2])) >= (6, 9)\n"
		    "print(n if bounds else 64)'");
	assert_string_equal(buf_str(&r->out).p, "64\n");
}

static void test_open_files(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_in_range(atoi(sh(sb, "ulimit -n")), 256, 65536);
	assert_string_equal(sh(sb, "ulimit -Hc"), "0");
}

/* So many descriptors a program can have, and what it starts; and it can't raise that. */
static void test_limited_open_files(void **state)
{
	const struct sandbox_spec spec = { .limits = { .files = 32 } };
	const struct sandbox_spec few = { .limits = { .files = LIMIT_FILES_MIN - 1 } };
	struct sandbox *sb = make(&spec), *control = make(NULL);
	struct forked *f;

	assert_int_equal(make_error(&few).code, ERR_INVALID);
	assert_string_equal(sh(sb, "ulimit -Hn; ulimit -Sn; sh -c 'ulimit -Hn'"), "32\n32\n32");
	assert_int_not_equal(sh_code(sb, "ulimit -Hn 33 2>/dev/null"), 0);
	if (has_python(sb)) {
		static const char many[] = "exec python3 -c '\n"
					   "import os\n"
					   "n = 0\n"
					   "try:\n"
					   "    while n < 100: os.dup(0); n += 1\n"
					   "except OSError as e: print(e.errno, end=\" \")\n"
					   "print(n)'";
		assert_string_equal(sh(sb, many), "24 29");
		assert_string_equal(sh(control, many), "100");
	}
	f = fork_of(sb, 1);
	assert_string_equal(sh(f->children[0], "ulimit -Hn"), "32");
}

static void test_sharing_of_cpu(void **state)
{
	const struct sandbox_spec spec = { .limits = { .cpu_milli = 250 } };
	struct sandbox *sb;
	struct ran *r;

	if (limits_by("rlimit")) {
		assert_int_equal(make_error(&spec).code, ERR_UNSUPPORTED);
		return;
	}
	sb = make(&spec);
	r = run(sb, "for i in 1 2 3; do timeout 1.6 sh -c 'while :; do :; done' & done; wait");
	assert_in_range(r->result.cpu_us, 1, r->result.wall_us / 2); /* a quarter */
}

/* One's hunger is not another's. */
static void test_neighbours(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 16), *other = make_limited(64 * MIB, 0, 16);
	struct ran *bomb = ran_shell(sb, "f() { f | f & }; f; sleep 200");
	struct ran *r;

	r = run(other, "for i in 1 2 3 4 5; do sleep 0.1 & done; wait; echo well");
	assert_string_equal(buf_str(&r->out).p, "well\n");
	assert_false(r->result.hit_pids);
	r = ran_shell(sb, eat_200_mib);
	assert_string_equal(sh(other, "x=$(head -c 8000000 /dev/zero | tr '\\0' x); echo ${#x}"),
			    "8000000");
	if (!bomb->done) /* it may not even have got its sleep */
		exec_kill(bomb->x);
	ran_wait(bomb);
	ran_wait(r);
}

/* In a fork the limits count anew, for each of them. */
static void test_forks(void **state)
{
	struct sandbox *sb = make_limited(64 * MIB, 0, 16);
	struct forked *f = fork_of(sb, 3);
	struct ran *r[3];

	for (int i = 0; i < 3; i++)
		r[i] = ran_shell(f->children[i],
				 "for i in $(seq 9); do sleep 1 & done; wait; echo ok");
	for (int i = 0; i < 3; i++) {
		ran_wait(r[i]);
		assert_string_equal(buf_str(&r[i]->out).p, "ok\n");
	}
	r[0] = run(f->children[0], eat_200_mib);
	assert_string_not_equal(buf_str(&r[0]->out).p, "200000000\n");
}

/* A number from the groups of v1 of the only sandbox there is; 0 where it is not there. */
static long group_number(const char *file)
{
	char path[1024], line[768], names[64], group[512];
	long number = 0;
	FILE *groups;
	pid_t init;

	assert_int_equal(init_pids(&init, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)init);
	groups = fopen(path, "re");
	while (groups && !number && fgets(line, sizeof(line), groups)) {
		FILE *f;

		if (sscanf(line, "%*d:%63[^:]:%511s", names, group) != 2)
			continue;
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s%s/%s", names, group, file);
		f = fopen(path, "re");
		if (f && fscanf(f, "%ld", &number) != 1)
			number = 0;
		if (f)
			fclose(f);
	}
	if (groups)
		fclose(groups);
	return number;
}

/* In microseconds of each 100000. */
static long cpu_quota(void)
{
	return group_number("cpu.cfs_quota_us");
}

/* Some groups of v1 serve one sandbox after another: with the limits of each. */
static void test_limits_of_the_one_before(void **state)
{
	static const char twenty[] = "for i in $(seq 20); do sleep 1000 & done";
	const bool v1 = limits_by("cgroup1");
	const struct sandbox_spec wide = { .limits = { .pids = 64 } };
	const struct sandbox_spec narrow = {
		.limits = { .pids = 8, .cpu_milli = v1 ? 500 : 0 },
	};

	for (int i = 0; i < 2; i++) {
		struct sandbox *sb = make(&narrow);
		struct ran *r;

		assert_true(!v1 || cpu_quota() == 50000);
		r = ran_shell(sb, twenty); /* it tries for long */
		for (int k = 0; k < 3000 && !strstr(buf_str(&r->errs).p, "fork"); k++)
			wait_ms(10);
		assert_non_null(strstr(buf_str(&r->errs).p, "fork"));
		destroy(sb);
		ran_wait(r);
		sb = make(&wide);
		assert_true(!v1 || cpu_quota() == -1);
		assert_int_equal(run(sb, twenty)->errs.n, 0);
		destroy(sb);
	}
}

static void wait_yields(long yields)
{
	for (int i = 0; i < 3000 && group_number("cpu.idle") != yields; i++)
		wait_ms(10);
	assert_int_equal(group_number("cpu.idle"), yields);
}

/* Who computes without a pause is the scheduler's last choice until it has been quiet for a
 * while; not the one after it in the same groups. Version 2 is cgroup2.c's, and that others do
 * not wait for it tests/escape/test_bombs.py's. */
static void test_gives_way(void **state)
{
	struct sandbox *sb;
	struct ran *r;

	if (!limits_by("cgroup1"))
		return;
	for (int i = 0; i < 2; i++) {
		sb = make(NULL);
		assert_int_equal(group_number("cpu.idle"), 0);
		r = ran_shell(sb, "while :; do :; done");
		wait_yields(1);
		exec_kill(r->x);
		ran_wait(r);
		wait_yields(0);
		r = ran_shell(sb, "while :; do :; done & while :; do :; done");
		wait_yields(1);
		destroy(sb);
		ran_wait(r);
	}
}

/* Where programs are to end it gives way no longer, for a moment, though others of it compute. */
static void test_ends_before_others(void **state)
{
	struct ran *r, *other;
	struct sandbox *sb;
	bool hurries = false;

	if (!limits_by("cgroup1"))
		return;
	sb = make(NULL);
	other = ran_shell(sb, "while :; do :; done");
	/* the moment is a second, which a busy machine may not let this process see */
	for (int i = 0; i < 20 && !hurries; i++) {
		r = ran_shell(sb, "while :; do :; done");
		wait_yields(1);
		exec_kill(r->x);
		for (int k = 0; k < 90 && !hurries; k++) {
			wait_ms(10);
			hurries = group_number("cpu.idle") == 0;
		}
		ran_wait(r);
	}
	assert_true(hurries);
	assert_false(other->done);
	wait_yields(1);
	exec_kill(other->x);
	ran_wait(other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		engine_test(test_memory),
		engine_test(test_memory_of_the_leader),
		engine_test(test_memory_and_files),
		engine_test(test_peak),
		engine_test(test_cpu_time),
		engine_test(test_pids),
		engine_test(test_pids_are_exact),
		engine_test(test_exec_without_pids),
		engine_test(test_disk),
		engine_test(test_shared_memory),
		engine_test(test_what_outlives_programs),
		engine_test(test_segments_by_rlimit),
		engine_test(test_open_files),
		engine_test(test_limited_open_files),
		engine_test(test_sharing_of_cpu),
		engine_test(test_files_from_outside),
		engine_test(test_order_of_the_end),
		engine_test(test_neighbours),
		engine_test(test_forks),
		engine_test(test_limits_of_the_one_before),
		engine_test(test_gives_way),
		engine_test(test_ends_before_others),
	};

	return ENGINE_MAIN(argc, argv, "limit", tests);
}
