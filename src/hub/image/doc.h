#pragma once
/*
 * The JSON documents of images, from untrusted sources: those of the OCI image specification 1.1
 * (index, manifest, configuration) and of `docker save` (manifest.json). Unknown members are
 * ignored; known ones must have their type and bounds, else ERR_IMAGE. No I/O.
 */
#include "base/arena.h"
#include "json/field/field.h"

enum {
	IMAGE_DOC_MAX = 4 << 20, /* bytes of one document */
	IMAGE_LAYERS_MAX = 512,
	IMAGE_MANIFESTS_MAX = 256, /* of an index */
};

struct image_platform {
	struct str architecture, os;
};

/* What names a blob. */
struct image_desc {
	struct str mediaType, digest;
	uint64_t size;
	struct field_strs urls;
	bool has_platform;
	struct image_platform platform;
	struct field_map annotations;
};

struct image_descs {
	struct image_desc *p;
	size_t n;
};

struct image_index {
	struct str mediaType;
	struct image_descs manifests;
};

struct image_manifest {
	struct str mediaType;
	struct image_desc config;
	struct image_descs layers;
};

/* The part of a configuration that says how to run programs. */
struct image_run {
	struct str User, WorkingDir;
	struct field_strs Env, Entrypoint, Cmd;
};

struct image_rootfs {
	struct field_strs diff_ids;
};

struct image_config {
	struct str architecture, os;
	struct image_run config;
	struct image_rootfs rootfs;
};

/* An image in a `docker save` archive: paths inside it. */
struct docker_image {
	struct str Config;
	struct field_strs RepoTags, Layers;
};

struct docker_images {
	struct docker_image *p;
	size_t n;
};

/* A parsed document, and the arena with what was decoded from it. */
struct image_doc {
	struct json_doc *json;
	struct arena *arena;
};
void image_doc_fini(struct image_doc *d);
#define autodoc __attribute__((cleanup(image_doc_fini)))

/* *ret borrows from *d, which must be zeros before. */
int image_read_index(struct image_doc *d, struct str text, struct image_index *ret,
		     struct err *e) MUST_USE;
int image_read_manifest(struct image_doc *d, struct str text, struct image_manifest *ret,
			struct err *e) MUST_USE;
int image_read_config(struct image_doc *d, struct str text, struct image_config *ret,
		      struct err *e) MUST_USE;
int image_read_docker(struct image_doc *d, struct str text, struct docker_images *ret,
		      struct err *e) MUST_USE;

/* The 64 hex digits of "sha256:…". ERR_IMAGE for any other digest. */
int image_digest(struct str text, struct str *ret_hex, struct err *e) MUST_USE;

bool image_is_index(struct str media_type);
bool image_is_manifest(struct str media_type);
/* Whether a layer is in the archive and of a supported type; else ERR_IMAGE with the reason. */
int image_check_layer(const struct image_desc *layer, struct err *e) MUST_USE;

/* Whether the image is for this machine; one that does not say fits all. */
bool image_fits(const struct image_desc *d);
struct str image_architecture(void); /* of this machine, as images call it */
