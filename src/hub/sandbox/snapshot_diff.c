/*
 * What a sandbox has changed. The warden writes names into a pipe, and a bounded number is read;
 * then the warden stops. They are sorted in the work pool, since there can be very many. One walk
 * per sandbox runs at a time. Requests that arrive meanwhile share the next walk, since the running
 * one may have missed changes made before the request.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "hub/sandbox/internal.h"
#include "loop/reader.h"

enum { DIFF_BYTES_MAX = 8 << 20, RECORD_MIN = 3 };

const char *const snapshot_change_names[DIFFS] = {
	[DIFF_ADDED] = "added", [DIFF_CHANGED] = "changed", [DIFF_REMOVED] = "removed"
};

struct client {
	struct client *next;
	snapshot_diff_cb on_done;
	void *arg;
};

struct diffing {
	struct diffing *next; /* begins behind it; at most one */
	struct hub_sandbox *hs; /* busy until the end */
	struct client *clients, **last; /* in the order in which they came */
	struct loop_reader *reader; /* NULL: it has ended */
	struct buf names;
	bool writing; /* the warden */
	bool truncated;
	struct err err;
	uv_work_t work;
	struct snapshot_change *changes;
	size_t n;
};

/* Reads a record at *at; false if the rest is invalid. */
static bool snapshot_diff_take(struct str *left, struct snapshot_change *ret)
{
	const char *end = left->n >= RECORD_MIN ? memchr(left->p + 2, 0, left->n - 2) : NULL;

	if (!end || (unsigned char)left->p[0] >= DIFFS || (unsigned char)left->p[1] > FILE_OTHER)
		return false;
	ret->change = (enum diff)left->p[0];
	ret->type = (enum file_type)left->p[1];
	ret->path = (struct str){ left->p + 2, (size_t)(end - left->p - 2) };
	left->n -= (size_t)(end + 1 - left->p);
	left->p = end + 1;
	return true;
}

static int by_path(const void *a, const void *b)
{
	const struct snapshot_change *x = a, *y = b;

	return str_cmp(x->path, y->path);
}

static void work_sort(uv_work_t *work)
{
	struct diffing *d = work->data;
	struct str left = buf_str(&d->names);

	while (d->n < SNAPSHOT_CHANGES_MAX && snapshot_diff_take(&left, &d->changes[d->n]))
		d->n++;
	d->truncated |= left.n > 0;
	qsort(d->changes, d->n, sizeof(*d->changes), by_path);
}

static void snapshot_diff_begin(struct diffing *d);

static void snapshot_diff_end(struct diffing *d)
{
	const struct err *err;

	d->hs->diffs = d->next;
	if (d->next)
		snapshot_diff_begin(d->next);
	err = d->err.code && !d->truncated ? &d->err : NULL;
	while (d->clients) {
		struct client *a = d->clients;

		d->clients = a->next;
		a->on_done(a->arg, d->changes, d->n, d->truncated, err);
		free(a);
	}
	hub_sandbox_busy(d->hs, -1);
	buf_fini(&d->names);
	free(d->changes);
	free(d);
}

static void on_sorted(uv_work_t *work, int status)
{
	struct diffing *d = work->data;
	struct hub_sandboxes *all = d->hs->all;

	snapshot_diff_end(d);
	all->later--;
	hub_sandboxes_try_close(all);
}

static void sort(struct diffing *d)
{
	d->changes = calloc(SNAPSHOT_CHANGES_MAX, sizeof(*d->changes));
	d->work.data = d;
	d->hs->all->later++;
	if (!d->changes || uv_queue_work(d->hs->all->loop, &d->work, work_sort, on_sorted) < 0)
		abort(); /* out of memory: no callback could report it */
}

static void snapshot_diff_settle(struct diffing *d)
{
	if (d->writing || d->reader)
		return;
	if (d->err.code && !d->truncated)
		snapshot_diff_end(d);
	else
		sort(d);
}

static void on_closed(void *owner)
{
	struct diffing *d = owner;

	d->reader = NULL;
	snapshot_diff_settle(d);
}

static void on_bytes(void *owner, struct str bytes)
{
	struct diffing *d = owner;
	struct err e = ERR_INIT;

	d->truncated = buf_add(&d->names, bytes.p, bytes.n, &e) < 0;
	if (d->truncated)
		loop_reader_close(d->reader, on_closed);
	else
		loop_reader_next(d->reader);
}

static void snapshot_diff_on_end(void *owner, const struct err *e)
{
	struct diffing *d = owner;

	if (e)
		d->err = *e;
	loop_reader_close(d->reader, on_closed);
}

static void on_written(void *arg, struct sandbox *sb, const struct err *err)
{
	struct diffing *d = arg;

	d->writing = false;
	if (err && !d->err.code)
		d->err = *err;
	snapshot_diff_settle(d);
}

static void on_refused(void *arg)
{
	snapshot_diff_settle(arg);
}

static int start(struct diffing *d, struct err *e)
{
	static const struct loop_reader_events events = { on_bytes, snapshot_diff_on_end };
	struct hub_sandbox *l = d->hs;
	int ends[2];

	if (l->all->stopping)
		return err_set(e, ERR_CANCELLED, "Holt is ending");
	if ((l->state != SANDBOX_PAUSED || l->ending || l->stopping) &&
	    hub_sandbox_check_runs(l, e) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	d->reader = loop_reader_new(l->all->loop, ends[0], &events, d, e);
	if (!d->reader) {
		close(ends[1]);
		return -1;
	}
	d->writing = true;
	sandbox_write_start(l->box, SANDBOX_WRITE_NAMES, ends[1], on_written, d);
	loop_reader_next(d->reader);
	return 0;
}

static void snapshot_diff_begin(struct diffing *d)
{
	if (start(d, &d->err) < 0)
		hub_sandboxes_later(d->hs->all, on_refused, d);
}

static struct diffing *diffing_new(struct hub_sandbox *l)
{
	struct diffing *d = calloc(1, sizeof(*d));

	if (!d)
		abort(); /* see sort() */
	d->hs = l;
	d->last = &d->clients;
	d->names = BUF_INIT(DIFF_BYTES_MAX);
	hub_sandbox_busy(l, 1);
	return d;
}

void snapshot_diff_start(struct hub_sandbox *l, snapshot_diff_cb on_done, void *arg)
{
	struct diffing **at = l->diffs ? &l->diffs->next : &l->diffs;
	struct client *a = calloc(1, sizeof(*a));

	if (!a)
		abort(); /* see sort() */
	*a = (struct client){ .on_done = on_done, .arg = arg };
	if (!*at) {
		*at = diffing_new(l);
		if (*at == l->diffs)
			snapshot_diff_begin(*at);
	}
	*(*at)->last = a;
	(*at)->last = &a->next;
}
