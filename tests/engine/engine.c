#include "engine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <mntent.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "host.h"

enum { GUARD_MS = 120000, NOBODY = 65534, OUT_MAX = 64 * 1024 * 1024, SKIPPED = 77 };

struct box *box;
static uv_loop_t *loop;
static const char *libexec;
static struct host_state before;
static const char *volatile doing = "nothing"; /* for who is ended because it takes too long */

/* What a helper has returned, freed by engine_stop(). */
struct kept {
	struct kept *next;
	void (*release)(void *what);
	max_align_t what[];
};
static struct kept *kept;

static void *keep(size_t n, void (*release)(void *what))
{
	struct kept *k = calloc(1, sizeof(*k) + n);

	assert_non_null(k);
	k->release = release;
	k->next = kept;
	kept = k;
	return k->what;
}

static void release_all(void)
{
	while (kept) {
		struct kept *k = take_ptr(kept);

		kept = k->next;
		if (k->release)
			k->release(k->what);
		free(k);
	}
}

/* ---- the end of one that hangs --------------------------------------------------------------- */

static void show(const char *path)
{
	char text[1024];
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) == n)
		dprintf(STDERR_FILENO, "\n");
}

/* Whoever ran the tests has given up: says where they and the wardens are. */
static void on_term(int number)
{
	char path[64];
	pid_t pids[16];
	size_t n = children_of(getpid(), "holt-warden", pids, ARRAY_LEN(pids));

	dprintf(STDERR_FILENO, "ended while: %s\n", doing);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/proc/%d/wchan", pids[i]);
		show(path);
		snprintf(path, sizeof(path), "/proc/%d/stack", pids[i]);
		show(path);
	}
	_exit(128 + number);
}

/* ---- the loop -------------------------------------------------------------------------------- */

uv_loop_t *engine_loop(void)
{
	return loop;
}

static void on_guard(uv_timer_t *t)
{
}

/* A timer that repeats lets no sleep of the loop be longer, also where it is due before the first
 * one: uv_run() of libuv before 1.45 would then wait for an event without end. */
static bool spin(const bool *done, unsigned ms)
{
	static uv_timer_t guard;
	uint64_t until;

	uv_update_time(loop);
	until = uv_now(loop) + ms;
	uv_timer_init(loop, &guard);
	uv_timer_start(&guard, on_guard, ms, ms);
	doing = "the loop runs";
	while (uv_now(loop) < until && !(done && *done))
		uv_run(loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&guard, NULL);
	uv_run(loop, UV_RUN_NOWAIT); /* which lets go of the guard */
	doing = "the test runs";
	return done && *done;
}

unsigned soak(unsigned full)
{
	const char *how = getenv("HOLT_SOAK");

	unsigned part = how && strcmp(how, "full") == 0 ? 1
		      : how && strcmp(how, "once") == 0 ? 50
							: 10;

	return full < 2 * part ? 2 : full / part;
}

void wait_for(const bool *done, const char *what)
{
	if (!spin(done, GUARD_MS))
		fail_msg("%s did not come in %d s", what, GUARD_MS / 1000);
}

void wait_ms(unsigned ms)
{
	spin(NULL, ms);
}

size_t children_of(pid_t parent, const char *name, pid_t *out, size_t max)
{
	char path[64], text[512], want[32], *end;
	DIR *d = opendir("/proc");
	struct dirent *e;
	size_t n = 0;

	snprintf(want, sizeof(want), "(%s) ", name);
	while (d && n < max && (e = readdir(d))) {
		autoclose int fd = -1;
		ssize_t got;

		snprintf(path, sizeof(path), "/proc/%.20s/stat", e->d_name);
		fd = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC)
								: -1;
		got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (got <= 0)
			continue;
		text[got] = '\0';
		end = strstr(text, want);
		if (end && end[strlen(want)] != 'Z' && atoi(end + strlen(want) + 2) == parent)
			out[n++] = atoi(text);
	}
	if (d)
		closedir(d);
	return n;
}

pid_t warden_if_any(void)
{
	pid_t pid = 0;

	if (children_of(getpid(), "holt-warden", &pid, 1) == 1)
		host_add_warden(&before, pid);
	return pid;
}

/* ---- start and stop -------------------------------------------------------------------------- */

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

void engine_start(const struct box_config *config)
{
	struct box_config c = *config;
	struct err e = ERR_INIT;

	c.libexec_dir = libexec;
	doing = "the host is looked at";
	host_look(&before);
	doing = "the engine starts";
	box = box_new(loop, &c, &e);
	if (!box)
		fail_msg("box_new: %s", e.msg);
}

