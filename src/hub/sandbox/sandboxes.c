/*
 * All sandboxes of a hub, from its start to its end: reads the registry, adopts the sandboxes of an
 * earlier hub, and does the registry's slow work in the loop's work pool.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { SAVE_AGAIN_MS = 2000, KEYS_MS = 10 * 60 * 1000 };

static void close_handle(uv_handle_t *h)
{
	free(h);
}

/* ---- later --------------------------------------------------------------------------------- */

struct later {
	uv_timer_t timer;
	struct hub_sandboxes *all;
	void (*f)(void *arg);
	void *arg;
};

static void on_later(uv_timer_t *t)
{
	struct later *l = (struct later *)t;

	l->f(l->arg);
	l->all->later--;
	hub_sandboxes_try_close(l->all);
	uv_close((uv_handle_t *)t, close_handle);
}

void hub_sandboxes_later(struct hub_sandboxes *all, void (*f)(void *arg), void *arg)
{
	struct later *l = calloc(1, sizeof(*l));

	if (!l)
		abort(); /* out of memory: no callback could report it */
	l->all = all;
	l->f = f;
	l->arg = arg;
	all->later++;
	uv_timer_init(all->loop, &l->timer);
	uv_timer_start(&l->timer, on_later, 0, 0);
}

struct hub_sandbox_op *hub_sandbox_op_new(struct hub_sandboxes *all, struct hub_sandbox *l,
					  hub_sandbox_cb on_done, void *arg)
{
	struct hub_sandbox_op *op = calloc(1, sizeof(*op));

	if (!op)
		abort(); /* see hub_sandboxes_later() */
	op->all = all;
	op->hs = l ? hub_sandbox_ref(l) : NULL;
	op->on_done = on_done;
	op->arg = arg;
	return op;
}

void hub_sandbox_op_end(struct hub_sandbox_op *op, const struct err *err)
{
	op->on_done(op->arg, err ? NULL : op->hs, err);
	hub_sandbox_unref(op->hs);
	free(op);
}

static void end_op(void *arg)
{
	struct hub_sandbox_op *op = arg;

	hub_sandbox_op_end(op, op->err.code ? &op->err : NULL);
}

void hub_sandbox_later(struct hub_sandboxes *all, struct hub_sandbox *l, hub_sandbox_cb on_done,
		       void *arg, const struct err *err)
{
	struct hub_sandbox_op *op = hub_sandbox_op_new(all, l, on_done, arg);

	if (err)
		op->err = *err;
	hub_sandboxes_later(all, end_op, op);
}

/* ---- chores -------------------------------------------------------------------------------- */

static void work_checkpoint(uv_work_t *w)
{
	struct hub_sandboxes *all = w->data;

	all->checkpoint_err = ERR_INIT;
	if (store_checkpoint(all->store, &all->checkpoint_err) == 0)
		all->checkpoint_err.code = ERR_NONE;
}

static void on_checkpoint(uv_work_t *w, int status)
{
	struct hub_sandboxes *all = w->data;

	all->checkpointing = false;
	if (all->checkpoint_err.code)
		log_warn("the registry's log: %s", all->checkpoint_err.msg);
	hub_sandboxes_try_close(all);
}

/* Retries failed writes to the registry. The first new failure ends the try. */
static void save_again(struct hub_sandboxes *all)
{
	struct err e = ERR_INIT;

	for (struct hub_sandbox *l = all->oldest; l && all->stats.unsaved; l = l->newer) {
		if (l->unsaved && hub_sandbox_save(l, hub_sandbox_state_names[l->state],
						   l->why ? str_of(l->why->msg) : STR_NONE, &e) < 0)
			return;
	}
}

static void on_saver(uv_timer_t *t)
{
	struct hub_sandboxes *all = t->data;
	struct err e = ERR_INIT;

	if (all->stats.unsaved)
		save_again(all);
	if (store_keys_expire(all->store, clock_unix_ms() - KEYS_LIVE_MS, &e) < 0)
		log_warn("old keys of requests stay: %s", e.msg);
	uv_timer_start(t, on_saver, all->stats.unsaved ? SAVE_AGAIN_MS : KEYS_MS, 0);
}

