/*
 * Removes what no revision needs: rows of workspaces that are gone, then objects. A run is many
 * short pieces of work in the queue of what writes, so others write between them. It marks the
 * objects of all revisions that there are when it begins. What is put meanwhile, new or not, is
 * marked as well (struct objects.marked), and what a new revision takes over unchanged is of an
 * earlier one; so what is unmarked in the end is needed by nobody. If an object that it must read
 * is damaged, it removes nothing. A kill at any moment leaves what the next run removes.
 */
#include <stdlib.h>

#include "base/log.h"
#include "hub/workspace/internal.h"
#include "hub/workspace/mark.h"

enum {
	GC_ROWS = 1000, /* at once, on the loop */
	GC_STEP_MS = 50, /* in the pool, before others have their turn */
	GC_DELAY_MS = 2000, /* so that one run is for many deletions */
	GC_PAUSE_MS = 10000, /* between two runs of its own accord */
};

struct gc_waiter {
	struct gc_waiter *next;
	workspaces_gc_cb on_done;
	void *arg;
};

struct gc {
	struct work work;
	enum { GC_FORGET, GC_MARK, GC_SWEEP, GC_DONE } phase;
	struct gc_waiter *waiters;
	struct marker marker;
	struct object_id roots[GC_ROWS];
	size_t n_roots, root; /* of this page; the next one */
	char after[REVISION_ID + 1]; /* the last row of it */
	bool last_page;
	unsigned folder;
	struct workspaces_gc result;
};

/* ---- rows, on the loop ----------------------------------------------------------------------- */

struct gc_page {
	struct gc *gc;
	char gone[GC_ROWS][REVISION_ID + 1];
	size_t n, n_gone;
};

static int gc_row(void *arg, const struct store_revision *row, struct err *e)
{
	struct gc_page *p = arg;
	struct gc *gc = p->gc;
	struct object_id *root = &gc->roots[gc->n_roots];

	p->n++;
	snprintf(gc->after, sizeof(gc->after), "%.*s", STR_ARG(row->id));
	if (!row->number)
		snprintf(p->gone[p->n_gone++], REVISION_ID + 1, "%.*s", STR_ARG(row->id));
	else if (blake2b_of_hex(row->tree.p, row->tree.n, root->b) < 0)
		return err_set(e, ERR_WORKSPACE, "a revision in the registry is damaged");
	else
		gc->n_roots++;
	return 0;
}

static int gc_read_page(struct gc *gc, struct gc_page *p, struct err *e)
{
	struct store *s = gc->work.all->store;

	*p = (struct gc_page){ .gc = gc };
	gc->root = gc->n_roots = 0;
	if (store_revisions_after(s, str_of(gc->after), GC_ROWS, gc_row, p, e) < 0)
		return -1;
	gc->last_page = p->n < GC_ROWS;
	for (size_t i = 0; i < p->n_gone; i++) {
		if (store_revision_drop(s, str_of(p->gone[i]), e) < 0)
			return -1;
	}
	gc->result.revisions += p->n_gone;
	return 0;
}

static int gc_read_rows(struct gc *gc, struct err *e)
{
	struct gc_page *page;
	int more;

	if (gc->phase == GC_FORGET) {
		more = store_history_forget(gc->work.all->store, GC_ROWS, e);
		gc->phase = more == 0 ? GC_MARK : GC_FORGET;
		return more < 0 ? -1 : 0;
	}
	page = malloc(sizeof(*page));
	if (!page)
		return err_set(e, ERR_LIMIT, "out of memory");
	more = gc_read_page(gc, page, e);
	free(page);
	return more;
}

static bool gc_wants_rows(const struct gc *gc)
{
	bool all_marked = gc->root == gc->n_roots && !gc->marker.walk.depth;

	return gc->phase == GC_FORGET || (gc->phase == GC_MARK && all_marked && !gc->last_page);
}

/* As one transaction, unless the lifecycle has one. */
static void gc_begin(struct work *work)
{
	struct gc *gc = (struct gc *)work;
	struct store *s = work->all->store;
	struct err *e = &work->err;
	bool own = !store_is_open(s);

	work->all->objects.marked = &gc->marker.ids;
	if (e->code || !gc_wants_rows(gc) || (own && store_begin(s, e) < 0))
		return;
	if (gc_read_rows(gc, e) < 0 && own)
		store_rollback(s);
	else if (own && store_commit(s, e) < 0)
		return; /* the error tells */
}

/* ---- objects, in the pool -------------------------------------------------------------------- */

