#pragma once
/*
 * The image store: sandboxes are made from its images, or from the host. Only its owner may enter
 * the folder:
 *
 * 	lock			held during changes of the entries below
 * 	names.json		maps NAME:TAG to a digest
 * 	image/DIGEST/		one image, immutable: image.json (struct image), root/ (files)
 * 	new/ID/			an image being imported or removed, locked by that process
 * 	step/KEY		results of build steps: hub/image/cache.h
 *
 * An image's files are one tree with all layers applied, which sandboxes share read-only as the
 * lowest layer of their overlays. Lookups cost the same whatever the number of layers, unpacking
 * needs no privileges (whiteouts of overlays would), and the order of layers is applied only once.
 * The digest is that of the source: an image's manifest (for an archive of docker save, its
 * configuration), or the contents of a directory.
 *
 * An image appears atomically: unpacked in new/, synced to the disk, then renamed. While a sandbox
 * uses it, the sandbox's warden holds a lock on its folder, and the image is not removed.
 *
 * All functions block, and those that change the store also wait for each other. An event loop may
 * call only those that read: they open a few small files.
 */
#include "base/buf.h"
#include "base/hash.h"
#include "box/host/box.h"
#include "box/archive/tree.h"
#include "hub/image/doc.h"
#include "net/json/hosts.h"

enum { IMAGE_NAME_MAX = 255, IMAGES_MAX = 4096, IMAGE_ENV_MAX = 200 };

struct images;

/* What image.json says. */
struct image_record {
	struct str digest; /* 64 hex digits */
	struct str source; /* "oci", "docker", "directory", "tar", "build" */
	bool of_host; /* uses the host's /usr: it is built on the template host */
	struct str recipe; /* of a build: the digest of all inputs; else absent */
	int64_t created_ms; /* when it was imported */
	uint64_t bytes, entries; /* of files, of files and directories; all layers together */
	struct field_strs layers; /* digests of the layers as tar, the lowest first */
	struct str user, home,
		workdir; /* user: of the sandbox's user inside; workdir: may be absent */
	struct field_strs env, entrypoint, cmd;
	struct network_hosts network; /* what its sandboxes may reach, where they don't say */
};
extern const struct field_table image_record_table;

struct image {
	struct image_doc doc, names;
	struct image_record record;
};
void image_fini(struct image *i);
#define autoimage __attribute__((cleanup(image_fini)))

struct image_name {
	struct str name, digest;
	bool has_network; /* it stands for that of the image, which never changes */
	struct network_hosts network;
};

struct image_names {
	struct image_name *p;
	size_t n;
};

/* Opens the store at an absolute path, and creates it if needed. */
struct images *images_open(const char *path, struct err *e) MUST_USE;
/* The same without creating it: ERR_TEMPLATE_NOT_FOUND if it does not exist yet. */
struct images *images_look(const char *path, struct err *e) MUST_USE;
void images_close(struct images *s); /* NULL-safe */
AUTO_DEFINE(images_close, struct images)

/* NAME, with ":latest" if it has no tag, in ret. ERR_INVALID for an invalid name: lower-case
 * letters, digits and ._-/: in NAME, letters, digits and ._- in the tag. "host" is reserved.
 * docker.io/NAME, library/NAME and docker.io/library/NAME are NAME. */
int image_name(struct str text, char ret[IMAGE_NAME_MAX + 1], struct err *e) MUST_USE;

/* Finds an image by name, or by at least 12 digits of its digest, with or without "sha256:".
 * ERR_TEMPLATE_NOT_FOUND; ERR_DATA_MISSING: it has a name, and its files are not there. *ret must
 * be zeros before. */
int images_find(const struct images *s, struct str name, struct image *ret, struct err *e) MUST_USE;

/* All names, sorted; they borrow from *doc. */
int images_names(const struct images *s, struct image_doc *doc, struct image_names *ret,
		 struct err *e) MUST_USE;
/* The digests of all images, sorted. The caller frees *ret. Returns how many. */
ssize_t images_list(const struct images *s, char (**ret)[HASH_HEX + 1], struct err *e) MUST_USE;

/* Reads a regular file below the root of an image, as it was built; store: its path. No link is
 * followed out of the root. ERR_PATH_NOT_FOUND; ERR_IMAGE: no such file, or over max bytes. */
int images_file(const char *store, const char *digest, const char *path, size_t max,
		struct buf *ret, struct err *e) MUST_USE;

