/* box/archive/confine.h: what a process that was taken over by what it reads may not do, and, as
 * a control, what it may. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/archive/confine.h"
#include "box/archive/tree.h"
#include "test.h"

struct fixture {
	char path[64];
	int top, in, source, from,
		/* in, source: below top, what may be written and read; other: is nobody's
		 * business */
		other;
	pid_t self;
};

/* ---- what is tried; at least 0: it went ------------------------------------------------------ */

static int write_in(const struct fixture *f)
{
	autoclose int fd = openat(f->in, "new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 || write(fd, "x", 1) != 1 || mkdirat(f->in, "dir", 0700) < 0 ? -1 : 0;
}

static int list(const struct fixture *f)
{
	int fd = openat(f->in, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	int n = 0;

	while (d && readdir(d))
		n++;
	return d && closedir(d) == 0 && n == 4 ? 0 : -1;
}

static int read_on(const struct fixture *f)
{
	char c;

	return read(f->from, &c, 1) == 1 && c == 'a' ? 0 : -1;
}

static int read_elsewhere(const struct fixture *f)
{
	autoclose int fd = openat(AT_FDCWD, "/etc/passwd", O_RDONLY | O_CLOEXEC);

	return fd;
}

static int read_above(const struct fixture *f)
{
	autoclose int fd = openat(f->in, "../secret", O_RDONLY | O_CLOEXEC);

	return fd;
}

static int read_source(const struct fixture *f)
{
	autoclose int fd = openat(f->source, "of", O_RDONLY | O_CLOEXEC);

	return fd;
}

static int write_source(const struct fixture *f)
{
	autoclose int fd = openat(f->source, "of", O_WRONLY | O_CLOEXEC);

	return fd;
}

static int read_above_source(const struct fixture *f)
{
	autoclose int fd = openat(f->source, "../secret", O_RDONLY | O_CLOEXEC);

	return fd;
}

static int write_elsewhere(const struct fixture *f)
{
	char path[96];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "%s/secret", f->path);
	fd = openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	return fd;
}

static int link_above(const struct fixture *f)
{
	return linkat(f->in, "../secret", f->in, "link", 0);
}

static int make_device(const struct fixture *f)
{
	return mknodat(f->in, "null", S_IFCHR | 0666, 0x103);
}

static int make_pipe(const struct fixture *f)
{
	return mknodat(f->in, "pipe", S_IFIFO | 0600, 0);
}

static int conversation(const struct fixture *f)
{
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd;
}

static int execute(const struct fixture *f)
{
	char *const argv[] = { "true", NULL };

	return execve("/bin/true", argv, argv + 1); /* that it went shows as an early end */
}

static int signal_process(const struct fixture *f)
{
	return kill(f->self, SIGCONT);
}

static int signal_thread(const struct fixture *f)
{
	return (int)syscall(SYS_tgkill, f->self, f->self, SIGCONT);
}

static int signal_when_ready(const struct fixture *f)
{
	return fcntl(f->from, F_SETOWN, f->self);
}

static int use_others(const struct fixture *f)
{
	return fcntl(f->other, F_GETFD);
}

static int use_output(const struct fixture *f)
{
	return fcntl(STDOUT_FILENO, F_GETFD);
}

static int trace(const struct fixture *f)
{
	return (int)syscall(SYS_ptrace, 16 /* ATTACH */, f->self, 0, 0);
}

static int unconfine(const struct fixture *f)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static const struct {
	const char *name;
	int (*f)(const struct fixture *f);
	bool may;
} rows[] = {
	{ "write in its directory", write_in, .may = true },
	{ "list its directory", list, .may = true },
	{ "read on", read_on, .may = true },
	{ "read its source", read_source, .may = true },
	{ "write to its source", write_source },
	{ "read above its source", read_above_source },
	{ "read elsewhere", read_elsewhere },
	{ "write elsewhere", write_elsewhere },
	{ "read above its directory", read_above },
	{ "link to above its directory", link_above },
	{ "make a device", make_device },
	{ "make a pipe", make_pipe },
	{ "open a socket", conversation },
	{ "execute", execute },
	{ "signal a process", signal_process },
	{ "signal a thread", signal_thread },
	{ "have a signal sent", signal_when_ready },
	{ "use another's descriptor", use_others },
	{ "use standard output", use_output },
	{ "trace its caller", trace },
	{ "call prctl", unconfine },
};

static int try_all(void *arg, void *out, struct err *e)
{
	bool *went = out;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		went[i] = rows[i].f(arg) >= 0;
	return 0;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void make(struct fixture *f)
{
	strcpy(f->path, "/tmp/box_confine.XXXXXX");
	assert_non_null(mkdtemp(f->path));
	f->top = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->top, "in", 0700), 0);
	f->in = openat(f->top, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->top, "source", 0700), 0);
	f->source = openat(f->top, "source", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(openat(f->source, "of", O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	f->other = openat(f->top, "secret", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(f->other, "ab", 2), 2);
	f->from = openat(f->top, "secret", O_RDONLY | O_CLOEXEC);
	assert_true(f->in >= 0 && f->from >= 0);
	f->self = getpid();
}

static void unmake(struct fixture *f)
{
	assert_int_equal(tree_remove(AT_FDCWD, f->path), 0);
	close(f->from);
	close(f->other);
	close(f->source);
	close(f->in);
	close(f->top);
}

static void check_rows(bool landlock)
{
	bool went[ARRAY_LEN(rows)] = { false };
	struct err e = ERR_INIT;
	struct fixture f;
	struct confine c;
	int rc;

	make(&f);
	c = (struct confine){
		.write = f.in, .read = f.source, .from = f.from, .to = -1, .what = "try"
	};
	rc = confine_run(&c, try_all, &f, went, sizeof(went), &e);
	if (!landlock && geteuid() != 0) {
		assert_int_equal(rc, -1);
		assert_int_equal(e.code, ERR_UNSUPPORTED);
	} else {
		assert_int_equal(rc, 0);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			ROW_CHECK(went[i] == rows[i].may, rows[i].name);
		assert_int_equal(faccessat(f.in, "new", F_OK, 0), 0);
	}
	unmake(&f);
}

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* VERSION */) >= 1;
}

