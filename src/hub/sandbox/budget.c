/*
 * Budgets: the processor time and the bytes out of a sandbox. Bytes are counted as they pass here.
 * Processor time is counted by the kernel, and asked for: as often as it could run out if the
 * sandbox used all its processors, and when it is forked or stopped. What is used up makes the
 * sandbox due, and end.c ends it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { COUNT_LEAST_MS = 200, COUNT_MOST_MS = 10000 };

static struct hub_sandbox_budget budget_for(const struct hub_sandbox *l)
{
	struct hub_sandbox_budget b = { .cpu_ms = 0 };

	if (l->all->budget_of)
		l->all->budget_of(l->all->budget_data, str_of(l->owner), &b);
	return b;
}

static struct hub_sandbox_budget budget_used(const struct hub_sandbox *l)
{
	struct hub_sandbox_budget b = l->spent;

	b.cpu_ms += l->cpu_ms;
	if (l->box)
		b.bytes_out += sandbox_bytes_out(l->box);
	return b;
}

int hub_sandbox_check_budget(const struct hub_sandbox *l, struct err *e)
{
	const struct hub_sandbox_budget of = budget_for(l), used = budget_used(l);

	if (of.cpu_ms && l->uncounted)
		return err_set(e, ERR_UNSUPPORTED,
			       "this host can't count its processor time, which the operator's "
			       "configuration limits (limits.cpu_seconds)");
	if (of.cpu_ms && used.cpu_ms >= of.cpu_ms)
		return err_set(e, ERR_LIMIT,
			       "its %" PRIu64 " s of processor time are used up "
			       "(limits.cpu_seconds of the operator's configuration)",
			       of.cpu_ms / 1000);
	if (of.bytes_out && used.bytes_out >= of.bytes_out)
		return err_set(e, ERR_LIMIT,
			       "the %" PRIu64 " bytes that may leave it are used up "
			       "(limits.bytes_out of the operator's configuration)",
			       of.bytes_out);
	return 0;
}

/* A fork has the time of its source, and a chain of forks no more than its first. */
int64_t budget_until(const struct hub_sandbox *l)
{
	uint64_t wall = budget_for(l).wall_ms;
	int64_t until = wall ? l->created_ms + (int64_t)wall : 0;

	return wall && l->source[0] && l->deadline_ms && l->deadline_ms < until ? l->deadline_ms
										: until;
}

int budget_check_again(const struct hub_sandbox *l, struct err *e)
{
	int64_t until = budget_until(l);

	if (until && until <= clock_unix_ms())
		return err_set(e, ERR_LIMIT,
			       "the time that it may live is over (limits.wall_seconds of the "
			       "operator's configuration)");
	return hub_sandbox_check_budget(l, e);
}

/* ---- bytes --------------------------------------------------------------------------------- */

static void budget_overspent(void *arg)
{
	struct hub_sandbox *l = arg;

	if (l->overspent || !l->box)
		return;
	l->overspent = true;
	hub_sandbox_arm(l);
}

static void budget_watch(struct hub_sandbox *l, uint64_t max)
{
	uint64_t spent = l->spent.bytes_out, left = max > spent ? max - spent : 0;

	sandbox_watch_out(l->box, max ? left : UINT64_MAX, budget_overspent, l);
}

void budget_sent(struct hub_sandbox *l, uint64_t bytes)
{
	l->spent.bytes_out += bytes;
	if (l->box && bytes)
		budget_watch(l, budget_for(l).bytes_out);
}

/* ---- processor time ------------------------------------------------------------------------ */

static void budget_on_timer(uv_timer_t *t);

static void budget_next(struct hub_sandboxes *all, uint64_t due_ms)
{
	uint64_t now = clock_ms(), wait = due_ms > now ? due_ms - now : 1;

	if (all->stopping || !all->counter)
		return;
	if (!uv_is_active((uv_handle_t *)all->counter) ||
	    uv_timer_get_due_in(all->counter) > wait) {
		uv_update_time(all->loop);
		uv_timer_start(all->counter, budget_on_timer, wait, 0);
	}
}

/* The time in which it can't use up what is left. */
static uint64_t budget_lasts(const struct hub_sandbox *l, uint64_t max)
{
	uint64_t used = budget_used(l).cpu_ms, left = max > used ? max - used : 0, ms;
	long all = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t most = all > 0 ? (uint64_t)all * 1000 : 1000;
	uint64_t milli = l->limits.cpu_milli && l->limits.cpu_milli < most ? l->limits.cpu_milli
									   : most;

	ms = left * 1000 / milli;
	return ms < COUNT_LEAST_MS ? COUNT_LEAST_MS : ms > COUNT_MOST_MS ? COUNT_MOST_MS : ms;
}

