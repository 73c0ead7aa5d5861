#pragma once
/*
 * An image that is being made, by whatever means: a folder of new/ that its maker holds the lock of, with root/ in
 * it, until it is published or goes.
 */
#include "base/id.h"
#include "box/archive/image_root.h"
#include "hub/image/internal.h"

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

/* *m is zeros before; image_make_end() follows in any case. limits: zeros stand for those of IMAGE_LIMITS. */
int image_make_start(struct image_make *m, struct images *s, const struct tree_limits *limits,
		     struct err *e) MUST_USE;

/* An open folder, which must not be there yet. */
int image_make_folder(int dir, const char *name, mode_t mode, struct err *e) MUST_USE;

/* All is written through to the disk, and the image is in the store under that name; where the same image is there
 * already, that one gets the name. */
int image_make_publish(struct image_make *m, const char *name, struct err *e) MUST_USE;

/* Removes what was not published. */
void image_make_end(struct image_make *m);

/* What went wrong was not in a sandbox, so the remedies for paths and files there would mislead. */
void images_retell(struct err *e);
