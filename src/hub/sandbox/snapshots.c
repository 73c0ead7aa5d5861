#include "hub/sandbox/snapshots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "hub/sandbox/internal.h"

enum { REAP_MS = 60 * 1000, REAP_AGAIN_MS = 1000, FILE_MAX = SANDBOX_ID_MAX + 16 };

#define SUFFIX ".tar.zst"
#define LOST "lost"

/* ---- what an archive says of itself ---------------------------------------------------------- */

static const struct field meta_fields[] = {
	FIELD(struct snapshot_meta, version, .flags = FIELD_REQUIRED, .min = 1, .max = 1,
	      .doc = "Of this form."),
	FIELD(struct snapshot_meta, template, .flags = FIELD_REQUIRED, .min = 1, .max = 255,
	      .doc = "What the sandbox was made from."),
	FIELD(struct snapshot_meta, base, .flags = FIELD_REQUIRED, .max = HASH_HEX,
	      .doc = "The image's digest."),
	FIELD(struct snapshot_meta, memory, .flags = FIELD_REQUIRED, .doc = "Bytes."),
	FIELD(struct snapshot_meta, disk, .flags = FIELD_REQUIRED, .doc = "Bytes of it for files."),
	FIELD(struct snapshot_meta, pids, .flags = FIELD_REQUIRED, .doc = "Processes."),
	FIELD(struct snapshot_meta, cpu_milli, .flags = FIELD_REQUIRED,
	      .doc = "Thousandths of a processor; 0: all."),
	FIELD(struct snapshot_meta, open_files,
	      .has = FIELD_HAS(struct snapshot_meta, has_open_files),
	      .doc = "Of each program; absent: what the host gives."),
};
const struct field_table snapshot_meta_table = FIELD_TABLE(struct snapshot_meta, meta_fields);

/* ---- files ----------------------------------------------------------------------------------- */

static void file_name(char ret[FILE_MAX], const char *id)
{
	snprintf(ret, FILE_MAX, "%.*s" SUFFIX, SANDBOX_ID_MAX, id);
}

