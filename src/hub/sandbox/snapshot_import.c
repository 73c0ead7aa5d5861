/* Imports an archive from elsewhere. A confined process copies it, reads it to its end and
 * checks it before anything is listed. Its metadata is checked like any argument; its files are
 * checked by the init of the sandbox that it is restored into. */
#include <stdio.h>
#include <stdlib.h>

#include "hub/sandbox/internal.h"
#include "json/document/json.h"

#define IMPORT_MAX (64ull << 30)

struct importing {
	struct hub_sandboxes *all;
	struct snapshot *s; /* owned until it is published */
	char digest[HASH_HEX + 1]; /* that it must have; "": any */
	snapshot_cb on_done;
	void *arg;
	struct err err;
};

static void snapshot_import_fail(struct importing *i, const struct err *err)
{
	if (i->s) {
		snapshot_drop_file(i->s);
		snapshot_free(i->s);
	}
	i->on_done(i->arg, NULL, err);
	free(i);
}

static void on_published(void *arg, const struct snapshot *s, const struct err *err)
{
	struct importing *i = arg;

	i->on_done(i->arg, s, err);
	free(i);
}

static int check_meta(const struct snapshot_meta *m, struct err *e)
{
	struct limits l = { .memory = m->memory,
			    .disk = m->disk,
			    .pids = m->pids,
			    .cpu_milli = m->cpu_milli,
			    .files = m->open_files };

	if (m->base.n && !hash_is_hex(m->base))
		return err_set(e, ERR_SNAPSHOT, "the archive names its image by what is no digest");
	if (!m->memory || !m->disk || !m->pids || limits_complete(&l, e) < 0) {
		e->code = ERR_SNAPSHOT;
		return err_wrap(e, "the limits that the archive names");
	}
	return 0;
}

static int take_meta(struct importing *i, const char *text, struct err *e)
{
	AUTO(json_free) struct json_doc *doc = *text ? json_parse(str_of(text), NULL, e) : NULL;
	AUTO(arena_free) struct arena *arena = arena_new(64 << 10);
	struct snapshot *s = i->s;
	struct snapshot_meta m;

	if (!doc || !arena || field_decode(&snapshot_meta_table, json_root(doc), arena, &m, e) < 0)
		return err_set(
			e, ERR_SNAPSHOT,
			"the archive does not say what it is a snapshot of, as those do that "
			"were exported");
	if (check_meta(&m, e) < 0)
		return -1;
	s->limits = (struct limits){ .memory = m.memory,
				     .disk = m.disk,
				     .pids = m.pids,
				     .cpu_milli = m.cpu_milli,
				     .files = m.open_files };
	snprintf(s->template, sizeof(s->template), "%.*s", STR_ARG(m.template));
	snprintf(s->base, sizeof(s->base), "%.*s", STR_ARG(m.base));
	return 0;
}

/* An archive that could never be restored is refused. */
static void check_size(const struct snapshot *s, uint64_t unpacked, struct err *e)
{
	if (unpacked > snapshot_max(&s->limits))
		err_set(e, ERR_TOO_LARGE,
			"the archive has more in it than the limits that it names allow");
}

static void on_checked(void *arg, const struct pack_answer *a, const struct err *err)
{
	struct importing *i = arg;
	struct err e = ERR_INIT;

	if (!err && i->digest[0] && strcmp(i->digest, a->digest) != 0)
		err_set(&e, ERR_SNAPSHOT, "the archive's digest is %s", a->digest);
	else if (!err && take_meta(i, a->meta, &e) == 0)
		check_size(i->s, a->unpacked, &e);
	if (err || e.code) {
		snapshot_import_fail(i, err ? err : &e);
		return;
	}
	i->s->bytes = a->bytes;
	i->s->unpacked = a->unpacked;
	snprintf(i->s->digest, sizeof(i->s->digest), "%s", a->digest);
	snapshot_publish(i->s, 0, STR_LIT("{\"env\":{}}"), on_published, i);
}

static int start(struct importing *i, int fd, const struct snapshot_spec *spec, struct err *e)
{
	autoclose int file = -1;

	i->s = snapshot_new(i->all, spec, e);
	file = i->s ? snapshot_create_file(i->s, e) : -1;
	if (file < 0)
		return -1;
	return pack_start(i->all,
			  &(struct pack_spec){
				  .mode = "check", .max = IMPORT_MAX, .in = fd, .out = file },
			  on_checked, i, e)
		     ? 0
		     : -1;
}

static void on_refused(void *arg)
{
	struct importing *i = arg;

	snapshot_import_fail(i, &i->err);
}

void snapshot_import_start(struct hub_sandboxes *all, int fd, struct str digest,
			   const struct snapshot_spec *spec, snapshot_cb on_done, void *arg)
{
	struct importing *i = calloc(1, sizeof(*i));
	int failed = 0;

	if (!i)
		abort(); /* out of memory: no callback could report it */
	*i = (struct importing){ .all = all, .on_done = on_done, .arg = arg };
	if (digest.p && !hash_is_hex(digest))
		failed = err_set(&i->err, ERR_INVALID, "digest: %d hex digits", HASH_HEX);
	snprintf(i->digest, sizeof(i->digest), "%.*s", (int)digest.n, digest.p ? digest.p : "");
	if (failed < 0 || start(i, fd, spec, &i->err) < 0)
		hub_sandboxes_later(all, on_refused, i);
	close_fd(&fd);
}
