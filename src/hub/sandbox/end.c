/*
 * How sandboxes end: on request, at a deadline, or unexpectedly. A deadline is the time to live, or
 * the idle time since the last use. Each sandbox has one timer, which fires at the next deadline
 * and checks whether it is really due; so a use only updates a number. The reaper here carries out
 * the retention, and retries until it has worked or nothing is left. Without a hub the warden ends
 * sandboxes that are overdue (ttl_by_caller, box/host/box.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { REAP_AGAIN_MS = 1000, REAP_AGAIN_MAX_MS = 60000 };

static void on_timer(uv_timer_t *t);

/* ---- deadlines ----------------------------------------------------------------------------- */

static bool can_idle(const struct hub_sandbox *l)
{
	return l->idle_ms && l->busy == 0 && l->state == SANDBOX_RUNNING;
}

/* clock_ms() of the next deadline, not before the next try of one that failed; 0: none. */
static uint64_t next_due(const struct hub_sandbox *l)
{
	uint64_t idle = can_idle(l) ? l->used_ms + l->idle_ms : 0, due = l->due_ms;

	if (!l->box || l->ending || l->stopping)
		return 0;
	if (l->overspent)
		due = 1;
	else if (idle && (!due || idle < due))
		due = idle;
	return due && due < l->reap_at_ms ? l->reap_at_ms : due;
}

void hub_sandbox_arm(struct hub_sandbox *l)
{
	uint64_t due = next_due(l), now = clock_ms();

	if (l->timer)
		uv_timer_stop(l->timer);
	if (!due)
		return;
	if (!l->timer) {
		l->timer = calloc(1, sizeof(*l->timer));
		if (!l->timer)
			abort(); /* a missed deadline would break a promise */
		uv_timer_init(l->all->loop, l->timer);
		l->timer->data = l;
	}
	uv_update_time(l->all->loop);
	uv_timer_start(l->timer, on_timer, due > now ? due - now : 1, 0);
}

static void set_deadline(struct hub_sandbox *l, uint64_t ttl_ms)
{
	l->ttl_ms = ttl_ms;
	l->due_ms = ttl_ms ? clock_ms() + ttl_ms : 0;
	l->deadline_ms = ttl_ms ? clock_unix_ms() + (int64_t)ttl_ms : 0;
}

bool hub_sandbox_is_held(const struct hub_sandbox *l)
{
	const struct hub_keeper *k = l->all->keeper;

	return k && k->holds(k->data, l);
}

void hub_sandbox_hold(struct hub_sandbox *l)
{
	struct err e = ERR_INIT;

	if (l->box && (sandbox_set_ttl(l->box, 0, &e) < 0 || sandbox_set_idle(l->box, 0, &e) < 0))
		log_warn("sandbox %s: its time to live: %s", l->id, e.msg);
}

/* Without a hub nothing uses it, so the warden ends it then, unless its files are kept. */
static void tell_idle(struct hub_sandbox *l)
{
	const bool ends = l->retention == RETAIN_DESTROY && !hub_sandbox_is_held(l);
	struct err e = ERR_INIT;

	if (sandbox_set_idle(l->box, ends ? (uint32_t)l->idle_ms : 0, &e) < 0)
		log_warn("sandbox %s: the limit of its idle time: %s", l->id, e.msg);
}

int hub_sandbox_set_timeout(struct hub_sandbox *l, uint64_t ms, struct err *e)
{
	const struct hub_sandbox before = *l;
	struct err ignored = ERR_INIT;

	if (hub_sandbox_is_gone(l))
		return hub_sandbox_check_runs(l, e);
	if ((l->state != SANDBOX_RUNNING && l->state != SANDBOX_PAUSED) || l->ending)
		return err_set(e, ERR_CONFLICT, "sandbox %s is %s: it has no time to live", l->id,
			       l->ending ? "being terminated" : hub_sandbox_state_names[l->state]);
	if (ms > SANDBOX_TIMEOUT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout: at most %d days",
			       (int)(SANDBOX_TIMEOUT_MAX_MS / 86400000));
	set_deadline(l, ms);
	if (hub_sandbox_save(l, "deadline", STR_NONE, e) < 0) {
		l->ttl_ms = before.ttl_ms;
		l->due_ms = before.due_ms;
		l->deadline_ms = before.deadline_ms;
		return -1;
	}
	/* Without a hub the warden ends it, which can't keep anything. */
	if (sandbox_set_ttl(l->box,
			    l->retention == RETAIN_DESTROY && !hub_sandbox_is_held(l) ? ms : 0,
			    &ignored) < 0)
		log_warn("sandbox %s: its time to live: %s", l->id, ignored.msg);
	hub_sandbox_arm(l);
	return 0;
}

