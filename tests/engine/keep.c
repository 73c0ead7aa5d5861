/* A warden that outlives its hub, a step at a time: who finds it, what of the sandboxes is there
 * then, and when it ends. Hubs that are really killed are in keep_crash.c. */
#include "engine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "box/wire/wire.h"
#include "host.h"

enum { LINGER_MS = 60000 }; /* so that a test that fails leaves nothing for long */

static char dir[64], kept_dir[80];
static struct box_config kept; /* of every engine here */

static void begin(void)
{
	engine_start(&kept);
}

static int setup(void **state)
{
	strcpy(dir, "/tmp/holt-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(kept_dir, sizeof(kept_dir), "%s/warden", dir);
	kept = (struct box_config){ .warden_dir = kept_dir, .linger_ms = LINGER_MS };
	begin();
	return 0;
}

static size_t files_in(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 2 ? n - 2 : 0;
}

/* Nothing is left in the folder either. */
static int teardown(void **state)
{
	engine_stop();
	for (int i = 0; i < 500 && files_in(kept_dir); i++)
		usleep(10000);
	assert_int_equal(files_in(kept_dir), 0);
	host_remove(dir);
	return 0;
}

#define keep_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void count(void *arg, struct sandbox *sb)
{
	++*(size_t *)arg;
}

static size_t live(void)
{
	size_t n = 0;

	box_each(box, count, &n);
	return n;
}

/* The one that was made before. */
static struct sandbox *found(const char *id)
{
	struct sandbox *sb = box_find(box, str_of(id));

	if (!sb)
		fail_msg("%s is not there", id);
	assert_true(sandbox_live(sb) && sandbox_adopted(sb));
	return sb;
}

static const char *keep_id(const struct sandbox *sb)
{
	static char ids[8][80];
	static size_t at;

	snprintf(ids[at % 8], sizeof(ids[0]), "%s", sandbox_id(sb));
	return ids[at++ % 8];
}

/* Whether a program of that name runs in it. */
static bool runs(struct sandbox *sb, const char *name)
{
	char line[128];

	snprintf(line, sizeof(line), "grep -qsx %s /proc/[0-9]*/comm", name);
	return sh_code(sb, line) == 0;
}

/* What was killed may be seen until its memory is given back. */
static void runs_no_more(struct sandbox *sb, const char *name)
{
	for (int i = 0; i < 1000 && runs(sb, name); i++)
		wait_ms(10);
	assert_false(runs(sb, name));
}

/* ---- what is there --------------------------------------------------------------------------- */

static void test_all_of_it(void **state)
{
	const struct env_var env[] = { { STR_LIT("A"), STR_LIT("b c") },
				       { STR_LIT("E"), STR_LIT("") } };
	const struct sandbox_spec spec = {
		.limits = { .memory = 200 * MIB, .disk = 20 * MIB, .pids = 50 },
		.ttl_ms = 60000,
		.env = env,
		.n_env = 2,
		.cwd = STR_LIT("/tmp"),
		.record = { "my\0own", 6 },
	};
	struct sandbox *sb = make(&spec);
	const char *id = keep_id(sb);
	struct ran *r;

	assert_false(sandbox_adopted(sb));
	put(sb, "f", "contents");
	sh(sb, SLEEPS);
	r = ran_shell(sb, "tail -f /dev/null | cat");
	wait_ms(50);
	assert_false(r->done);
	engine_leave();
	begin();
	assert_int_equal(live(), 1);
	sb = found(id);
	assert_int_equal(sandbox_limits(sb)->memory, 200 * MIB);
	assert_int_equal(sandbox_limits(sb)->pids, 50);
	assert_string_equal(sandbox_template(sb), "host");
	assert_in_range(sandbox_ttl_left_ms(sb), 30000, 60000);
	assert_int_equal(sandbox_record(sb).n, 6);
	assert_memory_equal(sandbox_record(sb).p, "my\0own", 6);
	assert_string_equal(get(sb, "/tmp/f"), "contents");
	assert_string_equal(sh(sb, "echo $A,$E,$(pwd)"), "b c,,/tmp");
	assert_true(runs(sb, "sleep"));
	runs_no_more(sb, "tail");
	assert_string_equal(sh(fork_of(sb, 2)->children[1], "cat f; echo $A"), "contentsb c");
	destroy(sb);
	assert_int_equal(live(), 2);
}

static void test_again_and_again(void **state)
{
	const char *id = keep_id(make(NULL)), *child;
	struct sandbox *sb;

	for (int i = 0; i < 5; i++) {
		engine_leave();
		begin();
		sb = found(id);
		sh(sb, "echo x >> f");
		ran_shell(sb, "sleep 1000");
	}
	child = keep_id(fork_of(sb, 1)->children[0]);
	engine_leave();
	begin();
	assert_string_equal(sh(found(child), "wc -l < f"), "5");
	assert_string_equal(sh(found(id), "wc -l < f"), "5");
	runs_no_more(found(id), "sleep");
	assert_string_equal(sh(make(NULL), "echo well"), "well");
}

/* What was set later counts. */
static void test_set_later(void **state)
{
	struct sandbox *sb = make(&(struct sandbox_spec){ .ttl_ms = 1000 });
	const char *id = keep_id(sb);
	char *large = calloc(1, RECORD_BYTES_MAX + 1);
	struct err e = ERR_INIT;

	assert_non_null(large);
	assert_int_equal(sandbox_set_ttl(sb, 90000, &e), 0);
	assert_int_equal(sandbox_set_record(sb, STR_LIT("second"), &e), 0);
	assert_int_equal(sandbox_set_record(sb, (struct str){ large, RECORD_BYTES_MAX + 1 }, &e),
			 -1);
	assert_int_equal(e.code, ERR_TOO_LARGE);
	free(large);
	engine_leave();
	begin();
	sb = found(id);
	assert_in_range(sandbox_ttl_left_ms(sb), 60000, 90000);
	assert_true(str_is(sandbox_record(sb), "second"));
	assert_int_equal(sandbox_set_ttl(sb, 0, &e), 0);
	assert_int_equal(sandbox_ttl_left_ms(sb), -1);
	assert_int_equal(sandbox_set_ttl(sb, 100, &e), 0);
	for (int i = 0; i < 1500 && live() > 0; i++)
		wait_ms(10);
	assert_int_equal(live(), 0);
}

static size_t answered(struct made *const *m, size_t n, bool well)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += m[i]->done && (m[i]->err.code == 0) == well;
	return found;
}

