#pragma once
/* Marks all objects of trees, step by step, each object once. */
#include "hub/workspace/id_set.h"
#include "hub/workspace/walk.h"

struct marker {
	struct tree_walk walk;
	struct id_set ids;
};

void marker_init(struct marker *m, const struct objects *o);
void marker_fini(struct marker *m);
/* Begins with a tree; the one before must have ended. ERR_WORKSPACE, of both: something that is
 * needed can't be read, so what is unmarked may be needed, too. */
int marker_tree(struct marker *m, const struct object_id *tree, struct err *e) MUST_USE;
/* 1: the tree has ended. */
int marker_step(struct marker *m, struct err *e) MUST_USE;
