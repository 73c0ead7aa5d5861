/* The engine through box/host/box.h, one operation at a time unless said: each runs the loop to
 * its end. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "box/host/box.h"

enum { POOL = 8, NETWORKS = 4, UNDER_WAY = 16, IDLE_MAX = 1024 };
enum { SLEEP_MS = 20000 }; /* long enough to measure those that were just made */

static uv_loop_t *loop;
static struct box *cold, *pooled, *sleepy;
static struct sandbox *live, *live_root, *sleeper;

/* What the callbacks leave for who waits. */
static struct {
	bool done;
	struct sandbox *sb;
} last;

static void check(const struct err *err)
{
	if (err)
		die(err->msg);
}

static void wait_done(void)
{
	while (!last.done)
		uv_run(loop, UV_RUN_ONCE);
	last.done = false;
}

static void on_sandbox(void *arg, struct sandbox *sb, const struct err *err)
{
	check(err);
	last.sb = sandbox_ref(sb);
	last.done = true;
}

static void on_destroyed(void *arg, struct sandbox *sb, const struct err *err)
{
	check(err);
	last.done = true;
}

static void on_output(void *arg, enum exec_stream stream, const char *p, size_t n)
{
}

static void on_exit_(void *arg, const struct exec_result *result, const struct err *err)
{
	check(err);
	if (result->exit_code)
		die("a program in a sandbox failed");
	last.done = true;
}

static const struct exec_events events = { .on_output = on_output, .on_exit = on_exit_ };

static struct sandbox *create(struct box *box, bool root)
{
	const struct sandbox_spec spec = { .limits.root = root };

	sandbox_create_start(box, &spec, on_sandbox, NULL);
	wait_done();
	return last.sb;
}

static void destroy(struct sandbox *sb)
{
	sandbox_destroy_start(sb, on_destroyed, NULL);
	wait_done();
	sandbox_unref(sb);
}

static void run_true(struct sandbox *sb)
{
	const struct str argv[] = { STR_LIT("/bin/true") };
	struct err e = ERR_INIT;

	if (!exec_start(sb, &(struct exec_spec){ .argv = argv, .n_argv = 1 }, &events, NULL, &e))
		check(&e);
	wait_done();
}

static struct cycle cycle(struct box *box, bool root)
{
	double begun = now_us(), made, ran;
	struct sandbox *sb = create(box, root);

	made = now_us();
	run_true(sb);
	ran = now_us();
	destroy(sb);
	return (struct cycle){ made - begun, ran - made, now_us() - ran };
}

void engine_init(const char *libexec)
{
	const struct box_config without = { .libexec_dir = libexec,
					    .networks = NETWORKS,
					    .sleep_after_ms = SLEEP_MS,
					    .root = true };
	const struct box_config with = { .libexec_dir = libexec, .pool = POOL };
	const struct box_config at_once = { .libexec_dir = libexec,
					    .networks = NETWORKS,
					    .sleep_after_ms = 1 };
	struct err e = ERR_INIT;

	loop = uv_default_loop();
	cold = box_new(loop, &without, &e);
	pooled = cold ? box_new(loop, &with, &e) : NULL;
	sleepy = pooled ? box_new(loop, &at_once, &e) : NULL;
	if (!sleepy)
		check(&e);
	live = create(cold, false);
	run_true(live);
	live_root = create(cold, true);
	run_true(live_root);
	sleeper = create(sleepy, false);
}

static void on_closed(void *arg)
{
	last.done = true;
}

void engine_fini(void)
{
	struct box *const all[] = { cold, pooled, sleepy };

	sandbox_unref(live);
	sandbox_unref(live_root);
	sandbox_unref(sleeper);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		box_close(all[i], on_closed, NULL);
		wait_done();
	}
}

struct cycle cold_cycle(bool root)
{
	return cycle(cold, root);
}

static void fill_pool(void)
{
	struct box_stats s;

	do {
		uv_run(loop, UV_RUN_NOWAIT);
		box_stats(pooled, &s);
	} while (s.pool_ready < POOL);
}

