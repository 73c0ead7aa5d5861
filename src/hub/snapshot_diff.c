/* What a sandbox has changed: names that the warden writes into a pipe, read within bounds. What is over them
 * is not read, and the warden stops. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/buf.h"
#include "hub/snapshots_impl.h"
#include "loop/reader.h"

enum { DIFF_BYTES_MAX = 8 << 20, RECORD_MIN = 3 };

const char *const snapshot_change_names[DIFFS] = {
	[DIFF_ADDED] = "added", [DIFF_CHANGED] = "changed", [DIFF_REMOVED] = "removed"
};

struct diffing {
	struct life *life; /* busy until the end */
	struct loop_reader *reader; /* NULL: it has ended */
	struct buf names;
	bool writing; /* the warden */
	bool truncated;
	struct err err;
	snapshot_diff_cb on_done;
	void *arg;
};

/* One record at *at; false: what is left is none. */
static bool take(struct str *left, struct snapshot_change *ret)
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

static void answer(struct diffing *d)
{
	struct snapshot_change *all = calloc(SNAPSHOT_CHANGES_MAX, sizeof(*all));
	struct str left = buf_str(&d->names);
	size_t n = 0;

	if (!all)
		abort(); /* without memory for an answer no promise can be kept */
	while (n < SNAPSHOT_CHANGES_MAX && take(&left, &all[n]))
		n++;
	qsort(all, n, sizeof(*all), by_path);
	d->on_done(d->arg, all, n, d->truncated || left.n > 0, NULL);
	free(all);
}

static void settle(struct diffing *d)
{
	if (d->writing || d->reader)
		return;
	if (d->err.code && !d->truncated)
		d->on_done(d->arg, NULL, 0, false, &d->err);
	else
		answer(d);
	life_busy(d->life, -1);
	buf_fini(&d->names);
	free(d);
}

static void on_closed(void *owner)
{
	struct diffing *d = owner;

	d->reader = NULL;
	settle(d);
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

static void on_end(void *owner, const struct err *e)
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
	settle(d);
}

static void on_refused(void *arg)
{
	settle(arg);
}

static int start(struct diffing *d, struct err *e)
{
	static const struct loop_reader_events events = { on_bytes, on_end };
	struct life *l = d->life;
	int ends[2];

	if ((l->state != LIFE_PAUSED || l->ending || l->stopping) && life_check_runs(l, e) < 0)
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

void snapshot_diff_start(struct life *l, snapshot_diff_cb on_done, void *arg)
{
	struct diffing *d = calloc(1, sizeof(*d));

	if (!d)
		abort(); /* see answer() */
	*d = (struct diffing){ .life = l, .on_done = on_done, .arg = arg };
	d->names = BUF_INIT(DIFF_BYTES_MAX);
	life_busy(l, 1);
	if (start(d, &d->err) < 0)
		lives_later(l->all, on_refused, d);
}
