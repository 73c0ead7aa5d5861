/* The lifecycle over the real engine: names, deadlines, losses, pauses, forks, and what a
 * registry brings back to the next hub. */
#include "engine.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/sandbox/internal.h"

static char dir[64], path[128];
static struct store *store;
static struct hub_sandboxes *sandboxes;

/* ---- the hub of a test --------------------------------------------------------------------- */

/* The box outlives a hub that is "killed": what it tells goes to the one of the moment. */
static void on_end(void *arg, struct sandbox *sb, const struct err *why)
{
	if (sandboxes)
		hub_sandboxes_on_end(sandboxes, sb, why);
}

static void remember(void)
{
	struct err e = ERR_INIT;

	store = store_open(path, &e);
	sandboxes = store ? hub_sandboxes_new(engine_loop(), store, &e) : NULL;
	if (!sandboxes)
		fail_msg("%s", e.msg);
}

static void begin(struct sandbox *const *kept, size_t n)
{
	remember();
	hub_sandboxes_adopt(sandboxes, box, kept, n);
}

/* The registry first: its descriptors are no leftovers of the engine's. */
static void start_all(void)
{
	remember();
	engine_start(&(struct box_config){ .on_end = on_end, .ttl_by_caller = true });
	hub_sandboxes_adopt(sandboxes, box, NULL, 0);
}

/* As a hub that is killed: nothing more is written. */
static void crash(void)
{
	while (sandboxes->checkpointing) /* which a real end would take along */
		wait_ms(1);
	hub_sandboxes_free(take_ptr(sandboxes));
	store_close(take_ptr(store));
}

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/holt-lives-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/registry.db", dir);
	start_all();
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "", "-wal", "-shm", "-lock" };
	char name[160];

	if (sandboxes)
		hub_sandboxes_stop(sandboxes);
	engine_stop();
	if (sandboxes)
		crash();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(name, sizeof(name), "%s%s", path, names[i]);
		unlink(name);
	}
	return rmdir(dir);
}

/* ---- calls that wait ------------------------------------------------------------------------ */

struct done {
	bool done;
	struct hub_sandbox *l;
	struct hub_sandbox *children[64];
	size_t n;
	struct err err;
};

static void on_done(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct done *d = arg;

	d->l = l;
	if (err)
		d->err = *err;
	d->done = true;
}

static void on_forked(void *arg, struct hub_sandbox *const *children, size_t n,
		      const struct err *err)
{
	struct done *d = arg;

	for (size_t i = 0; i < n; i++)
		d->children[i] = children[i];
	d->n = n;
	on_done(d, NULL, err);
}

static struct done created(const struct hub_sandbox_spec *spec)
{
	struct done d = { 0 };

	hub_sandbox_create_start(sandboxes, spec, on_done, &d);
	assert_false(d.done);
	wait_for(&d.done, "a sandbox");
	return d;
}

static struct hub_sandbox *made(const char *id)
{
	struct done d = created(&(struct hub_sandbox_spec){ .id = str_of(id) });

	if (!d.l)
		fail_msg("create: %s", d.err.msg);
	return d.l;
}

static enum err_code did(void (*start)(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg),
			 struct hub_sandbox *l)
{
	struct done d = { 0 };

	start(l, on_done, &d);
	assert_false(d.done);
	wait_for(&d.done, "an end");
	return d.err.code;
}

static struct done forked(struct hub_sandbox *source, const struct hub_sandbox_fork_spec *spec)
{
	struct done d = { 0 };

	hub_sandbox_fork_start(source, spec, on_forked, &d);
	assert_false(d.done);
	wait_for(&d.done, "a fork");
	return d;
}

static struct hub_sandbox_info info_of(const char *id)
{
	struct hub_sandbox_info info;
	struct err e = ERR_INIT;
	struct hub_sandbox *l = hub_sandboxes_find(sandboxes, str_of(id), &e);

	assert_non_null(l);
	hub_sandbox_info(l, &info);
	return info;
}

static enum hub_sandbox_state state_of(const char *id)
{
	return info_of(id).state;
}

static enum err_code use(const char *id)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = hub_sandboxes_find(sandboxes, str_of(id), &e);

	return l && hub_sandbox_sandbox(l, &e) ? ERR_NONE : e.code;
}