void engine_stop(void)
{
	char left[1024];
	bool closed = false;

	if (!box)
		return;
	warden_if_any(); /* so that it is remembered */
	box_close(take_ptr(box), on_closed, &closed);
	if (!spin(&closed, GUARD_MS))
		fail_msg("box_close did not end");
	uv_run(loop, UV_RUN_NOWAIT);
	release_all();
	uv_run(loop, UV_RUN_NOWAIT);
	doing = "the host is looked at again";
	if (!host_same(&before, left, sizeof(left)))
		fail_msg("left behind: %s", left);
}

void engine_leave(void)
{
	bool closed = false;

	warden_if_any();
	box_leave(take_ptr(box), on_closed, &closed);
	if (!spin(&closed, GUARD_MS))
		fail_msg("box_leave did not end");
	uv_run(loop, UV_RUN_NOWAIT);
	release_all();
	uv_run(loop, UV_RUN_NOWAIT);
}

int engine_setup(void **state)
{
	const struct box_config plain = { 0 };

	engine_start(&plain);
	return 0;
}

int engine_teardown(void **state)
{
	engine_stop();
	return 0;
}

static struct box_stats ready_stats(void)
{
	struct box_stats s = { 0 };

	for (int i = 0; i < 1000 && !s.ready; i++) {
		box_stats(box, &s);
		if (!s.ready)
			wait_ms(10);
	}
	return s;
}

bool rootless(void)
{
	return geteuid() != 0;
}

bool limits_by(const char *driver)
{
	return strcmp(ready_stats().limits, driver) == 0;
}

const char *libexec_dir(void)
{
	return libexec;
}

/* ---- sandboxes ------------------------------------------------------------------------------- */

static void release_made(void *what)
{
	sandbox_unref(((struct made *)what)->sb);
}

static void on_made(void *arg, struct sandbox *sb, const struct err *err)
{
	struct made *m = arg;

	if (err)
		m->err = *err;
	else if (!m->sb)
		m->sb = sandbox_ref(sb);
	m->done = true;
}

struct made *make_start(const struct sandbox_spec *spec)
{
	const struct sandbox_spec plain = { 0 };
	struct made *m = keep(sizeof(*m), release_made);

	sandbox_create_start(box, spec ? spec : &plain, on_made, m);
	assert_false(m->done);
	return m;
}

struct sandbox *make(const struct sandbox_spec *spec)
{
	struct made *m = make_start(spec);

	wait_for(&m->done, "a sandbox");
	if (m->err.code)
		fail_msg("create: %s", m->err.msg);
	return m->sb;
}

struct err make_error(const struct sandbox_spec *spec)
{
	struct made *m = make_start(spec);

	wait_for(&m->done, "an answer to create");
	assert_int_not_equal(m->err.code, 0);
	return m->err;
}

struct made *destroy_start(struct sandbox *sb)
{
	struct made *m = keep(sizeof(*m), release_made);

	m->sb = sandbox_ref(sb);
	sandbox_destroy_start(sb, on_made, m);
	assert_false(m->done);
	return m;
}

void destroy(struct sandbox *sb)
{
	struct made *m = destroy_start(sb);

	wait_for(&m->done, "the end of a sandbox");
	if (m->err.code)
		fail_msg("destroy: %s", m->err.msg);
}

static void release_forked(void *what)
{
	struct forked *f = what;

	for (size_t i = 0; i < f->n; i++)
		sandbox_unref(f->children[i]);
}

static void on_forked(void *arg, struct sandbox *const *children, size_t n, const struct err *err)
{
	struct forked *f = arg;

	if (err)
		f->err = *err;
	for (size_t i = 0; !err && i < n; i++)
		f->children[f->n++] = sandbox_ref(children[i]);
	f->done = true;
}

static struct forked *start_fork(struct sandbox *source, uint32_t n, const struct str *ids)
{
	struct forked *f = keep(sizeof(*f), release_forked);

	sandbox_fork_start(source, n, ids, on_forked, f);
	assert_false(f->done);
	return f;
}

struct forked *fork_start(struct sandbox *source, uint32_t n)
{
	return start_fork(source, n, NULL);
}

struct forked *fork_named(struct sandbox *source, uint32_t n, const struct str *ids)
{
	struct forked *f = start_fork(source, n, ids);

	wait_for(&f->done, "a fork");
	return f;
}

struct forked *fork_despite(struct sandbox *source, uint32_t n, enum err_code passing)
{
	const uint64_t until = clock_ms() + 30000;
	struct forked *f = fork_named(source, n, NULL);

