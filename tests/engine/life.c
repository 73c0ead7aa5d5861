/* How sandboxes begin and end: by request, by time, by accident; and that nothing is left of
 * them. The fixture looks for leftovers after every test. */
#include "engine.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static void test_plain(void **state)
{
	struct sandbox *sb = make(NULL);
	struct box_stats s;

	assert_true(sandbox_live(sb));
	assert_true(strncmp(sandbox_id(sb), "sbx-", 4) == 0 && strlen(sandbox_id(sb)) == 36);
	assert_string_equal(sandbox_template(sb), "host");
	assert_int_equal(sandbox_ttl_left_ms(sb), -1);
	assert_ptr_equal(box_find(box, str_of(sandbox_id(sb))), sb);
	assert_null(box_find(box, STR_LIT("sbx-00000000000000000000000000000000")));
	assert_null(box_find(box, STR_LIT("")));
	box_stats(box, &s);
	assert_int_equal(s.live, 1);
	assert_int_equal(s.created, 1);
	assert_int_equal(s.rootless, rootless());
	assert_string_equal(s.tier, "namespace");
	destroy(sb);
	assert_false(sandbox_live(sb));
	assert_null(box_find(box, str_of(sandbox_id(sb))));
	box_stats(box, &s);
	assert_int_equal(s.live, 0);
	assert_int_equal(s.destroyed, 1);
}

static void test_bad_specs(void **state)
{
	static struct env_var many[257];
	static struct sandbox_mount mounts[33];
	char name[80];
	const struct {
		const char *name;
		enum err_code code;
		struct sandbox_spec spec;
	} rows[] = {
		{ "template", ERR_TEMPLATE_NOT_FOUND, { .template = STR_LIT("nowhere") } },
		{ "empty template", ERR_TEMPLATE_NOT_FOUND, { .template = { "", 0 } } },
		{ "long template", ERR_TEMPLATE_NOT_FOUND, { .template = { name, 80 } } },
		{ "NUL in template", ERR_TEMPLATE_NOT_FOUND, { .template = { "ho\0st", 5 } } },
		{ "relative cwd", ERR_INVALID, { .cwd = STR_LIT("a") } },
		{ "empty cwd", ERR_INVALID, { .cwd = { "", 0 } } },
		{ "NUL in cwd", ERR_INVALID, { .cwd = { "/\0", 2 } } },
		{ "too much env", ERR_INVALID, { .env = many, .n_env = 257 } },
		{ "too many mounts", ERR_INVALID, { .mounts = mounts, .n_mounts = 33 } },
		{ "little memory", ERR_INVALID, { .limits = { .memory = 1 } } },
		{ "endless memory", ERR_INVALID, { .limits = { .memory = UINT64_MAX } } },
		{ "little disk", ERR_INVALID, { .limits = { .disk = 1 } } },
		{ "disk over memory",
		  ERR_INVALID,
		  { .limits = { .disk = 600 * MIB, .memory = 100 * MIB } } },
		{ "few pids", ERR_INVALID, { .limits = { .pids = 1 } } },
		{ "many pids", ERR_INVALID, { .limits = { .pids = 1000000 } } },
		{ "little cpu", ERR_INVALID, { .limits = { .cpu_milli = 1 } } },
		{ "much cpu", ERR_INVALID, { .limits = { .cpu_milli = UINT32_MAX } } },
	};
	struct box_stats s;

	memset(name, 'x', sizeof(name));
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = (struct env_var){ STR_LIT("A"), STR_LIT("b") };
	for (size_t i = 0; i < ARRAY_LEN(mounts); i++)
		mounts[i] = (struct sandbox_mount){ STR_LIT("/tmp"), STR_LIT("/mnt"), false };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = make_error(&rows[i].spec);

		ROW_CHECK(e.code == rows[i].code, rows[i].name);
	}
	box_stats(box, &s);
	assert_int_equal(s.created, 0);
	assert_int_equal(s.live, 0);
}

static void test_ids_differ(void **state)
{
	struct made *m[30];

	for (size_t i = 0; i < ARRAY_LEN(m); i++)
		m[i] = make_start(NULL);
	for (size_t i = 0; i < ARRAY_LEN(m); i++) {
		wait_for(&m[i]->done, "a sandbox");
		assert_int_equal(m[i]->err.code, 0);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(sandbox_id(m[i]->sb), sandbox_id(m[k]->sb));
	}
	assert_string_equal(sh(m[7]->sb, "echo well"), "well");
}