/* box_template_find (box/host/box.h); arg: the path of a store. Adds HOME, USER and LOGNAME of
 * the image's user to the environment. */
int images_template(void *arg, struct str name, box_template_use use, void *to,
		    struct err *e) MUST_USE;

struct image_import {
	const char *source; /* a path; "-": standard input */
	struct str name; /* STR_NONE: what the archive says */
	/* which image, if it has several: a name or digest; STR_NONE: the only one */
	struct str ref;
	struct tree_limits limits; /* zeros: IMAGE_LIMITS */
};
#define IMAGE_LIMITS ((struct tree_limits){ .bytes = 16ull << 30, .entries = 2000000 })

/* Imports and names an image. *ret_name: the name given. Errors: box/archive/unpack.h,
 * hub/image/doc.h, ERR_INVALID if a name or a choice is missing. A failure leaves nothing
 * behind. */
int images_import(struct images *s, const struct image_import *spec, struct image *ret,
		  char ret_name[IMAGE_NAME_MAX + 1], struct err *e) MUST_USE;

/* ---- builds: build.c ------------------------------------------------------------------------- */

struct build_spec;
struct build_cache;

/* What a build's steps run in, and where the result goes. */
struct image_steps {
	const struct build_spec *spec;
	box_template_find find; /* the template of the sandbox; its name does not matter */
	void *find_arg;
	int to; /* a file for the tar of its root at the end, without mounts */
	const struct build_cache *cache; /* of spec->run: hub/image/cache.h */
};

struct image_build {
	int dir; /* the folder: open, borrowed */
	const char *name; /* as of image_name() */
	bool no_cache; /* build it even if the same was built before */
	bool no_keep; /* results of steps are not kept for later builds */
	struct str network; /* what the steps may reach, in an order of its own; empty: nothing */
	/* Runs the steps; the caller blocks meanwhile. */
	int (*run)(void *arg, const struct image_steps *steps, struct err *e);
	void *arg;
};

/* Builds and names an image by the folder's holt.json (hub/image/build_doc.h). If the same was
 * built before, judged by contents, that image gets the name and *ret_cached is true. Errors:
 * build_read(), ERR_INVALID for files that are not in the folder, ERR_TEMPLATE_NOT_FOUND for the
 * base, those of run. A failure leaves nothing behind. */
int images_build(struct images *s, const struct image_build *b, struct image *ret, bool *ret_cached,
		 struct err *e) MUST_USE;

/* Removes the remains of killed imports and builds, as each new import or build does. */
int images_tidy(struct images *s, struct err *e) MUST_USE;

/* What sandboxes of the image of this name may reach from now on, where they don't say; until the
 * name is given to another image. A digest has the network of its image. */
int images_set_network(struct images *s, struct str name, const struct network_hosts *network,
		       struct err *e) MUST_USE;

/* Lets fetch() put an OCI layout into a folder of the store, as `layout`, and imports that;
 * spec->source is not used. fetch() gets the folder open and by path, and may leave anything in
 * it. */
int images_fetch(struct images *s,
		 int (*fetch)(void *arg, int dir, const char *path, struct err *e), void *arg,
		 const struct image_import *spec, struct image *ret,
		 char ret_name[IMAGE_NAME_MAX + 1], struct err *e) MUST_USE;

/* Whether something that does not run needs an image, such as a stopped sandbox. 1: it does; -1:
 * that can't be told, with *e. */
typedef int (*images_kept_fn)(const char *digest, struct err *e);
/* From now on, images_remove() and images_prune() keep those. */
void images_keep_by(struct images *s, images_kept_fn kept);

/* The name (as of image_name()) is from now on that of this image, which the store has. */
int images_tag(struct images *s, struct str name, struct str digest, struct err *e) MUST_USE;

/* Removes a name, and with its last name the image; a digest removes the image with all names.
 * ERR_CONFLICT while sandboxes use the image, or it is kept: then nothing is removed. */
int images_remove(struct images *s, struct str name, struct err *e) MUST_USE;

struct images_pruned {
	uint32_t images; /* that had no name */
	uint32_t leftovers; /* of imports that were killed */
	uint32_t steps; /* what builds had kept of their lines */
	uint32_t in_use; /* not removed */
};
/* on_image: called for each that was removed. all_steps: also those used within BUILD_CACHE_DAYS
 * (hub/image/cache.h). */
int images_prune(struct images *s, bool all_steps, void (*on_image)(const char *digest),
		 struct images_pruned *ret, struct err *e) MUST_USE;