/* The next hub may want more of them at once than the one that started the warden, or fewer. */
static void test_more_later(void **state)
{
	kept.max_sandboxes = 1;
	engine_stop();
	begin();
	make(NULL);
	assert_int_equal(make_error(NULL).code, ERR_LIMIT);
	engine_leave();
	kept.max_sandboxes = 3;
	begin();
	assert_int_equal(live(), 1);
	make(NULL);
	assert_string_equal(sh(make(NULL), "echo well"), "well");
	assert_int_equal(make_error(NULL).code, ERR_LIMIT);
	engine_leave();
	kept.max_sandboxes = 2;
	begin();
	assert_int_equal(live(), 3);
	assert_int_equal(make_error(NULL).code, ERR_LIMIT);
}

/* More records than the kernel holds, and a warden that does not read them: none is refused, and
 * none is acknowledged that the warden does not have. */
static void test_many_records(void **state)
{
	static char big[80 * 1024];
	const struct env_var env = { STR_LIT("BIG"), { big, sizeof(big) } };
	const struct sandbox_spec spec = { .env = &env, .n_env = 1 };
	struct made *m[6];
	pid_t warden = warden_pid(), inits[8];
	size_t told;

	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i < ARRAY_LEN(m); i++)
		m[i] = make_start(&spec);
	/* made, which this process has not heard of, as its loop stands still */
	for (int i = 0; i < 3000 && init_pids(inits, ARRAY_LEN(inits)) < ARRAY_LEN(m); i++)
		usleep(10000);
	usleep(100000);
	kill(warden, SIGSTOP);
	wait_ms(200);
	told = answered(m, ARRAY_LEN(m), true);
	assert_int_equal(answered(m, ARRAY_LEN(m), false), 0);
	box_leave(take_ptr(box), NULL, NULL);
	kill(warden, SIGCONT);
	begin();
	assert_int_equal(live(), told);
	engine_stop();
	begin();
	for (size_t i = 0; i < ARRAY_LEN(m); i++)
		m[i] = make_start(&spec);
	for (size_t i = 0; i < ARRAY_LEN(m); i++)
		wait_for(&m[i]->done, "a sandbox");
	assert_int_equal(answered(m, ARRAY_LEN(m), true), ARRAY_LEN(m));
	assert_int_equal(fork_of(m[0]->sb, 16)->n, 16);
	engine_leave();
	begin();
	assert_int_equal(live(), ARRAY_LEN(m) + 16);
}

