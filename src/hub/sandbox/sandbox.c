#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

const char *const life_state_names[LIFE_STATES] = {
	[LIFE_CREATING] = "creating", [LIFE_RUNNING] = "running",	[LIFE_PAUSED] = "paused",
	[LIFE_COLD] = "cold",	      [LIFE_RESTORING] = "restoring",	[LIFE_STOPPED] = "stopped",
	[LIFE_LOST] = "lost",	      [LIFE_TERMINATED] = "terminated", [LIFE_FAILED] = "failed",
};

const char *const life_retention_names[RETENTIONS] = {
	[RETAIN_DESTROY] = "destroy",
	[RETAIN_STOP] = "stop",
	[RETAIN_COLD] = "cold",
	[RETAIN_SNAPSHOT] = "snapshot",
};

/* ---- states -------------------------------------------------------------------------------- */

#define TO(state) (1u << LIFE_##state)

/* The states that may follow a state. A cold or stopped sandbox comes back by restoring. Nothing
 * follows terminated: the next sandbox with that id is another one. */
static const unsigned follows[LIFE_STATES] = {
	[LIFE_CREATING] = TO(RUNNING) | TO(RESTORING) | TO(TERMINATED),
	[LIFE_RUNNING] = TO(PAUSED) | TO(COLD) | TO(STOPPED) | TO(LOST) | TO(TERMINATED) |
			 TO(FAILED),
	[LIFE_PAUSED] = TO(RUNNING) | TO(COLD) | TO(STOPPED) | TO(LOST) | TO(TERMINATED) |
			TO(FAILED),
	[LIFE_COLD] = TO(RESTORING) | TO(LOST) | TO(TERMINATED) | TO(FAILED),
	[LIFE_RESTORING] = TO(RUNNING) | TO(COLD) | TO(STOPPED) | TO(LOST) | TO(TERMINATED) |
			   TO(FAILED),
	[LIFE_STOPPED] = TO(RESTORING) | TO(LOST) | TO(TERMINATED) | TO(FAILED),
	[LIFE_LOST] = TO(TERMINATED),
	[LIFE_FAILED] = TO(TERMINATED),
};

bool life_may_follow(enum life_state from, enum life_state to)
{
	return (follows[from] >> to & 1) != 0;
}

static const char *kind_of(enum life_state from, enum life_state to)
{
	if (to == LIFE_RUNNING)
		return from == LIFE_CREATING  ? "created"
		     : from == LIFE_RESTORING ? "restored"
					      : "resumed";
	return life_state_names[to];
}

static void set_why(struct life *l, const struct err *why)
{
	free(take_ptr(l->why));
	l->why = why ? malloc(sizeof(*why)) : NULL; /* without memory nobody is told */
	if (l->why)
		*l->why = *why;
}

/* A sandbox that no client knows is not in the registry. A stopped one stays stopped there until
 * it runs again, so a hub that ends in between leaves it as it was. */
static bool is_told(const struct life *l, enum life_state from, enum life_state to)
{
	if (to == LIFE_RESTORING)
		return false;
	if (from == LIFE_RESTORING && (to == LIFE_COLD || to == LIFE_STOPPED))
		return false;
	return to != LIFE_TERMINATED || l->stored;
}

int life_set_state(struct life *l, enum life_state to, const struct err *why, struct err *e)
{
	enum life_state from = l->state;
	struct str detail = why ? str_of(why->msg) : STR_NONE;
	int result;

	if (!life_may_follow(from, to)) {
		log_error("sandbox %s: %s can't follow %s", l->id, life_state_names[to],
			  life_state_names[from]);
		return err_set(e, ERR_BUG, "%s can't follow %s", life_state_names[to],
			       life_state_names[from]);
	}
	log_debug("sandbox %s: %s, then %s", l->id, life_state_names[from], life_state_names[to]);
	l->all->stats.by_state[from]--;
	l->all->stats.by_state[to]++;
	l->state = to;
	l->all->changes++;
	l->changed_ms = clock_unix_ms();
	set_why(l, why);
	if (!is_told(l, from, to))
		return 0;
	result = life_save(l, kind_of(from, to), detail, e);
	if (to == LIFE_TERMINATED)
		jobs_forget_of(l);
	if (life_is_gone(l))
		life_mourn(l);
	return result;
}

