#pragma once
/*
 * coding.snapshot_create, .snapshot_list, .snapshot_diff and .snapshot_restore: results that doors
 * look at, and what is said of changes.
 */
#include <stdatomic.h>

#include "hub/workspace/tree.h"
#include "op/coding/session.h"

struct coding_snapshot {
	struct str name, description;
	struct str created_at, expires_at; /* RFC 3339 */
	uint64_t files; /* and directories and links */
	uint64_t bytes, left_out;
	struct str left_out_names; /* some of them; of a new one */
	struct str gone; /* the name of the one that went for a new one */
};

struct coding_snapshots {
	struct {
		const struct coding_snapshot *p;
		size_t n;
	} snapshots; /* the newest first */
};

/* coding.snapshot_diff and .snapshot_restore */
struct coding_changes {
	struct str name;
	struct str text; /* what differs; a line for each that was restored */
	uint64_t changed, added, removed; /* files, directories and links */
	uint64_t times; /* of which the times alone differ */
	bool more; /* than text has */
};

/* ---- what is said of changes: for the work pool -------------------------------------------- */

struct change_tell {
	const struct objects *objects;
	const atomic_bool *stop;
	struct str below; /* only this path, and what is below it; STR_NONE: all */
	bool contents; /* also what lines differ */
	struct buf text;
	uint64_t changed, added, removed, times;
	bool more;
};
enum { CHANGE_TEXT_MAX = 256 << 10 };

/* A tree_diff_fn (hub/workspace/differ.h), for tree_diff_exact(). */
int change_tell(void *arg, struct str path, const struct tree_entry *was,
		const struct tree_entry *is, struct err *e);
