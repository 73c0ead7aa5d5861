/* Sandboxes in which nothing runs fall asleep, and nobody who uses them has to know: what they
 * keep, what keeps them awake, and what of it can fail. The fixture looks for leftovers after
 * every test. */
#include "engine.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host.h"

enum { AFTER_MS = 30 };

static const struct box_config sleeping = { .sleep_after_ms = AFTER_MS };

static int setup(void **state)
{
	engine_start(&sleeping);
	return 0;
}

#define sleep_test(f) cmocka_unit_test_setup_teardown(f, setup, engine_teardown)

static uint32_t n_asleep(void)
{
	struct box_stats s;

	box_stats(box, &s);
	return s.asleep;
}

static size_t n_inits(void)
{
	pid_t inits[64];

	return init_pids(inits, ARRAY_LEN(inits));
}

/* Waits until n of them sleep, and no other has a process. */
static void wait_asleep(uint32_t n)
{
	for (int i = 0; i < 6000 && n_asleep() != n; i++)
		wait_ms(5);
	assert_int_equal(n_asleep(), n);
}

static struct sandbox *asleep(const struct sandbox_spec *spec)
{
	struct sandbox *sb = make(spec);

	wait_asleep(1);
	assert_int_equal(n_inits(), 0);
	return sb;
}

/* It would have fallen asleep by now, if it could: one that was made later has, twice. */
static void assert_stays_awake(void)
{
	struct sandbox *other = make(NULL);

	wait_asleep(1);
	assert_string_equal(sh(other, "echo well"), "well");
	wait_asleep(1);
	assert_int_equal(n_inits(), 1);
	destroy(other);
}

/* ---- what it keeps --------------------------------------------------------------------------- */

static void test_files(void **state)
{
	static const char look[] =
		"cd /; find workspace tmp run/shm -printf '%p %y %m %u %l %s %i %T@ %C@\\n' | sort";
	const struct env_var env = { STR_LIT("A"), STR_LIT("b c") };
	struct sandbox *sb =
		make(&(struct sandbox_spec){ .env = &env, .n_env = 1, .cwd = STR_LIT("/tmp") });
	char before[8192];

	sh(sb,
	   "cd /workspace; echo x > f; ln -s f l; mkfifo p; mkdir -m 2700 d; seq 100000 > d/many; "
	   "ln f hard;"
	   "touch -d 2001-01-01 f; chmod 4711 d/many; echo s > /run/shm/s; truncate -s 1G holes");
	snprintf(before, sizeof(before), "%s", sh(sb, look));
	for (int i = 0; i < 3; i++) {
		wait_asleep(1);
		assert_int_equal(n_inits(), 0);
		assert_string_equal(sh(sb, look), before);
		assert_string_equal(sh(sb, "echo $A,$(pwd)"), "b c,/tmp");
	}
	wait_asleep(1);
	assert_string_equal(get(sb, "/workspace/f"), "x\n");
	wait_asleep(1);
	put(sb, "/workspace/f", "y");
	wait_asleep(1);
	assert_string_equal(sh(sb, "cat /workspace/f; ls /tmp | wc -l"), "y0");
}

