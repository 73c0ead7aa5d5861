/*
 * From a source to an image in the store:
 *
 *	archive ─ unpack ─→ new/ID/source ┐
 *	folder ───────────────────────────┴─ documents ─→ layers ─ unpack ─→ new/ID/root ─→ image/DIGEST
 *
 * What unpacks is in processes of its own (box/confine.h); here documents are read, and digests compared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "base/id.h"
#include "box/image_root.h"
#include "box/unpack.h"
#include "hub/images_impl.h"

struct importing {
	struct images *s;
	const struct image_import *spec;
	struct tree_limits limits;
	char id[ID_MAX]; /* of its folder in new/ */
	int dir, root; /* that folder, locked; root in it */
	struct source source;
	struct tree_count count;
	struct image_user user;
	struct image_record record;
	struct str layers[IMAGE_LAYERS_MAX];
};

/* ---- its folder ---------------------------------------------------------------------------------- */

static int make_folder(int dir, const char *name, mode_t mode, struct err *e)
{
	autoclose int fd = -1;

	if (mkdirat(dir, name, 0700) < 0)
		return err_sys(e, errno, "make a folder for the image");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_sys(e, errno, "make a folder for the image");
	return take_fd(&fd);
}

/* Made under the store's lock, so that who sweeps finds it locked or not at all. */
static int start(struct importing *m, struct err *e)
{
	autoclose int lock = images_lock(m->s, e);
	uint32_t swept = 0;

	id_make(m->id, "new");
	if (lock < 0 || images_sweep(m->s, &swept, e) < 0)
		return -1;
	m->dir = make_folder(m->s->new, m->id, 0700, e);
	if (m->dir < 0)
		return -1;
	if (flock(m->dir, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, errno, "lock the folder for the image");
	m->root = make_folder(m->dir, "root", 0755, e);
	return m->root < 0 ? -1 : 0;
}

static void end(struct importing *m)
{
	source_fini(&m->source);
	close_fd(&m->root);
	if (m->dir >= 0)
		tree_remove(m->s->new, m->id); /* what could not be removed, prune does */
	close_fd(&m->dir);
}

/* ---- layers -------------------------------------------------------------------------------------- */

static int check_layer(const struct source_layer *l, const struct unpacked *got, struct err *e)
{
	if (l->digest.p && (got->size != l->size || !str_is(l->digest, got->digest)))
		return err_set(e, ERR_IMAGE, "layer %.12s is not what its digest and size say",
			       l->digest.p);
	if (!str_is(l->diff_id, got->stream))
		return err_set(e, ERR_IMAGE,
			       "layer %.12s is not what the configuration's digest says",
			       l->diff_id.p);
	return 0;
}

static int add_layer(struct importing *m, const struct source_layer *l, struct err *e)
{
	autoclose int fd = tree_open(m->source.dir, l->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	const struct unpack u = { .from = fd, .to = m->root, .layer = true, .limits = m->limits };
	struct unpacked got;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_IMAGE, "layer %.12s is not there", l->diff_id.p);
	if (l->digest.p && (uint64_t)st.st_size != l->size)
		return err_set(e, ERR_IMAGE, "layer %.12s is not what its digest and size say",
			       l->digest.p);
	if (unpack_archive(&u, &m->count, &got, e) < 0)
		return err_wrap(e, "layer %.12s", l->diff_id.p);
	m->count = got.count;
	return check_layer(l, &got, e);
}

static int check_env(const struct field_strs *env, struct err *e)
{
	for (size_t i = 0; i < env->n; i++) {
		const char *sign = env->p[i].n ? memchr(env->p[i].p, '=', env->p[i].n) : NULL;

		if (!sign || sign == env->p[i].p)
			return err_set(e, ERR_IMAGE, "its environment is not of NAME=VALUE");
	}
	if (env->n > IMAGE_ENV_MAX)
		return err_set(e, ERR_IMAGE, "its environment has over %d variables",
			       IMAGE_ENV_MAX);
	return 0;
}

static int add_image(struct importing *m, struct err *e)
{
	const struct image_run *run = &m->source.config.config;
	const struct str workdir = run->WorkingDir.n ? run->WorkingDir : STR_NONE;

	if (check_env(&run->Env, e) < 0)
		return -1;
	if (workdir.n && workdir.p[0] != '/')
		return err_set(e, ERR_IMAGE, "its working directory is no absolute path");
	for (size_t i = 0; i < m->source.n_layers; i++) {
		if (add_layer(m, &m->source.layers[i], e) < 0)
			return -1;
		m->layers[i] = m->source.layers[i].diff_id;
	}
	if (image_root_finish(m->root, run->User, workdir, &m->user, e) < 0)
		return -1;
	m->record = (struct image_record){
		.digest = str_of(m->source.digest),
		.source = str_of(m->source.kind),
		.layers = { m->layers, m->source.n_layers },
		.workdir = workdir,
		.env = run->Env,
		.entrypoint = run->Entrypoint,
		.cmd = run->Cmd,
	};
	return 0;
}

/* A directory that is no layout is itself the root. */
static int add_directory(struct importing *m, int from, struct err *e)
{
	const struct unpack u = { .from = from, .to = m->root, .limits = m->limits };
	struct unpacked got;

	if (unpack_directory(&u, &got, e) < 0 ||
	    image_root_finish(m->root, STR_NONE, STR_NONE, &m->user, e) < 0)
		return -1;
	m->count = got.count;
	memcpy(m->source.digest, got.digest, sizeof(m->source.digest));
	m->record = (struct image_record){ .digest = str_of(m->source.digest),
					   .source = STR_LIT("directory") };
	return 0;
}

/* ---- sources ------------------------------------------------------------------------------------- */

static int add_archive(struct importing *m, int from, struct err *e)
{
	autoclose int to = make_folder(m->dir, "source", 0700, e);
	const struct unpack u = { .from = from, .to = to, .limits = m->limits };
	const struct tree_count none = { 0, 0 };
	struct unpacked got;
	int found;

	if (to < 0 || unpack_archive(&u, &none, &got, e) < 0)
		return -1;
	found = source_read(to, m->spec->ref, &m->source, e);
	if (found == 0)
		return err_set(e, ERR_IMAGE, "no image: neither an OCI layout nor of docker save");
	if (found < 0 || add_image(m, e) < 0)
		return -1;
	return tree_remove(m->dir, "source") < 0 ? err_sys(e, errno, "remove the unpacked archive")
						 : 0;
}

static int add_source(struct importing *m, struct err *e)
{
	bool standard = strcmp(m->spec->source, "-") == 0;
	autoclose int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				    : open(m->spec->source, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int found;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open %.120s", m->spec->source);
	if (!S_ISDIR(st.st_mode))
		return add_archive(m, fd, e);
	found = source_read(fd, m->spec->ref, &m->source, e);
	if (found < 0)
		return -1;
	return found ? add_image(m, e) : add_directory(m, fd, e);
}

/* ---- into the store ------------------------------------------------------------------------------ */

static int choose_name(const struct importing *m, char ret[IMAGE_NAME_MAX + 1], struct err *e)
{
	struct str name = m->spec->name.p ? m->spec->name : m->source.name;

	if (!name.p)
		return err_set(e, ERR_INVALID, "the image has no name of its own: give it one");
	return image_name(name, ret, e);
}

static int write_record(struct importing *m, struct err *e)
{
	autofree char *text = NULL;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	m->record.created_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	m->record.bytes = m->count.bytes;
	m->record.entries = m->count.entries;
	m->record.user = str_of(m->user.name);
	m->record.home = str_of(m->user.home);
	text = field_encode_text(&image_record_table, &m->record, IMAGE_DOC_MAX, e);
	if (!text || images_write(m->dir, "image.json", str_of(text), e) < 0)
		return -1;
	return syncfs(m->root) < 0 ? err_sys(e, errno, "write the image through to the disk") : 0;
}

/* Back into new/, where it is removed, unless a sandbox was made from it meanwhile. */
static void withdraw(struct importing *m)
{
	if (flock(m->dir, LOCK_EX | LOCK_NB) < 0 ||
	    renameat(m->s->image, m->source.digest, m->s->new, m->id) < 0)
		close_fd(&m->dir);
}

/* Where the same image is there already, it just gets the name. */
static int publish(struct importing *m, const char *name, struct err *e)
{
	autoclose int lock = images_lock(m->s, e);
	const char *digest = m->source.digest;
	int rc;

	if (lock < 0)
		return -1;
	if (renameat2(m->s->new, m->id, m->s->image, digest, RENAME_NOREPLACE) < 0)
		return errno == EEXIST ? images_set_name(m->s, str_of(name), str_of(digest), e)
				       : err_sys(e, errno, "put the image into the store");
	flock(m->dir, LOCK_UN); /* sandboxes may be made from it from now on */
	rc = fsync(m->s->image) < 0 ? err_sys(e, errno, "write the image through to the disk")
				    : images_set_name(m->s, str_of(name), str_of(digest), e);
	if (rc == 0)
		close_fd(&m->dir); /* it is no more in new/ */
	else
		withdraw(m);
	return rc;
}

/* What went wrong was not in a sandbox, so the remedies for paths and files there would mislead. */
static void retell(struct err *e)
{
	static const struct {
		enum err_code from, to;
	} rows[] = {
		{ ERR_PATH_NOT_FOUND, ERR_INVALID }, { ERR_PATH_DENIED, ERR_INVALID },
		{ ERR_NOT_A_FILE, ERR_INVALID },     { ERR_TOO_LARGE, ERR_IMAGE_LARGE },
		{ ERR_DISK_FULL, ERR_IMAGE_DISK },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (e->code == rows[i].from) {
			e->code = rows[i].to;
			return;
		}
	}
}

int images_import(struct images *s, const struct image_import *spec, struct image *ret,
		  char ret_name[IMAGE_NAME_MAX + 1], struct err *e)
{
	autofree struct importing *m = calloc(1, sizeof(*m));
	char name[IMAGE_NAME_MAX + 1];
	int rc;

	if (!m)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (spec->name.p && image_name(spec->name, name, e) < 0)
		return -1; /* before the work */
	m->s = s;
	m->spec = spec;
	m->dir = m->root = -1;
	m->limits = spec->limits;
	if (!m->limits.bytes)
		m->limits.bytes = IMAGE_LIMITS.bytes;
	if (!m->limits.entries)
		m->limits.entries = IMAGE_LIMITS.entries;
	rc = start(m, e) < 0 || add_source(m, e) < 0 || choose_name(m, name, e) < 0 ||
			     write_record(m, e) < 0 || publish(m, name, e) < 0
		   ? -1
		   : 0;
	if (rc == 0)
		rc = images_find(s, str_of(name), ret, e);
	end(m);
	if (rc == 0)
		memcpy(ret_name, name, sizeof(name));
	else
		retell(e);
	return rc;
}