/* Finding the warden may take longer than inits are given to answer: they are given it from then
 * on. */
static void test_slow_start(void **state)
{
	const char *id = keep_id(make(&(struct sandbox_spec){ .ttl_ms = 60000 }));

	engine_leave();
	engine_loop()->time -= 120000; /* as if it had stood still for so long */
	begin();
	assert_string_equal(sh(found(id), "echo well"), "well");
}

/* Answers that nobody has read hold the init back, and requests wait behind: adoption gets
 * through. */
static void test_full_sockets(void **state)
{
	static char big[80 * 1024];
	const struct env_var env = { STR_LIT("BIG"), { big, sizeof(big) } };
	const struct exec_spec spec = { .shell = STR_LIT("true"), .env = &env, .n_env = 1 };
	struct sandbox *sb = make(NULL);
	const char *id = keep_id(sb);
	pid_t init;

	memset(big, 'x', sizeof(big));
	sh(sb, "mkdir d; cd d; seq 2000 | xargs touch; seq -f %0200g 300 | xargs touch");
	assert_int_equal(init_pids(&init, 1), 1);
	for (int i = 0; i < 40; i++)
		list_start(sb, "d");
	kill(init, SIGSTOP);
	for (int i = 0; i < 8; i++)
		ran_start(sb, &spec);
	box_leave(take_ptr(box), NULL, NULL);
	kill(init, SIGCONT);
	begin();
	sb = found(id);
	assert_string_equal(sh(sb, "ls d | wc -l"), "2300");
}

static void on_turned(void *arg, struct sandbox *sb, const struct err *err)
{
	enum err_code *code = arg;

	*code = err ? err->code : ERR_NONE;
}

static enum err_code turned(struct sandbox *sb, bool pause)
{
	enum err_code code = ERR_CODES;

	if (pause)
		sandbox_pause_start(sb, on_turned, &code);
	else
		sandbox_resume_start(sb, on_turned, &code);
	for (int i = 0; i < 3000 && code == ERR_CODES; i++)
		wait_ms(10);
	return code;
}

/* The same in one that is paused: what waits behind it must not keep it from going on. */
static void test_full_and_paused(void **state)
{
	static char big[80 * 1024];
	const struct env_var env = { STR_LIT("BIG"), { big, sizeof(big) } };
	const struct exec_spec spec = { .shell = STR_LIT("true"), .env = &env, .n_env = 1 };
	struct sandbox *sb = make(NULL);
	const char *id = keep_id(sb);
	pid_t init;

	memset(big, 'x', sizeof(big));
	assert_int_equal(init_pids(&init, 1), 1);
	kill(init, SIGSTOP);
	for (int i = 0; i < 8; i++)
		ran_start(sb, &spec);
	if (turned(sb, true) != ERR_NONE) { /* by its init, as there is no freezer */
		kill(init, SIGCONT);
		skip();
	}
	engine_leave();
	kill(init, SIGCONT);
	begin();
	sb = found(id);
	assert_true(sandbox_paused(sb));
	assert_int_equal(turned(sb, false), ERR_NONE);
	assert_string_equal(sh(sb, "echo well"), "well");
}

/* One whose init does not answer is ended, the others are not. */
static void test_init_stuck(void **state)
{
	struct sandbox *sb = make(NULL), *other;
	const char *id = keep_id(sb), *other_id;
	pid_t init;

	assert_int_equal(init_pids(&init, 1), 1);
	other = make(NULL);
	other_id = keep_id(other);
	kill(init, SIGSTOP);
	engine_leave();
	begin();
	sb = sandbox_ref(found(id));
	for (int i = 0; i < 1500 && sandbox_live(sb); i++)
		wait_ms(10);
	assert_false(sandbox_live(sb));
	sandbox_unref(sb);
	assert_string_equal(sh(found(other_id), "echo well"), "well");
}

static void test_half_a_write(void **state)
{
	struct sandbox *sb = make(NULL);
	const char *id = keep_id(sb);

	put(sb, "f", "old");
	put_start(sb, "f", pattern(20 * MIB), NULL);
	put_start(sb, "g", pattern(20 * MIB), NULL);
	engine_leave();
	begin();
	sb = found(id);
	assert_string_equal(get(sb, "f"), "old");
	assert_string_equal(sh(sb, "ls -A"), "f");
}

/* ---- how long -------------------------------------------------------------------------------- */