/* What holds it is put on each new process, like on the first. */
static void test_confined(void **state)
{
	static const char look[] =
		"grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status;"
		"cat /proc/self/limits /proc/self/uid_map; hostname;"
		"cut -d' ' -f4- /proc/self/mountinfo | sed 's/ [0-9]*:[0-9]* / /' | sort;"
		"ls /proc/self/fd /sys/class/net /proc/1 2>&1; cut -d: -f1,2 /proc/self/cgroup;"
		"stat -c '%n %A %u %g' /* /dev/*; cat /proc/net/dev | cut -d: -f1; ulimit -a";
	struct sandbox *sb = make(NULL);
	char before[16384];

	snprintf(before, sizeof(before), "%s", sh(sb, look));
	wait_asleep(1);
	assert_string_equal(sh(sb, look), before);
	wait_asleep(1);
	/* and what it must not do, it still may not */
	assert_int_not_equal(sh_code(sb, "mount -t tmpfs none /tmp"), 0);
	assert_int_not_equal(sh_code(sb, "unshare -U true"), 0);
	assert_int_not_equal(sh_code(sb, "echo x > /usr/x"), 0);
	assert_int_not_equal(sh_code(sb, "kill -9 1 && sleep 0.1 && kill -0 1 && false"), 0);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* Its limits are still its own, and what its files take of them is not forgotten. */
static void test_limits(void **state)
{
	struct sandbox *sb = make(&(struct sandbox_spec){
		.limits = { .memory = 64 * MIB, .disk = 16 * MIB, .pids = 20 } });

	sh(sb, "head -c 12582912 /dev/zero > f");
	wait_asleep(1);
	assert_int_not_equal(sh_code(sb, "head -c 8388608 /dev/zero > g"), 0);
	assert_string_equal(sh(sb, "stat -c %s f; rm f g"), "12582912");
	wait_asleep(1);
	assert_int_equal(sh_code(sb, "head -c 12582912 /dev/zero > f"), 0);
	/* with neither a byte nor a name left */
	sh_code(sb, "head -c 99999999 /dev/zero > g; i=0;"
		    "while : > n$i; do i=$((i + 1)); done 2>/dev/null");
	wait_asleep(1);
	assert_int_not_equal(sh_code(sb, "echo x > one-more"), 0);
	wait_asleep(1);
	assert_int_equal(sh_code(sb, "rm -f g n*; echo x > one-more"), 0);
	wait_asleep(1);
	assert_int_not_equal(
		sh_code(sb, "for i in $(seq 40); do sleep 1 & done 2>&1; wait; exit 1"), 0);
	if (!limits_by("rlimit")) {
		struct ran *r = ran_shell(sb, "head -c 104857600 /dev/zero | tail");

		ran_wait(r);
		assert_true(r->result.hit_memory);
	}
}

/* ---- what wakes it --------------------------------------------------------------------------- */

static void test_many_at_once(void **state)
{
	struct sandbox *sb = asleep(NULL);
	struct filed *f[20];
	struct ran *r[20];

	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		char path[32];

		snprintf(path, sizeof(path), "/tmp/%zu", i);
		f[i] = put_start(sb, path, STR_LIT("x"), NULL);
		r[i] = ran_shell(sb, "echo $((6 * 7))");
	}
	for (size_t i = 0; i < ARRAY_LEN(r); i++) {
		ran_wait(r[i]);
		assert_int_equal(r[i]->err.code, 0);
		assert_string_equal(buf_str(&r[i]->out).p, "42\n");
		assert_int_equal(filed_code(f[i]), 0);
	}
	assert_string_equal(sh(sb, "ls /tmp | wc -l"), "20");
}

/* More than there is room for in its socket. */
static void test_much_at_once(void **state)
{
	static char line[90000];
	struct sandbox *sb = make(NULL);
	struct ran *r[120];

	memset(line, 'x', sizeof(line) - 1);
	memcpy(line, "echo x >> f #", 13);
	for (int i = 0; i < 2; i++) {
		wait_asleep(1);
		for (size_t k = 0; k < ARRAY_LEN(r); k++)
			r[k] = ran_shell(sb, line);
		for (size_t k = 0; k < ARRAY_LEN(r); k++) {
			ran_wait(r[k]);
			assert_int_equal(r[k]->err.code, 0);
			assert_int_equal(r[k]->result.exit_code, 0);
		}
	}
	assert_string_equal(sh(sb, "wc -l < f"), "240");
}

static void test_fork(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;

	put(sb, "/workspace/f", "as it was");
	wait_asleep(1);
	f = fork_of(sb, 3);
	wait_asleep(4);
	for (size_t i = 0; i < f->n; i++)
		assert_string_equal(sh(f->children[i], "cat f; echo more >> f"), "as it was");
	assert_string_equal(sh(sb, "cat f"), "as it was");
	wait_asleep(4);
	/* that was forked, slept, and is forked again, with what it wrote meanwhile */
	sh(sb, "echo, >> f; rm -f f; echo new > f");
	wait_asleep(4);
	f = fork_of(sb, 1);
	assert_string_equal(sh(f->children[0], "cat f"), "new");
	wait_asleep(5);
	assert_string_equal(sh(sb, "cat f"), "new");
}