	while (f->err.code && f->err.code == passing && clock_ms() < until) {
		wait_ms(10);
		f = fork_named(source, n, NULL);
	}
	if (f->err.code)
		fail_msg("fork: %s", f->err.msg);
	assert_int_equal(f->n, n);
	return f;
}

struct forked *fork_of(struct sandbox *source, uint32_t n)
{
	return fork_despite(source, n, ERR_NONE);
}

/* ---- programs -------------------------------------------------------------------------------- */

static void release_ran(void *what)
{
	struct ran *r = what;

	sandbox_unref(r->sb);
	buf_fini(&r->out);
	buf_fini(&r->errs);
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
	struct ran *r = arg;
	struct buf *b = stream == EXEC_STDOUT ? &r->out : &r->errs;
	struct err e = ERR_INIT;

	/* past what is kept a flood is only heard */
	if (b->n + n <= b->max && buf_add(b, p, n, &e) < 0)
		abort();
	if (r->on_output)
		r->on_output(r);
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	struct ran *r = arg;

	if (r->done)
		abort(); /* exactly once */
	if (err)
		r->err = *err;
	else
		r->result = *result;
	r->x = NULL;
	r->done = true;
}

static void on_drain(void *arg)
{
	struct ran *r = arg;

	r->drained++;
	if (r->on_drain)
		r->on_drain(r);
}

struct ran *ran_start(struct sandbox *sb, const struct exec_spec *spec)
{
	static const struct exec_events events = { on_output, on_exit_ };
	struct ran *r = keep(sizeof(*r), release_ran);

	r->sb = sandbox_ref(sb);
	r->out = BUF_INIT(OUT_MAX);
	r->errs = BUF_INIT(OUT_MAX);
	r->x = exec_start(sb, spec, &events, r, &r->err);
	if (!r->x)
		r->done = true;
	else if (spec->stdin_open)
		exec_on_drain(r->x, on_drain, r);
	return r;
}

struct ran *ran_argv_start(struct sandbox *sb, const char *const *argv)
{
	struct str words[16];
	struct exec_spec spec = { .argv = words, .timeout_ms = EXEC_MS };

	while (argv[spec.n_argv]) {
		words[spec.n_argv] = str_of(argv[spec.n_argv]);
		spec.n_argv++;
	}
	return ran_start(sb, &spec);
}

struct ran *ran_argv(struct sandbox *sb, const char *const *argv)
{
	struct ran *r = ran_argv_start(sb, argv);

	ran_wait(r);
	return r;
}

struct ran *ran_shell(struct sandbox *sb, const char *line)
{
	const struct exec_spec spec = { .shell = str_of(line), .timeout_ms = EXEC_MS };

	return ran_start(sb, &spec);
}

void ran_wait(struct ran *r)
{
	wait_for(&r->done, "the end of a program");
}

struct ran *ran_until(struct sandbox *sb, const struct exec_spec *spec)
{
	struct ran *r = ran_start(sb, spec);

	ran_wait(r);
	return r;
}

int sh_code(struct sandbox *sb, const char *line)
{
	struct ran *r = ran_shell(sb, line);

	ran_wait(r);
	if (r->err.code)
		fail_msg("%s: %s", line, r->err.msg);
	return r->result.exit_code;
}

const char *sh(struct sandbox *sb, const char *line)
{
	struct ran *r = ran_shell(sb, line);

	ran_wait(r);
	if (r->err.code || r->result.exit_code)
		fail_msg("%s: exit code %d, %s, %.*s", line, r->result.exit_code, r->err.msg,
			 STR_ARG(buf_str(&r->errs)));
	if (r->out.n && r->out.p[r->out.n - 1] == '\n')
		r->out.p[--r->out.n] = '\0';
	return buf_str(&r->out).p;
}