static int start_saver(struct hub_sandboxes *all, struct err *e)
{
	if (!all->store)
		return 0;
	all->saver = calloc(1, sizeof(*all->saver));
	if (!all->saver)
		return err_set(e, ERR_LIMIT, "out of memory");
	uv_timer_init(all->loop, all->saver);
	all->saver->data = all;
	uv_timer_start(all->saver, on_saver, SAVE_AGAIN_MS, 0);
	return 0;
}

static void tell_watches(void *arg)
{
	struct hub_sandboxes *all = arg;

	all->telling = false;
	for (struct hub_sandboxes_watch *w = all->watches, *next; w; w = next) {
		next = w->next;
		w->on_events(w->arg);
	}
}

void hub_sandboxes_tell_watches(struct hub_sandboxes *all)
{
	if (all->telling || !all->watches || all->on_closed)
		return;
	all->telling = true;
	hub_sandboxes_later(all, tell_watches, all);
}

void hub_sandboxes_watch_add(struct hub_sandboxes *all, struct hub_sandboxes_watch *w)
{
	w->next = all->watches;
	all->watches = w;
}

void hub_sandboxes_watch_remove(struct hub_sandboxes *all, struct hub_sandboxes_watch *w)
{
	for (struct hub_sandboxes_watch **at = &all->watches; *at; at = &(*at)->next) {
		if (*at == w) {
			*at = w->next;
			return;
		}
	}
}

void hub_sandboxes_written(struct hub_sandboxes *all)
{
	hub_sandboxes_tell_watches(all);
	if (!all->store || all->on_closed)
		return;
	if (all->stats.unsaved && uv_timer_get_due_in(all->saver) > SAVE_AGAIN_MS)
		uv_timer_start(all->saver, on_saver, SAVE_AGAIN_MS, 0);
	if (all->checkpointing || !store_wants_checkpoint(all->store))
		return;
	all->checkpoint.data = all;
	all->checkpointing = uv_queue_work(all->loop, &all->checkpoint, work_checkpoint,
					   on_checkpoint) == 0;
}

/* ---- from its start to its end --------------------------------------------------------------- */

void hub_sandboxes_free(struct hub_sandboxes *all)
{
	if (!all)
		return;
	if (all->saver)
		uv_close((uv_handle_t *)all->saver, close_handle);
	if (all->counter)
		uv_close((uv_handle_t *)all->counter, close_handle);
	jobs_fini(all);
	snapshots_free(all->snapshots);
	volume_roots_free(all->roots);
	free(all->inlet_folder);
	while (all->oldest) {
		struct hub_sandbox *l = all->oldest;

		all->oldest = l->newer;
		hub_sandbox_unref(l);
	}
	free(all);
}
AUTO_DEFINE(hub_sandboxes_free, struct hub_sandboxes)

struct hub_sandboxes *hub_sandboxes_new(uv_loop_t *loop, struct store *store, struct err *e)
{
	AUTO(hub_sandboxes_free) struct hub_sandboxes *all = calloc(1, sizeof(*all));

	if (!all)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	all->loop = loop;
	all->store = store;
	all->terminated.max = TERMINATED_MAX;
	all->mourned.max = MOURNED_MAX;
	id_make(all->run, "run");
	if (jobs_init(all, loop, e) < 0 || hub_sandboxes_load(all, e) < 0 ||
	    start_saver(all, e) < 0)
		return NULL;
	return take_ptr(all);
}

int hub_sandboxes_allow_volumes(struct hub_sandboxes *all, const char *const *roots, size_t n,
				struct err *e)
{
	all->roots = volume_roots_new(roots, n, e);
	return all->roots ? 0 : -1;
}