static void await_end_of_warden(pid_t warden)
{
	for (int i = 0; i < 6000 && kill(warden, 0) == 0; i++) {
		waitpid(warden, NULL, WNOHANG);
		usleep(10000);
	}
	assert_int_equal(kill(warden, 0), -1);
}

static void test_ttl_without_a_hub(void **state)
{
	const char *id;
	pid_t init;

	make(&(struct sandbox_spec){ .ttl_ms = 3000 });
	assert_int_equal(init_pids(&init, 1), 1);
	id = keep_id(make(NULL));
	engine_leave();
	for (int i = 0; i < 6000 && kill(init, 0) == 0; i++)
		usleep(10000);
	assert_int_equal(kill(init, 0), -1);
	begin();
	assert_int_equal(live(), 1);
	found(id);
}

/* Where the caller ends them, only the warden does it here, and only when it is alone. */
static void test_ttl_by_caller(void **state)
{
	struct err e = ERR_INIT;
	struct sandbox *sb;
	pid_t warden;

	engine_stop();
	kept.ttl_by_caller = true;
	begin();
	sb = make(&(struct sandbox_spec){ .ttl_ms = 100 });
	wait_ms(300);
	assert_true(sandbox_live(sb));
	assert_int_equal(sandbox_set_ttl(sb, 200, &e), 0);
	warden = warden_pid();
	engine_leave();
	await_end_of_warden(warden);
	begin();
	assert_int_equal(live(), 0);
}

static void test_none_left(void **state)
{
	pid_t warden = warden_pid();

	destroy(make(NULL));
	engine_leave();
	await_end_of_warden(warden);
	begin();
	make(&(struct sandbox_spec){ .ttl_ms = 200 });
	warden = warden_pid();
	engine_leave();
	await_end_of_warden(warden);
	begin();
	assert_int_equal(live(), 0);
}

static void test_linger(void **state)
{
	pid_t warden;

	engine_stop();
	kept.linger_ms = 200;
	begin();
	make(NULL);
	warden = warden_pid();
	engine_leave();
	await_end_of_warden(warden);
	begin();
	assert_int_equal(live(), 0);
}

static void test_end_with_process(void **state)
{
	pid_t warden;

	make(NULL);
	warden = warden_pid();
	box_end_with_process(box);
	assert_string_equal(sh(make(NULL), "echo well"), "well");
	engine_leave();
	await_end_of_warden(warden);
	begin();
	assert_int_equal(live(), 0);
}

static void remove_names(void)
{
	static const char *const names[] = { WARDEN_SOCKET, WARDEN_LOCK };
	char path[128];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", kept_dir, names[i]);
		assert_int_equal(unlink(path), 0);
	}
}

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

/* Nobody can find one whose names were removed, so it does not stay; nor does it take another's. */
static void test_names_removed(void **state)
{
	const char *id;
	struct box *first;
	bool closed = false;
	pid_t warden;

	make(NULL);
	warden = warden_pid();
	remove_names();
	engine_leave();
	await_end_of_warden(warden);
	begin();
	make(NULL);
	warden = warden_pid();
	remove_names();
	first = take_ptr(box);
	begin();
	id = keep_id(make(NULL));
	kill(warden, SIGKILL);
	box_close(first, on_closed, &closed);
	wait_for(&closed, "the end of the first");
	wait_ms(100); /* for its janitor */
	assert_int_equal(files_in(kept_dir), 2);
	engine_leave();
	begin();
	found(id);
}

static void end_other(void *arg, struct sandbox *sb)
{
	if (strcmp(sandbox_id(sb), arg) != 0)
		sandbox_destroy_start(sb, NULL, NULL);
}

/* What was asked for and not answered is not there; of a fork that is all of it. */
static void test_unanswered(void **state)
{
	struct sandbox *sb = make(NULL);
	const char *id = keep_id(sb);
	size_t wanted;

	sh(sb, "head -c 50000000 /dev/zero > big; " SLEEPS);
	for (unsigned i = 0; i < 6; i++) {
		struct forked *f = fork_start(box_find(box, str_of(id)), 3);
		struct made *m = make_start(NULL);

		wait_ms(i * 6);
		wanted = 1 + f->n + (m->sb ? 1 : 0);
		engine_leave();
		begin();
		assert_true(runs(found(id), "sleep"));
		assert_int_equal(live(), wanted);
		box_each(box, end_other, (void *)id);
		assert_int_equal(live(), 1);
	}
}