static void until(const char *id, enum hub_sandbox_state state)
{
	for (int i = 0; i < 3000 && state_of(id) != state; i++)
		wait_ms(10);
	assert_int_equal(state_of(id), state);
}

/* ---- states --------------------------------------------------------------------------------- */

static void test_table(void **state)
{
	static const char *const may[SANDBOX_STATES] = {
		/* of: creating running paused cold restoring stopped lost terminated failed */
		[SANDBOX_CREATING] = ".r..R..t.",  [SANDBOX_RUNNING] = "..pc.sltf",
		[SANDBOX_PAUSED] = ".r.c.sltf",	   [SANDBOX_COLD] = "....R.ltf",
		[SANDBOX_RESTORING] = ".r.c.sltf", [SANDBOX_STOPPED] = "....R.ltf",
		[SANDBOX_LOST] = ".......t.",	   [SANDBOX_TERMINATED] = ".........",
		[SANDBOX_FAILED] = ".......t.",
	};

	for (int from = 0; from < SANDBOX_STATES; from++) {
		for (int to = 0; to < SANDBOX_STATES; to++)
			assert_int_equal(hub_sandbox_may_follow((enum hub_sandbox_state)from,
								(enum hub_sandbox_state)to),
					 may[from][to] != '.');
	}
}

static void test_setter_holds_to_it(void **state)
{
	struct hub_sandbox *l = made("a");
	struct err e = ERR_INIT;

	assert_int_equal(hub_sandbox_set_state(l, SANDBOX_RESTORING, NULL, &e), -1);
	assert_int_equal(e.code, ERR_BUG);
	assert_int_equal(l->state, SANDBOX_RUNNING);
	assert_int_equal(use("a"), ERR_NONE);
}

/* ---- names ---------------------------------------------------------------------------------- */

static void test_names(void **state)
{
	struct hub_sandbox *l = made(NULL);
	struct hub_sandbox_info info;

	hub_sandbox_info(l, &info);
	assert_true(str_starts(info.id, "sbx-") && info.id.n == 36);
	assert_string_equal(sh(l->box, "echo well"), "well");
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = info.id }).err.code,
			 ERR_NAME_TAKEN);
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = STR_LIT("-x") }).err.code,
			 ERR_INVALID);
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = { "", 0 } }).err.code,
			 ERR_INVALID);

	assert_int_equal(info_of(made("x")->id).generation, 1);
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = STR_LIT("x") }).err.code,
			 ERR_NAME_TAKEN);
	assert_int_equal(
		did(hub_sandbox_terminate_start, hub_sandboxes_get(sandboxes, STR_LIT("x"))),
		ERR_NONE);
	assert_int_equal(use("x"), ERR_SANDBOX_NOT_FOUND);
	assert_int_equal(
		did(hub_sandbox_terminate_start, hub_sandboxes_get(sandboxes, STR_LIT("x"))),
		ERR_SANDBOX_NOT_FOUND);
	made("x");
	assert_int_equal(info_of("x").generation, 2);
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_TERMINATED], 0);
	/* one that can't be made gives its name back, and what had it is still known */
	assert_int_equal(
		did(hub_sandbox_terminate_start, hub_sandboxes_get(sandboxes, STR_LIT("x"))),
		ERR_NONE);
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = STR_LIT("x"),
							     .box.template = STR_LIT("nowhere") })
				 .err.code,
			 ERR_TEMPLATE_NOT_FOUND);
	assert_int_equal(info_of("x").generation, 2);
	assert_int_equal(state_of("x"), SANDBOX_TERMINATED);
}

static void test_one_name_at_once(void **state)
{
	struct done d[2] = { 0 };
	struct hub_sandbox_info info;

	for (int i = 0; i < 2; i++)
		hub_sandbox_create_start(sandboxes,
					 &(struct hub_sandbox_spec){ .id = STR_LIT("x") }, on_done,
					 &d[i]);
	assert_int_equal(state_of("x"), SANDBOX_CREATING);
	info = info_of("x");
	assert_true(str_is(info.template, "host") && info.created_ms > 0); /* as it will be */
	assert_int_equal(use("x"), ERR_CONFLICT);
	assert_int_equal(
		did(hub_sandbox_terminate_start, hub_sandboxes_get(sandboxes, STR_LIT("x"))),
		ERR_CONFLICT);
	for (int i = 0; i < 2; i++)
		wait_for(&d[i].done, "an answer");
	assert_int_equal(d[0].err.code, ERR_NONE);
	assert_int_equal(d[1].err.code, ERR_NAME_TAKEN);
}

