#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

const char *const hub_sandbox_state_names[SANDBOX_STATES] = {
	[SANDBOX_CREATING] = "creating",   [SANDBOX_RUNNING] = "running",
	[SANDBOX_PAUSED] = "paused",	   [SANDBOX_COLD] = "cold",
	[SANDBOX_RESTORING] = "restoring", [SANDBOX_STOPPED] = "stopped",
	[SANDBOX_LOST] = "lost",	   [SANDBOX_TERMINATED] = "terminated",
	[SANDBOX_FAILED] = "failed",
};

const char *const hub_sandbox_retention_names[RETENTIONS] = {
	[RETAIN_DESTROY] = "destroy",
	[RETAIN_STOP] = "stop",
	[RETAIN_COLD] = "cold",
	[RETAIN_SNAPSHOT] = "snapshot",
};

/* ---- states -------------------------------------------------------------------------------- */

#define TO(state) (1u << SANDBOX_##state)

/* The states that may follow a state. A cold or stopped sandbox comes back by restoring. Nothing
 * follows terminated: the next sandbox with that id is another one. */
static const unsigned follows[SANDBOX_STATES] = {
	[SANDBOX_CREATING] = TO(RUNNING) | TO(RESTORING) | TO(TERMINATED),
	[SANDBOX_RUNNING] = TO(PAUSED) | TO(COLD) | TO(STOPPED) | TO(LOST) | TO(TERMINATED) |
			    TO(FAILED),
	[SANDBOX_PAUSED] = TO(RUNNING) | TO(COLD) | TO(STOPPED) | TO(LOST) | TO(TERMINATED) |
			   TO(FAILED),
	[SANDBOX_COLD] = TO(RESTORING) | TO(LOST) | TO(TERMINATED) | TO(FAILED),
	[SANDBOX_RESTORING] = TO(RUNNING) | TO(COLD) | TO(STOPPED) | TO(LOST) | TO(TERMINATED) |
			      TO(FAILED),
	[SANDBOX_STOPPED] = TO(RESTORING) | TO(LOST) | TO(TERMINATED) | TO(FAILED),
	[SANDBOX_LOST] = TO(TERMINATED),
	[SANDBOX_FAILED] = TO(TERMINATED),
};

bool hub_sandbox_may_follow(enum hub_sandbox_state from, enum hub_sandbox_state to)
{
	return (follows[from] >> to & 1) != 0;
}

static const char *kind_of(enum hub_sandbox_state from, enum hub_sandbox_state to)
{
	if (to == SANDBOX_RUNNING)
		return from == SANDBOX_CREATING	 ? "created"
		     : from == SANDBOX_RESTORING ? "restored"
						 : "resumed";
	return hub_sandbox_state_names[to];
}

/* A sandbox that no client knows is not in the registry. A stopped one stays stopped there until
 * it runs again, so a hub that ends in between leaves it as it was. */
static bool is_told(const struct hub_sandbox *l, enum hub_sandbox_state from,
		    enum hub_sandbox_state to)
{
	if (to == SANDBOX_RESTORING)
		return false;
	if (from == SANDBOX_RESTORING && (to == SANDBOX_COLD || to == SANDBOX_STOPPED))
		return false;
	return to != SANDBOX_TERMINATED || l->stored;
}

int hub_sandbox_set_state(struct hub_sandbox *l, enum hub_sandbox_state to, const struct err *why,
			  struct err *e)
{
	enum hub_sandbox_state from = l->state;
	struct str detail = why ? str_of(why->msg) : STR_NONE;
	int result;

	if (!hub_sandbox_may_follow(from, to)) {
		log_error("sandbox %s: %s can't follow %s", l->id, hub_sandbox_state_names[to],
			  hub_sandbox_state_names[from]);
		return err_set(e, ERR_BUG, "%s can't follow %s", hub_sandbox_state_names[to],
			       hub_sandbox_state_names[from]);
	}
	log_debug("sandbox %s: %s, then %s", l->id, hub_sandbox_state_names[from],
		  hub_sandbox_state_names[to]);
	l->all->stats.by_state[from]--;
	l->all->stats.by_state[to]++;
	l->state = to;
	l->all->changes++;
	l->changed_ms = clock_unix_ms();
	free(take_ptr(l->why));
	l->why = why ? malloc(sizeof(*why)) : NULL; /* without memory nobody is told */
	if (l->why)
		*l->why = *why;
	if (hub_sandbox_is_gone(l))
		bound_end(take_ptr(l->bound));
	if (!is_told(l, from, to))
		return 0;
	result = hub_sandbox_save(l, kind_of(from, to), detail, e);
	if (to == SANDBOX_TERMINATED)
		jobs_forget_of(l);
	if (hub_sandbox_is_gone(l)) {
		snapshot_drop_kept(l);
		if (l->all->asker)
			l->all->asker->gone(l->all->asker->data, l->seq);
		hub_sandbox_mourn(l);
	}
	return result;
}