bool life_is_gone(const struct life *l)
{
	return l->state == LIFE_LOST || l->state == LIFE_TERMINATED || l->state == LIFE_FAILED;
}

/* ---- the table ----------------------------------------------------------------------------- */

static struct life **bucket(const struct lives *all, struct str id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (unsigned char)id.p[i]) * 16777619u;
	return (struct life **)&all->buckets[h % LIVES_BUCKETS];
}

struct life *lives_get(const struct lives *all, struct str id)
{
	struct life *l = *bucket(all, id);

	while (l && !str_is(id, l->id))
		l = l->chain;
	return l;
}

struct life *life_ref(struct life *l)
{
	l->refs++;
	return l;
}

static void close_timer(uv_handle_t *h)
{
	free(h);
}

void life_unref(struct life *l)
{
	if (!l || --l->refs)
		return;
	if (l->timer)
		uv_close((uv_handle_t *)l->timer, close_timer);
	sandbox_unref(l->box);
	free(l->why);
	free(l->spec);
	free(l);
}

/* Inserts it before a terminated one with the same id, so that it is found; and after all
 * others, in order of creation. */
struct life *life_new(struct lives *all, struct str id, struct err *e)
{
	struct life *l = calloc(1, sizeof(*l)), **at = bucket(all, id);
	const struct life *before = lives_get(all, id);

	if (!l) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	l->all = all;
	l->refs = 1;
	l->seq = ++all->last_seq;
	l->generation = (before ? before->generation : all->forgotten) + 1;
	l->created_ms = l->changed_ms = clock_unix_ms();
	snprintf(l->id, sizeof(l->id), "%.*s", STR_ARG(id));
	l->chain = *at;
	*at = l;
	l->older = all->newest;
	if (all->newest)
		all->newest->newer = l;
	else
		all->oldest = l;
	all->newest = l;
	all->stats.by_state[LIFE_CREATING]++;
	return l;
}

static void unlink_life(struct life *l)
{
	struct lives *all = l->all;
	struct life **at = bucket(all, str_of(l->id));

	while (*at != l)
		at = &(*at)->chain;
	*at = l->chain;
	if (l->older)
		l->older->newer = l->newer;
	else
		all->oldest = l->newer;
	if (l->newer)
		l->newer->older = l->older;
	else
		all->newest = l->older;
	all->stats.by_state[l->state]--;
	all->stats.unsaved -= l->unsaved;
	all->changes++;
	all->n_in_batch -= l->in_batch;
}

static void leave_queue(struct life *l)
{
	struct gone *g = take_ptr(l->gone);

	if (!g)
		return;
	if (l->gone_before)
		l->gone_before->gone_after = l->gone_after;
	else
		g->first = l->gone_after;
	if (l->gone_after)
		l->gone_after->gone_before = l->gone_before;
	else
		g->last = l->gone_before;
	l->gone_before = l->gone_after = NULL;
	g->n--;
}

static void join_queue(struct life *l, struct gone *g)
{
	l->gone = g;
	l->gone_before = g->last;
	if (g->last)
		g->last->gone_after = l;
	else
		g->first = l;
	g->last = l;
	g->n++;
}

void life_forget(struct life *l)
{
	struct err e = ERR_INIT;

	jobs_forget_of(l);
	leave_queue(l);
	unlink_life(l);
	if (l->stored && l->all->store && store_sandbox_drop(l->all->store, l->seq, &e) < 0)
		log_warn("sandbox %s is still in the registry: %s", l->id, e.msg);
	life_unref(l);
}

/* If that can't be written, the row stays and tells the next hub. */
static void remember_generation(struct life *l)
{
	struct lives *all = l->all;
	struct err e = ERR_INIT;

	if (l->generation > all->forgotten)
		all->forgotten = l->generation;
	if (!all->store || l->generation <= all->forgotten_stored)
		return;
	if (store_forgotten_set(all->store, l->generation, &e) == 0) {
		all->forgotten_stored = l->generation;
	} else {
		log_warn("sandbox %s stays in the registry: %s", l->id, e.msg);
		l->stored = false;
	}
}

