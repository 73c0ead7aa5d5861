#pragma once
/*
 * Makes the tree of a revision from a tar stream: changes to an earlier tree, or a whole one.
 * Blocking, for the work pool. The stream is hostile: what sandboxes and clients say. Memory grows
 * with the number of entries, which is limited, and not with their contents.
 */
#include <stdatomic.h>

#include "hub/workspace/tree.h"

struct take;

struct take_spec {
	struct objects *objects; /* with a batch open; borrowed */
	/* the first name of each path, which is removed; others are ignored. NULL: all are taken */
	const char *top;
	/* ".wh.NAME" removes NAME, ".wh..wh..opq" what its directory had. For the top, either
	 * means that nothing of the earlier tree is left; a top that is no directory is refused. */
	bool changes;
	bool strict; /* devices, pipes and sockets are refused, not left out */
	const atomic_bool *stop; /* becomes true: give up. NULL: never */
	uint64_t bytes_max; /* of all files; 0: WORKSPACE_BYTES_MAX */
};

enum { TAKE_NAMES_MAX = 1024 };

struct take_result {
	struct object_id tree;
	uint32_t count; /* entries */
	uint64_t bytes;
	uint32_t left_out; /* entries that never belong to a workspace, see leave_out.h */
	char names[TAKE_NAMES_MAX]; /* the first of them, comma-separated, if they are printable */
};

struct take *take_new(const struct take_spec *spec, struct err *e) MUST_USE;
void take_free(struct take *t); /* NULL-safe */
AUTO_DEFINE(take_free, struct take)

/* Reads the archive to the end of fd, which may end without its last zeros. */
int take_read(struct take *t, int fd, struct err *e) MUST_USE;

/* base: the tree that the changes are to; NULL: an empty one. */
int take_tree(struct take *t, const struct object_id *base, struct take_result *ret,
	      struct err *e) MUST_USE;