static void test_retentions(void **state)
{
	for (int r = RETAIN_DESTROY + 1; r < RETENTIONS; r++) {
		struct done d = created(
			&(struct hub_sandbox_spec){ .retention = (enum hub_sandbox_retention)r });

		assert_int_equal(d.err.code, ERR_INVALID);
		assert_non_null(strstr(d.err.msg, hub_sandbox_retention_names[r]));
	}
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_CREATING], 0);
}

/* ---- deadlines ------------------------------------------------------------------------------ */

static void test_time_to_live(void **state)
{
	struct hub_sandbox *l =
		created(&(struct hub_sandbox_spec){ .id = STR_LIT("a"), .box.ttl_ms = 600 }).l;
	struct err e = ERR_INIT;

	assert_true(info_of("a").deadline_ms > info_of("a").created_ms);
	/* what the warden has of it, where the hub ends before */
	assert_true(sandbox_ttl_left_ms(l->box) >= 0);
	assert_int_equal(hub_sandbox_set_timeout(l, 0, &e), 0);
	assert_int_equal(info_of("a").deadline_ms, 0);
	assert_int_equal(sandbox_ttl_left_ms(l->box), -1);
	wait_ms(800);
	assert_int_equal(state_of("a"), SANDBOX_RUNNING);
	assert_int_equal(hub_sandbox_set_timeout(l, SANDBOX_TIMEOUT_MAX_MS + 1, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(hub_sandbox_set_timeout(l, 100, &e), 0);
	until("a", SANDBOX_TERMINATED);
	assert_int_equal(info_of("a").why->code, ERR_TIMEOUT);
	assert_int_equal(hub_sandbox_set_timeout(l, 100, &e), -1);
	assert_int_equal(e.code, ERR_SANDBOX_NOT_FOUND);
	assert_null(box_find(box, STR_LIT("a")));
}

/* Uses, one after the other; a machine that stood still for so long in between proves nothing. */
static void used_for_a_while(const char *id, uint64_t idle_ms)
{
	bool in_time = true;

	for (int i = 0; i < 10 && in_time; i++) {
		uint64_t used_ms = clock_ms();

		assert_int_equal(use(id), ERR_NONE);
		wait_ms(50);
		in_time = clock_ms() - used_ms < idle_ms;
	}
	if (in_time)
		assert_int_equal(state_of(id), SANDBOX_RUNNING);
}

static void test_idle(void **state)
{
	struct hub_sandbox *l =
		created(&(struct hub_sandbox_spec){ .id = STR_LIT("a"), .idle_ms = 300 }).l;

	hub_sandbox_busy(l, 1);
	wait_ms(600);
	assert_int_equal(state_of("a"), SANDBOX_RUNNING);
	hub_sandbox_busy(l, -1);
	used_for_a_while("a", 300);
	until("a", SANDBOX_TERMINATED);
	assert_non_null(strstr(info_of("a").why->msg, "not used"));
	/* nobody ever came */
	created(&(struct hub_sandbox_spec){ .id = STR_LIT("b"), .idle_ms = 100 });
	until("b", SANDBOX_TERMINATED);
}

/* Paused is not idle, and is not counted when it goes on. */
static void test_idle_and_paused(void **state)
{
	struct hub_sandbox *l =
		created(&(struct hub_sandbox_spec){ .id = STR_LIT("a"), .idle_ms = 3600000 }).l;
	uint64_t resumed_ms;

	assert_int_equal(did(hub_sandbox_pause_start, l), ERR_NONE);
	l->idle_ms = 100;
	hub_sandbox_arm(l);
	wait_ms(300);
	assert_int_equal(state_of("a"), SANDBOX_PAUSED);
	resumed_ms = clock_ms();
	assert_int_equal(did(hub_sandbox_resume_start, l), ERR_NONE);
	assert_true(l->used_ms >= resumed_ms);
	until("a", SANDBOX_TERMINATED);
}

/* A source is busy while it is forked, also where nothing else of it is. */
static void test_idle_and_forked(void **state)
{
	struct hub_sandbox *l =
		created(&(struct hub_sandbox_spec){ .id = STR_LIT("a"), .idle_ms = 3600000 }).l;
	struct done d = { 0 };

	hub_sandbox_fork_start(l, &(struct hub_sandbox_fork_spec){ .n = 1 }, on_forked, &d);
	assert_int_equal(l->busy, 1);
	wait_for(&d.done, "a fork");
	assert_int_equal(d.n, 1);
	assert_int_equal(l->busy, 0);
	assert_int_equal(forked(l, &(struct hub_sandbox_fork_spec){ .n = 65 }).err.code,
			 ERR_INVALID);
	assert_int_equal(l->busy, 0);
}

/* ---- losses --------------------------------------------------------------------------------- */

static void test_lost(void **state)
{
	struct hub_sandbox *l = made("a");
	pid_t init;

	assert_int_equal(init_pids(&init, 1), 1);
	kill(init, SIGKILL);
	until("a", SANDBOX_LOST);
	assert_int_equal(use("a"), ERR_GUEST);
	assert_non_null(info_of("a").why);
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = STR_LIT("a") }).err.code,
			 ERR_NAME_TAKEN);
	assert_int_equal(did(hub_sandbox_pause_start, l), ERR_GUEST);
	assert_int_equal(forked(l, &(struct hub_sandbox_fork_spec){ .n = 1 }).err.code, ERR_GUEST);
	assert_int_equal(did(hub_sandbox_terminate_start, l), ERR_NONE);
	assert_int_equal(use("a"), ERR_SANDBOX_NOT_FOUND);
	made("a");
	assert_int_equal(info_of("a").generation, 2);
}

