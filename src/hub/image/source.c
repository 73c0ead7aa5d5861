/*
 * Reads an OCI layout (image specification 1.1, "Image Layout") or the output of `docker save`. The
 * older form of the latter has only manifest.json; the newer one has both, and is read as a layout.
 *
 * 	index.json ─→ (index ─→) manifest ─→ configuration, layers
 * 		all checked by digest and size
 * 	manifest.json ─→ configuration, layers
 * 		layers checked by the configuration's digests
 */
#include <errno.h>
#include <stdio.h>

#include "base/hash.h"
#include "hub/image/internal.h"

#define REF_NAME "org.opencontainers.image.ref.name"
#define FULL_NAME "io.containerd.image.name"

/* A document that another one names. */
static int read_named(int dir, const char *path, struct buf *ret, struct err *e)
{
	if (images_read(dir, path, IMAGE_DOC_MAX, ret, e) == 0)
		return 0;
	if (e->code == ERR_PATH_NOT_FOUND || e->code == ERR_INVALID)
		e->code = ERR_IMAGE;
	return -1;
}

static int blob_path(struct str hex, char *ret, size_t n)
{
	return snprintf(ret, n, "blobs/sha256/%.*s", STR_ARG(hex));
}

/* A document by its digest and size. */
static int read_blob(int dir, const struct image_desc *d, struct buf *ret, struct err *e)
{
	char path[128], real[HASH_HEX + 1];
	struct str hex;

	if (image_digest(d->digest, &hex, e) < 0)
		return -1;
	blob_path(hex, path, sizeof(path));
	if (read_named(dir, path, ret, e) < 0 || hash_of(buf_str(ret), real, e) < 0)
		return -1;
	if (ret->n != d->size || !str_is(hex, real))
		return err_set(e, ERR_IMAGE, "%s is not what its name and size say", path);
	return 0;
}

/* ---- OCI ------------------------------------------------------------------------------------- */

static struct str annotation(const struct image_desc *d, const char *key)
{
	for (size_t i = 0; i < d->annotations.n; i++) {
		if (str_is(d->annotations.p[i].key, key))
			return d->annotations.p[i].value;
	}
	return STR_NONE;
}

static bool is_meant(const struct image_desc *d, struct str ref)
{
	return !ref.p || str_eq(d->digest, ref) || str_eq(annotation(d, REF_NAME), ref) ||
	       str_eq(annotation(d, FULL_NAME), ref);
}

static int source_choose(const struct image_index *index, struct str ref,
			 const struct image_desc **ret, struct err *e)
{
	size_t fitting = 0;

	for (size_t i = 0; i < index->manifests.n; i++) {
		const struct image_desc *d = &index->manifests.p[i];

		if (!is_meant(d, ref) || !image_fits(d))
			continue;
		if (fitting++ == 0)
			*ret = d;
	}
	if (fitting > 1)
		return err_set(e, ERR_INVALID,
			       "it holds %zu images: say which by --ref NAME or --ref sha256:…",
			       fitting);
	if (fitting == 0)
		return err_set(e, ERR_IMAGE, "it holds no such image for linux/%.*s",
			       STR_ARG(image_architecture()));
	return 0;
}

static int add_oci_layers(struct source *s, const struct image_manifest *m, struct err *e)
{
	const struct field_strs *ids = &s->config.rootfs.diff_ids;

	if (m->layers.n == 0 || m->layers.n != ids->n)
		return err_set(e, ERR_IMAGE, "%zu layers, and digests of %zu", m->layers.n, ids->n);
	s->layers = calloc(m->layers.n, sizeof(*s->layers));
	if (!s->layers)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < m->layers.n; i++) {
		struct source_layer *l = &s->layers[i];

		l->size = m->layers.p[i].size;
		if (image_check_layer(&m->layers.p[i], e) < 0 ||
		    image_digest(m->layers.p[i].digest, &l->digest, e) < 0 ||
		    image_digest(ids->p[i], &l->diff_id, e) < 0)
			return -1;
		blob_path(l->digest, l->path, sizeof(l->path));
		s->n_layers++;
	}
	return 0;
}

static int read_config(struct source *s, struct str text, struct err *e)
{
	const struct image_config *c = &s->config;

	if (image_read_config(&s->docs[2], text, &s->config, e) < 0)
		return -1;
	if ((c->os.n && !str_is(c->os, "linux")) ||
	    (c->architecture.n && !str_eq(c->architecture, image_architecture())))
		return err_set(e, ERR_IMAGE, "it is for %.*s/%.*s, and this is linux/%.*s",
			       STR_CUT(c->os, 20), STR_CUT(c->architecture, 20),
			       STR_ARG(image_architecture()));
	return 0;
}

static int read_manifest(struct source *s, const struct image_desc *d, struct err *e)
{
	autobuf struct buf text = BUF_INIT(IMAGE_DOC_MAX);
	autobuf struct buf config = BUF_INIT(IMAGE_DOC_MAX);
	struct image_manifest m;
	struct str hex;

	if (read_blob(s->dir, d, &text, e) < 0 ||
	    image_read_manifest(&s->docs[1], buf_str(&text), &m, e) < 0 ||
	    image_digest(d->digest, &hex, e) < 0)
		return -1;
	snprintf(s->digest, sizeof(s->digest), "%.*s", STR_ARG(hex));
	if (m.mediaType.n && !image_is_manifest(m.mediaType))
		return err_set(e, ERR_IMAGE, "the manifest says that it is none");
	if (m.config.urls.n > 0)
		return err_set(e, ERR_IMAGE,
			       "the configuration is elsewhere, at a URL: not fetched");
	if (read_blob(s->dir, &m.config, &config, e) < 0 || read_config(s, buf_str(&config), e) < 0)
		return -1;
	return add_oci_layers(s, &m, e);
}

