/*
 * Who computes without a pause gives way to who does not. Groups of equal weight get equal shares of the processors, but
 * each in turns of milliseconds, and a small command wakes four or five processes, one after another, each of which
 * waits for the turns of all others: beside three busy sandboxes that was tens of milliseconds. So a sandbox that has
 * wanted a whole processor for a tenth of a second is scheduled as `cpu.idle` from then on, until it has been quieter
 * for a second: who wakes beside it runs at once, and it has all that others leave. Those that give way share among
 * themselves as before, and so do all sandboxes with the rest of the machine, where our own group keeps its weight.
 *
 * What counts is the time in which it ran or waited to run, so that it is known for what it is on a busy machine, too;
 * while it is paused no time passes.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/warden_state.h"

enum {
	LOOK_MS = 100,
	COMPUTES_PERCENT = 80, /* of one processor */
	QUIET_LOOKS = 10, /* until it has its weight again */
	COST = 50, /* looking takes at most one part of so many of the warden's time */
};

void yield_watch(struct body *b)
{
	b->looked_ms = 0;
	if (!w.look_at && w.cgroups.can_yield)
		w.look_at = clock_ms() + LOOK_MS;
}

void yield_paused(struct body *b, bool paused)
{
	if (paused && !b->paused)
		b->paused_ms = clock_ms();
	else if (!paused && b->paused && b->looked_ms)
		b->looked_ms += clock_ms() - b->paused_ms;
}

static void set_yields(struct body *b, bool yields)
{
	struct err e = ERR_INIT;

	if (cgroup_yield(&w.cgroups, slot_of(b), yields, &e) == 0)
		b->yields = yields;
	else
		log_warn("sandbox %llu: %s", (unsigned long long)b->key, e.msg);
}

static void look_at(struct body *b, uint64_t now)
{
	int64_t took_ms = (int64_t)(now - b->looked_ms), wanted_us;
	bool first = !b->looked_ms;

	if (b->paused || took_ms < LOOK_MS)
		return;
	wanted_us = (int64_t)(cpu_wanted(slot_of(b)) - b->wanted_us);
	b->looked_ms = now;
	b->wanted_us += (uint64_t)wanted_us;
	if (first)
		return;
	if (wanted_us >= took_ms * 10 * COMPUTES_PERCENT)
		b->loud_looks = QUIET_LOOKS;
	else if (b->loud_looks)
		b->loud_looks--;
	if (b->yields != (b->loud_looks > 0))
		set_yields(b, !b->yields);
}

int yield_chores(uint64_t now)
{
	bool any = false;
	uint64_t took;

	if (!w.look_at)
		return -1;
	if (now < w.look_at)
		return (int)(w.look_at - now);
	for (uint32_t i = 0; i < w.n_bodies; i++) {
		struct body *b = &w.bodies[i];

		if (b->state != BODY_LIVE || (b->sleep == BODY_ASLEEP && !b->yields))
			continue;
		any = true;
		look_at(b, now);
	}
	took = clock_ms() - now;
	w.look_at = any ? now + took + (took * COST > LOOK_MS ? took * COST : LOOK_MS) : 0;
	return any ? (int)(w.look_at - now) : -1;
}