/* ---- pause ---------------------------------------------------------------------------------- */

static void test_pause(void **state)
{
	struct hub_sandbox *l = made("a");
	struct done f;

	assert_int_equal(did(hub_sandbox_pause_start, l), ERR_NONE);
	assert_int_equal(did(hub_sandbox_pause_start, l), ERR_NONE);
	assert_int_equal(use("a"), ERR_PAUSED);
	f = forked(l, &(struct hub_sandbox_fork_spec){ .n = 2 });
	assert_int_equal(f.n, 2);
	assert_string_equal(sh(f.children[1]->box, "echo well"), "well");
	assert_int_equal(state_of("a"), SANDBOX_PAUSED);
	assert_int_equal(did(hub_sandbox_resume_start, l), ERR_NONE);
	assert_int_equal(did(hub_sandbox_resume_start, l), ERR_NONE);
	assert_string_equal(sh(l->box, "echo well"), "well");
	assert_int_equal(did(hub_sandbox_terminate_start, l), ERR_NONE);
	assert_int_equal(did(hub_sandbox_resume_start, l), ERR_SANDBOX_NOT_FOUND);
}

/* ---- forks ---------------------------------------------------------------------------------- */

static void test_forks(void **state)
{
	const struct str ids[] = { STR_LIT("c1"), STR_LIT("c2") }, twice[] = { ids[0], ids[0] };
	const struct str taken[] = { STR_LIT("new"), STR_LIT("a") };
	struct hub_sandbox *l =
		created(&(struct hub_sandbox_spec){ .id = STR_LIT("a"), .box.ttl_ms = 3600000 }).l;
	struct done f = forked(l, &(struct hub_sandbox_fork_spec){ .n = 2, .ids = ids });
	uint64_t running;

	assert_int_equal(f.err.code, ERR_NONE);
	assert_true(str_is(info_of("c2").source, "a"));
	assert_int_equal(info_of("c1").ttl_ms, 3600000);
	assert_true(info_of("c1").deadline_ms >= info_of("a").deadline_ms);
	running = sandboxes->stats.by_state[SANDBOX_RUNNING];
	assert_int_equal(running, 3);
	assert_int_equal(
		forked(l, &(struct hub_sandbox_fork_spec){ .n = 2, .ids = taken }).err.code,
		ERR_NAME_TAKEN);
	assert_int_equal(
		forked(l, &(struct hub_sandbox_fork_spec){ .n = 2, .ids = twice }).err.code,
		ERR_NAME_TAKEN);
	assert_int_equal(forked(l, &(struct hub_sandbox_fork_spec){ .n = 0 }).err.code,
			 ERR_INVALID);
	assert_int_equal(forked(l, &(struct hub_sandbox_fork_spec){ .n = 65 }).err.code,
			 ERR_INVALID);
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_RUNNING], running);
	assert_null(hub_sandboxes_get(sandboxes, STR_LIT("new")));
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_CREATING], 0);
}