/* A chain of forks, each of one that slept. */
static void test_fork_deep(void **state)
{
	struct sandbox *sb = make(NULL);

	for (int i = 0; i < 30; i++) {
		sh(sb, "echo x >> f");
		wait_asleep((uint32_t)i + 1);
		sb = fork_of(sb, 1)->children[0];
		wait_asleep((uint32_t)i + 2);
	}
	assert_string_equal(sh(sb, "wc -l < f"), "30");
}

static void on_written(void *arg, struct sandbox *sb, const struct err *err)
{
	*(bool *)arg = err == NULL;
}

static void test_write(void **state)
{
	autoclose int file = memfd_create("written", MFD_CLOEXEC);
	struct sandbox *sb = make(NULL);
	bool done = false;
	char text[64] = "";

	put(sb, "/tmp/f", "x");
	wait_asleep(1);
	sandbox_write_start(sb, SANDBOX_WRITE_NAMES, fcntl(file, F_DUPFD_CLOEXEC, 0), on_written,
			    &done);
	assert_false(done);
	wait_for(&done, "what was changed");
	assert_int_equal(pread(file, text, sizeof(text), 0), 2 + sizeof("/tmp/f"));
	assert_string_equal(text + 2, "/tmp/f");
	wait_asleep(1);
}

static void on_turned(void *arg, struct sandbox *sb, const struct err *err)
{
	*(bool *)arg = err == NULL;
}

static void test_pause(void **state)
{
	struct sandbox *sb = asleep(NULL);
	struct err e = ERR_INIT;
	const struct exec_spec spec = { .shell = STR_LIT("true") };
	const struct exec_events none = { 0 };
	bool done = false;

	sandbox_pause_start(sb, on_turned, &done);
	wait_for(&done, "a pause");
	assert_true(sandbox_paused(sb));
	assert_null(exec_start(sb, &spec, &none, NULL, &e));
	assert_int_equal(e.code, ERR_PAUSED);
	assert_stays_awake();
	done = false;
	sandbox_resume_start(sb, on_turned, &done);
	wait_for(&done, "a resume");
	wait_asleep(1);
	assert_string_equal(sh(sb, "echo well"), "well");
}

static void on_dialed(void *arg, int fd, const struct err *err)
{
	assert_int_equal(fd, -1);
	*(enum err_code *)arg = err->code;
}

/* Whoever only looks does not wake it; nor who knocks, as nobody could open. */
static void test_looked_at(void **state)
{
	struct sandbox *sb = make(NULL);
	enum err_code code = ERR_NONE;
	struct usage before, now;

	sh(sb, "head -c 5242880 /dev/zero > f; i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done");
	before = usage_of(sb);
	wait_asleep(1);
	now = usage_of(sb);
	assert_true(now.disk >= 5 * MIB && now.execs == 1 && now.execs_running == 0);
	assert_int_equal(now.disk, before.disk);
	assert_true(!now.has_memory || now.memory >= 5 * MIB);
	assert_true(!now.has_cpu || now.cpu_us >= before.cpu_us);
	assert_true(!now.has_pids || now.pids == 0);
	sandbox_dial_start(sb, 8000, on_dialed, &code);
	for (int i = 0; i < 3000 && !code; i++)
		wait_ms(10);
	assert_int_equal(code, ERR_PORT);
	assert_int_equal(n_asleep(), 1);
}

/* ---- what keeps it awake --------------------------------------------------------------------- */

static void test_programs(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r = ran_shell(sb, "sleep 1000");
	char line[64];

	assert_stays_awake();
	exec_kill(r->x);
	ran_wait(r);
	wait_asleep(1);
	/* in the background, of an exec that has ended */
	snprintf(line, sizeof(line), "kill %s", sh(sb, "sleep 1000 >/dev/null 2>&1 & echo $!"));
	assert_stays_awake();
	sh(sb, line);
	wait_asleep(1);
}

