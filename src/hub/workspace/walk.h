#pragma once
/* Visits what is in a tree, step by step: whoever walks may stop anywhere and go on later. A
 * directory comes before what is in it. */
#include "hub/workspace/tree.h"

struct tree_walk {
	const struct objects *o;
	struct tree_frame {
		struct tree tree;
		size_t next; /* entry */
		size_t path_n; /* of its directory */
	} frames[WORKSPACE_DEPTH_MAX + 1];
	size_t depth; /* 0: nothing is being walked */
	struct buf path; /* of the last entry */
};

/* The walk needs no other way to begin; what was being walked is dropped. */
void tree_walk_init(struct tree_walk *w, const struct objects *o);
void tree_walk_fini(struct tree_walk *w);

/* Goes into a directory: the top, or that of the last entry. -1: it can't be read, and the walk
 * goes on behind it. */
int tree_walk_enter(struct tree_walk *w, const struct object_id *id, struct err *e) MUST_USE;
/* The next entry, borrowed until the next call. NULL: the walk has ended. */
const struct tree_entry *tree_walk_next(struct tree_walk *w);
