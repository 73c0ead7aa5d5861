/* Saves a sandbox's files as an archive: the warden writes the changes into a pipe; holt-pack
 * reads it and writes the file. Both must succeed before the snapshot is listed. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hub/sandbox/internal.h"

struct taking {
	struct hub_sandbox *hs; /* busy until the end */
	struct snapshot *s;
	bool writing, packing; /* under way */
	bool again; /* the archive names a wrong image */
	struct err wrote, packed; /* how that ended */
	snapshot_cb on_done;
	void *arg;
};

static void snapshot_take_end(struct taking *t, const struct snapshot *s, const struct err *err)
{
	struct hub_sandbox *l = t->hs;

	if (s && !s->of)
		hub_sandbox_tell(l, "snapshot", str_of(s->id));
	t->on_done(t->arg, s, err);
	hub_sandbox_busy(l, -1);
	free(t);
}

static void on_published(void *arg, const struct snapshot *s, const struct err *err)
{
	snapshot_take_end(arg, s, err);
}

static int start(struct taking *t, struct err *e);

static void snapshot_take_fail(struct taking *t, const struct err *err)
{
	snapshot_drop_file(t->s);
	snapshot_free(t->s);
	snapshot_take_end(t, NULL, err);
}

static void take_again(struct taking *t)
{
	t->again = false;
	if (start(t, &t->wrote) < 0)
		snapshot_take_fail(t, &t->wrote);
}

/* If one ends early, so does the other; the one that gives the reason counts. */
static void snapshot_take_settle(struct taking *t)
{
	if (t->writing || t->packing)
		return;
	if (t->packed.code && (!t->wrote.code || t->wrote.code == ERR_CANCELLED))
		snapshot_take_fail(t, &t->packed);
	else if (t->wrote.code)
		snapshot_take_fail(t, &t->wrote);
	else if (t->again)
		take_again(t);
	else
		snapshot_publish(t->s, t->hs->seq, STR_NONE, on_published, t);
}

static void on_written(void *arg, struct sandbox *sb, const struct err *err)
{
	struct taking *t = arg;

	t->writing = false;
	if (err)
		t->wrote = *err;
	else
		t->again = strcmp(t->s->base, sandbox_base(sb)) != 0;
	if (t->again)
		snprintf(t->s->base, sizeof(t->s->base), "%s", sandbox_base(sb));
	snapshot_take_settle(t);
}

static void on_packed(void *arg, const struct pack_answer *a, const struct err *err)
{
	struct taking *t = arg;

	t->packing = false;
	if (err) {
		t->packed = *err;
	} else {
		t->s->bytes = a->bytes;
		t->s->unpacked = a->unpacked;
		snprintf(t->s->digest, sizeof(t->s->digest), "%s", a->digest);
	}
	snapshot_take_settle(t);
}

static char *meta_of(const struct snapshot *s, struct err *e)
{
	const struct snapshot_meta m = {
		.version = 1,
		.template = str_of(s->template),
		.base = str_of(s->base),
		.memory = s->limits.memory,
		.disk = s->limits.disk,
		.pids = s->limits.pids,
		.cpu_milli = s->limits.cpu_milli,
		.has_open_files = s->limits.files > 0,
		.open_files = s->limits.files,
	};

	return field_encode_text(&snapshot_meta_table, &m, PACK_META_MAX, e);
}

static int start(struct taking *t, struct err *e)
{
	autoclose int file = snapshot_create_file(t->s, e);
	autofree char *meta = file < 0 ? NULL : meta_of(t->s, e);
	struct pack_spec spec = { .mode = "pack", .with = meta, .out = file };
	int ends[2];

	if (!meta)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	spec.in = ends[0];
	spec.max = snapshot_max(&t->s->limits);
	t->packing = pack_start(t->hs->all, &spec, on_packed, t, e) != NULL;
	close(ends[0]);
	if (!t->packing) {
		close(ends[1]);
		return -1;
	}
	t->writing = true;
	sandbox_write_start(t->hs->box, SANDBOX_WRITE_TAR, ends[1], on_written, t);
	return 0;
}

static void on_refused(void *arg)
{
	struct taking *t = arg;

	if (t->s)
		snapshot_take_fail(t, &t->wrote);
	else
		snapshot_take_end(t, NULL, &t->wrote);
}

void snapshot_take(struct hub_sandbox *l, const struct snapshot_spec *spec, bool kept,
		   snapshot_cb on_done, void *arg)
{
	struct taking *t = calloc(1, sizeof(*t));

	if (!t)
		abort(); /* out of memory: no callback could report it */
	t->hs = l;
	hub_sandbox_busy(l, 1);
	t->on_done = on_done;
	t->arg = arg;
	t->s = snapshot_new(l->all, spec, &t->wrote);
	if (t->s) {
		struct err ignored = ERR_INIT;

		/* As far as known now. The image's name may have changed its meaning since the
		 * sandbox was made. The warden reports the digest at the end; if it differs, the
		 * archive is written again. */
		t->s->of = kept ? l->seq : 0;
		t->s->limits = l->limits;
		snprintf(t->s->source, sizeof(t->s->source), "%s", l->id);
		snprintf(t->s->owner, sizeof(t->s->owner), "%s", l->owner);
		snprintf(t->s->template, sizeof(t->s->template), "%s", l->template);
		if (box_base(l->all->box, str_of(t->s->template), t->s->base, &ignored) < 0)
			t->s->base[0] = '\0';
	}
	if (!t->s || start(t, &t->wrote) < 0)
		hub_sandboxes_later(l->all, on_refused, t);
}

/* ---- for clients ----------------------------------------------------------------------------- */

struct refusal {
	snapshot_cb on_done;
	void *arg;
	struct err err;
};

static void on_not_taken(void *arg)
{
	struct refusal *r = arg;

	r->on_done(r->arg, NULL, &r->err);
	free(r);
}

void snapshot_take_start(struct hub_sandbox *l, const struct snapshot_spec *spec,
			 snapshot_cb on_done, void *arg)
{
	struct err e = ERR_INIT;
	struct refusal *r;

	if ((l->state == SANDBOX_PAUSED && !l->ending && !l->stopping) ||
	    hub_sandbox_check_runs(l, &e) == 0) {
		snapshot_take(l, spec, false, on_done, arg);
		return;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		abort();
	*r = (struct refusal){ on_done, arg, e };
	hub_sandboxes_later(l->all, on_not_taken, r);
}
