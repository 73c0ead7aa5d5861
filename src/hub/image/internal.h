#pragma once
/* What images.c (the store), import.c and source.c share. */
#include <limits.h>

#include "base/id.h"
#include "box/archive/image_root.h"
#include "hub/image/images.h"

struct images {
	int dir, image, new; /* open folders */
	char path[PATH_MAX - HASH_HEX - 16];
};

/* Takes the lock; closing the descriptor lets it go. -1 with *e. */
int images_lock(const struct images *s, struct err *e) MUST_USE;
/* With the lock: the name means that image from now on. */
int images_set_name(const struct images *s, struct str name, struct str digest,
		    struct err *e) MUST_USE;
/* Has an image used as a template, whose folder is at that path: as images_template(). */
int images_use(const struct image_record *r, const char *folder, box_template_use use, void *to,
	       struct err *e) MUST_USE;
/* With the lock: removes what is in new/ and nobody holds a lock on, and adds how many that
 * were. */
int images_sweep(const struct images *s, uint32_t *ret_n, struct err *e) MUST_USE;
/* A file of an open folder, whole on the disk or not at all. */
int images_write(int dir, const char *name, struct str text, struct err *e) MUST_USE;
/* A regular file, found below the open folder; ERR_IMAGE where it has more than max bytes or is
 * none. */
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

/* Reads the documents in the open folder, which hold an image for this machine: 1; or 0: there is
 * none of them. *ret is zeros before. */
int source_read(int dir, struct str ref, struct source *ret, struct err *e) MUST_USE;
void source_fini(struct source *s);
#define autosource __attribute__((cleanup(source_fini)))

/*
 * An image that is being made, by whatever means: a folder of new/ that its maker holds the lock
 * of, with root/ in it, until it is published or goes.
 */

struct image_make {
	struct images *s; /* borrowed */
	struct tree_limits limits;
	char id[ID_MAX]; /* of its folder in new/ */
	int dir, root; /* that folder, locked; root in it */

	/* What the maker finds out, before it publishes: */
	char digest[HASH_HEX + 1];
	struct tree_count count;
	struct image_user user;
	struct image_record record; /* without what stands above, and when */
};

/* *m is zeros before; image_make_end() follows in any case. limits: zeros stand for those of
 * IMAGE_LIMITS. */
int image_make_start(struct image_make *m, struct images *s, const struct tree_limits *limits,
		     struct err *e) MUST_USE;

/* An open folder, which must not be there yet. */
int image_make_folder(int dir, const char *name, mode_t mode, struct err *e) MUST_USE;

/* All is written through to the disk, and the image is in the store under that name; where the same
 * image is there already, that one gets the name. */
int image_make_publish(struct image_make *m, const char *name, struct err *e) MUST_USE;

/* Removes what was not published. */
void image_make_end(struct image_make *m);

/* What went wrong was not in a sandbox, so the remedies for paths and files there would mislead. */
void images_retell(struct err *e);
