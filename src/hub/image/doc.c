#include "hub/image/doc.h"

#include "base/hash.h"

enum {
	VALUES_MAX = 1 << 16,
	NESTED_MAX = 24,
	STRING_MAX = 4096,
	STRINGS_MAX = 1024,
	ARENA_MAX = 16 << 20
};

/* ---- tables ---------------------------------------------------------------------------------- */

#define TEXT(S, m, ...) FIELD(S, m, .max = STRING_MAX, .flags = FIELD_NULLABLE, __VA_ARGS__)
#define TEXTS(S, m, ...)                                                                           \
	FIELD(S, m, .max = STRINGS_MAX, .item_max = 64 * 1024, .flags = FIELD_NULLABLE, __VA_ARGS__)

static const struct field platform_fields[] = {
	TEXT(struct image_platform, architecture, .doc = "amd64, arm64 …"),
	TEXT(struct image_platform, os, .doc = "linux …"),
};
static const struct field_table platform_table = FIELD_TABLE(struct image_platform, platform_fields,
							     .open = true);

static const struct field desc_fields[] = {
	TEXT(struct image_desc, mediaType, .doc = "What the blob is."),
	FIELD(struct image_desc, digest, .flags = FIELD_REQUIRED, .max = 256, .doc = "sha256:…"),
	FIELD(struct image_desc, size, .max = INT64_MAX, .flags = FIELD_REQUIRED, .doc = "Bytes."),
	TEXTS(struct image_desc, urls, .doc = "Where it may be instead."),
	FIELD_OBJECT(struct image_desc, platform, platform_table, .flags = FIELD_NULLABLE,
		     .has = FIELD_HAS(struct image_desc, has_platform), .doc = "What it is for."),
	FIELD(struct image_desc, annotations, .max = STRINGS_MAX, .item_max = 64 * 1024,
	      .flags = FIELD_NULLABLE, .doc = "What is said about it."),
};
static const struct field_table desc_table = FIELD_TABLE(struct image_desc, desc_fields,
							 .open = true);

static const struct field index_fields[] = {
	TEXT(struct image_index, mediaType, .doc = "What this document is."),
	FIELD_OBJECTS(struct image_index, manifests, desc_table, .max = IMAGE_MANIFESTS_MAX,
		      .flags = FIELD_REQUIRED, .doc = "The images."),
};
static const struct field_table index_table = FIELD_TABLE(struct image_index, index_fields,
							  .open = true);

static const struct field manifest_fields[] = {
	TEXT(struct image_manifest, mediaType, .doc = "What this document is."),
	FIELD_OBJECT(struct image_manifest, config, desc_table, .flags = FIELD_REQUIRED,
		     .doc = "The configuration."),
	FIELD_OBJECTS(struct image_manifest, layers, desc_table, .max = IMAGE_LAYERS_MAX,
		      .flags = FIELD_REQUIRED, .doc = "The layers, the lowest first."),
};
static const struct field_table manifest_table = FIELD_TABLE(struct image_manifest, manifest_fields,
							     .open = true);

static const struct field run_fields[] = {
	TEXT(struct image_run, User, .doc = "Who runs."),
	TEXT(struct image_run, WorkingDir, .doc = "Where."),
	TEXTS(struct image_run, Env, .doc = "NAME=VALUE."),
	TEXTS(struct image_run, Entrypoint, .doc = "The program."),
	TEXTS(struct image_run, Cmd, .doc = "Its arguments, or the program."),
};
static const struct field_table run_table = FIELD_TABLE(struct image_run, run_fields, .open = true);

static const struct field rootfs_fields[] = {
	FIELD(struct image_rootfs, diff_ids, .max = IMAGE_LAYERS_MAX, .item_max = 256,
	      .flags = FIELD_NULLABLE, .doc = "Digests of the layers as tar."),
};
static const struct field_table rootfs_table = FIELD_TABLE(struct image_rootfs, rootfs_fields,
							   .open = true);

static const struct field config_fields[] = {
	TEXT(struct image_config, architecture, .doc = "amd64, arm64 …"),
	TEXT(struct image_config, os, .doc = "linux …"),
	FIELD_OBJECT(struct image_config, config, run_table, .flags = FIELD_NULLABLE,
		     .doc = "How programs are run."),
	FIELD_OBJECT(struct image_config, rootfs, rootfs_table, .flags = FIELD_REQUIRED,
		     .doc = "The layers."),
};
static const struct field_table config_table = FIELD_TABLE(struct image_config, config_fields,
							   .open = true);

static const struct field docker_fields[] = {
	FIELD(struct docker_image, Config, .flags = FIELD_REQUIRED, .min = 1, .max = STRING_MAX,
	      .doc = "Path of the configuration."),
	FIELD(struct docker_image, RepoTags, .max = STRINGS_MAX, .item_max = STRING_MAX,
	      .flags = FIELD_NULLABLE, .doc = "Names."),
	FIELD(struct docker_image, Layers, .max = IMAGE_LAYERS_MAX, .item_max = STRING_MAX,
	      .flags = FIELD_REQUIRED, .doc = "Paths of the layers, the lowest first."),
};
static const struct field_table docker_table = FIELD_TABLE(struct docker_image, docker_fields,
							   .open = true);