static void on_change(void *arg, const struct file_change *c)
{
	++*(size_t *)arg;
}

static void on_transferred(void *arg, const struct err *err)
{
	fail_msg("a stream has ended that was to be stopped");
}

static void test_streams(void **state)
{
	struct sandbox *sb = make(NULL);
	struct file_transfer *t;
	size_t changes = 0;
	int ends[2];

	t = file_watch_start(sb, STR_LIT("/tmp"), false, on_change, on_transferred, &changes);
	assert_stays_awake();
	for (int i = 0; i < 3000 && !changes; i++)
		put(sb, "/tmp/f", "x");
	assert_true(changes > 0);
	file_transfer_stop(t);
	wait_asleep(1);
	/* an archive that nobody reads */
	sh(sb, "head -c 1000000 /dev/zero > f");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	t = file_archive_start(sb, STR_LIT("/workspace"), &(struct file_archive_opts){ 0 }, ends[1],
			       on_transferred, NULL);
	assert_stays_awake();
	file_transfer_stop(t);
	wait_asleep(1);
	close(ends[0]);
}

/* They last without a process, but not without its namespace. */
static void test_ipc(void **state)
{
	static const char *const make_one[] = { "ipcmk -M 4096", "ipcmk -S 1", "ipcmk -Q" };
	struct sandbox *sb = make(NULL);

	for (size_t i = 0; i < ARRAY_LEN(make_one); i++) {
		if (sh_code(sb, make_one[i]))
			/* what is not attached may go at once, see box/warden/spawn.c; and not
			 * every host has ipcmk */
			continue;
		if (sh_code(sb, "[ $(cat /proc/sysvipc/* | wc -l) -gt 3 ]"))
			continue;
		assert_stays_awake();
		sh(sb, "ipcrm -a");
		wait_asleep(1);
	}
}

static void test_mounts(void **state)
{
	const char *dir = host_dir();
	const struct sandbox_mount mount = { .host = str_of(dir), .guest = STR_LIT("/mnt/m") };

	make(&(struct sandbox_spec){ .mounts = &mount, .n_mounts = 1 });
	assert_stays_awake();
}

/* With its files alone it would use up its memory, so it might never wake; unless nobody counts
 * them. */
static void test_full_memory(void **state)
{
	struct sandbox *sb =
		make(&(struct sandbox_spec){ .limits = { .memory = 32 * MIB, .disk = 30 * MIB } });

	sh(sb, "head -c 27262976 /dev/zero > f");
	if (!limits_by("rlimit")) {
		assert_stays_awake();
		sh(sb, "rm f");
	}
	wait_asleep(1);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* ---- how it ends, and what fails ------------------------------------------------------------- */

static void test_ends(void **state)
{
	struct sandbox *sb = asleep(NULL);
	struct err e = ERR_INIT;
	struct ran *r;

	destroy(sb);
	assert_int_equal(n_asleep(), 0);
	/* while it wakes */
	sb = asleep(NULL);
	r = ran_shell(sb, "sleep 1000");
	destroy(sb);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_CANCELLED);
	/* by its time to live */
	assert_int_equal(sandbox_set_ttl(asleep(NULL), 10, &e), 0);
	wait_asleep(0);
	/* at every moment of falling asleep */
	for (unsigned ms = 0; ms < 20; ms++) {
		sb = make(NULL);
		wait_ms(AFTER_MS - 10 + ms);
		destroy(sb);
	}
	/* and with the engine */
	asleep(NULL);
	ran_shell(make(NULL), "sleep 1000");
}

static void kill_warden(const struct sandbox *sb)
{
	kill(warden_pid(), SIGKILL);
	for (int i = 0; i < 3000 && sandbox_live(sb); i++)
		wait_ms(10);
	assert_false(sandbox_live(sb));
}

static void test_killed_warden(void **state)
{
	struct sandbox *sb = asleep(NULL);
	struct ran *r;

	kill_warden(sb);
	sb = asleep(NULL);
	r = ran_shell(sb, "echo well"); /* which may end before that is noticed */
	kill_warden(sb);
	ran_wait(r);
}