bool hub_sandbox_is_gone(const struct hub_sandbox *l)
{
	return l->state == SANDBOX_LOST || l->state == SANDBOX_TERMINATED ||
	       l->state == SANDBOX_FAILED;
}

/* ---- the table ----------------------------------------------------------------------------- */

static struct hub_sandbox **bucket(const struct hub_sandboxes *all, struct str id)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < id.n; i++)
		h = (h ^ (unsigned char)id.p[i]) * 16777619u;
	return (struct hub_sandbox **)&all->buckets[h % LIVES_BUCKETS];
}

struct hub_sandbox *hub_sandboxes_get(const struct hub_sandboxes *all, struct str id)
{
	struct hub_sandbox *l = *bucket(all, id);

	while (l && !str_is(id, l->id))
		l = l->chain;
	return l;
}

struct hub_sandbox *hub_sandbox_ref(struct hub_sandbox *l)
{
	l->refs++;
	return l;
}

static void close_timer(uv_handle_t *h)
{
	free(h);
}

void hub_sandbox_unref(struct hub_sandbox *l)
{
	if (!l || --l->refs)
		return;
	if (l->timer)
		uv_close((uv_handle_t *)l->timer, close_timer);
	sandbox_unref(l->box);
	volumes_unref(l->volumes);
	bound_unref(l->bound);
	free(l->why);
	free(l->left_out_names);
	free(l->labels);
	free(l->spec);
	free(l->network);
	free(l->modules);
	free(l->profiles);
	free(l);
}

/* Inserts it before a terminated one with the same id, so that it is found; and after all
 * others, in order of creation. */
struct hub_sandbox *hub_sandbox_new(struct hub_sandboxes *all, struct str id, struct err *e)
{
	struct hub_sandbox *l = calloc(1, sizeof(*l)), **at = bucket(all, id);
	const struct hub_sandbox *before = hub_sandboxes_get(all, id);

	if (!l)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	l->all = all;
	l->refs = 1;
	/* never one that an earlier hub gave out */
	l->network_revision = (uint64_t)clock_unix_ms() * 1000;
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
	all->stats.by_state[SANDBOX_CREATING]++;
	return l;
}