/* Names of the caller's, for what is made and for what is forked. */
static void test_own_ids(void **state)
{
	static const char longest[] =
		"0123456789012345678901234567890123456789012345678901234567-Az_09";
	const struct str bad[] = {
		{ "", 0 },	     STR_LIT("-a"),  STR_LIT("_a"),
		STR_LIT("a/b"),	     STR_LIT("a b"), STR_LIT("..."),
		STR_LIT("\xc3\xa4"), { "a\0b", 3 },  { longest, sizeof(longest) }
	};
	const struct str ids[] = { STR_LIT("child-1"), STR_LIT("Child_2") };
	struct sandbox *sb = make(&(struct sandbox_spec){ .id = str_of(longest) });
	struct forked f = { 0 };

	assert_int_equal(sizeof(longest), SANDBOX_ID_MAX + 1);
	assert_string_equal(sandbox_id(sb), longest);
	assert_ptr_equal(box_find(box, str_of(longest)), sb);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		const struct str mixed[] = { ids[0], bad[i] };
		struct forked *refused = fork_named(sb, 2, mixed);

		assert_int_equal(make_error(&(struct sandbox_spec){ .id = bad[i] }).code,
				 ERR_INVALID);
		assert_int_equal(refused->err.code, ERR_INVALID);
	}
	f = *fork_named(sb, 2, ids);
	assert_int_equal(f.n, 2);
	assert_string_equal(sandbox_id(f.children[0]), "child-1");
	assert_ptr_equal(box_find(box, ids[1]), f.children[1]);
}

static struct ends {
	size_t n;
	struct sandbox *last;
	enum err_code code;
} ends;

static void on_end(void *arg, struct sandbox *sb, const struct err *why)
{
	struct ends *e = arg;

	assert_false(sandbox_live(sb));
	e->n++;
	e->last = sb;
	e->code = why->code;
}

/* Whoever ends it, it is told once. */
static void test_told_of_ends(void **state)
{
	struct sandbox *sb[3];
	struct forked *f;
	pid_t init;

	engine_stop();
	engine_start(&(struct box_config){ .on_end = on_end, .on_end_arg = &ends });
	sb[0] = make(NULL);
	assert_int_equal(init_pids(&init, 1), 1);
	kill(init, SIGKILL);
	for (int i = 0; i < 3000 && ends.n < 1; i++)
		wait_ms(10);
	assert_int_equal(ends.n, 1);
	assert_ptr_equal(ends.last, sb[0]);
	assert_int_equal(ends.code, ERR_GUEST);
	sb[1] = make(&(struct sandbox_spec){ .ttl_ms = 100 });
	for (int i = 0; i < 3000 && ends.n < 2; i++)
		wait_ms(10);
	assert_ptr_equal(ends.last, sb[1]);
	sb[2] = make(NULL);
	f = fork_of(sb[2], 2);
	destroy(sb[2]);
	assert_ptr_equal(ends.last, sb[2]);
	destroy(f->children[0]);
	assert_int_equal(ends.code, ERR_CANCELLED);
	kill(warden_pid(), SIGKILL);
	for (int i = 0; i < 3000 && ends.n < 5; i++)
		wait_ms(10);
	assert_int_equal(ends.n, 5);
	assert_ptr_equal(ends.last, f->children[1]);
	assert_int_equal(ends.code, ERR_GUEST);
}

static void test_max(void **state)
{
	struct sandbox *sb[3];
	struct box_stats s;

	engine_stop();
	engine_start(&(struct box_config){ .max_sandboxes = 3, .pool = 2 });
	wait_ms(300); /* the pool fills; it does not count */
	for (int i = 0; i < 3; i++)
		sb[i] = make(NULL);
	assert_int_equal(make_error(&(struct sandbox_spec){ 0 }).code, ERR_LIMIT);
	destroy(sb[1]);
	sb[1] = make(NULL);
	box_stats(box, &s);
	assert_int_equal(s.live, 3);
	assert_string_equal(sh(sb[1], "echo well"), "well");
}

/* ---- time ------------------------------------------------------------------------------------ */

static void test_ttl(void **state)
{
	const struct sandbox_spec spec = { .ttl_ms = 400 };
	struct sandbox *sb = make(&spec);
	struct ran *r = ran_shell(sb, "sleep 30");

	assert_in_range(sandbox_ttl_left_ms(sb), 1, 400);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_CANCELLED);
	assert_false(sandbox_live(sb));
	assert_int_equal(filed_code(stat_start(sb, "/")), ERR_SANDBOX_NOT_FOUND);
}

static void test_ttl_and_destroy(void **state)
{
	const struct sandbox_spec spec = { .ttl_ms = 100 };
	struct sandbox *sb = make(&spec);

	destroy(sb);
	wait_ms(200);
	assert_int_equal(sandbox_ttl_left_ms(sb), 0);
}