void hub_sandbox_say_over(const struct hub_sandbox *l, struct err *ret)
{
	err_set(ret, ERR_TIMEOUT, "its time to live of %" PRIu64 " s is over", l->ttl_ms / 1000);
}

/* ---- ended by the engine ------------------------------------------------------------------- */

void hub_sandbox_mark(const struct hub_sandbox *l, char ret[SANDBOX_MARK_MAX])
{
	snprintf(ret, SANDBOX_MARK_MAX, "%" PRIu64 " %" PRId64, (uint64_t)l->generation,
		 l->created_ms);
}

/* at: Unix time */
static void set_due(struct hub_sandbox *l, int64_t at)
{
	int64_t left = at - clock_unix_ms();

	l->deadline_ms = at;
	l->due_ms = clock_ms() + (left > 0 ? (uint64_t)left : 0);
}

void hub_sandbox_begin(struct hub_sandbox *l, struct sandbox *sb)
{
	int64_t until;

	l->box = sandbox_ref(sb);
	l->limits = *sandbox_limits(sb);
	l->from_pool = sandbox_from_pool(sb);
	l->used_ms = clock_ms();
	snprintf(l->template, sizeof(l->template), "%s", sandbox_template(sb));
	if (l->state == SANDBOX_CREATING || l->state == SANDBOX_RESTORING) {
		until = budget_until(l);
		if (!l->wakers)
			set_deadline(l, l->ttl_ms);
		else if (l->deadline_ms) /* what is left of it */
			set_due(l, l->deadline_ms);
		if (until && (!l->deadline_ms || until < l->deadline_ms))
			set_due(l, until);
	} else if (l->deadline_ms) {
		set_due(l, l->deadline_ms);
	}
	budget_begin(l);
	tell_idle(l);
}

void hub_sandbox_let_go(struct hub_sandbox *l)
{
	forwards_end(l); /* first: an idle sandbox has no deadline from then on */
	if (l->timer)
		uv_timer_stop(l->timer);
	net_free(take_ptr(l->net));
	inlet_end(l);
	budget_end(l);
	sandbox_unref(take_ptr(l->box));
}

void hub_sandboxes_on_end(void *sandboxes, struct sandbox *sb, const struct err *why)
{
	struct hub_sandboxes *all = sandboxes;
	struct hub_sandbox *l = hub_sandboxes_get(all, str_of(sandbox_id(sb)));
	struct err over = ERR_INIT, e = ERR_INIT;
	struct box_stats engine;

	if (!l || l->box != sb)
		return;
	box_stats(all->box, &engine);
	if (!engine.ready && volumes_written(l->volumes)) {
		l->end_unseen = true; /* it ended with the warden, which would have looked */
		hub_sandboxes_later(all, hub_sandboxes_look_at_left, all);
	}
	/* A sandbox that is being destroyed is settled when that is done. */
	if (l->ending)
		return;
	hub_sandbox_let_go(l);
	if (all->stopping) {
		hub_sandbox_set_state(l, SANDBOX_TERMINATED, why, &e);
	} else if (l->due_ms && clock_ms() >= l->due_ms && l->retention == RETAIN_DESTROY) {
		hub_sandbox_say_over(l, &over);
		hub_sandbox_set_state(l, SANDBOX_TERMINATED, &over, &e);
	} else {
		hub_sandbox_lose(l, why);
	}
}

void hub_sandbox_lose(struct hub_sandbox *l, const struct err *why)
{
	const struct snapshot *kept = snapshot_kept(l->all, l);
	struct err told = ERR_INIT, e = ERR_INIT;

	log_warn("sandbox %s is lost: %s", l->id, why->msg);
	/* the files of a workspace are in its revisions, which are newer */
	if (!kept || hub_sandbox_is_held(l)) {
		hub_sandbox_set_state(l, SANDBOX_LOST, why, &e);
		return;
	}
	err_set(&told, ERR_GUEST, "%.200s; its files are those of its last stop", why->msg);
	l->kept_until_ms = kept->expires_ms;
	hub_sandbox_set_state(l, SANDBOX_STOPPED, &told, &e);
}

