/*
 * Waits for the disk before something is promised. One fdatasync() of the registry's log, in the
 * loop's work pool, serves all that wait when it begins; who comes later waits for the next one.
 */
#include "hub/sandbox/internal.h"

static void durable_work(uv_work_t *w)
{
	struct durable *d = w->data;

	d->err = ERR_INIT;
	d->failed = store_sync(d->all->store, &d->err) < 0;
}

static void durable_begin(struct durable *d);

static void durable_done(uv_work_t *w, int status)
{
	struct durable *d = w->data;
	struct hub_sandboxes_sync *first = take_ptr(d->served), *next;
	struct err e = d->err;
	bool failed = d->failed;

	d->running = false;
	if (!failed)
		store_synced(d->all->store, d->written);
	if (d->waiting)
		durable_begin(d);
	for (; first; first = next) {
		next = first->next;
		first->on_done(first, failed ? &e : NULL);
	}
	hub_sandboxes_try_close(d->all);
}

static void durable_begin(struct durable *d)
{
	d->served = take_ptr(d->waiting);
	d->written = store_written(d->all->store);
	d->work.data = d;
	d->running = true;
	if (uv_queue_work(d->all->loop, &d->work, durable_work, durable_done) < 0)
		abort(); /* out of memory: no callback could report it */
}

bool hub_sandboxes_sync(struct hub_sandboxes *all, struct hub_sandboxes_sync *w)
{
	struct durable *d = &all->durable;

	if (!all->store || !store_unsynced(all->store))
		return false;
	d->all = all;
	w->next = d->waiting;
	d->waiting = w;
	if (!d->running)
		durable_begin(d);
	return true;
}