static void it_may_do_its_work_and_nothing_else(void **state)
{
	NEEDS_A_KERNEL("seccomp");
	check_rows(has_landlock());
}

/* As a kernel without Landlock answers, for this process and its children. */
static void lose_landlock(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	assert_false(has_landlock());
}

/* The last test, since Landlock does not come back. */
static void nor_where_there_is_no_landlock(void **state)
{
	NEEDS_A_KERNEL("seccomp");
	lose_landlock();
	check_rows(false);
}

/* Without signals abort() ends in SIGSEGV, for which cmocka and a sanitizer have handlers. */
static void die_of_it(void)
{
	signal(SIGSEGV, SIG_DFL);
}

static int crash(void *arg, void *out, struct err *e)
{
	die_of_it();
	abort();
}

static int eat(void *arg, void *out, struct err *e)
{
	die_of_it(); /* a sanitizer's allocator aborts */
	for (;;) {
		char *p = malloc(16 << 20);

		if (!p)
			return err_set(e, ERR_LIMIT, "no more");
		memset(p, 1, 16 << 20);
		__asm__ volatile("" : : "r"(p) : "memory"); /* else clang takes nothing at all */
	}
}

static int lie(void *arg, void *out, struct err *e)
{
	e->code = 99999;
	memset(e->msg, 'x', sizeof(e->msg));
	return -1;
}

static void a_crash_is_an_error(void **state)
{
	static const struct {
		const char *name;
		int (*f)(void *arg, void *out, struct err *e);
		enum err_code code; /* ERR_NONE: of a sanitizer's choice */
	} ends[] = {
		{ "abort", crash, ERR_IMAGE },
		{ "eat", eat, ERR_NONE },
		{ "lie", lie, ERR_BUG },
	};

	NEEDS_A_KERNEL("seccomp");
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct confine c = {
			.write = -1, .read = -1, .from = -1, .to = -1, .what = "try"
		};
		struct err e = ERR_INIT;
		int out = 5;

		ROW_CHECK(confine_run(&c, ends[i].f, NULL, &out, sizeof(out), &e) == -1,
			  ends[i].name);
		ROW_CHECK(e.code && (!ends[i].code || e.code == ends[i].code), ends[i].name);
		ROW_CHECK(strnlen(e.msg, sizeof(e.msg)) < sizeof(e.msg), ends[i].name);
	}
}

/* Tells its process id, and waits for a signal. */
static int await_signal(void *arg, void *out, struct err *e)
{
	const pid_t self = getpid();

	signal(SIGSEGV, SIG_DFL); /* cmocka has handlers */
	signal(SIGSYS, SIG_DFL);
	if (write(*(int *)arg, &self, sizeof(self)) == sizeof(self))
		for (;;)
			sched_yield();
	return -1;
}

/* Sends it the signal; it is to end by SIGXCPU before SIGKILL ends it. */
static pid_t start_killer(int from, int number)
{
	pid_t pid = fork(), victim;
	struct rlimit cpu;
	bool soft;

	if (pid != 0)
		return pid;
	if (read(from, &victim, sizeof(victim)) != sizeof(victim))
		_exit(1);
	soft = prlimit(victim, RLIMIT_CPU, NULL, &cpu) == 0 && cpu.rlim_cur < cpu.rlim_max;
	_exit(kill(victim, number) < 0 || !soft ? 2 : 0);
}

/* Memory that is used up is no fault of what is read. */
static void what_is_killed_is_not_blamed_on_its_input(void **state)
{
	static const struct {
		const char *name;
		int number;
		enum err_code crash, code;
	} ends[] = {
		{ "killed", SIGKILL, ERR_NONE, ERR_IO },
		{ "out of time", SIGXCPU, ERR_NONE, ERR_TOO_LARGE },
		{ "a forbidden call", SIGSYS, ERR_NONE, ERR_IMAGE },
		{ "a crash", SIGSEGV, ERR_NONE, ERR_IMAGE },
		{ "a crash of a packer", SIGSEGV, ERR_SNAPSHOT, ERR_SNAPSHOT },
	};

	NEEDS_A_KERNEL("seccomp");
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct err e = ERR_INIT;
		int pipes[2], out = 5, status;
		struct confine c;
		pid_t killer;

		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		killer = start_killer(pipes[0], ends[i].number);
		c = (struct confine){ .write = -1,
				      .read = -1,
				      .from = -1,
				      .to = pipes[1],
				      .what = "try",
				      .crash = ends[i].crash };
		ROW_CHECK(confine_run(&c, await_signal, &pipes[1], &out, sizeof(out), &e) == -1,
			  ends[i].name);
		ROW_CHECK(e.code == ends[i].code, ends[i].name);
		assert_int_equal(waitpid(killer, &status, 0), killer);
		ROW_CHECK(status == 0, ends[i].name);
		close(pipes[0]);
		close(pipes[1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_may_do_its_work_and_nothing_else),
		cmocka_unit_test(a_crash_is_an_error),
		cmocka_unit_test(what_is_killed_is_not_blamed_on_its_input),
		cmocka_unit_test(nor_where_there_is_no_landlock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
