/*
 * Which jobs are remembered. Running jobs are in the list of their sandbox. Ended ones are also in
 * a queue of the hub, one for the foreground and one for the background, since output that was told
 * as it came has no file and stays in memory: the bounds below times two blocks are the most of
 * that. Beyond a bound, the job that ended first is forgotten.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { TICK_MS = 60 * 1000, TAILS_MAX = 8, TAILS_ALL_MAX = 256 };

static const struct {
	size_t of_sandbox, of_all;
} most[2] = {
	[false] = { TAILS_MAX, TAILS_ALL_MAX },
	[true] = { JOBS_ENDED_MAX, JOBS_ENDED_ALL_MAX },
};

/* ---- lists --------------------------------------------------------------------------------- */

void jobs_list(struct job *j)
{
	j->older = j->hs->jobs.newest;
	j->hs->jobs.newest = j;
	j->listed = true;
}

static void join_queue(struct job_queue *q, struct job *j)
{
	j->queued = true;
	j->ended_before = q->last;
	if (q->last)
		q->last->ended_after = j;
	else
		q->first = j;
	q->last = j;
	q->n++;
}

static void leave_queue(struct job_queue *q, struct job *j)
{
	if (j->ended_before)
		j->ended_before->ended_after = j->ended_after;
	else
		q->first = j->ended_after;
	if (j->ended_after)
		j->ended_after->ended_before = j->ended_before;
	else
		q->last = j->ended_before;
	j->ended_before = j->ended_after = NULL;
	j->queued = false;
	q->n--;
}

/* Removes it from all lists and drops the lists' reference. */
static void jobs_unlist(struct job *j)
{
	struct job **at = &j->hs->jobs.newest;

	while (*at != j)
		at = &(*at)->older;
	*at = j->older;
	j->listed = false;
	if (j->queued) {
		leave_queue(&j->all->jobs.ended[j->background], j);
		j->hs->jobs.ended[j->background]--;
	}
	if (!j->exec)
		j->hs = NULL;
	job_drop_row(j);
	job_unref(j);
}

void job_forget(struct job *j)
{
	if (j->exec)
		exec_kill(j->exec);
	if (j->listed)
		jobs_unlist(j);
}

void jobs_forget_of(struct hub_sandbox *l)
{
	while (l->jobs.newest)
		jobs_unlist(l->jobs.newest);
}

/* ---- for a while --------------------------------------------------------------------------- */

/* The job that ended first; there is one. */
static struct job *first_ended(const struct hub_sandbox *l, bool background)
{
	struct job *first = NULL;

	for (struct job *j = l->jobs.newest; j; j = j->older) {
		if (j->queued && j->background == background &&
		    (!first || j->ended_at <= first->ended_at))
			first = j;
	}
	return first;
}

static void on_tick(uv_timer_t *t)
{
	struct jobs *all = t->data;
	uint64_t now = clock_ms();
	bool some = false;

	for (size_t kind = 0; kind < ARRAY_LEN(all->ended); kind++) {
		struct job_queue *q = &all->ended[kind];

		while (q->first && now - q->first->ended_at >= JOB_KEEP_MS)
			jobs_unlist(q->first);
		some = some || q->first;
	}
	if (!some)
		uv_timer_stop(t);
}

void jobs_remember(struct job *j)
{
	struct jobs *all = &j->all->jobs;

	join_queue(&all->ended[j->background], j);
	j->hs->jobs.ended[j->background]++;
	if (!uv_is_active((uv_handle_t *)all->timer))
		uv_timer_start(all->timer, on_tick, TICK_MS, TICK_MS);
}

void jobs_trim(struct hub_sandbox *l)
{
	struct jobs *all = &l->all->jobs;

	for (size_t kind = 0; kind < ARRAY_LEN(most); kind++) {
		while (l->jobs.ended[kind] > most[kind].of_sandbox)
			jobs_unlist(first_ended(l, kind));
		while (all->ended[kind].n > most[kind].of_all)
			jobs_unlist(all->ended[kind].first);
	}
}

/* To make room for a running job's output, the job that ended first drops its output. */
static void make_room(void *arg)
{
	struct hub_sandboxes *all = arg;

	for (size_t kind = 0; kind < ARRAY_LEN(all->jobs.ended); kind++) {
		if (!all->jobs.ended[kind].first)
			continue;
		jobs_unlist(all->jobs.ended[kind].first);
		return;
	}
}

/* ---- all of a hub -------------------------------------------------------------------------- */

static void on_quiet(void *arg)
{
	hub_sandboxes_try_close(arg);
}

int jobs_init(struct hub_sandboxes *all, uv_loop_t *loop, struct err *e)
{
	struct jobs *jobs = &all->jobs;

	jobs->spools = (struct spool_set){
		.loop = loop,
		.disk = { .max = JOBS_DISK_MAX },
		.make_room = make_room,
		.on_quiet = on_quiet,
		.arg = all,
	};
	jobs->timer = calloc(1, sizeof(*jobs->timer));
	if (!jobs->timer)
		return err_set(e, ERR_LIMIT, "out of memory");
	uv_timer_init(loop, jobs->timer);
	jobs->timer->data = jobs;
	return 0;
}

int hub_sandboxes_set_folder(struct hub_sandboxes *all, const char *folder, struct err *e)
{
	all->jobs.folder = strdup(folder);
	all->jobs.spools.folder = all->jobs.folder;
	if (!all->jobs.folder)
		return err_set(e, ERR_LIMIT, "out of memory");
	return hub_sandboxes_open_bound(all, e);
}

static void close_timer(uv_handle_t *h)
{
	free(h);
}

void jobs_fini(struct hub_sandboxes *all)
{
	for (struct hub_sandbox *l = all->oldest; l; l = l->newer) {
		while (l->jobs.newest) {
			struct job *j = l->jobs.newest;

			l->jobs.newest = j->older;
			job_unref(j);
		}
	}
	if (all->jobs.timer)
		uv_close((uv_handle_t *)all->jobs.timer, close_timer);
	free(all->jobs.folder);
}