static void unlink_sandbox(struct hub_sandbox *l)
{
	struct hub_sandboxes *all = l->all;
	struct hub_sandbox **at = bucket(all, str_of(l->id));

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

static void leave_queue(struct hub_sandbox *l)
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

static void join_queue(struct hub_sandbox *l, struct gone *g)
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

void hub_sandbox_forget(struct hub_sandbox *l)
{
	struct err e = ERR_INIT;

	jobs_forget_of(l);
	leave_queue(l);
	unlink_sandbox(l);
	if (l->stored && l->all->store && store_sandbox_drop(l->all->store, l->seq, &e) < 0)
		log_warn("sandbox %s is still in the registry: %s", l->id, e.msg);
	hub_sandbox_unref(l);
}

/* If that can't be written, the row stays and tells the next hub. */
static void remember_generation(struct hub_sandbox *l)
{
	struct hub_sandboxes *all = l->all;
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

void hub_sandbox_mourn(struct hub_sandbox *l)
{
	struct hub_sandboxes *all = l->all;
	struct gone *g = l->state == SANDBOX_TERMINATED ? &all->terminated : &all->mourned;

	leave_queue(l);
	join_queue(l, g);
	while (g->n > g->max) {
		remember_generation(g->first);
		hub_sandbox_forget(g->first);
	}
}

/* ---- for other files ----------------------------------------------------------------------- */

int hub_sandboxes_unknown(struct str id, struct err *e)
{
	return err_set(e, ERR_SANDBOX_NOT_FOUND, "there is no sandbox '%.*s'",
		       id.n > SANDBOX_ID_MAX ? SANDBOX_ID_MAX : (int)id.n, id.p ? id.p : "");
}

struct hub_sandbox *hub_sandboxes_find(struct hub_sandboxes *all, struct str id, struct err *e)
{
	struct hub_sandbox *l = hub_sandboxes_get(all, id);

	if (!l)
		hub_sandboxes_unknown(id, e);
	return l;
}

size_t hub_sandboxes_list(struct hub_sandboxes *all, uint64_t after, struct hub_sandbox **ret,
			  size_t max)
{
	struct hub_sandbox *l = all->oldest;
	size_t n = 0;

	while (l && l->seq <= after)
		l = l->newer;
	for (; l && n < max; l = l->newer)
		ret[n++] = l;
	return n;
}

void hub_sandboxes_stats(const struct hub_sandboxes *all, struct hub_sandboxes_stats *ret)
{
	*ret = all->stats;
	ret->commands = all->jobs.running;
	ret->forwards = all->n_forwards;
}

static bool is_stopped(const struct hub_sandbox *l)
{
	return l->state == SANDBOX_STOPPED || l->state == SANDBOX_COLD;
}

static bool is_over(const struct hub_sandbox *l)
{
	return is_stopped(l) && l->kept_until_ms && l->kept_until_ms <= clock_unix_ms();
}

/* One whose files are due to go has ended, also before the reaper comes. */
void hub_sandbox_info(const struct hub_sandbox *l, struct hub_sandbox_info *ret)
{
	*ret = (struct hub_sandbox_info){
		.seq = l->seq,
		.id = str_of(l->id),
		.template = str_of(l->template),
		.source = l->source[0] ? str_of(l->source) : STR_NONE,
		.labels = str_of(l->labels),
		.state = is_over(l) ? SANDBOX_TERMINATED : l->state,
		.generation = l->generation,
		.created_ms = l->created_ms,
		.changed_ms = l->changed_ms,
		.deadline_ms = is_stopped(l) ? l->kept_until_ms : l->deadline_ms,
		.runs_until_ms = l->deadline_ms,
		.ttl_ms = l->ttl_ms,
		.idle_ms = l->idle_ms,
		.retention = l->retention,
		.limits = &l->limits,
		.volumes = l->volumes,
		.volumes_gone = l->volumes_gone,
		.network = str_of(l->network),
		.network_revision = l->network_revision,
		.modules = { str_of(l->modules), str_of(l->profiles) },
		.owner = str_of(l->owner),
		.network_counts = &l->network_counts,
		.from_pool = l->from_pool,
		.made_ms = l->made_ms,
		.adopted = l->box && sandbox_adopted(l->box),
		.why = l->why,
		.left_out = l->left_out,
		.left_out_names = l->left_out_names ? str_of(l->left_out_names) : STR_NONE,
	};
}

void hub_sandbox_note_made(struct hub_sandbox *l, double ms)
{
	l->made_ms = ms;
}

void hub_sandbox_note_left_out(struct hub_sandbox *l, uint32_t n, struct str names)
{
	free(l->left_out_names);
	l->left_out = n;
	l->left_out_names = n ? mem_dup(names.p, names.n) : NULL;
	if (n)
		hub_sandbox_tell(l, "left_out", names);
}

static int sandbox_refuse(const struct hub_sandbox *l, enum err_code code, struct err *e)
{
	if (l->why)
		return err_set(e, code, "sandbox %s is %s: %s", l->id,
			       hub_sandbox_state_names[l->state], l->why->msg);
	return err_set(e, code, "sandbox %s is %s", l->id, hub_sandbox_state_names[l->state]);
}

int hub_sandbox_check_runs(const struct hub_sandbox *l, struct err *e)
{
	if (l->ending)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s is being terminated", l->id);
	if (l->stopping)
		return err_set(e, ERR_CONFLICT, "sandbox %s is being stopped", l->id);
	switch (l->state) {
	case SANDBOX_RUNNING:
		return 0;
	case SANDBOX_PAUSED:
		return sandbox_refuse(l, ERR_PAUSED, e);
	case SANDBOX_LOST:
		return sandbox_refuse(l, ERR_GUEST, e);
	case SANDBOX_TERMINATED:
	case SANDBOX_FAILED:
		return sandbox_refuse(
			l, l->why && l->why->code == ERR_IDLE ? ERR_IDLE : ERR_SANDBOX_NOT_FOUND,
			e);
	default:
		return sandbox_refuse(l, ERR_CONFLICT, e);
	}
}

uint64_t hub_sandboxes_changes(const struct hub_sandboxes *all)
{
	return all->changes;
}

struct sandbox *hub_sandbox_machine(struct hub_sandbox *l, struct err *e)
{
	if (l->state == SANDBOX_PAUSED && !l->ending)
		return l->box;
	return hub_sandbox_check_runs(l, e) < 0 ? NULL : l->box;
}

struct sandbox *hub_sandbox_sandbox(struct hub_sandbox *l, struct err *e)
{
	if (hub_sandbox_check_runs(l, e) < 0)
		return NULL;
	l->used_ms = clock_ms();
	return l->box;
}

struct sandbox *hub_sandbox_box(struct hub_sandbox *l)
{
	return l->box;
}

void hub_sandbox_busy(struct hub_sandbox *l, int by)
{
	assert(by == 1 || (by == -1 && l->busy > 0));
	l->used_ms = clock_ms();
	if (by > 0) {
		l->busy++;
		hub_sandbox_ref(l);
		return;
	}
	l->busy--;
	if (l->busy == 0)
		hub_sandbox_arm(l);
	hub_sandbox_unref(l);
}