/* ---- the next hub --------------------------------------------------------------------------- */

static void test_adopts(void **state)
{
	struct sandbox *kept[2];
	struct hub_sandbox_info before;
	struct err e = ERR_INIT;
	struct hub_sandbox *l;

	hub_sandbox_info(
		created(&(struct hub_sandbox_spec){ .id = STR_LIT("a"), .box.ttl_ms = 3600000 }).l,
		&before);
	made("gone");
	kept[0] = sandbox_ref(hub_sandboxes_get(sandboxes, STR_LIT("a"))->box);
	kept[1] = make(&(struct sandbox_spec){ .id = STR_LIT("stranger") });
	crash();
	begin(kept, 2);
	assert_int_equal(state_of("a"), SANDBOX_RUNNING);
	assert_int_equal(info_of("a").generation, 1);
	assert_true(info_of("a").deadline_ms == before.deadline_ms);
	assert_string_equal(sh(hub_sandboxes_get(sandboxes, STR_LIT("a"))->box, "echo well"),
			    "well");
	assert_int_equal(state_of("gone"), SANDBOX_LOST);
	assert_int_equal(use("gone"), ERR_GUEST);
	for (int i = 0; i < 3000 && sandbox_live(kept[1]); i++)
		wait_ms(10);
	assert_false(sandbox_live(kept[1]));
	assert_null(hub_sandboxes_get(sandboxes, STR_LIT("stranger")));
	sandbox_unref(kept[0]);
	/* whose deadline came meanwhile, and what the warden ended for it */
	l = created(&(struct hub_sandbox_spec){ .id = STR_LIT("ended"), .box.ttl_ms = 3600000 }).l;
	l->deadline_ms = clock_unix_ms();
	assert_int_equal(hub_sandbox_save(l, NULL, STR_NONE, &e), 0);
	created(&(struct hub_sandbox_spec){ .id = STR_LIT("late"), .box.ttl_ms = 3000 });
	created(&(struct hub_sandbox_spec){ .id = STR_LIT("over"), .box.ttl_ms = 3000 });
	kept[0] = sandbox_ref(hub_sandboxes_get(sandboxes, STR_LIT("late"))->box);
	crash();
	wait_ms(3100);
	begin(kept, 1);
	assert_int_equal(state_of("ended"), SANDBOX_TERMINATED);
	assert_int_equal(info_of("ended").why->code, ERR_TIMEOUT);
	until("late", SANDBOX_TERMINATED);
	assert_int_equal(state_of("over"), SANDBOX_TERMINATED);
	sandbox_unref(kept[0]);
}

/* The row is of a registry that was put back, and the sandbox came after the copy. */
static void test_adopts_no_other(void **state)
{
	struct sandbox *sb = sandbox_ref(made("a")->box);
	struct err e = ERR_INIT;

	assert_int_equal(sandbox_set_record(sb, STR_LIT("2 1700000000000"), &e), 0);
	crash();
	begin(&sb, 1);
	assert_int_equal(state_of("a"), SANDBOX_LOST);
	assert_int_equal(use("a"), ERR_GUEST);
	for (int i = 0; i < 3000 && sandbox_live(sb); i++)
		wait_ms(10);
	assert_false(sandbox_live(sb));
	sandbox_unref(sb);
}