void hub_sandboxes_set_keeper(struct hub_sandboxes *all, const struct hub_keeper *k)
{
	all->keeper = k;
}

struct hub_sandbox *hub_sandboxes_by_seq(struct hub_sandboxes *all, uint64_t seq)
{
	struct hub_sandbox *l = seq ? all->newest : NULL;

	while (l && l->seq != seq)
		l = l->older;
	return l && !hub_sandbox_is_gone(l) ? l : NULL;
}

static void on_stranger_ended(void *arg, struct sandbox *sb, const struct err *err)
{
	if (err)
		log_warn("a sandbox of an earlier hub could not be ended: %s", err->msg);
}

/* The id alone is not enough: the registry may be an older copy. */
static bool is_own(const struct hub_sandbox *l, const struct sandbox *sb)
{
	char mark[SANDBOX_MARK_MAX];

	hub_sandbox_mark(l, mark);
	return !l->box && (l->state == SANDBOX_RUNNING || l->state == SANDBOX_PAUSED) &&
	       str_is(sandbox_record(sb), mark);
}

static void on_resumed(void *arg, struct hub_sandbox *same, const struct err *err)
{
	if (err)
		log_warn("a sandbox of the hub before stays paused: %s", err->msg);
}

/* A sandbox that is not in the registry is ended: no client was ever told of it. */
static void sandboxes_adopt(struct hub_sandboxes *all, struct sandbox *sb)
{
	struct hub_sandbox *l = hub_sandboxes_get(all, str_of(sandbox_id(sb)));
	struct err e = ERR_INIT;
	bool resumes;

	if (!l || !is_own(l, sb)) {
		log_warn("sandbox %s is not in the registry; ending it", sandbox_id(sb));
		sandbox_destroy_start(sb, on_stranger_ended, NULL);
		return;
	}
	/* Its hub may have ended between the change and writing it, or while it saved files. */
	resumes = sandbox_paused(sb) && l->state == SANDBOX_RUNNING;
	if (sandbox_paused(sb) != (l->state == SANDBOX_PAUSED))
		hub_sandbox_set_state(l, sandbox_paused(sb) ? SANDBOX_PAUSED : SANDBOX_RUNNING,
				      NULL, &e);
	hub_sandbox_begin(l, sb);
	hub_sandbox_arm(l);
	network_adopt(l);
	if (resumes) /* nobody was told that it is paused */
		hub_sandbox_resume_start(l, on_resumed, NULL);
}

static bool had_folder(const struct hub_sandbox *l, struct str host)
{
	for (size_t i = 0; l->end_unseen && l->volumes && i < l->volumes->n; i++) {
		if (l->volumes->v[i].mode == VOLUME_RW && str_eq(l->volumes->v[i].host, host))
			return true;
	}
	return false;
}

void hub_sandboxes_look_at_left(void *arg)
{
	struct hub_sandboxes *all = arg;

	for (const struct hub_sandbox *l = all->oldest; l && !all->stopping; l = l->newer) {
		for (size_t i = 0; l->end_unseen && l->volumes && i < l->volumes->n; i++) {
			const struct hub_sandbox *first = all->oldest;
			struct str host = l->volumes->v[i].host;

			while (first != l && !had_folder(first, host))
				first = first->newer;
			if (first == l && had_folder(l, host))
				box_look_at_left(all->box, host, l->created_ms);
		}
	}
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer)
		l->end_unseen = false;
}