/* An index may name another one, once: that of an image for several machines. */
static int read_nested(struct source *s, const struct image_desc *d, struct err *e)
{
	autobuf struct buf text = BUF_INIT(IMAGE_DOC_MAX);
	autodoc struct image_doc doc = { NULL, NULL };
	struct image_index index;

	if (image_is_manifest(d->mediaType))
		return read_manifest(s, d, e);
	if (!image_is_index(d->mediaType))
		return err_set(e, ERR_IMAGE, "an image of a kind that is not known");
	if (read_blob(s->dir, d, &text, e) < 0 ||
	    image_read_index(&doc, buf_str(&text), &index, e) < 0 ||
	    source_choose(&index, STR_NONE, &d, e) < 0)
		return -1;
	if (!image_is_manifest(d->mediaType))
		return err_set(e, ERR_IMAGE, "an index in an index names no image");
	return read_manifest(s, d, e);
}

static int read_oci(struct source *s, struct str index_text, struct str ref, struct err *e)
{
	const struct image_desc *d = NULL;
	struct image_index index;

	s->kind = "oci";
	if (image_read_index(&s->docs[0], index_text, &index, e) < 0 ||
	    source_choose(&index, ref, &d, e) < 0)
		return -1;
	s->name = annotation(d, FULL_NAME);
	if (!s->name.p)
		s->name = annotation(d, REF_NAME);
	return read_nested(s, d, e);
}

/* ---- docker save ----------------------------------------------------------------------------- */

static int set_path(struct source_layer *l, struct str path, struct err *e)
{
	if (path.n == 0 || path.n >= sizeof(l->path))
		return err_set(e, ERR_IMAGE, "a layer's path has 1 to %zu bytes",
			       sizeof(l->path) - 1);
	memcpy(l->path, path.p, path.n);
	return 0;
}

static int add_docker_layers(struct source *s, const struct docker_image *image, struct err *e)
{
	const struct field_strs *ids = &s->config.rootfs.diff_ids;

	if (image->Layers.n == 0 || image->Layers.n != ids->n)
		return err_set(e, ERR_IMAGE, "%zu layers, and digests of %zu", image->Layers.n,
			       ids->n);
	s->layers = calloc(ids->n, sizeof(*s->layers));
	if (!s->layers)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < ids->n; i++) {
		if (image_digest(ids->p[i], &s->layers[i].diff_id, e) < 0 ||
		    set_path(&s->layers[i], image->Layers.p[i], e) < 0)
			return -1;
		s->n_layers++;
	}
	return 0;
}

static int choose_docker(const struct docker_images *all, struct str ref,
			 const struct docker_image **ret, struct err *e)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		bool meant = !ref.p;

		for (size_t k = 0; k < all->p[i].RepoTags.n; k++)
			meant = meant || str_eq(all->p[i].RepoTags.p[k], ref);
		if (meant && n++ == 0)
			*ret = &all->p[i];
	}
	if (n > 1)
		return err_set(e, ERR_INVALID, "it holds %zu images: say which by --ref NAME", n);
	return n ? 0 : err_set(e, ERR_IMAGE, "it holds no such image");
}

static int read_docker(struct source *s, struct str text, struct str ref, struct err *e)
{
	autobuf struct buf config = BUF_INIT(IMAGE_DOC_MAX);
	const struct docker_image *image = NULL;
	struct docker_images all;
	char path[4097];

	s->kind = "docker";
	if (image_read_docker(&s->docs[0], text, &all, e) < 0 ||
	    choose_docker(&all, ref, &image, e) < 0)
		return -1;
	if (image->RepoTags.n > 0)
		s->name = image->RepoTags.p[0];
	snprintf(path, sizeof(path), "%.*s", STR_ARG(image->Config));
	if (read_named(s->dir, path, &config, e) < 0 || hash_of(buf_str(&config), s->digest, e) < 0)
		return -1;
	if (!strstr(path, s->digest)) /* docker names it so */
		return err_set(e, ERR_IMAGE, "%.100s is not what its name says", path);
	return read_config(s, buf_str(&config), e) < 0 ? -1 : add_docker_layers(s, image, e);
}

/* ---- either ---------------------------------------------------------------------------------- */

void source_fini(struct source *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->docs); i++)
		image_doc_fini(&s->docs[i]);
	free(s->layers);
}

/* 1, or 0 where there is no such file. */
static int try_read(int dir, const char *name, struct buf *ret, struct err *e)
{
	if (images_read(dir, name, IMAGE_DOC_MAX, ret, e) == 0)
		return 1;
	if (e->code != ERR_PATH_NOT_FOUND)
		return -1;
	*e = ERR_INIT;
	return 0;
}

int source_read(int dir, struct str ref, struct source *ret, struct err *e)
{
	autobuf struct buf layout = BUF_INIT(IMAGE_DOC_MAX);
	autobuf struct buf text = BUF_INIT(IMAGE_DOC_MAX);
	int found = try_read(dir, "oci-layout", &layout, e);

	ret->dir = dir;
	if (found < 0)
		return -1;
	if (found) {
		found = try_read(dir, "index.json", &text, e);
		if (found == 0)
			return err_set(e, ERR_IMAGE, "an OCI layout without index.json");
		return found < 0 || read_oci(ret, buf_str(&text), ref, e) < 0 ? -1 : 1;
	}
	found = try_read(dir, "manifest.json", &text, e);
	return found <= 0 ? found : read_docker(ret, buf_str(&text), ref, e) < 0 ? -1 : 1;
}