/* A hub that was killed between a pause, or a resume, and what it would have written of it. */
static void test_adopts_as_it_is(void **state)
{
	struct sandbox *kept[2];
	struct err e = ERR_INIT;

	for (size_t i = 0; i < 2; i++) {
		struct hub_sandbox *l = made(i ? "resumed" : "paused");

		kept[i] = sandbox_ref(l->box);
		assert_int_equal(did(hub_sandbox_pause_start, l), ERR_NONE);
		if (i)
			assert_int_equal(did(hub_sandbox_resume_start, l), ERR_NONE);
		assert_int_equal(
			hub_sandbox_set_state(l, i ? SANDBOX_PAUSED : SANDBOX_RUNNING, NULL, &e),
			0);
	}
	crash();
	begin(kept, 2);
	until("paused", SANDBOX_RUNNING); /* as nobody was told that it is paused */
	assert_int_equal(use("paused"), ERR_NONE);
	assert_string_equal(sh(kept[0], "echo well"), "well");
	assert_int_equal(state_of("resumed"), SANDBOX_RUNNING);
	assert_int_equal(use("resumed"), ERR_NONE);
	for (size_t i = 0; i < 2; i++)
		sandbox_unref(kept[i]);
}

/* No file can grow, so no commit succeeds. */
static struct rlimit fill_disk(void)
{
	struct rlimit all, none;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &all), 0);
	none = (struct rlimit){ 1, all.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	return all;
}

/* What is written together and is not kept is all written again, not only what failed last. */
static void test_adopts_on_a_full_disk(void **state)
{
	struct rlimit all;

	for (int i = 0; i < 3; i++)
		made((const char *const[]){ "a", "b", "c" }[i]);
	crash();
	remember();
	all = fill_disk();
	hub_sandboxes_adopt(sandboxes, box, NULL, 0);
	setrlimit(RLIMIT_FSIZE, &all);
	assert_int_equal(state_of("a"), SANDBOX_LOST);
	assert_int_equal(sandboxes->stats.unsaved, 3);
	for (int i = 0; i < 3000 && sandboxes->stats.unsaved; i++)
		wait_ms(10);
	assert_int_equal(sandboxes->stats.unsaved, 0);
	crash();
	remember();
	for (int i = 0; i < 3; i++)
		assert_int_equal(state_of((const char *const[]){ "a", "b", "c" }[i]), SANDBOX_LOST);
	hub_sandboxes_adopt(sandboxes, box, NULL, 0);
}

static void on_sandboxes_closed(void *arg)
{
	*(bool *)arg = true;
}

/* The end of all is one transaction, too. */
static void test_ends_on_a_full_disk(void **state)
{
	struct hub_sandboxes *ending = sandboxes;
	struct rlimit all;
	bool closed = false;

	for (int i = 0; i < 3; i++)
		made((const char *const[]){ "a", "b", "c" }[i]);
	hub_sandboxes_stop(sandboxes);
	engine_stop();
	assert_int_equal(state_of("a"), SANDBOX_TERMINATED);
	all = fill_disk();
	assert_int_equal(store_is_open(store), true);
	assert_int_equal(hub_sandboxes_batch_end(ending, true, &(struct err){ 0 }), -1);
	setrlimit(RLIMIT_FSIZE, &all);
	assert_int_equal(ending->stats.unsaved, 3);
	sandboxes = NULL;
	hub_sandboxes_close(ending, on_sandboxes_closed, &closed);
	wait_for(&closed, "the end of the sandboxes");
	store_close(take_ptr(store));
	remember();
	for (int i = 0; i < 3; i++)
		assert_int_equal(state_of((const char *const[]){ "a", "b", "c" }[i]),
				 SANDBOX_TERMINATED);
	hub_sandboxes_stop(sandboxes);
}

static void test_ends_in_order(void **state)
{
	made("a");
	hub_sandboxes_stop(sandboxes);
	assert_int_equal(created(&(struct hub_sandbox_spec){ .id = STR_LIT("b") }).err.code,
			 ERR_CANCELLED);
	engine_stop();
	if (sandboxes->batch) {
		struct err e;

		assert_int_equal(hub_sandboxes_batch_end(sandboxes, true, &e), 0);
	}
	crash();
	start_all();
	assert_int_equal(state_of("a"), SANDBOX_TERMINATED);
	assert_int_equal(info_of("a").why->code, ERR_CANCELLED);
}