struct cycle pool_cycle(void)
{
	fill_pool();
	wait_quiet();
	return cycle(pooled, false);
}

double live_exec(bool root)
{
	double begun = now_us();

	run_true(root ? live_root : live);
	return now_us() - begun;
}

static void wait_asleep(struct box *box)
{
	struct box_stats s;

	for (box_stats(box, &s); s.asleep < s.live; box_stats(box, &s))
		uv_run(loop, UV_RUN_ONCE);
}

double wake_exec(void)
{
	double begun;

	wait_asleep(sleepy);
	wait_quiet();
	begun = now_us();
	run_true(sleeper);
	return now_us() - begun;
}

static void on_forked(void *arg, struct sandbox *const *children, size_t n, const struct err *err)
{
	check(err);
	last.sb = sandbox_ref(children[0]);
	last.done = true;
}

double fork_dirty(unsigned mib)
{
	struct sandbox *sb = create(pooled, false);
	struct err e = ERR_INIT;
	char line[128];
	double begun;

	snprintf(line, sizeof(line), "head -c %uM /dev/urandom > dirty", mib);
	if (!exec_start(sb, &(struct exec_spec){ .shell = str_of(line) }, &events, NULL, &e))
		check(&e);
	wait_done();
	wait_quiet();
	begun = now_us();
	sandbox_fork_start(sb, 1, NULL, on_forked, NULL);
	wait_done();
	begun = now_us() - begun;
	destroy(last.sb);
	destroy(sb);
	return begun;
}

/* ---- many at once ---------------------------------------------------------------------------- */

struct one {
	double begun, took;
	struct sandbox *sb;
};

static size_t waited_for;

static void on_one(void *arg, struct sandbox *sb, const struct err *err)
{
	struct one *o = arg;

	check(err);
	o->took = now_us() - o->begun;
	o->sb = sandbox_ref(sb);
	waited_for--;
}

static void on_one_gone(void *arg, struct sandbox *sb, const struct err *err)
{
	check(err);
	waited_for--;
}

static void wait_all(void)
{
	while (waited_for)
		uv_run(loop, UV_RUN_ONCE);
}

static void start_many(struct one *ones, size_t n)
{
	waited_for = n;
	for (size_t i = 0; i < n; i++) {
		ones[i].begun = now_us();
		sandbox_create_start(cold, &(struct sandbox_spec){ 0 }, on_one, &ones[i]);
	}
	wait_all();
}

static void end_many(struct one *ones, size_t n)
{
	waited_for = n;
	for (size_t i = 0; i < n; i++) {
		sandbox_destroy_start(ones[i].sb, on_one_gone, NULL);
		sandbox_unref(ones[i].sb);
	}
	wait_all();
}

void burst(size_t n, double *ret_us)
{
	struct one ones[UNDER_WAY];

	start_many(ones, n);
	for (size_t i = 0; i < n; i++)
		ret_us[i] = ones[i].took;
	end_many(ones, n);
}

static size_t to_start;

static void start_next(void);

static void on_next_gone(void *arg, struct sandbox *sb, const struct err *err)
{
	check(err);
	waited_for--;
	start_next();
}

static void on_next(void *arg, struct sandbox *sb, const struct err *err)
{
	check(err);
	sandbox_destroy_start(sb, on_next_gone, NULL);
}

static void start_next(void)
{
	if (!to_start)
		return;
	to_start--;
	waited_for++;
	sandbox_create_start(cold, &(struct sandbox_spec){ 0 }, on_next, NULL);
}

double sustained(size_t n)
{
	double begun = now_us();

	to_start = n;
	for (size_t i = 0; i < UNDER_WAY; i++)
		start_next();
	wait_all();
	return (double)n / (now_us() - begun) * 1e6;
}

void idle_sandboxes(size_t n)
{
	static struct one ones[IDLE_MAX];

	for (size_t i = 0; i < n; i += UNDER_WAY)
		start_many(ones + i, n - i < UNDER_WAY ? n - i : UNDER_WAY);
}

void idle_asleep(void)
{
	wait_asleep(cold);
}
