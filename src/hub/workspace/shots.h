#pragma once
/*
 * Snapshots of the folders in which coding sessions work (docs/coding.md), "shots" here: a tree of
 * objects with a name. Each principal and folder has a store of its own below one folder of the
 * hub's user, which hubs share: who has it open has it alone. Blocking, for the work pool.
 *
 * A shot exists when its objects are synced and its row has its name, in this order. What a process
 * that was killed has left is removed by the next one.
 *
 * A folder with a lock instead of rows of the registry: `holt mcp` has no registry, and several of
 * them share the data folder.
 */
#include <stdatomic.h>

#include "hub/workspace/room.h"
#include "hub/workspace/tree.h"

enum {
	SHOTS_MAX = 50, /* of a store; then the oldest one goes for a new one */
	SHOT_NAME_MAX = 64,
	SHOT_DESCRIPTION_MAX = 1024,
};

struct shot {
	char name[SHOT_NAME_MAX + 1];
	char description[SHOT_DESCRIPTION_MAX + 1];
	struct object_id tree;
	int64_t created_ms, expires_ms; /* Unix time */
	uint64_t files, bytes, left_out;
};

struct shots_of {
	const char *folder; /* of all stores: absolute, made if missing */
	struct str owner, place; /* whose, and of what */
	const atomic_bool *stop; /* becomes true: do not wait any longer */
	struct room room; /* for what shots_begin() begins */
};

struct shots {
	int dir, rows;
	struct objects objects;
};
#define SHOTS_NONE ((struct shots){ .dir = -1, .rows = -1, .objects = { .dir = -1, .new = -1 } })

/* Waits until nobody else has it open. ERR_CONFLICT: that takes too long. */
int shots_open(struct shots *s, const struct shots_of *of, struct err *e) MUST_USE;
void shots_close(struct shots *s); /* of SHOTS_NONE, too */

/* Begins a batch of objects, within the room that is left when stores that are over have gone. */
int shots_begin(struct shots *s, const struct shots_of *of, struct err *e) MUST_USE;

/* Those that have not ended yet, the newest first; ret has room for SHOTS_MAX. */
int shots_list(const struct shots *s, struct shot *ret, size_t *ret_n, struct err *e) MUST_USE;
/* ERR_SNAPSHOT_NOT_FOUND, which says what there is. */
int shots_find(const struct shots *s, struct str name, struct shot *ret, struct err *e) MUST_USE;

/* Letters, digits, "_", and behind the first "." and "-". */
int shot_name_check(struct str name, struct err *e) MUST_USE;

/* Keeps the batch of objects that is open, and the shot. ERR_NAME_TAKEN: one has its name.
 * ret_gone: SHOT_NAME_MAX + 1 bytes, the name of the one that went for it; "". */
int shots_keep(struct shots *s, struct shot *shot, char *ret_gone, struct err *e) MUST_USE;

/* Removes stores whose shots have all ended, and which nobody has open. */
void shots_trim(const char *folder);