/* 1: there is nothing to mark until the next page of rows. */
static int gc_mark(struct gc *gc, struct err *e)
{
	int result = marker_step(&gc->marker, e);

	if (result <= 0)
		return result;
	return gc->root == gc->n_roots ? 1 : marker_tree(&gc->marker, &gc->roots[gc->root++], e);
}

static int gc_sweep_one(void *arg, const struct object_id *id, uint64_t bytes, struct err *e)
{
	struct gc *gc = arg;

	if (id_set_has(&gc->marker.ids, id)) {
		gc->result.kept++;
		gc->result.kept_bytes += bytes;
		return 0;
	}
	gc->result.removed++;
	gc->result.removed_bytes += bytes;
	return objects_remove(&gc->work.all->objects, id, e);
}

static int gc_sweep(struct gc *gc, struct err *e)
{
	if (objects_each(&gc->work.all->objects, gc->folder, gc_sweep_one, gc, e) < 0)
		return -1;
	if (++gc->folder == OBJECT_FOLDERS)
		gc->phase = GC_DONE;
	return 0;
}

/* 1: enough for now. */
static int gc_step(struct gc *gc, struct err *e)
{
	int result = 0;

	if (gc->phase == GC_FORGET)
		return 1;
	if (gc->phase == GC_SWEEP)
		return gc_sweep(gc, e);
	result = gc_mark(gc, e);
	if (result <= 0 || !gc->last_page)
		return result;
	/* what is gone must not be there again after a power cut, without its objects */
	gc->phase = GC_SWEEP;
	return store_sync(gc->work.all->store, e);
}

static void gc_work(struct work *work)
{
	struct gc *gc = (struct gc *)work;
	uint64_t until = clock_ms() + GC_STEP_MS;

	while (!work->err.code && gc->phase != GC_DONE && clock_ms() < until) {
		if (gc_step(gc, &work->err) == 1)
			return;
	}
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void gc_end(struct gc *gc)
{
	struct workspaces *all = gc->work.all;
	const struct err *err = gc->work.err.code ? &gc->work.err : NULL;

	all->objects.marked = NULL;
	all->gc = NULL;
	all->gc_ended_ms = clock_ms();
	if (err && err->code != ERR_CANCELLED)
		log_warn("unneeded objects of workspaces were not all removed: %s", err->msg);
	while (gc->waiters) {
		struct gc_waiter *w = gc->waiters;

		gc->waiters = w->next;
		w->on_done(w->arg, err ? NULL : &gc->result, err);
		free(w);
	}
	if (all->gc_waiters)
		gc_start(all);
	work_end(&gc->work);
	marker_fini(&gc->marker);
	free(gc);
}

static void gc_done(struct work *work)
{
	struct gc *gc = (struct gc *)work;

	if (!work->err.code && workspaces_check(work->all, &work->err) < 0)
		gc->phase = GC_DONE;
	if (work->err.code || gc->phase == GC_DONE)
		gc_end(gc);
	else
		work_yield(work);
}

void gc_start(struct workspaces *all)
{
	struct gc *gc;

	if (all->gc)
		return;
	gc = calloc(1, sizeof(*gc));
	if (!gc)
		abort(); /* out of memory: no callback could report it */
	gc->work = (struct work){ .all = all, .begin = gc_begin, .work = gc_work, .done = gc_done };
	gc->waiters = all->gc_waiters;
	all->gc_waiters = NULL;
	all->gc = gc;
	all->leftovers = false;
	marker_init(&gc->marker, &all->objects);
	if (workspaces_check(all, &gc->work.err) < 0)
		gc->phase = GC_DONE; /* for those who wait */
	work_start(&all->writes, &gc->work);
}

/* One that is under way may have passed what this is about, so it waits for the next one. */
void workspaces_gc_start(struct workspaces *all, workspaces_gc_cb on_done, void *arg)
{
	struct gc_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	*w = (struct gc_waiter){ all->gc_waiters, on_done, arg };
	all->gc_waiters = w;
	gc_start(all);
}

static void gc_on_timer(uv_timer_t *t)
{
	gc_start(t->data);
}

void gc_later(struct workspaces *all)
{
	uint64_t since = clock_ms() - all->gc_ended_ms;
	uint64_t delay = all->gc_ended_ms && since < GC_PAUSE_MS ? GC_PAUSE_MS - since : 0;

	if (all->stopping)
		return;
	if (!all->timed && uv_timer_init(all->loop, &all->timer) < 0)
		abort();
	all->timed = true;
	all->timer.data = all;
	if (!uv_is_active((uv_handle_t *)&all->timer) &&
	    uv_timer_start(&all->timer, gc_on_timer, delay > GC_DELAY_MS ? delay : GC_DELAY_MS, 0) <
		    0)
		abort();
}
