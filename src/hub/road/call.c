#include "hub/road/call.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/host/box.h"
#include "hub/road/internal.h"

const struct principal principal_local = { .name = "local" };

enum { TICK_MS = 1000 };

struct call {
	struct hub *hub;
	struct call_ask ask;
	uint64_t begun_ms;
	size_t reserved;
	unsigned *
		counted; /* among those of the hub's calls that work, or that wait; NULL: not yet */
	bool cancelled;
	struct life *life; /* that it uses, busy until its end, */
	struct sandbox *sandbox; /* and the machine of it, which may end before */

	void (*on_cancel)(void *data);
	void *on_cancel_data;

	bool ticking;
	uv_timer_t tick;
	void (*on_tick)(void *data);
	void *on_tick_data;
};

struct call *call_new(struct hub *hub, const struct call_ask *ask, struct err *e)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	c->hub = hub;
	c->ask = *ask;
	c->begun_ms = clock_ms();
	return c;
}

/* ---- the road ------------------------------------------------------------------------------ */

/* Who asks, and is there room for one more. */
static int identify(struct call *c, struct err *e)
{
	if (!c->ask.who)
		return err_set(e, ERR_DENIED, "nobody is known to ask for %s", c->ask.tool->name);
	if (c->cancelled)
		return err_set(e, ERR_CANCELLED, "%s was cancelled", c->ask.tool->name);
	if (c->hub->closing)
		return err_set(e, ERR_CANCELLED, "Holt is ending");
	if (c->hub->calls >= c->hub->max_calls)
		return err_set(e, ERR_LIMIT, "%u calls are under way", c->hub->calls);
	c->counted = &c->hub->calls;
	++*c->counted;
	return 0;
}

/* The arguments are exactly what the tool's table says. */
static int validate(struct call *c, void **ret_params, struct err *e)
{
	const struct field_table *t = c->ask.tool->input;
	void *params;

	if (c->ask.origin->validate)
		return c->ask.origin->validate(c->ask.asker, ret_params, e);
	params = arena_alloc(c->ask.arena, t->size, e);
	if (!params || field_decode(t, c->ask.args, c->ask.arena, params, e) < 0)
		return -1;
	*ret_params = params;
	return 0;
}

static void run(struct call *c, const void *params)
{
	log_debug("%s asked for by %s", c->ask.tool->name, c->ask.who->name);
	c->ask.tool->run(c, params);
}

void call_run(struct call *c)
{
	struct err e = ERR_INIT;
	void *params;

	if (identify(c, &e) < 0 || validate(c, &params, &e) < 0)
		call_fail(c, &e);
	else
		run(c, params);
}

static void tick_closed(uv_handle_t *h)
{
	free(h->data);
}

static void end(struct call *c)
{
	if (c->counted)
		--*c->counted;
	c->hub->output -= c->reserved;
	sandbox_unref(take_ptr(c->sandbox));
	if (c->life)
		life_busy(take_ptr(c->life), -1);
	if (c->ticking)
		uv_close((uv_handle_t *)&c->tick, tick_closed);
	else
		free(c);
	log_request(NULL);
}

static unsigned long long taken_ms(const struct call *c)
{
	return clock_ms() - c->begun_ms;
}

void call_answer(struct call *c, const struct call_answer *answer)
{
	log_request(c->ask.label);
	log_info("%s: ok, %llu ms", c->ask.tool->name, taken_ms(c));
	c->ask.origin->answer(c->ask.asker, c->ask.tool, answer);
	end(c);
}

void call_fail(struct call *c, const struct err *e)
{
	log_request(c->ask.label);
	log_info("%s: %s, %llu ms", c->ask.tool->name, err_info(e->code)->name, taken_ms(c));
	c->ask.origin->fail(c->ask.asker, e);
	end(c);
}

/* ---- while it runs ------------------------------------------------------------------------- */

void call_cancel(struct call *c)
{
	void (*on_cancel)(void *data) = take_ptr(c->on_cancel);

	if (c->cancelled)
		return;
	c->cancelled = true;
	if (on_cancel)
		on_cancel(c->on_cancel_data);
}

void call_on_cancel(struct call *c, void (*on_cancel)(void *data), void *data)
{
	c->on_cancel = on_cancel;
	c->on_cancel_data = data;
}

bool call_cancelled(const struct call *c)
{
	return c->cancelled;
}

void *call_asker(struct call *c)
{
	return c->ask.asker;
}

struct box *call_box(struct call *c)
{
	return c->hub->box;
}

struct arena *call_arena(struct call *c)
{
	return c->ask.arena;
}

uv_loop_t *call_loop(struct call *c)
{
	return c->hub->loop;
}

struct lives *call_lives(struct call *c)
{
	return c->hub->lives;
}

const char *call_images(const struct call *c)
{
	return c->hub->images;
}

const struct previews *call_previews(const struct call *c)
{
	return c->hub->previews;
}

struct sandbox *call_sandbox(struct call *c, struct str id, struct err *e)
{
	struct life *l = lives_find(c->hub->lives, id, e);
	struct sandbox *sb = l ? life_sandbox(l, e) : NULL;

	if (sb && !c->life) {
		c->life = l;
		c->sandbox = sandbox_ref(sb);
		life_busy(l, 1);
	}
	return sb;
}

int call_reserve(struct call *c, size_t n, struct err *e)
{
	if (n > c->hub->max_output - c->hub->output)
		return err_set(e, ERR_LIMIT,
			       "other calls keep %zu MiB of output; ask for less, or later",
			       c->hub->output >> 20);
	c->hub->output += n;
	c->reserved += n;
	return 0;
}

int call_waits(struct call *c, struct err *e)
{
	if (c->hub->waiting >= c->hub->max_waiting)
		return err_set(e, ERR_LIMIT, "%u calls wait", c->hub->waiting);
	--*c->counted;
	c->counted = &c->hub->waiting;
	++*c->counted;
	return 0;
}

static void on_tick(uv_timer_t *t)
{
	struct call *c = t->data;

	log_request(c->ask.label);
	c->on_tick(c->on_tick_data);
	log_request(NULL);
}

void call_on_tick(struct call *c, void (*tick)(void *data), void *data)
{
	if (!c->ask.origin->progress || c->ticking)
		return;
	c->on_tick = tick;
	c->on_tick_data = data;
	if (uv_timer_init(c->hub->loop, &c->tick) < 0)
		return;
	c->ticking = true;
	c->tick.data = c;
	uv_timer_start(&c->tick, on_tick, TICK_MS, TICK_MS);
}

void call_progress(struct call *c, double progress, double total, const char *message)
{
	if (c->ask.origin->progress)
		c->ask.origin->progress(c->ask.asker, progress, total, message);
}
