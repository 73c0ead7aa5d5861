#pragma once
/* What two trees differ in, and which files of it only have another path. No I/O. */
#include "hub/workspace/tree.h"
#include "hub/workspace/workspaces.h"

struct compared {
	struct workspace_change change;
	/* Without names; NULL links but of links. */
	struct tree_entry was, is;
	bool has_was, has_is;
	bool moved; /* its other path tells of it */
};

/* A removed and an added file of the same contents become one that was renamed, in the place of the
 * added one. Empty files are not looked at. Of several, those pair first that keep their name, and
 * the rest in the order of their paths. */
int renames_find(struct compared *all, size_t n, struct err *e) MUST_USE;
