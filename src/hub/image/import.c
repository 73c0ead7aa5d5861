/*
 * Imports an image into the store:
 *
 * 	archive ─ unpack ─→ new/ID/source ┐
 * 	folder ───────────────────────────┴─ documents ─→ layers
 * 	layers ─ unpack ─→ new/ID/root ─→ image/DIGEST
 *
 * Confined processes unpack (box/archive/confine.h). This file reads the documents and compares
 * digests.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "box/archive/unpack.h"
#include "hub/image/internal.h"

struct importing {
	struct image_make make;
	const struct image_import *spec;
	struct source source;
	struct str layers[IMAGE_LAYERS_MAX];
};

/* ---- layers ---------------------------------------------------------------------------------- */

static int add_layer(struct importing *m, const struct source_layer *l, struct err *e)
{
	autoclose int fd = tree_open(m->source.dir, l->path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	const struct unpack u = {
		.from = fd, .to = m->make.root, .layer = true, .limits = m->make.limits
	};
	struct unpacked got;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_IMAGE, "layer %.12s is not there", l->diff_id.p);
	if (l->digest.p && (uint64_t)st.st_size != l->size)
		return err_set(e, ERR_IMAGE, "layer %.12s is not what its digest and size say",
			       l->digest.p);
	if (unpack_archive(&u, &m->make.count, &got, e) < 0)
		return err_wrap(e, "layer %.12s", l->diff_id.p);
	m->make.count = got.count;
	if (l->digest.p && (got.size != l->size || !str_is(l->digest, got.digest)))
		return err_set(e, ERR_IMAGE, "layer %.12s is not what its digest and size say",
			       l->digest.p);
	if (!str_is(l->diff_id, got.stream))
		return err_set(e, ERR_IMAGE,
			       "layer %.12s is not what the configuration's digest says",
			       l->diff_id.p);
	return 0;
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
	if (image_root_finish(m->make.root, run->User, workdir, &m->make.user, e) < 0)
		return -1;
	memcpy(m->make.digest, m->source.digest, sizeof(m->make.digest));
	m->make.record = (struct image_record){
		.source = str_of(m->source.kind),
		.layers = { m->layers, m->source.n_layers },
		.workdir = workdir,
		.env = run->Env,
		.entrypoint = run->Entrypoint,
		.cmd = run->Cmd,
	};
	return 0;
}

/* A directory without a layout is the root itself. */
static int add_root(struct importing *m, int from, const char *kind, struct err *e)
{
	const struct unpack u = { .from = from, .to = m->make.root, .limits = m->make.limits };
	const struct tree_count none = { 0, 0 };
	struct unpacked got;

	if (unpack_copied(&u, &none, &got, e) < 0 ||
	    image_root_finish(m->make.root, STR_NONE, STR_NONE, &m->make.user, e) < 0)
		return -1;
	m->make.count = got.count;
	memcpy(m->make.digest, got.digest, sizeof(m->make.digest));
	m->make.record = (struct image_record){ .source = str_of(kind) };
	return 0;
}

/* ---- sources --------------------------------------------------------------------------------- */

/* An archive may be of anything. A root has at least one of these. */
static bool is_root(int dir)
{
	static const char *const names[] = { "bin", "etc", "lib", "sbin", "usr" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (faccessat(dir, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return false;
}

static int add_unpacked(struct importing *m, int dir, struct err *e)
{
	int found = source_read(dir, m->spec->ref, &m->source, e);

	if (found != 0)
		return found < 0 ? -1 : add_image(m, e);
	if (is_root(dir))
		return add_root(m, dir, "tar", e);
	return err_set(e, ERR_IMAGE,
		       "no image: neither an OCI layout, nor of docker save, nor the root of a "
		       "file system, with a folder such as bin, etc or usr");
}

static int add_archive(struct importing *m, int from, struct err *e)
{
	autoclose int to = image_make_folder(m->make.dir, "source", 0700, e);
	const struct unpack u = { .from = from, .to = to, .limits = m->make.limits };
	const struct tree_count none = { 0, 0 };
	struct unpacked got;

	if (to < 0 || unpack_archive(&u, &none, &got, e) < 0 || add_unpacked(m, to, e) < 0)
		return -1;
	return tree_remove(m->make.dir, "source") < 0
		     ? err_sys(e, errno, "remove the unpacked archive")
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
	return found ? add_image(m, e) : add_root(m, fd, "directory", e);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int choose_name(const struct importing *m, char ret[IMAGE_NAME_MAX + 1], struct err *e)
{
	struct str name = m->spec->name.p ? m->spec->name : m->source.name;

	if (!name.p)
		return err_set(e, ERR_INVALID, "the image has no name of its own: give it one");
	return image_name(name, ret, e);
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
	m->spec = spec;
	rc = image_make_start(&m->make, s, &spec->limits, e) < 0 || add_source(m, e) < 0 ||
			     choose_name(m, name, e) < 0 ||
			     image_make_publish(&m->make, name, e) < 0
		   ? -1
		   : images_find(s, str_of(name), ret, e);
	source_fini(&m->source);
	image_make_end(&m->make);
	if (rc == 0)
		memcpy(ret_name, name, sizeof(name));
	else
		images_retell(e);
	return rc;
}

int images_fetch(struct images *s,
		 int (*fetch)(void *arg, int dir, const char *path, struct err *e), void *arg,
		 const struct image_import *spec, struct image *ret,
		 char ret_name[IMAGE_NAME_MAX + 1], struct err *e)
{
	autofree struct image_make *place = calloc(1, sizeof(*place));
	struct image_import fetched = *spec;
	char path[PATH_MAX], layout[PATH_MAX + 8];
	int rc;

	if (!place)
		return err_set(e, ERR_LIMIT, "out of memory");
	rc = image_make_start(place, s, &spec->limits, e);
	snprintf(path, sizeof(path), "%s/new/%s", s->path, place->id);
	snprintf(layout, sizeof(layout), "%s/layout", path);
	fetched.source = layout;
	if (rc == 0)
		rc = fetch(arg, place->dir, path, e);
	if (rc == 0)
		rc = images_import(s, &fetched, ret, ret_name, e);
	image_make_end(place);
	return rc;
}