static void budget_count_later(struct hub_sandbox *l, uint64_t max)
{
	l->count_ms = max ? clock_ms() + budget_lasts(l, max) : 0;
	if (l->count_ms)
		budget_next(l->all, l->count_ms);
}

struct counting {
	struct hub_sandbox *of[USAGE_MAX]; /* references */
	struct sandbox *machines[USAGE_MAX]; /* theirs when it began; alive until it ends */
	size_t n;
	void (*on_done)(void *arg, const struct err *err); /* NULL: nobody waits */
	void *arg;
};

static void budget_counted(struct hub_sandbox *l, const struct usage *u)
{
	uint64_t max = budget_for(l).cpu_ms;
	struct err e;

	l->uncounted = u->lives && !u->has_cpu;
	if (u->cpu_us / 1000 > l->cpu_ms)
		l->cpu_ms = u->cpu_us / 1000;
	budget_count_later(l, max);
	if (max && hub_sandbox_check_budget(l, &e) < 0)
		budget_overspent(l);
}

static void budget_on_usage(void *arg, const struct usage *u, size_t n, const struct err *err)
{
	struct counting *c = arg;

	for (size_t i = 0; i < c->n; i++) {
		if (!err && i < n && c->of[i]->box == c->machines[i])
			budget_counted(c->of[i], &u[i]);
	}
	if (c->on_done)
		c->on_done(c->arg, err);
	for (size_t i = 0; i < c->n; i++)
		hub_sandbox_unref(c->of[i]);
	free(c);
}

static struct counting *counting_new(void (*on_done)(void *arg, const struct err *err), void *arg)
{
	struct counting *c = calloc(1, sizeof(*c));

	if (!c)
		abort(); /* out of memory: no callback could report it */
	c->on_done = on_done;
	c->arg = arg;
	return c;
}

static void counting_add(struct counting *c, struct hub_sandbox *l)
{
	l->count_ms = clock_ms() + COUNT_MOST_MS; /* if no answer comes */
	c->machines[c->n] = l->box;
	c->of[c->n++] = hub_sandbox_ref(l);
}

static void counting_start(struct counting *c, struct box *box)
{
	usage_start(box, c->machines, c->n, budget_on_usage, c);
}

bool hub_sandbox_count(struct hub_sandbox *l, void (*on_done)(void *arg, const struct err *err),
		       void *arg)
{
	struct counting *c;

	if (!l->box || !budget_for(l).cpu_ms)
		return false;
	c = counting_new(on_done, arg);
	counting_add(c, l);
	counting_start(c, l->all->box);
	return true;
}

static void budget_on_timer(uv_timer_t *t)
{
	struct hub_sandboxes *all = t->data;
	struct counting *c = NULL;
	uint64_t now = clock_ms(), next = 0;

	if (all->stopping)
		return;
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		if (!l->count_ms || !l->box || l->ending)
			continue;
		if (l->count_ms <= now) {
			c = c ? c : counting_new(NULL, NULL);
			counting_add(c, l);
		}
		if (!next || l->count_ms < next)
			next = l->count_ms;
		if (c && c->n == USAGE_MAX) {
			counting_start(c, all->box);
			c = NULL;
		}
	}
	if (c)
		counting_start(c, all->box);
	if (next)
		budget_next(all, next);
}

/* ---- for other files ----------------------------------------------------------------------- */

void budget_begin(struct hub_sandbox *l)
{
	const struct hub_sandbox_budget of = budget_for(l);
	struct err e;

	budget_count_later(l, of.cpu_ms);
	budget_watch(l, of.bytes_out);
	if (hub_sandbox_check_budget(l, &e) < 0)
		budget_overspent(l);
}

void budget_end(struct hub_sandbox *l)
{
	if (l->box)
		sandbox_watch_out(l->box, UINT64_MAX, NULL, NULL);
	l->spent = budget_used(l);
	l->cpu_ms = l->count_ms = 0;
	l->overspent = false;
}

void budget_inherit(struct hub_sandbox *l, const struct hub_sandbox *source)
{
	l->spent = budget_used(source);
}

void hub_sandboxes_limit(struct hub_sandboxes *all,
			 void (*budget_of)(void *data, struct str owner,
					   struct hub_sandbox_budget *ret),
			 void *data)
{
	all->budget_of = budget_of;
	all->budget_data = data;
	if (!all->counter) {
		all->counter = calloc(1, sizeof(*all->counter));
		if (!all->counter)
			abort(); /* a limit that is not held would break a promise */
		uv_timer_init(all->loop, all->counter);
		all->counter->data = all;
	}
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		if (l->box && !l->ending)
			budget_begin(l);
	}
}