/* ---- destroy --------------------------------------------------------------------------------- */

static void test_destroy_busy(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r[4];
	struct made *d;

	r[0] = ran_shell(sb, "trap '' TERM INT HUP; sleep 30 & sleep 30");
	r[1] = ran_shell(sb, "yes");
	r[2] = ran_shell(sb, "f() { f | f & }; f");
	r[3] = ran_start(sb, &(struct exec_spec){ .shell = STR_LIT("cat"), .stdin_open = true });
	wait_ms(200);
	d = destroy_start(sb);
	for (int i = 0; i < 4; i++) {
		ran_wait(r[i]);
		if (r[i]->err.code)
			assert_int_equal(r[i]->err.code, ERR_CANCELLED);
	}
	wait_for(&d->done, "the end of a busy sandbox");
	assert_int_equal(d->err.code, 0);
	assert_int_equal(init_pids((pid_t[2]){ 0 }, 2), 0);
}

static void test_destroy_twice(void **state)
{
	struct sandbox *sb = make(NULL);
	struct made *one = destroy_start(sb), *two = destroy_start(sb);
	struct ran *r = ran_shell(sb, "true");

	assert_null(box_find(box, str_of(sandbox_id(sb))));
	assert_int_equal(r->err.code, ERR_SANDBOX_NOT_FOUND);
	wait_for(&one->done, "the first");
	wait_for(&two->done, "the second");
	assert_int_equal(one->err.code, 0);
	assert_int_equal(two->err.code, ERR_SANDBOX_NOT_FOUND);
}

static void on_ended(void *arg, struct sandbox *sb, const struct err *err)
{
}

/* Nobody holds a reference: the sandbox goes with its list entry. */
static void test_destroy_without_callback(void **state)
{
	struct box_stats s;

	for (int i = 0; i < 5; i++)
		sandbox_destroy_start(make(NULL), i & 1 ? on_ended : NULL, NULL);
	for (box_stats(box, &s); s.destroyed < 5; box_stats(box, &s))
		wait_ms(10);
	assert_int_equal(s.live, 0);
}

/* A thousand lives one after the other and by eights leave nothing that grows. */
static void test_thousand(void **state)
{
	size_t ours, wardens;
	struct made *m[8];

	destroy(make(NULL));
	ours = fds_of(getpid());
	wardens = fds_of(warden_pid());
	for (unsigned i = 0; i < soak(125); i++) {
		for (size_t k = 0; k < ARRAY_LEN(m); k++)
			m[k] = make_start(NULL);
		for (size_t k = 0; k < ARRAY_LEN(m); k++) {
			wait_for(&m[k]->done, "a sandbox");
			assert_int_equal(m[k]->err.code, 0);
			m[k] = destroy_start(m[k]->sb);
		}
		for (size_t k = 0; k < ARRAY_LEN(m); k++)
			wait_for(&m[k]->done, "its end");
	}
	wait_ms(200);
	assert_fds(getpid(), ours);
	/* networks kept ready come and go */
	assert_in_range(fds_of(warden_pid()), wardens > 64 ? wardens - 64 : 0, wardens + 64);
}

/* ---- accidents ------------------------------------------------------------------------------- */

static void test_init_killed(void **state)
{
	struct sandbox *sb = make(NULL), *other;
	struct ran *r = ran_shell(sb, "sleep 30");
	struct filed *f;
	struct box_stats s;
	pid_t init, left[2];

	assert_int_equal(init_pids(&init, 1), 1);
	other = make(NULL);
	wait_ms(50);
	kill(init, SIGKILL);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_GUEST);
	assert_false(sandbox_live(sb));
	f = get_start(sb, "/etc/passwd", 0, 1);
	assert_true(filed_code(f) == ERR_SANDBOX_NOT_FOUND || f->err.code == ERR_GUEST);
	assert_string_equal(sh(other, "echo well"), "well");
	box_stats(box, &s);
	assert_int_equal(s.lost, 1);
	assert_int_equal(s.live, 1);
	/* the hub hears its socket close before the warden has reaped it */
	for (int i = 0; i < 3000 && init_pids(left, 2) != 1; i++)
		wait_ms(10);
	assert_int_equal(init_pids(left, 2), 1);
}