static void limit_files(pid_t pid, rlim_t n)
{
	struct rlimit l;

	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, NULL, &l), 0);
	l.rlim_cur = n ? n : l.rlim_max;
	assert_int_equal(prlimit(pid, RLIMIT_NOFILE, &l, NULL), 0);
}

/* One that can't be woken is not lost: who asked is told, and the next who asks may have it. */
static void test_not_now(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;
	struct ran *r;
	bool paused = true;
	unsigned tried = 0;

	put(sb, "/workspace/f", "kept");
	/* the first are too few, also where the warden was still closing some when counted */
	for (rlim_t more = 0; more < 20; more += 2) {
		wait_asleep(1);
		limit_files(warden_pid(), fds_of(warden_pid()) + more - 8);
		r = ran_shell(sb, "cat f");
		ran_wait(r);
		if (!r->err.code)
			break; /* that many are enough */
		tried++;
		assert_true(filed_code(get_start(sb, "/workspace/f", 0, 10)) != ERR_NONE);
		f = fork_start(sb, 1);
		wait_for(&f->done, "a fork");
		assert_int_not_equal(f->err.code, ERR_NONE);
		sandbox_pause_start(sb, on_turned, &paused);
		for (int i = 0; i < 3000 && paused; i++)
			wait_ms(10);
		assert_false(paused);
		assert_true(sandbox_live(sb) && !sandbox_paused(sb));
		paused = true;
		limit_files(warden_pid(), 0);
		assert_string_equal(sh(sb, "cat f"), "kept");
	}
	limit_files(warden_pid(), 0);
	assert_true(tried > 0);
	assert_string_equal(sh(sb, "cat f"), "kept");
	wait_asleep(1);
}

/* It wakes, and who asked for it has no descriptor left to reach it by. */
static void test_no_descriptors(void **state)
{
	struct sandbox *sb = make(NULL);

	put(sb, "/workspace/f", "kept");
	for (int i = 0; i < 3; i++) {
		enum err_code first, again;
		int next;

		wait_asleep(1);
		next = dup(STDERR_FILENO);
		close(next);
		limit_files(getpid(), (rlim_t)next);
		first = filed_code(stat_start(sb, "f"));
		again = filed_code(stat_start(sb, "f"));
		limit_files(getpid(), 0);
		assert_int_equal(first, ERR_LIMIT);
		assert_int_equal(again, ERR_LIMIT);
		assert_true(n_inits() <= 1); /* it may sleep again */
		assert_string_equal(sh(sb, "cat f"), "kept");
	}
	wait_asleep(1);
}

/* ---- again and again ------------------------------------------------------------------------- */

/* It takes no more of anything with each time. */
static void test_cycles(void **state)
{
	struct sandbox *sb = asleep(NULL);
	unsigned n = soak(100);
	size_t fds, own;

	sh(sb, "true");
	wait_asleep(1);
	fds = fds_of(warden_pid());
	own = fds_of(getpid());
	for (unsigned i = 0; i < n; i++) {
		sh(sb, "echo x >> f");
		wait_asleep(1);
	}
	assert_fds(warden_pid(), fds);
	assert_int_equal(fds_of(getpid()), own);
	assert_int_equal(atoi(sh(sb, "wc -l < f")), n);
}

/* Used at every moment of falling asleep and waking, by whatever there is. */
static void test_every_moment(void **state)
{
	enum { MANY = 6 };
	struct sandbox *sb[MANY];
	struct ran *r[MANY];
	struct forked *f[MANY];
	unsigned forked = 0, rounds = soak(200);

	engine_stop();
	engine_start(&(struct box_config){ .sleep_after_ms = 1 });
	for (size_t i = 0; i < MANY; i++)
		sb[i] = make(NULL);
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < MANY; i++) {
			wait_ms((unsigned)random() % 3);
			f[i] = random() % 8 ? NULL : fork_start(sb[i], 1);
			r[i] = ran_shell(sb[i], "echo x >> f");
		}
		for (size_t i = 0; i < MANY; i++) {
			ran_wait(r[i]);
			assert_int_equal(r[i]->err.code, 0);
			assert_int_equal(r[i]->result.exit_code, 0);
			if (!f[i])
				continue;
			wait_for(&f[i]->done, "a fork");
			assert_int_equal(f[i]->err.code, 0);
			destroy(f[i]->children[0]);
			forked++;
		}
	}
	assert_true(forked > 0);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(atoi(sh(sb[i], "wc -l < f")), rounds);
}