/* ---- the warden dies ------------------------------------------------------------------------- */

static void test_warden_killed(void **state)
{
	struct sandbox *sb;
	struct ran *r;
	const char *id = keep_id(make(NULL));

	engine_leave();
	begin();
	sb = sandbox_ref(found(id));
	r = ran_shell(sb, "sleep 30");
	wait_ms(30);
	kill(warden_pid(), SIGKILL);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_GUEST);
	assert_false(sandbox_live(sb));
	sandbox_unref(sb);
	assert_string_equal(sh(make(NULL), "echo well"), "well");
	assert_int_equal(live(), 1);
	assert_null(box_find(box, str_of(id)));
}

static void test_warden_killed_meanwhile(void **state)
{
	pid_t warden;

	make(NULL);
	warden = warden_pid();
	engine_leave();
	kill(warden, SIGKILL);
	await_end_of_warden(warden);
	begin();
	assert_int_equal(live(), 0);
	assert_string_equal(sh(make(NULL), "echo well"), "well");
}

/* Nobody was left to remove the names. */
static void test_stale(void **state)
{
	char path[128];
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s;

	engine_stop();
	for (int i = 0; i < 500 && files_in(kept_dir); i++)
		usleep(10000);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/" WARDEN_SOCKET, kept_dir);
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	close(s);
	snprintf(path, sizeof(path), "%s/" WARDEN_LOCK, kept_dir);
	host_file(path, "", 0600);
	begin();
	assert_string_equal(sh(make(NULL), "echo well"), "well");
}

/* ---- who may --------------------------------------------------------------------------------- */

static struct err refused(void)
{
	struct box_config c = kept;
	struct err e = ERR_INIT;
	struct box *other;

	c.libexec_dir = libexec_dir();
	other = box_new(uv_default_loop(), &c, &e);
	assert_null(other);
	assert_null(strstr(e.msg, kept_dir));
	return e;
}

static void test_one_at_a_time(void **state)
{
	struct sandbox *sb = make(NULL);

	assert_int_equal(refused().code, ERR_CONFLICT);
	assert_string_equal(sh(sb, "echo well"), "well");
	assert_string_equal(sh(make(NULL), "echo well"), "well");
}

static void test_folder_of_others(void **state)
{
	engine_stop();
	assert_int_equal(chmod(kept_dir, 0755), 0);
	assert_int_equal(refused().code, ERR_DENIED);
	assert_int_equal(chmod(kept_dir, 0700), 0);
	begin();
}

/* Connects, and says whether it was greeted, as the exit status of a process of its own. */
static int greeted(const char *path, uid_t uid)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct wm_greet m;
	int status = -1, s;
	pid_t pid = fork();

	if (pid) {
		waitpid(pid, &status, 0);
		return WEXITSTATUS(status);
	}
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if ((uid && setuid(uid) < 0) || connect(s, (struct sockaddr *)&a, sizeof(a)) < 0)
		_exit(2);
	_exit(recv(s, &m, sizeof(m), 0) == sizeof(m) && m.h.type == WM_GREET);
}

static void test_strangers(void **state)
{
	char path[128];
	struct stat st;

	make(NULL);
	snprintf(path, sizeof(path), "%s/" WARDEN_SOCKET, kept_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(kept_dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	engine_leave();
	assert_int_equal(greeted(path, 0), 1);
	if (!rootless()) {
		assert_int_equal(greeted(path, 65534), 2);
		/* were it open to all, they would be known by what they are */
		assert_int_equal(chmod(dir, 0755) | chmod(kept_dir, 0777) | chmod(path, 0777), 0);
		assert_int_equal(greeted(path, 65534), 0);
		assert_int_equal(greeted(path, 0), 1);
		assert_int_equal(chmod(kept_dir, 0700), 0);
	}
	begin();
	assert_int_equal(live(), 1);
}

/* An unprivileged user's sandboxes have its uid, and here one has the folder. */
static void test_from_inside(void **state)
{
	const struct sandbox_mount mount = { str_of(kept_dir), STR_LIT("/mnt"), true };
	struct sandbox *sb = make(&(struct sandbox_spec){ .mounts = &mount, .n_mounts = 1 });
	char path[128];

	if (!has_python(sb))
		skip();
	assert_string_equal(sh(sb,
			       "python3 -c 'import socket\n"
			       "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
			       "s.connect(\"/mnt/" WARDEN_SOCKET "\"); print(len(s.recv(1000)))'"),
			    "0");
	snprintf(path, sizeof(path), "%s/" WARDEN_SOCKET, kept_dir);
	assert_int_equal(greeted(path, 0), 1);
}

/* ---- a warden of another build --------------------------------------------------------------- */

/* Where another program stands that poses as the warden. */
enum place {
	BESIDE, /* where a warden is, and called as one is */
	MISNAMED,
	INSIDE, /* as a program of a sandbox, whose user has our uid; and called as a warden is */
};

/* In namespaces of its own, as its first process. */
static void go_inside(void)
{
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID | (rootless() ? CLONE_NEWUSER : 0)) < 0)
		_exit(1);
	pid = fork();
	if (pid == 0)
		return;
	waitpid(pid, &status, 0);
	_exit(WEXITSTATUS(status));
}