int snapshot_create_file(const struct snapshot *s, struct err *e)
{
	char name[FILE_MAX];
	int fd;

	file_name(name, s->id);
	fd = openat(s->all->snapshots->new, name,
		    O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(e, errno, "make the snapshot's file") : fd;
}

void snapshot_drop_file(const struct snapshot *s)
{
	char name[FILE_MAX];

	file_name(name, s->id);
	unlinkat(s->all->snapshots->new, name, 0);
}

int snapshot_open(const struct snapshot *s, struct err *e)
{
	char name[FILE_MAX];
	struct stat st;
	autoclose int fd = -1;

	file_name(name, s->id);
	fd = openat(s->all->snapshots->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_DATA_MISSING,
			       "snapshots/%s is not in the data folder now: mount its disk, or "
			       "restore it from a backup",
			       name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open snapshots/%s of the data folder", name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != s->bytes)
		return err_set(e, ERR_DATA_MISSING,
			       "snapshots/%s in the data folder is another file than was written: "
			       "restore it from a backup",
			       name);
	return take_fd(&fd);
}

static int open_folder(int at, const char *path, struct err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (mkdirat(at, path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make the folder of snapshots");
	fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the folder of snapshots");
	if (st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(e, ERR_DENIED,
			       "the folder of snapshots must be yours, and nobody else may read or "
			       "write it (chmod 700)");
	return take_fd(&fd);
}

/* ---- the table ------------------------------------------------------------------------------- */

int snapshots_check(const struct hub_sandboxes *all, struct err *e)
{
	if (!all->snapshots)
		return err_set(e, ERR_UNSUPPORTED, "only a hub with a data folder keeps snapshots");
	if (all->stopping || !all->box)
		return err_set(e, ERR_CANCELLED, "Holt is shutting down");
	if (all->snapshots->n + all->snapshots->taking >= SNAPSHOTS_MAX)
		return err_set(e, ERR_LIMIT, "there are %d snapshots", SNAPSHOTS_MAX);
	return 0;
}

static void on_reap(uv_timer_t *t);

/* The reaper comes when the next one is due; the clock may be set, so it looks again before
 * long. What could not go is tried again. */
static void reap_arm(struct hub_sandboxes *all, int64_t least)
{
	int64_t now = clock_unix_ms(), wait = REAP_MS;

	for (const struct snapshot *s = all->snapshots->oldest; s; s = s->newer) {
		if (s->expires_ms && s->expires_ms - now < wait)
			wait = s->expires_ms - now;
	}
	uv_update_time(all->loop);
	uv_timer_start(all->snapshots->reaper, on_reap, (uint64_t)(wait > least ? wait : least), 0);
}

static struct snapshot *snapshots_get(const struct hub_sandboxes *all, struct str id)
{
	struct snapshot *s = all->snapshots ? all->snapshots->oldest : NULL;

	while (s && !str_is(id, s->id))
		s = s->newer;
	return s;
}

static void link_snapshot(struct snapshot *s)
{
	struct snapshots *set = s->all->snapshots;

	s->older = set->newest;
	if (set->newest)
		set->newest->newer = s;
	else
		set->oldest = s;
	set->newest = s;
	set->n++;
}

static void unlink_snapshot(struct snapshot *s)
{
	struct snapshots *set = s->all->snapshots;

	if (s->older)
		s->older->newer = s->newer;
	else
		set->oldest = s->newer;
	if (s->newer)
		s->newer->older = s->older;
	else
		set->newest = s->older;
	set->n--;
}

struct snapshot *snapshot_new(struct hub_sandboxes *all, const struct snapshot_spec *spec,
			      struct err *e)
{
	AUTO(snapshot_free) struct snapshot *s = NULL;
	char made[ID_MAX];
	struct str id = spec->id;

	if (!id.p) {
		id_make(made, "snap");
		id = str_of(made);
	}
	if (snapshots_check(all, e) < 0 || sandbox_id_check(id, e) < 0)
		return NULL;
	if (spec->name.n > SNAPSHOT_NAME_MAX || spec->ttl_ms > SANDBOX_TIMEOUT_MAX_MS) {
		err_set(e, ERR_INVALID, "a snapshot: its name or its time is too long");
		return NULL;
	}
	if (snapshots_get(all, id)) {
		err_set(e, ERR_NAME_TAKEN, "there is a snapshot %.*s already", STR_ARG(id));
		return NULL;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	s->all = all;
	all->snapshots->taking++;
	s->created_ms = clock_unix_ms();
	s->expires_ms = spec->ttl_ms ? s->created_ms + (int64_t)spec->ttl_ms : 0;
	snprintf(s->id, sizeof(s->id), "%.*s", STR_ARG(id));
	snprintf(s->owner, sizeof(s->owner), "%.*s", STR_ARG(spec->owner));
	snprintf(s->name, sizeof(s->name), "%.*s", (int)spec->name.n,
		 spec->name.p ? spec->name.p : "");
	return take_ptr(s);
}

void snapshot_free(struct snapshot *s)
{
	if (!s)
		return;
	s->all->snapshots->taking--;
	free(s);
}

/* ---- listing ------------------------------------------------------------------------------- */

static struct store_snapshot row_of(const struct snapshot *s)
{
	return (struct store_snapshot){
		.seq = s->seq,
		.id = str_of(s->id),
		.name = str_of(s->name),
		.of = s->of,
		.source = str_of(s->source),
		.template = str_of(s->template),
		.base = str_of(s->base),
		.digest = str_of(s->digest),
		.owner = str_of(s->owner),
		.created_ms = s->created_ms,
		.expires_ms = s->expires_ms,
		.bytes = s->bytes,
		.unpacked = s->unpacked,
		.memory = s->limits.memory,
		.disk = s->limits.disk,
		.pids = s->limits.pids,
		.cpu_milli = s->limits.cpu_milli,
		.files = s->limits.files,
		.debug = s->limits.debug,
		.root = s->limits.root,
	};
}

struct publishing {
	uv_work_t work;
	struct snapshot *s;
	uint64_t spec_of;
	char *spec;
	snapshot_cb on_done;
	void *arg;
	struct err err;
};

/* Waits for the disk: the bytes are synced, the name is not. */
static void work_rename(uv_work_t *w)
{
	struct publishing *p = w->data;
	const struct snapshots *set = p->s->all->snapshots;
	char name[FILE_MAX];

	file_name(name, p->s->id);
	if (renameat(set->new, name, set->dir, name) < 0 || fsync(set->dir) < 0)
		err_sys(&p->err, errno, "keep the snapshot");
}

static int add_row(struct publishing *p)
{
	struct hub_sandboxes *all = p->s->all;
	struct store_snapshot r = row_of(p->s);
	int result;

	r.seq = p->s->seq = ++all->snapshots->last_seq;
	r.spec = str_of(p->spec);
	result = store_snapshot_add(all->store, &r, p->spec_of, &p->err);
	hub_sandboxes_written(all);
	return result;
}

static void end_work(struct hub_sandboxes *all)
{
	all->snapshots->works--;
	hub_sandboxes_try_close(all);
}

static void on_renamed(uv_work_t *w, int status)
{
	struct publishing *p = w->data;
	struct snapshot *s = p->s;
	struct hub_sandboxes *all = s->all;
	char name[FILE_MAX];

	file_name(name, s->id);
	if (!p->err.code && snapshots_get(all, str_of(s->id)))
		err_set(&p->err, ERR_NAME_TAKEN, "there is a snapshot %s already", s->id);
	else if (!p->err.code && add_row(p) < 0)
		unlinkat(all->snapshots->dir, name, 0);
	if (p->err.code) {
		snapshot_drop_file(s);
		snapshot_free(s);
		p->on_done(p->arg, NULL, &p->err);
	} else {
		all->snapshots->taking--;
		link_snapshot(s);
		if (s->expires_ms)
			reap_arm(s->all, 0);
		p->on_done(p->arg, s, NULL);
	}
	free(p->spec);
	free(p);
	end_work(all);
}

void snapshot_publish(struct snapshot *s, uint64_t spec_of, struct str spec, snapshot_cb on_done,
		      void *arg)
{
	struct publishing *p = calloc(1, sizeof(*p));

	if (!p)
		abort(); /* out of memory: no callback could report it */
	*p = (struct publishing){ .s = s, .spec_of = spec_of, .on_done = on_done, .arg = arg };
	if (spec.p && !(p->spec = mem_dup(spec.p, spec.n)))
		abort();
	p->work.data = p;
	s->all->snapshots->works++;
	if (uv_queue_work(s->all->loop, &p->work, work_rename, on_renamed) < 0)
		abort();
}

/* ---- for others ------------------------------------------------------------------------------ */

int snapshots_unknown(struct str id, struct err *e)
{
	return err_set(e, ERR_SNAPSHOT_NOT_FOUND, "there is no snapshot '%.*s'",
		       id.n > SANDBOX_ID_MAX ? SANDBOX_ID_MAX : (int)id.n, id.p ? id.p : "");
}

bool snapshot_is_over(const struct snapshot *s)
{
	return s->expires_ms && s->expires_ms <= clock_unix_ms();
}

struct snapshot *snapshots_find(struct hub_sandboxes *all, struct str id, struct err *e)
{
	struct snapshot *s = snapshots_get(all, id);

	if (s && !s->of && !snapshot_is_over(s))
		return s;
	snapshots_unknown(id, e);
	return NULL;
}

size_t snapshots_list(struct hub_sandboxes *all, uint64_t after, struct snapshot **ret, size_t max)
{
	struct snapshot *s = all->snapshots ? all->snapshots->oldest : NULL;
	size_t n = 0;

	for (; s && n < max; s = s->newer) {
		if (s->seq > after && !s->of && !snapshot_is_over(s))
			ret[n++] = s;
	}
	return n;
}

void snapshot_info(const struct snapshot *s, struct snapshot_info *ret)
{
	*ret = (struct snapshot_info){
		.seq = s->seq,
		.id = str_of(s->id),
		.name = str_of(s->name),
		.source = str_of(s->source),
		.template = str_of(s->template),
		.digest = str_of(s->digest),
		.owner = str_of(s->owner),
		.created_ms = s->created_ms,
		.expires_ms = s->expires_ms,
		.bytes = s->bytes,
		.unpacked = s->unpacked,
		.limits = s->limits,
	};
}

struct keeper {
	char *text;
};

static int copy_spec(void *arg, const struct store_snapshot *r, struct err *e)
{
	struct keeper *k = arg;

	k->text = mem_dup(r->spec.p, r->spec.n);
	return k->text ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

char *snapshot_spec_text(const struct snapshot *s, struct err *e)
{
	struct keeper k = { NULL };

	if (store_snapshots(s->all->store, s->seq, copy_spec, &k, e) == 0 && !k.text)
		err_set(e, ERR_SNAPSHOT_NOT_FOUND, "the registry has no snapshot %s", s->id);
	return k.text;
}

struct snapshot *snapshot_kept(const struct hub_sandboxes *all, const struct hub_sandbox *l)
{
	struct snapshot *s = all->snapshots ? all->snapshots->newest : NULL;

	while (s && s->of != l->seq)
		s = s->older;
	return s;
}

/* ---- deleting -------------------------------------------------------------------------------- */

struct removal {
	uv_work_t work;
	struct hub_sandboxes *all;
	char name[FILE_MAX];
};

/* Deleting a file of many gigabytes takes time. If the power is cut now, the row must not come back
 * without its file. */
static void work_unlink(uv_work_t *w)
{
	const struct removal *r = w->data;
	struct err e = ERR_INIT;

	if (store_sync(r->all->store, &e) < 0)
		log_warn("the file of a deleted snapshot stays: %s", e.msg);
	else
		unlinkat(r->all->snapshots->dir, r->name, 0);
}

static void on_unlinked(uv_work_t *w, int status)
{
	struct removal *r = w->data;
	struct hub_sandboxes *all = r->all;

	free(r);
	end_work(all);
}

/* If the hub ends now, the rest is removed at the next start. */
static void remove_file(const struct snapshot *s)
{
	struct removal *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->all = s->all;
	r->work.data = r;
	file_name(r->name, s->id);
	s->all->snapshots->works++;
	if (uv_queue_work(s->all->loop, &r->work, work_unlink, on_unlinked) < 0)
		abort();
}

int snapshot_delete(struct snapshot *s, struct err *e)
{
	struct hub_sandboxes *all = s->all;
	int result = store_snapshot_drop(all->store, s->seq, e);

	hub_sandboxes_written(all);
	if (result < 0)
		return -1;
	remove_file(s);
	unlink_snapshot(s);
	free(s);
	return 0;
}

static void drop_kept(struct hub_sandbox *l, const struct snapshot *but)
{
	struct err e = ERR_INIT;

	for (struct snapshot *s = l->all->snapshots ? l->all->snapshots->oldest : NULL, *newer; s;
	     s = newer) {
		newer = s->newer;
		if (s->of == l->seq && s != but && snapshot_delete(s, &e) < 0)
			log_warn("sandbox %s: what was kept of it stays: %s", l->id, e.msg);
	}
}

void snapshot_drop_kept(struct hub_sandbox *l)
{
	drop_kept(l, NULL);
}

void snapshot_drop_older(struct hub_sandbox *l)
{
	drop_kept(l, snapshot_kept(l->all, l));
}

/* ---- expiry -------------------------------------------------------------------------------- */

static struct hub_sandbox *hub_sandbox_of(const struct hub_sandboxes *all, uint64_t seq)
{
	struct hub_sandbox *l = all->oldest;

	while (l && l->seq != seq)
		l = l->newer;
	return l;
}

/* A snapshot that keeps a sandbox's only files ends that sandbox. One that is being restarted
 * stays. */
static int expire(struct snapshot *s, struct err *e)
{
	struct hub_sandbox *l = s->of ? hub_sandbox_of(s->all, s->of) : NULL;
	struct err why = ERR_INIT;

	if (l && (l->state == SANDBOX_RESTORING || l->stopping))
		return 0;
	if (snapshot_delete(s, e) < 0)
		return -1;
	if (!l || (l->state != SANDBOX_STOPPED && l->state != SANDBOX_COLD))
		return 0;
	err_set(&why, ERR_TIMEOUT, "the time for which its files were kept is over");
	return hub_sandbox_set_state(l, SANDBOX_TERMINATED, &why, e);
}

static void on_reap(uv_timer_t *t)
{
	struct hub_sandboxes *all = t->data;
	struct snapshot *s = all->snapshots->oldest, *newer;
	struct err e = ERR_INIT;

	for (; s && !all->stopping; s = newer) {
		newer = s->newer;
		if (snapshot_is_over(s) && expire(s, &e) < 0) {
			all->stats.reap_failures++;
			log_warn("a snapshot whose time is over stays: %s", e.msg);
		}
	}
	if (!all->stopping)
		reap_arm(all, REAP_AGAIN_MS);
}

/* ---- the start ------------------------------------------------------------------------------- */

static int load_one(void *arg, const struct store_snapshot *r, struct err *e)
{
	struct hub_sandboxes *all = arg;
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(e, ERR_LIMIT, "out of memory");
	*s = (struct snapshot){
		.all = all,
		.seq = r->seq,
		.of = r->of,
		.created_ms = r->created_ms,
		.expires_ms = r->expires_ms,
		.bytes = r->bytes,
		.unpacked = r->unpacked,
		.limits = { .memory = r->memory,
			    .disk = r->disk,
			    .pids = r->pids,
			    .cpu_milli = r->cpu_milli,
			    .files = r->files,
			    .debug = r->debug,
			    .root = r->root },
	};
	snprintf(s->id, sizeof(s->id), "%.*s", STR_ARG(r->id));
	snprintf(s->name, sizeof(s->name), "%.*s", STR_ARG(r->name));
	snprintf(s->source, sizeof(s->source), "%.*s", STR_ARG(r->source));
	snprintf(s->template, sizeof(s->template), "%.*s", STR_ARG(r->template));
	snprintf(s->base, sizeof(s->base), "%.*s", STR_ARG(r->base));
	snprintf(s->digest, sizeof(s->digest), "%.*s", STR_ARG(r->digest));
	snprintf(s->owner, sizeof(s->owner), "%.*s", STR_ARG(r->owner));
	link_snapshot(s);
	if (sandbox_id_check(r->id, e) < 0 || !hash_is_hex(r->digest))
		return err_set(e, ERR_STORE_CORRUPT, "the registry has a snapshot that can't be");
	return 0;
}

static bool is_known(const struct hub_sandboxes *all, const char *file)
{
	size_t n = strlen(file), suffix = strlen(SUFFIX);

	return n > suffix && strcmp(file + n - suffix, SUFFIX) == 0 &&
	       snapshots_get(all, (struct str){ file, n - suffix });
}

/* Removes what was being written when a hub was killed: it was not acknowledged. */
static int clear_new(const struct hub_sandboxes *all, struct err *e)
{
	autofolder struct folder f = folder_at(all->snapshots->new, ".");
	int more;

	while ((more = folder_next(&f)) > 0) {
		if (f.entry->d_type != DT_DIR &&
		    unlinkat(all->snapshots->new, f.entry->d_name, 0) == 0)
			log_info("removed what was left of a snapshot");
	}
	return more < 0 ? err_sys(e, f.errnum, "look into the folder of snapshots") : 0;
}

/* Moves files without a row aside. Where a hub was killed before it wrote the row, nobody misses
 * them; where the registry is another one, they are all that is left. */
static int set_aside(struct hub_sandboxes *all, struct err *e)
{
	const struct snapshots *set = all->snapshots;
	autofolder struct folder f = folder_at(set->dir, ".");
	unsigned moved = 0;
	int more;

	while ((more = folder_next(&f)) > 0) {
		const char *name = f.entry->d_name;

		if (f.entry->d_type == DT_DIR || is_known(all, name))
			continue;
		if (move_aside(set->dir, name, set->dir, LOST) < 0)
			log_warn("a file of a snapshot that the registry does not know stays: %s",
				 strerror(errno));
		else
			moved++;
	}
	if (more < 0)
		return err_sys(e, f.errnum, "look into the folder of snapshots");
	if (moved)
		log_warn("%u files of snapshots or stopped sandboxes are not in the registry: they "
			 "were moved to snapshots/" LOST " in the data folder",
			 moved);
	return 0;
}

int hub_sandboxes_keep_snapshots(struct hub_sandboxes *all, const char *folder, struct err *e)
{
	struct snapshots *set = calloc(1, sizeof(*set));

	if (!set)
		return err_set(e, ERR_LIMIT, "out of memory");
	*set = (struct snapshots){ .all = all, .new = -1 };
	all->snapshots = set; /* freed with all */
	set->dir = open_folder(AT_FDCWD, folder, e);
	set->new = set->dir < 0 ? -1 : open_folder(set->dir, "new", e);
	if (set->new < 0 || store_snapshots(all->store, 0, load_one, all, e) < 0 ||
	    store_snapshot_last(all->store, &set->last_seq, e) < 0 || clear_new(all, e) < 0 ||
	    set_aside(all, e) < 0)
		return -1;
	/* A file that is missing now may be back later, with a disk or from a backup: its row
	 * stays. */
	for (const struct snapshot *s = all->snapshots->oldest; s; s = s->newer) {
		struct err why = ERR_INIT;
		autoclose int fd = snapshot_open(s, &why);

		if (fd < 0)
			log_warn("%s %s: its files can't be read now: %s",
				 s->of ? "sandbox" : "snapshot", s->of ? s->source : s->id,
				 why.msg);
	}
	all->snapshots->reaper = calloc(1, sizeof(uv_timer_t));
	if (!all->snapshots->reaper)
		return err_set(e, ERR_LIMIT, "out of memory");
	uv_timer_init(all->loop, all->snapshots->reaper);
	all->snapshots->reaper->data = all;
	uv_timer_start(all->snapshots->reaper, on_reap, REAP_AGAIN_MS, 0);
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

void snapshots_stop(struct hub_sandboxes *all)
{
	packs_kill(all);
}

bool snapshots_busy(const struct hub_sandboxes *all)
{
	return all->snapshots && (all->snapshots->packs || all->snapshots->works);
}

static void close_reaper(uv_handle_t *h)
{
	free(h);
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	if (s->reaper)
		uv_close((uv_handle_t *)s->reaper, close_reaper);
	while (s->oldest) {
		struct snapshot *at = s->oldest;

		s->oldest = at->newer;
		free(at);
	}
	close_fd(&s->new);
	close_fd(&s->dir);
	free(s);
}
