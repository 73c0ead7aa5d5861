#pragma once
/*
 * Trees of revisions as folders that sandboxes mount: NAME/root/workspace/, where NAME is the hash
 * of the tree. They never change, and are made from objects again where they are missing. Files
 * that an earlier tree has are hard links to its files, so that a new revision costs what was
 * changed. Blocking, for the work pool; one thread at a time.
 */
#include "hub/workspace/tree.h"

struct checkouts {
	const struct objects *objects;
	int dir;
};

int checkouts_open(struct checkouts *c, const struct objects *o, int dir, struct err *e) MUST_USE;
void checkouts_close(struct checkouts *c);

/* like: a tree whose folder may be there; NULL: none. */
int checkout_make(const struct checkouts *c, const struct object_id *tree,
		  const struct object_id *like, struct err *e) MUST_USE;
bool checkout_is_there(const struct checkouts *c, const struct object_id *tree);

/* Removes all but those that `wanted` (n of them) names or a sandbox uses. */
int checkouts_trim(const struct checkouts *c, const struct object_id *wanted, size_t n,
		   struct err *e) MUST_USE;
