/*
 * Keeps sandboxes without running them: the retention at a deadline, and stopping at any time:
 *
 *	pause it → make a revision of its workspace → take a snapshot → end it → stopped, cold,
 *	or terminated
 *
 * It is frozen from the first step on, so its files can't change after the snapshot. If a step
 * fails, it continues as before; but an overdue one stays paused, so that nobody extends their time
 * by filling the disk. The snapshot's row is written before the sandbox ends: if the hub is killed
 * in between, its files are kept and it is found stopped, or it runs on. The snapshot stays until
 * the next stop: a sandbox that was started again and is lost is stopped once more.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

struct keeping {
	struct hub_sandbox_op *op; /* its err: why */
	enum hub_sandbox_retention how;
	uint64_t ms;
	bool paused; /* by this */
	struct err failed;
};

static const struct {
	enum hub_sandbox_state state;
	uint64_t ms; /* how long it is kept */
} ends[RETENTIONS] = {
	[RETAIN_STOP] = { SANDBOX_STOPPED, SNAPSHOT_STOPPED_MS },
	[RETAIN_COLD] = { SANDBOX_COLD, SNAPSHOT_COLD_MS },
	[RETAIN_SNAPSHOT] = { SANDBOX_TERMINATED, SNAPSHOT_STOPPED_MS },
};

static void keep_end(struct keeping *k, const struct err *err)
{
	struct hub_sandbox_op *op = k->op;

	free(k);
	hub_sandbox_op_end(op, err);
}

/* Restores the earlier state, if the sandbox could be resumed or not. */
static void go_on(struct keeping *k)
{
	struct hub_sandbox *l = k->op->hs;
	struct err failed = k->failed;

	l->ending = false;
	hub_sandbox_stopped(l);
	keep_end(k, &failed);
}

static void on_resumed(void *arg, struct sandbox *sb, const struct err *err)
{
	struct keeping *k = arg;
	struct hub_sandbox *l = k->op->hs;
	struct err e = ERR_INIT;

	if (err && l->box && sandbox_live(l->box))
		hub_sandbox_set_state(l, SANDBOX_PAUSED, NULL,
				      &e); /* as it is, so that it can be resumed */
	go_on(k);
}

static bool keep_is_due(const struct keeping *k)
{
	return k->op->err.code != ERR_NONE && !k->op->hs->all->keeping;
}

/* The failure is reported only after it runs again. */
static void give_up(struct keeping *k, const struct err *err)
{
	struct hub_sandbox *l = k->op->hs;
	bool still = k->paused && l->box && sandbox_live(l->box);
	struct err e = ERR_INIT;

	k->failed = *err;
	l->ending = false; /* its end is seen meanwhile */
	if (still && !keep_is_due(k)) {
		sandbox_resume_start(l->box, on_resumed, k);
		return;
	}
	if (still)
		hub_sandbox_set_state(l, SANDBOX_PAUSED, NULL, &e);
	go_on(k);
}

static void on_ended(void *arg, struct sandbox *sb, const struct err *err)
{
	struct keeping *k = arg;
	struct hub_sandbox *l = k->op->hs;
	const struct err *why = k->op->err.code ? &k->op->err : NULL;
	const struct snapshot *kept = snapshot_kept(l->all, l);
	struct err e = ERR_INIT;

	if (err && l->box && sandbox_live(l->box)) {
		give_up(k, err);
		return;
	}
	l->ending = false;
	hub_sandbox_stopped(l);
	l->kept_until_ms = kept ? kept->expires_ms : 0;
	hub_sandbox_let_go(l);
	/* a row that can't be written now is retried */
	hub_sandbox_set_state(l, ends[k->how].state, why, &e);
	keep_end(k, NULL);
}

static void on_kept(void *arg, const struct snapshot *s, const struct err *err)
{
	struct keeping *k = arg;
	struct hub_sandbox *l = k->op->hs;
	struct err e = ERR_INIT;

	if (!err && (!l->box || !sandbox_live(l->box)))
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "sandbox %s ended meanwhile", l->id);
	if (err || e.code) {
		give_up(k, err ? err : &e);
		return;
	}
	snapshot_drop_older(l);
	l->ending = true;
	sandbox_destroy_start(l->box, on_ended, k);
}

