#pragma once
/* The differences of two trees. Directories with the same object are not read. */
#include "hub/workspace/tree.h"

/* path: borrowed until it returns. was, is: NULL where there is none; else both are files, links or
 * directories. A directory comes before what is in it. 1: enough. */
typedef int (*tree_diff_fn)(void *arg, struct str path, const struct tree_entry *was,
			    const struct tree_entry *is, struct err *e);

/* a, b: NULL: an empty one. Stops where f does not return 0. */
int tree_diff(const struct objects *o, const struct object_id *a, const struct object_id *b,
	      tree_diff_fn f, void *arg, struct err *e) MUST_USE;
/* The same for who makes one of the other: also entries that differ in their times alone, and
 * directories in which something differs. One that is gone comes behind what was in it. */
int tree_diff_exact(const struct objects *o, const struct object_id *a, const struct object_id *b,
		    tree_diff_fn f, void *arg, struct err *e) MUST_USE;
