/*
 * Busy sandboxes give way to others. Groups of equal weight get equal shares of the processors, but
 * each in turns of milliseconds. A small command wakes four or five processes, one after another,
 * and each of them waits for the turns of all others: beside three busy sandboxes this took tens of
 * milliseconds. So when a sandbox has wanted a whole processor for a tenth of a second, it is
 * scheduled as `cpu.idle`, until it has been quieter for a second. A sandbox that wakes beside it
 * then runs at once, and the busy one gets all that others leave. Sandboxes that give way share
 * among themselves as before.
 *
 * The time in which it ran or waited to run counts (where the kernel reports pressure), so a busy
 * sandbox is recognized on a busy machine, too. While it is paused no time passes. A sandbox that
 * only waits is no longer taken for busy, so that none is kept off the processors for good.
 *
 * Tried before: larger weights or shorter slices helped by half or less. Without pressure data (v1
 * alone, psi=0) only running time counts, and more busy sandboxes than processors go undetected. At
 * most a thousand reads a second are made.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden/internal.h"

enum {
	LOOK_MS = 100,
	QUIET_MS = 1000, /* until it gets its weight back */
	HURRY_MS = 1000, /* for which it has that when programs of it are to end */
	/* Percent of one processor. A sandbox that runs one small command after another wants up to
	 * 86 where others make it wait. */
	WANTS_PERCENT = 95,
	RUNS_PERCENT = 2, /* with less it is kept off the processors, it does not compute */
	/* A check takes some tens of microseconds in system calls, so this many cost at most a
	 * fiftieth of a processor. With more awake sandboxes each is checked less often. */
	LOOKS_MAX = 25,
	PASS_MS = LOOK_MS / 4,
};

static void yield_begin(uint64_t now)
{
	if (!warden.looks.next_ms && warden.cgroups.can_yield)
		warden.looks.next_ms = now + LOOK_MS;
}

void yield_watch(struct sandbox *b)
{
	b->looked_ms = 0;
	yield_begin(clock_ms());
}

void yield_paused(struct sandbox *b, bool paused)
{
	uint64_t now = clock_ms();

	if (paused && !b->paused) {
		b->paused_ms = now;
	} else if (!paused && b->paused) {
		b->looked_ms += b->looked_ms ? now - b->paused_ms : 0;
		b->loud_ms += now - b->paused_ms;
		yield_begin(now);
	}
}

void set_yields(struct sandbox *b, bool yields)
{
	static bool told;
	struct err e = ERR_INIT;

	if (b->yields == yields)
		return;
	if (cgroup_yield(&warden.cgroups, slot_of(b), yields, &e) == 0) {
		b->yields = yields;
		log_debug("sandbox %llu %s", (unsigned long long)b->key,
			  yields ? "gives way" : "gives way no longer");
	} else if (!told) {
		log_warn("sandboxes do not give way to each other: %s", e.msg);
		told = true;
	}
}

int sandbox_freeze(struct sandbox *b, bool frozen, struct err *e)
{
	bool yields = b->yields;
	int rc;

	if (frozen)
		set_yields(b, false);
	rc = cgroup_freeze(&warden.cgroups, slot_of(b), frozen, e);
	set_yields(b, yields);
	return rc;
}

/* Its init has to search all processes, and those to be killed need time to die. */
int sandbox_hurry(const struct hub_message *in, struct err *e)
{
	const struct wm_sleep *m = in->p;
	struct sandbox *b = sandbox_find(m->key);

	(void)e;
	if (b) {
		b->hurry_ms = clock_ms() + HURRY_MS;
		set_yields(b, false);
	}
	return 0;
}

static bool computed(const struct cpu_time *was, const struct cpu_time *is, uint64_t ms)
{
	uint64_t ran_us = is->ran_us - was->ran_us, waited_us = is->waited_us - was->waited_us;

	return (ran_us + waited_us) * 100 >= ms * 1000 * WANTS_PERCENT &&
	       ran_us * 100 >= ms * 1000 * RUNS_PERCENT;
}

static void look_at(struct sandbox *b, uint64_t now)
{
	struct cpu_time was = b->cpu;
	uint64_t before_ms = b->looked_ms;

	b->looked_ms = 0;
	if (!cpu_time(slot_of(b), &b->cpu) || b->cpu.ran_us < was.ran_us ||
	    b->cpu.waited_us < was.waited_us)
		return; /* the next check starts over */
	b->looked_ms = now;
	if (!before_ms)
		return;
	if (computed(&was, &b->cpu, now - before_ms)) {
		b->loud_ms = now;
		set_yields(b, now >= b->hurry_ms);
	} else if (now - b->loud_ms >= QUIET_MS) {
		set_yields(b, false);
	}
}

static bool is_watched(const struct sandbox *b)
{
	return b->state == SANDBOX_LIVE && !b->paused && (b->sleep != SANDBOX_ASLEEP || b->yields);
}

int yield_chores(uint64_t now)
{
	uint32_t i = warden.looks.from, n = 0;

	if (!warden.looks.next_ms)
		return -1;
	if (now < warden.looks.next_ms)
		return (int)(warden.looks.next_ms - now);
	for (; i < warden.n_sandboxes && n < LOOKS_MAX; i++) {
		struct sandbox *b = &warden.sandboxes[i];

		if (!is_watched(b))
			continue;
		warden.looks.any = true;
		if (now - b->looked_ms >= LOOK_MS) {
			look_at(b, now);
			n++;
		}
	}
	if (i < warden.n_sandboxes) {
		warden.looks.from = i;
		warden.looks.next_ms = now + PASS_MS;
		return PASS_MS;
	}
	warden.looks.next_ms = warden.looks.any ? now + LOOK_MS : 0;
	warden.looks.any = false;
	warden.looks.from = 0;
	return warden.looks.next_ms ? LOOK_MS : -1;
}