/* All that was under way is told, of the kinds that there are. */
static void test_init_killed_under_way(void **state)
{
	struct sandbox *sb = make(NULL);
	struct ran *r;
	struct filed *f[3];
	struct forked *k;
	pid_t init;

	sh(sb, "head -c 100000000 /dev/zero > big");
	r = ran_shell(sb, "sleep 30");
	wait_ms(30);
	assert_int_equal(init_pids(&init, 1), 1);
	kill(init, SIGSTOP);
	f[0] = get_start(sb, "f", 0, 1);
	f[1] = put_start(sb, "f", STR_LIT("x"), NULL);
	f[2] = remove_start(sb, "big", true);
	k = fork_start(sb, 1);
	wait_ms(30);
	kill(init, SIGKILL);
	ran_wait(r);
	assert_int_equal(r->err.code, ERR_GUEST);
	for (int i = 0; i < 3; i++)
		assert_int_equal(filed_code(f[i]), ERR_GUEST);
	wait_for(&k->done, "the answer to the fork");
}

/* An init that does not answer: the timeout of a program is kept from outside. */
static void test_init_stopped(void **state)
{
	struct sandbox *sb = make(NULL);
	const struct exec_spec x = { .shell = STR_LIT("sleep 30"), .timeout_ms = 5000 };
	struct ran *r;
	pid_t init;

	assert_int_equal(init_pids(&init, 1), 1);
	r = ran_start(sb, &x);
	wait_ms(100);
	kill(init, SIGSTOP);
	ran_wait(r);
	assert_int_equal(r->result.end, EXEC_TIMED_OUT);
	assert_false(sandbox_live(sb));
}

/* The same while a fork waits for what it would say. */
static void test_init_stopped_and_forked(void **state)
{
	struct sandbox *sb = make(NULL);
	struct forked *f;
	pid_t init;

	assert_int_equal(init_pids(&init, 1), 1);
	kill(init, SIGSTOP);
	f = fork_start(sb, 1);
	wait_for(&f->done, "the answer to a fork of a sandbox that is stuck");
	assert_int_not_equal(f->err.code, 0);
}

static void test_warden_killed(void **state)
{
	struct sandbox *sb[6];
	struct ran *r[6];
	struct box_stats s;
	struct made *m;
	pid_t inits[16];
	size_t n;

	engine_stop();
	engine_start(&(struct box_config){ .pool = 4 });
	for (int i = 0; i < 6; i++) {
		sb[i] = make(NULL);
		r[i] = ran_shell(sb[i], "sleep 30");
	}
	wait_ms(100);
	n = init_pids(inits, 16);
	kill(warden_pid(), SIGKILL);
	m = make_start(NULL); /* on the way while it dies */
	for (int i = 0; i < 6; i++) {
		ran_wait(r[i]);
		assert_int_equal(r[i]->err.code, ERR_GUEST);
		assert_false(sandbox_live(sb[i]));
	}
	wait_for(&m->done, "an answer");
	for (int i = 0; i < 3000 && n; i++) {
		waitpid(-1, NULL, WNOHANG);
		for (size_t k = 0; k < n; k++) {
			if (kill(inits[k], 0) < 0)
				inits[k] = inits[--n];
		}
		wait_ms(10);
	}
	assert_int_equal(n, 0);
	assert_string_equal(sh(make(NULL), "echo well"), "well");
	box_stats(box, &s);
	assert_true(s.lost >= 6);
	assert_int_equal(s.live, m->err.code ? 1 : 2);
}

/* What is asked before its death is known is answered, and not from inside the asking. */
static void test_asked_of_the_dead(void **state)
{
	struct sandbox *sb = make(NULL), *idle = make(NULL);
	struct ran *r = ran_shell(sb, "sleep 30"), *x;
	struct forked *f, *g;
	struct made *m, *d;
	struct filed *w;
	siginfo_t end;
	pid_t warden = warden_pid();

	wait_ms(50);
	kill(warden, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)warden, &end, WEXITED | WNOWAIT), 0);
	f = fork_start(sb, 1);
	g = fork_start(idle, 1);
	x = ran_shell(sb, "echo x");
	w = put_start(idle, "f", STR_LIT("x"), NULL);
	m = make_start(NULL);
	d = destroy_start(sb);
	wait_for(&f->done, "the answer to a fork");
	wait_for(&g->done, "the answer to a fork");
	wait_for(&m->done, "the answer to create");
	wait_for(&d->done, "the answer to destroy");
	ran_wait(r);
	ran_wait(x);
	filed(w);
	assert_int_equal(f->err.code, ERR_GUEST);
	assert_int_equal(g->err.code, ERR_GUEST);
	assert_int_equal(m->err.code, ERR_GUEST);
	assert_int_equal(r->err.code, ERR_GUEST);
}

static void kill_warden_if_any(void)
{
	pid_t pid = warden_if_any();

	if (pid)
		kill(pid, SIGKILL);
}

