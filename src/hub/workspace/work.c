/* Queues of work for the pool. */
#include <stdlib.h>

#include "hub/workspace/internal.h"

static void in_pool(uv_work_t *pool)
{
	struct work_queue *q = pool->data;

	q->first->work(q->first);
}

static void on_worked(uv_work_t *pool, int status)
{
	struct work_queue *q = pool->data;

	(void)status;
	q->first->done(q->first);
}

static void queue_run(struct work_queue *q)
{
	if (uv_queue_work(q->all->loop, &q->pool, in_pool, on_worked) < 0)
		abort();
}

static void queue_next(struct work_queue *q)
{
	if (!q->first)
		return;
	if (q->first->begin)
		q->first->begin(q->first);
	queue_run(q);
}

void work_queue_init(struct work_queue *q, struct workspaces *all)
{
	*q = (struct work_queue){ .all = all, .pool.data = q };
}

void work_start(struct work_queue *q, struct work *w)
{
	bool idle = !q->first;

	w->queue = q;
	w->all = q->all;
	w->next = NULL;
	if (idle)
		q->first = w;
	else
		q->last->next = w;
	q->last = w;
	if (idle)
		queue_next(q);
}

void work_again(struct work *w, void (*work)(struct work *w), void (*done)(struct work *w))
{
	w->work = work;
	w->done = done;
	queue_run(w->queue);
}

void work_nothing(struct work *w)
{
	(void)w;
}

static void queue_pop(struct work_queue *q)
{
	q->first = q->first->next;
	if (!q->first)
		q->last = NULL;
}

void work_yield(struct work *w)
{
	struct work_queue *q = w->queue;

	queue_pop(q);
	w->next = NULL;
	if (q->first)
		q->last->next = w;
	else
		q->first = w;
	q->last = w;
	queue_next(q);
}

void work_end(struct work *w)
{
	struct work_queue *q = w->queue;

	queue_pop(q);
	queue_next(q);
	workspaces_check_stopped(q->all);
}