static void settle_loaded(struct hub_sandboxes *all, struct hub_sandbox *l)
{
	const bool is_stopped = l->state == SANDBOX_COLD || l->state == SANDBOX_STOPPED;
	const struct snapshot *kept = snapshot_kept(all, l);
	struct err why = ERR_INIT, e = ERR_INIT;

	if (hub_sandbox_is_gone(l)) {
		snapshot_drop_kept(l);
		hub_sandbox_mourn(l);
	} else if (l->box) {
		snapshot_drop_older(l);
	} else if (kept && (is_stopped || kept->created_ms >= l->changed_ms)) {
		/* or its hub ended between its end and writing that */
		err_set(&why, ERR_CANCELLED, "its hub ended, and its files are kept");
		l->kept_until_ms = kept->expires_ms;
		if (!is_stopped)
			hub_sandbox_set_state(
				l, l->retention == RETAIN_COLD ? SANDBOX_COLD : SANDBOX_STOPPED,
				&why, &e);
	} else if (is_stopped) {
		err_set(&why, ERR_GUEST, "what was kept of its files is gone");
		hub_sandbox_set_state(l, SANDBOX_LOST, &why, &e);
	} else if (l->deadline_ms && l->deadline_ms <= clock_unix_ms() &&
		   l->retention == RETAIN_DESTROY) {
		hub_sandbox_say_over(l, &why);
		hub_sandbox_set_state(l, SANDBOX_TERMINATED, &why, &e);
	} else if (l->idle_ms && l->retention == RETAIN_DESTROY &&
		   l->changed_ms + (int64_t)l->idle_ms <= clock_unix_ms()) {
		err_set(&why, ERR_IDLE, "nothing used it while no hub ran");
		hub_sandbox_set_state(l, SANDBOX_TERMINATED, &why, &e);
	} else {
		err_set(&why, ERR_GUEST, "the hub that ran it ended, and it with it");
		hub_sandbox_lose(l, &why);
	}
}

void hub_sandboxes_adopt(struct hub_sandboxes *all, struct box *box,
			 struct sandbox *const *sandboxes, size_t n)
{
	struct err e = ERR_INIT;
	struct hub_sandbox *newer;

	all->box = box;
	if (hub_sandboxes_batch(all, &e) < 0)
		log_error("%s", e.msg);
	for (size_t i = 0; i < n; i++)
		sandboxes_adopt(all, sandboxes[i]);
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer)
		l->end_unseen = !l->box &&
				(l->state == SANDBOX_RUNNING || l->state == SANDBOX_PAUSED);
	hub_sandboxes_look_at_left(all);
	for (struct hub_sandbox *l = all->oldest; l; l = newer) {
		newer = l->newer;
		settle_loaded(all, l);
	}
	jobs_settle(all);
	if (all->batch && hub_sandboxes_batch_end(all, true, &e) < 0)
		log_error("%s", e.msg);
}

static void end_forwards(struct hub_sandboxes *all)
{
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer)
		forwards_end(l);
}

void hub_sandboxes_stop(struct hub_sandboxes *all)
{
	struct err e = ERR_INIT;

	all->stopping = true;
	end_forwards(all);
	snapshots_stop(all);
	/* One transaction for thousands of ends; if it fails, each has its own. */
	if (all->box && hub_sandboxes_batch(all, &e) < 0)
		log_warn("%s", e.msg);
}

void hub_sandboxes_leave(struct hub_sandboxes *all)
{
	all->stopping = true;
	end_forwards(all);
	snapshots_stop(all);
}

void hub_sandboxes_try_close(struct hub_sandboxes *all)
{
	void (*on_closed)(void *arg) = all->on_closed;
	void *arg = all->on_closed_arg;

	if (!on_closed || all->later || all->checkpointing || all->durable.running ||
	    all->jobs.spools.works || snapshots_busy(all))
		return;
	hub_sandboxes_free(all);
	on_closed(arg);
}

static void hub_sandboxes_on_close(void *arg)
{
}

void hub_sandboxes_close(struct hub_sandboxes *all, void (*on_closed)(void *arg), void *arg)
{
	struct err e = ERR_INIT;

	if (all->batch && hub_sandboxes_batch_end(all, true, &e) < 0)
		log_error("the end of the sandboxes is not in the registry: %s", e.msg);
	if (all->stats.unsaved)
		save_again(all);
	all->on_closed = on_closed;
	all->on_closed_arg = arg;
	hub_sandboxes_later(all, hub_sandboxes_on_close,
			    NULL); /* so that it never ends inside this call */
}
