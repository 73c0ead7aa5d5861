#pragma once
/*
 * Writes what differs between two trees as an archive of changes that makes one of the other: an
 * exact one, see struct file_upload_opts. Files whose times alone differ are in it, too. Blocking,
 * for the work pool.
 */
#include <stdatomic.h>

#include "hub/workspace/tree.h"

struct changes_spec {
	const struct objects *objects;
	int to; /* a pipe; it becomes non-blocking */
	const atomic_bool *stop; /* becomes true: give up */
	/* The content of each file that is written, in pieces; ends: that was the last, and bytes
	 * are empty. May be NULL. */
	void (*on_content)(void *arg, struct str path, struct str bytes, bool ends);
	void *arg;
};

/* ERR_CANCELLED: it was given up, or nobody reads. */
int changes_write(const struct changes_spec *spec, const struct object_id *from,
		  const struct object_id *to, struct err *e) MUST_USE;