void life_mourn(struct life *l)
{
	struct lives *all = l->all;
	struct gone *g = l->state == LIFE_TERMINATED ? &all->terminated : &all->mourned;

	leave_queue(l);
	join_queue(l, g);
	while (g->n > g->max) {
		remember_generation(g->first);
		life_forget(g->first);
	}
}

/* ---- for other files ----------------------------------------------------------------------- */

int lives_unknown(struct str id, struct err *e)
{
	return err_set(e, ERR_SANDBOX_NOT_FOUND, "there is no sandbox '%.*s'",
		       id.n > LIFE_ID_MAX ? LIFE_ID_MAX : (int)id.n, id.p ? id.p : "");
}

struct life *lives_find(struct lives *all, struct str id, struct err *e)
{
	struct life *l = lives_get(all, id);

	if (!l)
		lives_unknown(id, e);
	return l;
}

size_t lives_list(struct lives *all, uint64_t after, struct life **ret, size_t max)
{
	struct life *l = all->oldest;
	size_t n = 0;

	while (l && l->seq <= after)
		l = l->newer;
	for (; l && n < max; l = l->newer)
		ret[n++] = l;
	return n;
}

void lives_stats(const struct lives *all, struct lives_stats *ret)
{
	*ret = all->stats;
}

void life_info(const struct life *l, struct life_info *ret)
{
	*ret = (struct life_info){
		.seq = l->seq,
		.id = str_of(l->id),
		.template = str_of(l->template),
		.source = l->source[0] ? str_of(l->source) : STR_NONE,
		.state = l->state,
		.generation = l->generation,
		.created_ms = l->created_ms,
		.changed_ms = l->changed_ms,
		.deadline_ms = l->deadline_ms,
		.ttl_ms = l->ttl_ms,
		.idle_ms = l->idle_ms,
		.retention = l->retention,
		.limits = &l->limits,
		.from_pool = l->from_pool,
		.adopted = l->box && sandbox_adopted(l->box),
		.why = l->why,
	};
}

static int refuse(const struct life *l, enum err_code code, struct err *e)
{
	if (l->why)
		return err_set(e, code, "sandbox %s is %s: %s", l->id, life_state_names[l->state],
			       l->why->msg);
	return err_set(e, code, "sandbox %s is %s", l->id, life_state_names[l->state]);
}

int life_check_runs(const struct life *l, struct err *e)
{
	if (l->ending)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s is being terminated", l->id);
	if (l->stopping)
		return err_set(e, ERR_CONFLICT, "sandbox %s is being stopped", l->id);
	switch (l->state) {
	case LIFE_RUNNING:
		return 0;
	case LIFE_PAUSED:
		return refuse(l, ERR_PAUSED, e);
	case LIFE_LOST:
		return refuse(l, ERR_GUEST, e);
	case LIFE_TERMINATED:
	case LIFE_FAILED:
		return refuse(l,
			      l->why && l->why->code == ERR_IDLE ? ERR_IDLE : ERR_SANDBOX_NOT_FOUND,
			      e);
	default:
		return refuse(l, ERR_CONFLICT, e);
	}
}

uint64_t lives_changes(const struct lives *all)
{
	return all->changes;
}

struct sandbox *life_machine(struct life *l, struct err *e)
{
	if (l->state == LIFE_PAUSED && !l->ending)
		return l->box;
	return life_check_runs(l, e) < 0 ? NULL : l->box;
}

struct sandbox *life_sandbox(struct life *l, struct err *e)
{
	if (life_check_runs(l, e) < 0)
		return NULL;
	l->used_ms = clock_ms();
	return l->box;
}

void life_busy(struct life *l, int by)
{
	assert(by == 1 || (by == -1 && l->busy > 0));
	l->used_ms = clock_ms();
	if (by > 0) {
		l->busy++;
		life_ref(l);
		return;
	}
	l->busy--;
	if (l->busy == 0)
		life_arm(l);
	life_unref(l);
}