bool has_python(struct sandbox *sb)
{
	return sh_code(sb, "command -v python3 >/dev/null") == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void release_filed(void *what)
{
	struct filed *f = what;

	buf_fini(&f->bytes);
	free(f->names);
	free(f->stats);
}

static struct filed *new_filed(void)
{
	struct filed *f = keep(sizeof(*f), release_filed);

	f->bytes = BUF_INIT(FILE_READ_MAX);
	return f;
}

static void end_filed(struct filed *f, const struct err *err)
{
	if (f->done)
		abort(); /* exactly once */
	if (err)
		f->err = *err;
	f->done = true;
}

static void on_plain(void *arg, const struct err *err)
{
	end_filed(arg, err);
}

static void on_read(void *arg, struct str bytes, const struct file_stat *st, const struct err *err)
{
	struct filed *f = arg;
	struct err e = ERR_INIT;

	if (!err && buf_add(&f->bytes, bytes.p, bytes.n, &e) < 0)
		abort();
	if (!err)
		f->st = *st;
	end_filed(f, err);
}

static void on_stat(void *arg, const struct file_stat *st, const struct err *err)
{
	struct filed *f = arg;

	if (!err)
		f->st = *st;
	end_filed(f, err);
}

static void on_list(void *arg, const struct file_entry *entries, size_t n, bool truncated,
		    const struct err *err)
{
	struct filed *f = arg;

	f->names = calloc(n + 1, sizeof(*f->names));
	f->stats = calloc(n + 1, sizeof(*f->stats));
	if (!f->names || !f->stats)
		abort();
	for (size_t i = 0; !err && i < n; i++) {
		snprintf(f->names[i], sizeof(f->names[i]), "%.*s", STR_ARG(entries[i].name));
		f->stats[i] = entries[i].st;
	}
	f->n = n;
	f->truncated = truncated;
	end_filed(f, err);
}

struct filed *put_start(struct sandbox *sb, const char *path, struct str bytes,
			const struct file_write_opts *opts)
{
	static const struct file_write_opts plain;
	struct filed *f = new_filed();

	file_write_start(sb, str_of(path), bytes, opts ? opts : &plain, on_plain, f);
	return f;
}

struct filed *get_start(struct sandbox *sb, const char *path, uint64_t offset, size_t max)
{
	struct filed *f = new_filed();

	file_read_start(sb, str_of(path), offset, max, on_read, f);
	return f;
}

struct filed *stat_start(struct sandbox *sb, const char *path)
{
	struct filed *f = new_filed();

	file_stat_start(sb, str_of(path), on_stat, f);
	return f;
}

struct filed *list_start(struct sandbox *sb, const char *path)
{
	struct filed *f = new_filed();

	file_list_start(sb, str_of(path), on_list, f);
	return f;
}

struct filed *mkdir_start(struct sandbox *sb, const char *path, bool parents)
{
	struct filed *f = new_filed();

	file_mkdir_start(sb, str_of(path), parents, on_plain, f);
	return f;
}

struct filed *remove_start(struct sandbox *sb, const char *path, bool recursive)
{
	struct filed *f = new_filed();

	file_remove_start(sb, str_of(path), recursive, on_plain, f);
	return f;
}

struct filed *move_start(struct sandbox *sb, const char *from, const char *to)
{
	struct filed *f = new_filed();

	file_move_start(sb, str_of(from), str_of(to), on_plain, f);
	return f;
}

struct filed *filed(struct filed *f)
{
	wait_for(&f->done, "the answer to a file operation");
	return f;
}

enum err_code filed_code(struct filed *f)
{
	return filed(f)->err.code;
}

void put(struct sandbox *sb, const char *path, const char *text)
{
	struct filed *f = filed(put_start(sb, path, str_of(text), NULL));

	if (f->err.code)
		fail_msg("write %s: %s", path, f->err.msg);
}

const char *get(struct sandbox *sb, const char *path)
{
	struct filed *f = filed(get_start(sb, path, 0, FILE_READ_MAX));

	if (f->err.code)
		fail_msg("read %s: %s", path, f->err.msg);
	return buf_str(&f->bytes).p;
}

static void release_pattern(void *what)
{
	free(*(char **)what);
}

struct str pattern(size_t n)
{
	char **p = keep(sizeof(*p), release_pattern);

	*p = malloc(n + 1);
	assert_non_null(*p);
	for (size_t i = 0; i < n; i++)
		(*p)[i] = (char)((i * 2654435761u) >> 24);
	(*p)[n] = '\0';
	return (struct str){ *p, n };
}

/* ---- usage ----------------------------------------------------------------------------------- */

static void on_usage(void *arg, const struct usage *u, size_t n, const struct err *err)
{
	assert_null(err);
	assert_int_equal(n, 1);
	assert_true(u[0].lives);
	*(struct usage *)arg = u[0];
}

struct usage usage_of(struct sandbox *sb)
{
	struct usage u = { .lives = false };

	usage_start(box, &sb, 1, on_usage, &u);
	wait_for(&u.lives, "usage");
	return u;
}

/* ---- the host -------------------------------------------------------------------------------- */

pid_t warden_pid(void)
{
	pid_t pid;

	ready_stats();
	pid = warden_if_any();
	if (!pid)
		fail_msg("there is no warden");
	return pid;
}

size_t init_pids(pid_t *ret_pids, size_t max)
{
	/* named after the memory file that they are */
	size_t n = children_of(warden_pid(), "holt-init", ret_pids, max);

	return n ? n : children_of(warden_pid(), "memfd:holt-init", ret_pids, max);
}

size_t fds_of(pid_t pid)
{
	return host_fds(pid);
}

void assert_fds(pid_t pid, size_t n)
{
	for (int i = 0; fds_of(pid) > n; i++) {
		if (i == 1000)
			fail_msg("process %d has %zu descriptors, not %zu", pid, fds_of(pid), n);
		wait_ms(10);
	}
}

static void release_host_dir(void *what)
{
	host_remove(what);
}

const char *host_dir(void)
{
	char *dir = keep(64, release_host_dir);

	strcpy(dir, "/tmp/holt-test-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	return dir;
}

void host_file(const char *path, const char *text, mode_t mode)
{
	autoclose int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

/* ---- main ------------------------------------------------------------------------------------ */

static int copy_program(const char *dir, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX], block[65536];
	autoclose int in = -1;
	autoclose int out = -1;
	ssize_t n;

	snprintf(from, sizeof(from), "%s/%s", libexec, name);
	snprintf(to, sizeof(to), "%s/%s", dir, name);
	in = open(from, O_RDONLY | O_CLOEXEC);
	out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	while (in >= 0 && out >= 0 && (n = read(in, block, sizeof(block))) > 0) {
		if (write(out, block, (size_t)n) != n)
			return -1;
	}
	return in < 0 || out < 0 ? -1 : 0;
}

/* In a child: this program once more, as nobody. */
static _Noreturn void run_as_nobody(const char *dir)
{
	char *const argv[] = { (char *)"test", (char *)dir, NULL };

	if (setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 &&
	    chdir("/") == 0)
		execv("/proc/self/exe", argv);
	perror("run as an unprivileged user");
	_exit(1);
}

static int run_rootless(void)
{
	char dir[] = "/tmp/holt-test-XXXXXX";
	int status = 1;
	pid_t pid;

	if (!mkdtemp(dir) || chmod(dir, 0755) < 0 || copy_program(dir, "holt-warden") < 0 ||
	    copy_program(dir, "holt-init") < 0) {
		perror("copy the programs");
		return 1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		run_as_nobody(dir);
	if (pid > 0)
		waitpid(pid, &status, 0);
	host_remove(dir);
	return status ? 1 : 0;
}

/* With the descriptors that libuv opens at the first child and keeps, so that they are no leak. */
static void open_loop(void)
{
	uv_process_options_t options = { .file = "/bin/true", .args = (char *[]){ "true", NULL } };
	static uv_process_t p;

	loop = uv_default_loop();
	if (uv_spawn(loop, &p, &options) == 0)
		uv_run(loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&p, NULL);
	uv_run(loop, UV_RUN_NOWAIT);
}

/* In a mount namespace of ours: the host as one that has v1 control groups alone. */
static bool leave_v2(void)
{
	bool v1 = false, left = true;
	struct mntent *m;
	FILE *f;

	if (rootless() || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	f = setmntent("/proc/self/mounts", "re");
	while (f && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, "cgroup2") == 0)
			left = left && umount2(m->mnt_dir, MNT_DETACH) == 0;
		v1 = v1 || (strcmp(m->mnt_type, "cgroup") == 0 && hasmntopt(m, "freezer"));
	}
	if (f)
		endmntent(f);
	return v1 && left;
}

int engine_main(int argc, char **argv, const char *name, const struct CMUnitTest *tests, size_t n)
{
	bool v1 = argc == 3 && strcmp(argv[2], "v1") == 0;
	bool once = argc == 3 && strcmp(argv[2], "once") == 0;
	char title[64];
	int failed;

	if (argc != 2 && !v1 && !once) {
		fprintf(stderr, "usage: %s DIRECTORY-OF-HOLT-WARDEN [v1|once]\n", argv[0]);
		return 1;
	}
	if (v1 && !leave_v2()) {
		fprintf(stderr, "no v1 freezer here, or nobody who could take the v2 tree away\n");
		return SKIPPED;
	}
	libexec = argv[1];
	/* so that what others mount meanwhile is not taken for ours */
	if (!rootless() && unshare(CLONE_NEWNS) == 0)
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	open_loop();
	log_init("test");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGTERM, on_term);
	/* what a warden leaves becomes our child, and is seen */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	snprintf(title, sizeof(title), "%s, %s", name,
		 rootless() ? "rootless"
		 : v1	    ? "v1"
			    : "root");
	failed = _cmocka_run_group_tests(title, tests, n, NULL, NULL);
	if (!rootless() && !v1 && !once && run_rootless() != 0)
		failed++;
	return failed ? 1 : 0;
}