/* ---- terminate ----------------------------------------------------------------------------- */

/* Its processes are also gone if the warden or the whole engine has ended. */
static bool is_ended(const struct err *err)
{
	return !err || err->code == ERR_GUEST || err->code == ERR_CANCELLED;
}

/* Decides how it ended. False: it lives on. */
static bool end_settle(struct hub_sandbox *l, const struct err *why, const struct err *err)
{
	struct err e = ERR_INIT;

	l->ending = false;
	if (err && l->box && sandbox_live(l->box))
		return false;
	hub_sandbox_let_go(l);
	if (is_ended(err))
		hub_sandbox_set_state(l, SANDBOX_TERMINATED, why, &e);
	else
		hub_sandbox_set_state(l, SANDBOX_FAILED, err, &e);
	return true;
}

static void on_destroyed(void *arg, struct sandbox *sb, const struct err *err)
{
	struct hub_sandbox_op *op = arg;
	bool over = end_settle(op->hs, NULL, err);

	if (!over)
		hub_sandbox_arm(op->hs);
	/* One that was lost meanwhile has ended, as was asked. */
	hub_sandbox_op_end(op, over && err && err->code == ERR_GUEST ? NULL : err);
}

static int check_terminate(const struct hub_sandbox *l, struct err *e)
{
	if (l->state == SANDBOX_CREATING || l->state == SANDBOX_RESTORING || l->stopping)
		return err_set(e, ERR_CONFLICT, "sandbox %s is %s", l->id,
			       l->stopping ? "being stopped" : hub_sandbox_state_names[l->state]);
	if (l->ending || l->state == SANDBOX_TERMINATED)
		return err_set(e, ERR_SANDBOX_NOT_FOUND, "sandbox %s has ended", l->id);
	return 0;
}

static void end_destroy(struct hub_sandbox_op *op)
{
	op->hs->ending = true;
	sandbox_destroy_start(op->hs->box, on_destroyed, op);
}

static void on_saved(void *arg, struct hub_sandbox *same, const struct err *err)
{
	struct hub_sandbox_op *op = arg;
	struct hub_sandbox *l = op->hs;
	struct err why;

	(void)same;
	hub_sandbox_stopped(l);
	if (l->box && !err) {
		end_destroy(op);
		return;
	}
	if (err) {
		why = *err;
		err_wrap(&why, "it is not ended, since its last revision can't be made; `holt down "
			       "--discard` ends it without its changes since the one before");
	}
	hub_sandbox_op_end(op, err ? &why : NULL);
}

static void end_running(struct hub_sandbox_op *op, bool save)
{
	const struct hub_keeper *k = op->all->keeper;

	if (save && hub_sandbox_is_held(op->hs)) {
		op->hs->stopping = true;
		k->save(k->data, op->hs, on_saved, op);
	} else {
		end_destroy(op);
	}
}

/* A stopped sandbox may hold files that no revision has: the revision failed, or an older Holt has
 * stopped it. So it is started and saved first. */
static void on_woken_to_end(void *arg, struct hub_sandbox *l, const struct err *err)
{
	struct hub_sandbox_op *op = arg;

	if (err)
		on_saved(op, l, err);
	else
		end_running(op, true);
}

static void terminate(struct hub_sandbox *l, bool save, hub_sandbox_cb on_done, void *arg)
{
	struct err e = ERR_INIT;

	if (check_terminate(l, &e) < 0) {
		hub_sandbox_later(l->all, l, on_done, arg, &e);
	} else if (!l->box && save && hub_sandbox_is_held(l) &&
		   (l->state == SANDBOX_STOPPED || l->state == SANDBOX_COLD)) {
		hub_sandbox_wake_start(l, on_woken_to_end,
				       hub_sandbox_op_new(l->all, l, on_done, arg));
	} else if (!l->box) { /* a lost, failed or kept one */
		hub_sandbox_set_state(l, SANDBOX_TERMINATED, NULL, &e);
		hub_sandbox_later(l->all, l, on_done, arg, NULL);
	} else {
		end_running(hub_sandbox_op_new(l->all, l, on_done, arg), save);
	}
}