/* One that would be destroyed at its deadline is kept because its revision failed before. */
static void keep_take(void *arg, struct hub_sandbox *same, const struct err *err)
{
	struct keeping *k = arg;
	struct hub_sandbox *l = k->op->hs;
	const struct snapshot_spec spec = { .ttl_ms = k->ms };
	struct err e = ERR_INIT;

	(void)same;
	if (err && keep_is_due(k) && l->retention == RETAIN_DESTROY)
		err = NULL;
	if (!err && (!l->box || !sandbox_live(l->box)))
		err_set(&e, ERR_SANDBOX_NOT_FOUND, "sandbox %s ended meanwhile", l->id);
	if (err || e.code)
		give_up(k, err ? err : &e);
	else
		snapshot_take(l, &spec, k->how != RETAIN_SNAPSHOT, on_kept, k);
}

/* The end of the hub has made the last revisions before, and what comes later is in the archive. */
static void keep_save(void *arg, const struct err *err)
{
	struct keeping *k = arg;
	struct hub_sandbox *l = k->op->hs;
	const struct hub_keeper *keeper = l->all->keeper;

	if (err)
		give_up(k, err);
	else if (l->box && hub_sandbox_is_held(l) && !l->all->keeping)
		keeper->save(keeper->data, l, keep_take, k);
	else
		keep_take(k, l, NULL);
}

/* Its processes are still, so this is all that they used. */
static void keep_count(struct keeping *k)
{
	if (!hub_sandbox_count(k->op->hs, keep_save, k))
		keep_save(k, NULL);
}

static void on_still(void *arg, struct sandbox *sb, const struct err *err)
{
	struct keeping *k = arg;

	if (err) {
		give_up(k, err);
		return;
	}
	k->paused = true;
	keep_count(k);
}

static void on_refused(void *arg)
{
	struct keeping *k = arg;
	struct err e = k->op->err;

	keep_end(k, &e);
}

void hub_sandbox_keep_start(struct hub_sandbox *l, enum hub_sandbox_retention how, uint64_t ms,
			    const struct err *why, hub_sandbox_cb on_done, void *arg)
{
	struct keeping *k = calloc(1, sizeof(*k));
	struct err e = ERR_INIT;

	if (!k)
		abort(); /* out of memory: no callback could report it */
	k->op = hub_sandbox_op_new(l->all, l, on_done, arg);
	k->how = how;
	k->ms = ms ? ms : ends[how].ms;
	if (why)
		k->op->err = *why;
	if (snapshots_check(l->all, &e) < 0) {
		k->op->err = e;
		hub_sandboxes_later(l->all, on_refused, k);
		return;
	}
	l->stopping = true;
	if (l->state == SANDBOX_PAUSED)
		keep_count(k);
	else
		sandbox_pause_start(l->box, on_still, k);
}

void hub_sandbox_stop_start(struct hub_sandbox *l, bool cold, uint64_t ms, hub_sandbox_cb on_done,
			    void *arg)
{
	struct err e = ERR_INIT;

	if (l->state == SANDBOX_STOPPED || l->state == SANDBOX_COLD)
		hub_sandbox_later(l->all, l, on_done, arg, NULL);
	else if ((l->state != SANDBOX_PAUSED || l->ending || l->stopping) &&
		 hub_sandbox_check_runs(l, &e) < 0)
		hub_sandbox_later(l->all, l, on_done, arg, &e);
	else
		hub_sandbox_keep_start(l, cold ? RETAIN_COLD : RETAIN_STOP, ms, NULL, on_done, arg);
}

/* ---- the end of the hub ---------------------------------------------------------------------- */

/* How many are saved at once: each is a process that compresses. */
enum { KEEP_AT_ONCE = 4 };

struct keeping_all {
	struct hub_sandboxes *all;
	unsigned running;
	size_t failed;
	struct hub_keeping f;
	void *arg;
};

static bool is_to_keep(const struct hub_sandbox *l)
{
	return (l->state == SANDBOX_RUNNING || l->state == SANDBOX_PAUSED) && l->box && !l->ending;
}

unsigned hub_sandboxes_staying(const struct hub_sandboxes *all)
{
	unsigned n = 0;

	for (const struct hub_sandbox *l = all->snapshots ? all->oldest : NULL; l; l = l->newer)
		n += is_to_keep(l);
	return n;
}