/* ---- documents ------------------------------------------------------------------------------- */

void image_doc_fini(struct image_doc *d)
{
	json_free(d->json);
	arena_free(d->arena);
	*d = (struct image_doc){ NULL, NULL };
}

static int doc_parse(struct image_doc *d, struct str text, const char *what, struct err *e)
{
	static const struct json_options bounds = { .bytes = IMAGE_DOC_MAX,
						    .values = VALUES_MAX,
						    .depth = NESTED_MAX };

	d->json = json_parse(text, &bounds, e);
	d->arena = d->json ? arena_new(ARENA_MAX) : NULL;
	if (d->arena)
		return 0;
	if (d->json)
		return err_set(e, ERR_LIMIT, "out of memory");
	if (e->code == ERR_INVALID)
		e->code = ERR_IMAGE;
	return err_wrap(e, "%s", what);
}

static int doc_decode(struct image_doc *d, const struct field_table *t, const struct json_val *v,
		      const char *what, void *ret, struct err *e)
{
	if (field_decode(t, v, d->arena, ret, e) == 0)
		return 0;
	if (e->code == ERR_INVALID)
		e->code = ERR_IMAGE;
	return err_wrap(e, "%s", what);
}

static int read_doc(struct image_doc *d, struct str text, const struct field_table *t,
		    const char *what, void *ret, struct err *e)
{
	if (doc_parse(d, text, what, e) < 0)
		return -1;
	return doc_decode(d, t, json_root(d->json), what, ret, e);
}

int image_read_index(struct image_doc *d, struct str text, struct image_index *ret, struct err *e)
{
	return read_doc(d, text, &index_table, "the index", ret, e);
}

int image_read_manifest(struct image_doc *d, struct str text, struct image_manifest *ret,
			struct err *e)
{
	return read_doc(d, text, &manifest_table, "the manifest", ret, e);
}

int image_read_config(struct image_doc *d, struct str text, struct image_config *ret, struct err *e)
{
	return read_doc(d, text, &config_table, "the configuration", ret, e);
}

int image_read_docker(struct image_doc *d, struct str text, struct docker_images *ret,
		      struct err *e)
{
	static const char what[] = "manifest.json";
	struct json_iter it;

	if (doc_parse(d, text, what, e) < 0)
		return -1;
	it = json_iter(json_root(d->json));
	ret->n = json_len(json_root(d->json));
	if (json_type(json_root(d->json)) != JSON_ARRAY || ret->n == 0 ||
	    ret->n > IMAGE_MANIFESTS_MAX)
		return err_set(e, ERR_IMAGE, "%s: no array of 1 to %d images", what,
			       IMAGE_MANIFESTS_MAX);
	ret->p = arena_alloc(d->arena, ret->n * sizeof(*ret->p), e);
	if (!ret->p)
		return -1;
	while (json_next(&it)) {
		if (doc_decode(d, &docker_table, it.val, what, &ret->p[it.index], e) < 0)
			return -1;
	}
	return 0;
}

/* ---- what they say --------------------------------------------------------------------------- */

int image_digest(struct str text, struct str *ret_hex, struct err *e)
{
	static const char kind[] = "sha256:";
	const size_t n = sizeof(kind) - 1;

	if (str_starts(text, kind) && hash_is_hex((struct str){ text.p + n, text.n - n })) {
		*ret_hex = (struct str){ text.p + n, text.n - n };
		return 0;
	}
	return err_set(e, ERR_IMAGE, "\"%.*s\" is no sha256 digest", STR_CUT(text, 80));
}

static bool is_one_of(struct str s, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (str_is(s, names[i]))
			return true;
	}
	return false;
}

bool image_is_index(struct str media_type)
{
	static const char *const names[] = {
		"application/vnd.oci.image.index.v1+json",
		"application/vnd.docker.distribution.manifest.list.v2+json",
	};

	return is_one_of(media_type, names, ARRAY_LEN(names));
}

bool image_is_manifest(struct str media_type)
{
	static const char *const names[] = {
		"application/vnd.oci.image.manifest.v1+json",
		"application/vnd.docker.distribution.manifest.v2+json",
	};

	return is_one_of(media_type, names, ARRAY_LEN(names));
}

int image_check_layer(const struct image_desc *layer, struct err *e)
{
	static const char *const names[] = {
		"application/vnd.oci.image.layer.v1.tar",
		"application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd",
	};

	if (layer->urls.n > 0)
		return err_set(e, ERR_IMAGE, "a layer is elsewhere, at a URL: not fetched");
	if (!is_one_of(layer->mediaType, names, ARRAY_LEN(names)))
		return err_set(e, ERR_IMAGE, "a layer is of a kind that is not known: \"%.*s\"",
			       STR_CUT(layer->mediaType, 100));
	return 0;
}

struct str image_architecture(void)
{
#if defined(__x86_64__)
	return STR_LIT("amd64");
#elif defined(__aarch64__)
	return STR_LIT("arm64");
#endif
}

bool image_fits(const struct image_desc *d)
{
	return !d->has_platform || (str_eq(d->platform.architecture, image_architecture()) &&
				    str_is(d->platform.os, "linux"));
}