void hub_sandbox_terminate_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	terminate(l, true, on_done, arg);
}

void hub_sandbox_discard_start(struct hub_sandbox *l, hub_sandbox_cb on_done, void *arg)
{
	terminate(l, false, on_done, arg);
}

/* ---- the reaper ---------------------------------------------------------------------------- */

static void reap_again(struct hub_sandbox *l, const struct err *err)
{
	l->reap_wait_ms = l->reap_wait_ms ? 2 * l->reap_wait_ms : REAP_AGAIN_MS;
	if (l->reap_wait_ms > REAP_AGAIN_MAX_MS)
		l->reap_wait_ms = REAP_AGAIN_MAX_MS;
	log_warn("sandbox %s can't be ended at its deadline, and is tried again: %s", l->id,
		 err->msg);
	l->reap_at_ms = clock_ms() + l->reap_wait_ms;
	hub_sandbox_arm(l);
}

static void on_reaped(void *arg, struct sandbox *sb, const struct err *err)
{
	struct hub_sandbox_op *op = arg;
	struct hub_sandbox *l = op->hs;

	if (err) {
		l->all->stats.reap_failures++;
		hub_sandbox_tell(l, "reap_failed", str_of(err->msg));
	}
	if (!end_settle(l, &op->err, err))
		reap_again(l, err);
	hub_sandbox_op_end(op, err);
}

static void nobody(void *arg, struct hub_sandbox *l, const struct err *err)
{
}

/* kept: a reference. */
static void on_kept(void *kept, struct hub_sandbox *still, const struct err *err)
{
	struct hub_sandbox *l = kept;

	if (err) {
		l->all->stats.reap_failures++;
		hub_sandbox_tell(l, "reap_failed", str_of(err->msg));
	}
	if (err && l->box && !l->all->stopping)
		reap_again(l, err);
	hub_sandbox_unref(l);
}

static void reap_now(struct hub_sandbox_op *op)
{
	op->hs->ending = true;
	sandbox_destroy_start(op->hs->box, on_reaped, op);
}

/* If its files can't be saved as they should be, they are kept as those of a stopped sandbox. */
static void on_saved_overdue(void *arg, struct hub_sandbox *same, const struct err *err)
{
	struct hub_sandbox_op *op = arg;
	struct hub_sandbox *l = op->hs;

	(void)same;
	hub_sandbox_stopped(l);
	if (!l->box) {
		hub_sandbox_op_end(op, err);
	} else if (!err) {
		reap_now(op);
	} else {
		l->all->stats.reap_failures++;
		hub_sandbox_tell(l, "reap_failed", str_of(err->msg));
		hub_sandbox_keep_start(l, RETAIN_STOP, 0, &op->err, on_kept, hub_sandbox_ref(l));
		hub_sandbox_op_end(op, NULL);
	}
}

static void on_timer(uv_timer_t *t)
{
	struct hub_sandbox *l = t->data;
	uint64_t now = clock_ms(), due = next_due(l);
	struct err why = ERR_INIT;
	const struct hub_keeper *k;
	struct hub_sandbox_op *op;

	if (!due || l->all->stopping)
		return;
	if (now < due) {
		hub_sandbox_arm(l);
		return;
	}
	if (l->overspent) {
		l->overspent = hub_sandbox_check_budget(l, &why) < 0;
		if (!l->overspent) { /* it may use more by now */
			budget_begin(l);
			hub_sandbox_arm(l);
			return;
		}
	} else if (l->due_ms && now >= l->due_ms) {
		hub_sandbox_say_over(l, &why);
	} else {
		err_set(&why, ERR_IDLE, "it was not used for %" PRIu64 " s", l->idle_ms / 1000);
	}
	k = l->all->keeper;
	log_info("sandbox %s: %s", l->id, why.msg);
	if (l->retention != RETAIN_DESTROY) {
		hub_sandbox_keep_start(l, l->retention, 0, &why, on_kept, hub_sandbox_ref(l));
		return;
	}
	op = hub_sandbox_op_new(l->all, l, nobody, NULL);
	op->err = why;
	if (hub_sandbox_is_held(l)) {
		l->stopping = true;
		k->save(k->data, l, on_saved_overdue, op);
	} else {
		reap_now(op);
	}
}