/* A deadline or a limit on idle time also holds while it is stopped. */
static uint64_t keep_ms(const struct hub_sandbox *l)
{
	const uint64_t most = l->idle_ms ? l->idle_ms : SANDBOX_TIMEOUT_MAX_MS;
	int64_t left = l->deadline_ms - clock_unix_ms();

	if (l->retention != RETAIN_DESTROY)
		return SANDBOX_TIMEOUT_MAX_MS;
	if (!l->deadline_ms || left > (int64_t)most)
		return most;
	return left > 0 ? (uint64_t)left : 1;
}

static void keep_some(struct keeping_all *k);

struct keeping_one {
	struct keeping_all *of;
	struct hub_sandbox *hs; /* a reference */
};

static void on_one_kept(void *arg, struct hub_sandbox *same, const struct err *err)
{
	struct keeping_one *one = arg;
	struct keeping_all *k = one->of;

	(void)same;
	k->running--;
	if (err && one->hs->box) {
		k->failed++;
		k->f.on_left(k->arg, str_of(one->hs->id), err);
		log_error("sandbox %s can't be stopped, and runs on for the next hub: %s",
			  one->hs->id, err->msg);
	}
	hub_sandbox_unref(one->hs);
	free(one);
	keep_some(k);
}

static void keep_one(struct keeping_all *k, struct hub_sandbox *l)
{
	struct keeping_one *one = calloc(1, sizeof(*one));
	struct err why = ERR_INIT;

	if (!one)
		abort(); /* out of memory: its files would be lost */
	*one = (struct keeping_one){ k, hub_sandbox_ref(l) };
	k->running++;
	err_set(&why, ERR_CANCELLED, "its hub ended, and its files are kept");
	hub_sandbox_keep_start(l, RETAIN_STOP, keep_ms(l), &why, on_one_kept, one);
}

/* One that is being stopped already is waited for: where that fails, it is tried here, too. */
static void keep_some(struct keeping_all *k)
{
	unsigned waits = 0;

	for (struct hub_sandbox *l = k->all->snapshots ? k->all->oldest : NULL;
	     l && k->running < KEEP_AT_ONCE; l = l->newer) {
		if (!is_to_keep(l) || l->keep_tried)
			continue;
		if (l->stopping) {
			waits++;
			continue;
		}
		l->keep_tried = true;
		keep_one(k, l);
	}
	if (k->running || waits)
		return;
	k->all->keeping = NULL;
	k->f.on_done(k->arg, k->failed);
	free(k);
}

static void on_keep(void *arg)
{
	struct hub_sandboxes *all = arg;

	if (all->keeping)
		keep_some(all->keeping);
}

void hub_sandbox_stopped(struct hub_sandbox *l)
{
	l->stopping = false;
	hub_sandbox_arm(l);
	if (l->all->keeping)
		hub_sandboxes_later(l->all, on_keep, l->all);
}

void hub_sandboxes_keep_start(struct hub_sandboxes *all, const struct hub_keeping *f, void *arg)
{
	struct keeping_all *k = calloc(1, sizeof(*k));

	if (!k)
		abort(); /* out of memory: no callback could report it */
	*k = (struct keeping_all){ .all = all, .f = *f, .arg = arg };
	all->keeping = k;
	hub_sandboxes_later(all, on_keep, all);
}

/* ---- started again --------------------------------------------------------------------------- */

struct waker {
	struct waker *next;
	struct hub_sandbox_op *op;
};

bool hub_sandbox_wakes(const struct hub_sandbox *l)
{
	return l->wakers ||
	       (l->state == SANDBOX_STOPPED && l->why && l->why->code == ERR_CANCELLED);
}

/* One that could not be started is stopped as it was, so that the next call tries again. */
static void on_woken(void *arg, struct hub_sandbox *same, const struct err *err)
{
	struct hub_sandbox *l = arg;
	struct waker *w = take_ptr(l->wakers), *next;

	(void)same;
	for (; w; w = next) {
		next = w->next;
		hub_sandbox_op_end(w->op, err);
		free(w);
	}
	hub_sandbox_unref(l);
}

void hub_sandbox_wake_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	struct waker *w = calloc(1, sizeof(*w));
	bool first = !l->wakers;

	if (!w)
		abort(); /* out of memory: no callback could report it */
	*w = (struct waker){ l->wakers, hub_sandbox_op_new(l->all, l, on_done, arg) };
	l->wakers = w;
	if (first)
		hub_sandbox_start_again(l, on_woken, hub_sandbox_ref(l));
}