/* Killed again and again, at every stage of making sandboxes. */
static void test_warden_killed_early(void **state)
{
	for (unsigned i = 0; i < 25; i++) {
		struct made *m[4];

		for (size_t k = 0; k < ARRAY_LEN(m); k++)
			m[k] = make_start(NULL);
		wait_ms(i / 2);
		kill_warden_if_any();
		for (size_t k = 0; k < ARRAY_LEN(m); k++)
			wait_for(&m[k]->done, "an answer to create");
	}
	wait_ms(100);
	assert_string_equal(sh(make(NULL), "echo well"), "well");
}

static void test_warden_killed_while_forking(void **state)
{
	for (unsigned i = 0; i < 6; i++) {
		struct sandbox *sb = make(NULL);
		struct ran *r = ran_shell(sb, "head -c 60000000 /dev/zero > f; echo; sleep 30");
		struct forked *f;

		while (!r->out.n)
			wait_ms(5);
		f = fork_start(sb, 3);
		wait_ms(i * 8);
		kill(warden_pid(), SIGKILL);
		wait_for(&f->done, "the answer to the fork");
		ran_wait(r);
		while (!warden_if_any())
			wait_for(&make_start(NULL)->done, "an answer to create");
	}
}

/* ---- the end of the box ---------------------------------------------------------------------- */

static void test_close_busy(void **state)
{
	struct ran *r[3];
	struct sandbox *sb[3];

	engine_stop();
	engine_start(&(struct box_config){ .pool = 3 });
	for (int i = 0; i < 3; i++) {
		sb[i] = make(NULL);
		r[i] = ran_shell(sb[i], i ? "f() { f | f & }; f; sleep 30" : "sleep 30");
	}
	make_start(NULL);
	put_start(sb[0], "f", pattern(5 * MIB), NULL);
	fork_start(sb[1], 2);
	wait_ms(100);
	put_start(sb[0], "g", pattern(5 * MIB), NULL);
	make_start(NULL);
	engine_stop();
	(void)r;
}

static void test_close_at_once(void **state)
{
	engine_stop();
	for (int i = 0; i < 5; i++) {
		engine_start(&(struct box_config){ .pool = 2 });
		if (i & 1)
			make_start(NULL);
		wait_ms((unsigned)i * 4);
		engine_stop();
	}
}

/* The hub itself is killed: a process that has a box of its own. */
static void test_hub_killed(void **state)
{
	static const char *const stages[] = { "1", "20", "60", "200" };

	for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execl("/proc/self/exe", "test", libexec_dir(), "--be-killed", NULL);
			_exit(1);
		}
		usleep((unsigned)atoi(stages[i]) * 1000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	/* what is left would be ours now: the fixture looks */
}

/* Fills a box with work until it is killed. */
static void be_killed(void **state)
{
	struct sandbox *sb;

	engine_start(&(struct box_config){ .pool = 3 });
	for (int i = 0; i < 5; i++) {
		sb = make(NULL);
		ran_shell(sb, "f() { f | f & }; sleep 30 & sleep 30");
		fork_start(sb, 2);
	}
	wait_ms(20000);
}

static void test_bad_libexec(void **state)
{
	const struct box_config config = { .libexec_dir = "/nowhere" };
	struct err e = ERR_INIT;
	struct box *other = box_new(uv_default_loop(), &config, &e);

	assert_null(other);
	assert_int_not_equal(e.code, 0);
	assert_null(strstr(e.msg, "/nowhere")); /* no path of the host */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest victim[] = { cmocka_unit_test(be_killed) };
	const struct CMUnitTest tests[] = {
		engine_test(test_plain),
		engine_test(test_bad_specs),
		engine_test(test_ids_differ),
		engine_test(test_own_ids),
		engine_test(test_told_of_ends),
		engine_test(test_max),
		engine_test(test_ttl),
		engine_test(test_ttl_and_destroy),
		engine_test(test_destroy_busy),
		engine_test(test_destroy_twice),
		engine_test(test_destroy_without_callback),
		engine_test(test_thousand),
		engine_test(test_init_killed),
		engine_test(test_init_killed_under_way),
		engine_test(test_init_stopped),
		engine_test(test_init_stopped_and_forked),
		engine_test(test_warden_killed),
		engine_test(test_asked_of_the_dead),
		engine_test(test_warden_killed_early),
		engine_test(test_warden_killed_while_forking),
		engine_test(test_close_busy),
		engine_test(test_close_at_once),
		engine_test(test_hub_killed),
		engine_test(test_bad_libexec),
	};

	if (argc == 3)
		return ENGINE_MAIN(2, argv, "victim", victim);
	return ENGINE_MAIN(argc, argv, "life", tests);
}