/* Another program in the warden's place: says one thing to whoever connects. Killed, all of it
 * ends. */
static pid_t impostor(const void *say, size_t n, enum place place)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char lock[128];
	int ready[2], s, fd;
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, place == MISNAMED ? "another" : "holt-warden");
		if (place == INSIDE) {
			go_inside();
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		}
		snprintf(a.sun_path, sizeof(a.sun_path), "%s/" WARDEN_SOCKET, kept_dir);
		snprintf(lock, sizeof(lock), "%s/" WARDEN_LOCK, kept_dir);
		fd = open(lock, O_RDWR | O_CREAT, 0600);
		s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		/* the one before may still be dying */
		if (flock(fd, LOCK_EX) < 0 || bind(s, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		    listen(s, 8) < 0 || write(ready[1], "", 1) < 0)
			_exit(1);
		for (;;) {
			fd = accept(s, NULL, NULL);
			/* who knows enough has hung up by then */
			if (n && send(fd, say, n, MSG_NOSIGNAL) < 0 && errno != EPIPE)
				_exit(1);
			if (recv(fd, &byte, 1, 0) > 0) /* nothing is said to it */
				_exit(3);
			close(fd);
		}
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void test_other_builds(void **state)
{
	struct wm_greet other = { .h = { WM_GREET, 0 }, .version = WIRE_VERSION, .build = "other" };
	struct wm_greet newer = { .h = { WM_GREET, 0 }, .version = WIRE_VERSION + 1 };
	const struct {
		const void *say;
		size_t n;
	} rows[] = { { &other, sizeof(other) }, { &newer, sizeof(newer) }, { "x", 1 } };
	char path[128];

	engine_stop();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		pid_t pid = impostor(rows[i].say, rows[i].n, BESIDE);
		int status;

		assert_int_equal(refused().code, ERR_OTHER_BUILD);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		snprintf(path, sizeof(path), "%s/" WARDEN_SOCKET, kept_dir);
		unlink(path);
	}
	begin();
}

/* From where no warden is: nothing is said to it, and what it says is not even read. */
static void test_impostors(void **state)
{
	static const enum place places[] = { INSIDE, MISNAMED };
	struct wm_greet greet = { .h = { WM_GREET, 0 }, .version = WIRE_VERSION, .build = "other" };
	char path[128];

	engine_stop();
	snprintf(path, sizeof(path), "%s/" WARDEN_SOCKET, kept_dir);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		pid_t pid = impostor(&greet, sizeof(greet), places[i]);
		int status;

		assert_int_equal(refused().code, ERR_DENIED);
		assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		unlink(path);
	}
	begin();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		keep_test(test_all_of_it),
		keep_test(test_again_and_again),
		keep_test(test_set_later),
		keep_test(test_more_later),
		keep_test(test_many_records),
		keep_test(test_slow_start),
		keep_test(test_full_sockets),
		keep_test(test_full_and_paused),
		keep_test(test_init_stuck),
		keep_test(test_half_a_write),
		keep_test(test_ttl_without_a_hub),
		keep_test(test_ttl_by_caller),
		keep_test(test_none_left),
		keep_test(test_linger),
		keep_test(test_end_with_process),
		keep_test(test_names_removed),
		keep_test(test_unanswered),
		keep_test(test_warden_killed),
		keep_test(test_warden_killed_meanwhile),
		keep_test(test_stale),
		keep_test(test_one_at_a_time),
		keep_test(test_folder_of_others),
		keep_test(test_strangers),
		keep_test(test_from_inside),
		keep_test(test_other_builds),
		keep_test(test_impostors),
	};

	return ENGINE_MAIN(argc, argv, "keep", tests);
}