/* ---- with another hub ------------------------------------------------------------------------ */

static char dir[64], kept_dir[80];
static const struct box_config kept = { .warden_dir = kept_dir,
					.linger_ms = 60000,
					.sleep_after_ms = AFTER_MS };

static int setup_kept(void **state)
{
	strcpy(dir, "/tmp/holt-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(kept_dir, sizeof(kept_dir), "%s/warden", dir);
	engine_start(&kept);
	return 0;
}

static int teardown_kept(void **state)
{
	int failed = engine_teardown(state);

	host_remove(dir);
	return failed;
}

#define kept_test(f) cmocka_unit_test_setup_teardown(f, setup_kept, teardown_kept)

static void leave(void)
{
	engine_leave();
	engine_start(&kept);
}

static struct sandbox *one(void)
{
	struct sandbox *sb = box_find(box, STR_LIT("one"));

	assert_non_null(sb);
	return sb;
}

static void test_adopted(void **state)
{
	put(make(&(struct sandbox_spec){ .id = STR_LIT("one") }), "/workspace/f", "kept");
	for (uint32_t i = 1; i < 4; i++) {
		wait_asleep(i);
		leave();
		assert_int_equal(n_asleep(), i);
		assert_string_equal(sh(one(), "cat f"), "kept");
		assert_string_equal(sh(fork_of(one(), 1)->children[0], "cat f"), "kept");
	}
	leave();
	leave();
	wait_asleep(4);
	destroy(one());
	leave();
	assert_int_equal(n_asleep(), 3);
}

/* A hub that goes at every moment of falling asleep and waking: the next one has all that was
 * acknowledged. */
static void test_left_at_every_moment(void **state)
{
	int rounds = (int)soak(150), lines = 0;

	make(&(struct sandbox_spec){ .id = STR_LIT("one") });
	for (int i = 0; i < rounds; i++) {
		sh(one(), "echo x >> f");
		lines++;
		if (i % 3 == 0) { /* about to fall asleep */
			wait_ms(AFTER_MS - 3 + (unsigned)i % 10);
		} else {
			wait_asleep(1);
			ran_shell(one(), "true"); /* which wakes it */
			wait_ms((unsigned)i % 8);
		}
		leave();
	}
	wait_asleep(1);
	/* told that it sleeps while it wakes for the hub before: it has no name yet, then it
	 * has, then it ends */
	for (int i = 0, none = 0; i < 3000 && none < 100; i++) {
		none = n_inits() ? 0 : none + 1;
		wait_ms(10);
	}
	assert_int_equal(n_inits(), 0);
	assert_int_equal(atoi(sh(one(), "wc -l < f")), lines);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		sleep_test(test_files),
		sleep_test(test_confined),
		sleep_test(test_limits),
		sleep_test(test_many_at_once),
		sleep_test(test_much_at_once),
		sleep_test(test_fork),
		sleep_test(test_fork_deep),
		sleep_test(test_write),
		sleep_test(test_pause),
		sleep_test(test_looked_at),
		sleep_test(test_programs),
		sleep_test(test_streams),
		sleep_test(test_ipc),
		sleep_test(test_mounts),
		sleep_test(test_full_memory),
		sleep_test(test_ends),
		sleep_test(test_killed_warden),
		sleep_test(test_not_now),
		sleep_test(test_no_descriptors),
		sleep_test(test_cycles),
		sleep_test(test_every_moment),
		kept_test(test_adopted),
		kept_test(test_left_at_every_moment),
	};

	return ENGINE_MAIN(argc, argv, "sleep", tests);
}
