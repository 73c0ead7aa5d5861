#pragma once
/* Shared by images.c (the store), import.c and source.c. */
#include <limits.h>

#include "base/id.h"
#include "box/archive/image_root.h"
#include "hub/image/images.h"

struct images {
	int dir, image, new; /* open folders */
	images_kept_fn kept; /* NULL: nothing is */
	char path[PATH_MAX - HASH_HEX - 16];
};

/* Takes the lock; closing the descriptor releases it. -1 with *e. */
int images_lock(const struct images *s, struct err *e) MUST_USE;
/* Requires the lock. From now on the name means that image. */
int images_set_name(const struct images *s, struct str name, struct str digest,
		    struct err *e) MUST_USE;
/* Uses an image as a template, with its folder at that path: see images_template(). */
int images_use(const struct image_record *r, const char *folder, box_template_use use, void *to,
	       struct err *e) MUST_USE;
/* Requires the lock. Removes the entries of new/ that nobody has locked, and adds their number. */
int images_sweep(const struct images *s, uint32_t *ret_n, struct err *e) MUST_USE;
/* Writes a file in an open folder, synced to the disk: all of it or nothing. */
int images_write(int dir, const char *name, struct str text, struct err *e) MUST_USE;
/* Reads a regular file below the open folder; ERR_IMAGE if it has more than max bytes or is no
 * file. */
int images_read(int dir, const char *name, size_t max, struct buf *ret, struct err *e) MUST_USE;

/* ---- source.c: what is in an archive ---- */

/* A layer, and what it has to be. */
struct source_layer {
	char path[4096]; /* in the source's folder */
	struct str digest; /* of the file, hex; STR_NONE: not told */
	struct str diff_id; /* of the tar in it, hex */
	uint64_t size; /* with digest */
};

struct source {
	int dir; /* borrowed */
	const char *kind; /* "oci", "docker" */
	struct image_doc docs[3]; /* that the rest lives in */
	char digest[HASH_HEX + 1];
	struct str name; /* that it gives itself, or STR_NONE */
	struct image_config config;
	struct source_layer *layers; /* owned */
	size_t n_layers;
};

/* Reads the documents in the open folder. 1: they hold an image for this machine; 0: there are
 * none. *ret must be zeros before. */
int source_read(int dir, struct str ref, struct source *ret, struct err *e) MUST_USE;
void source_fini(struct source *s);

/*
 * An image in the making: a folder of new/ with root/ in it, locked by its maker until it is
 * published or removed.
 */

struct image_make {
	struct images *s; /* borrowed */
	struct tree_limits limits;
	char id[ID_MAX]; /* of its folder in new/ */
	int dir, root; /* that folder, locked; root in it */

	/* Set by the maker before publishing: */
	char digest[HASH_HEX + 1];
	struct tree_count count;
	struct image_user user;
	struct image_record record; /* without what stands above, and when */
};

/* m must be zeros before, and image_make_end() must follow in any case. limits: zeros mean those
 * of IMAGE_LIMITS. */
int image_make_start(struct image_make *m, struct images *s, const struct tree_limits *limits,
		     struct err *e) MUST_USE;

/* Creates and opens a folder that must not exist. */
int image_make_folder(int dir, const char *name, mode_t mode, struct err *e) MUST_USE;

/* Syncs everything to the disk and adds the image to the store under that name. If the same
 * image exists, that one gets the name. */
int image_make_publish(struct image_make *m, const char *name, struct err *e) MUST_USE;

/* Removes what was not published. */
void image_make_end(struct image_make *m);

/* The failure was not in a sandbox, so the remedies for files there would mislead. */
void images_retell(struct err *e);