/* ---- lists and events ----------------------------------------------------------------------- */

static void collect(void *arg, const struct hub_sandbox_event *v)
{
	char *text = arg;

	snprintf(text + strlen(text), 256 - strlen(text), "%.*s ", STR_ARG(v->kind));
}

static void test_lists(void **state)
{
	struct hub_sandbox *page[2];
	struct hub_sandbox_info info;
	struct err e = ERR_INIT;
	char text[256] = "";
	uint64_t after = 0;
	size_t n, all = 0;

	for (int i = 0; i < 5; i++)
		made(NULL);
	while ((n = hub_sandboxes_list(sandboxes, after, page, 2)) > 0) {
		all += n;
		hub_sandbox_info(page[n - 1], &info);
		assert_true(info.seq > after);
		after = info.seq;
	}
	assert_int_equal(all, 5);
	assert_int_equal(did(hub_sandbox_pause_start, page[0]), ERR_NONE);
	assert_int_equal(did(hub_sandbox_resume_start, page[0]), ERR_NONE);
	assert_int_equal(hub_sandbox_set_timeout(page[0], 100000, &e), 0);
	assert_int_equal(did(hub_sandbox_terminate_start, page[0]), ERR_NONE);
	hub_sandbox_info(page[0], &info);
	assert_int_equal(hub_sandboxes_events(sandboxes,
					      &(struct hub_sandbox_events){ .sandbox = info.id },
					      100, collect, text, &e),
			 0);
	assert_string_equal(text, "created paused resumed deadline terminated ");
}

/* One that has ended, as far as the registry can tell; busy: it is used still. */
static struct hub_sandbox *lived(const char *id, bool busy)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *l = hub_sandbox_new(sandboxes, str_of(id), &e);

	assert_non_null(l);
	l->spec = strdup("{}");
	assert_int_equal(hub_sandbox_set_state(l, SANDBOX_RUNNING, NULL, &e), 0);
	if (busy)
		hub_sandbox_busy(l, 1);
	assert_int_equal(hub_sandbox_set_state(l, SANDBOX_TERMINATED, NULL, &e), 0);
	return l;
}

static void forget_all(const char *prefix)
{
	for (int i = 0; i < TERMINATED_MAX; i++) {
		char id[16];

		snprintf(id, sizeof(id), "%s%d", prefix, i);
		lived(id, false);
	}
}

/* However many others came between, and in whichever hub: no generation of an id comes twice. */
static void test_generations_never_return(void **state)
{
	for (uint32_t i = 1; i <= 3; i++) {
		lived("x", false);
		assert_int_equal(info_of("x").generation, i);
	}
	forget_all("y");
	assert_null(hub_sandboxes_get(sandboxes, STR_LIT("x")));
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_TERMINATED], TERMINATED_MAX);
	made("x");
	assert_int_equal(info_of("x").generation, 4);
	assert_int_equal(
		did(hub_sandbox_terminate_start, hub_sandboxes_get(sandboxes, STR_LIT("x"))),
		ERR_NONE);
	forget_all("z");
	assert_null(hub_sandboxes_get(sandboxes, STR_LIT("x")));
	crash();
	begin(NULL, 0);
	made("x");
	assert_int_equal(info_of("x").generation, 5);
	/* a name that was never there is not older than it is */
	assert_int_equal(info_of(made(NULL)->id).generation, 1);
}

/* Those that ended are known for a while only, those that are used for longer. */
static void test_gone_are_bounded(void **state)
{
	struct hub_sandbox *first = NULL;

	for (int i = 0; i < TERMINATED_MAX + 100; i++) {
		char id[16];
		struct hub_sandbox *l;

		snprintf(id, sizeof(id), "x%d", i);
		l = lived(id, i == 0);
		if (!first)
			first = l;
	}
	assert_null(hub_sandboxes_get(sandboxes, STR_LIT("x0")));
	assert_int_equal(first->state, SANDBOX_TERMINATED);
	hub_sandbox_busy(first, -1);
	assert_non_null(hub_sandboxes_get(sandboxes, STR_LIT("x100")));
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_TERMINATED], TERMINATED_MAX);
	crash();
	begin(NULL, 0);
	assert_int_equal(sandboxes->stats.by_state[SANDBOX_TERMINATED], TERMINATED_MAX);
	assert_null(hub_sandboxes_get(sandboxes, STR_LIT("x99")));
}

/* ---- requests that are done once ------------------------------------------------------------ */

static void test_keys(void **state)
{
	struct idempotent_key k = { STR_LIT("fork"), STR_LIT("key-1"),
				    STR_LIT("POST /v1/fork {}") };
	struct idempotent_key other = k, bad = k;
	struct idempotent_answer a;
	struct err e = ERR_INIT;

	assert_int_equal(idempotent_begin(sandboxes, &k, STR_LIT("sbx-1"), &a, &e), IDEMPOTENT_NEW);
	assert_int_equal(idempotent_begin(sandboxes, &k, STR_LIT("sbx-2"), &a, &e),
			 IDEMPOTENT_REFUSED);
	assert_int_equal(e.code, ERR_CONFLICT);
	crash();
	begin(NULL, 0);
	assert_int_equal(idempotent_begin(sandboxes, &k, STR_LIT("sbx-3"), &a, &e),
			 IDEMPOTENT_RESUMED);
	assert_true(str_is(a.plan, "sbx-1"));
	assert_int_equal(idempotent_begin(sandboxes, &k, STR_LIT("sbx-4"), &a, &e),
			 IDEMPOTENT_REFUSED);
	assert_int_equal(idempotent_end(sandboxes, &k, 200, STR_LIT("{\"id\":1}"), &e), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(idempotent_begin(sandboxes, &k, STR_NONE, &a, &e),
				 IDEMPOTENT_DONE);
		assert_true(a.status == 200 && str_is(a.body, "{\"id\":1}"));
		crash();
		begin(NULL, 0);
	}
	other.request = STR_LIT("POST /v1/fork {\"id\":\"x\"}");
	assert_int_equal(idempotent_begin(sandboxes, &other, STR_NONE, &a, &e), IDEMPOTENT_REFUSED);
	assert_int_equal(e.code, ERR_CONFLICT);
	other.scope = STR_LIT("template");
	assert_int_equal(idempotent_begin(sandboxes, &other, STR_NONE, &a, &e), IDEMPOTENT_NEW);
	idempotent_drop(sandboxes, &other);
	assert_int_equal(idempotent_begin(sandboxes, &other, STR_NONE, &a, &e), IDEMPOTENT_NEW);
	bad.key = STR_LIT("two words");
	assert_int_equal(idempotent_begin(sandboxes, &bad, STR_NONE, &a, &e), IDEMPOTENT_REFUSED);
	assert_int_equal(e.code, ERR_INVALID);
	bad.key = (struct str){ "", 0 };
	assert_int_equal(idempotent_begin(sandboxes, &bad, STR_NONE, &a, &e), IDEMPOTENT_REFUSED);
}

#define hub_sandboxes_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		hub_sandboxes_test(test_setter_holds_to_it),
		hub_sandboxes_test(test_names),
		hub_sandboxes_test(test_one_name_at_once),
		hub_sandboxes_test(test_retentions),
		hub_sandboxes_test(test_time_to_live),
		hub_sandboxes_test(test_idle),
		hub_sandboxes_test(test_idle_and_paused),
		hub_sandboxes_test(test_idle_and_forked),
		hub_sandboxes_test(test_lost),
		hub_sandboxes_test(test_pause),
		hub_sandboxes_test(test_forks),
		hub_sandboxes_test(test_adopts),
		hub_sandboxes_test(test_adopts_no_other),
		hub_sandboxes_test(test_adopts_as_it_is),
		hub_sandboxes_test(test_adopts_on_a_full_disk),
		hub_sandboxes_test(test_ends_on_a_full_disk),
		hub_sandboxes_test(test_ends_in_order),
		hub_sandboxes_test(test_lists),
		hub_sandboxes_test(test_generations_never_return),
		hub_sandboxes_test(test_gone_are_bounded),
		hub_sandboxes_test(test_keys),
	};

	return ENGINE_MAIN(argc, argv, "lives", tests);
}
