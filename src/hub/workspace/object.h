#pragma once
/*
 * Immutable objects by the BLAKE2b-256 of their kind and bytes: pieces of files, lists of pieces,
 * and directories. Each is a file (0600) in a folder of the hub. New ones are written under another
 * name, synced and renamed when a whole batch is complete, so whatever has its final name is whole.
 * What is read is checked against its name.
 *
 * Only one thread at a time writes; any thread may read.
 */
#include "base/blake2b.h"
#include "base/buf.h"

enum object_kind { OBJECT_PIECE = 'c', OBJECT_LIST = 'l', OBJECT_TREE = 't' };
enum { OBJECT_MAX = 32 << 20 };

struct object_id {
	uint8_t b[BLAKE2B_BYTES];
};

/* Counts of what a batch has added. */
struct object_count {
	uint64_t n, bytes;
};

struct id_set;

struct objects {
	int dir; /* the folder */
	int new; /* of those that are not complete yet */
	struct object_count added; /* by the batch that is open */
	uint64_t left; /* bytes that it may add; no bound until it is set, for each batch */
	struct id_set *marked; /* gets what is put, new or not; NULL: none */
};

/* Opens or makes the folder name of dir; what an earlier process had begun is removed. */
int objects_open(struct objects *o, int dir, struct err *e) MUST_USE;
void objects_close(struct objects *o);

/* Begins a batch; what an earlier one has left is dropped. */
int objects_begin(struct objects *o, struct err *e) MUST_USE;
/* ERR_STORAGE_FULL: the batch would add more than it may. */
int objects_put(struct objects *o, enum object_kind kind, struct str bytes, struct object_id *ret,
		struct err *e) MUST_USE;
/* Syncs and names all of the batch. */
int objects_commit(struct objects *o, struct err *e) MUST_USE;

/* Replaces the contents of `to`. Also finds objects of the batch that is open. ERR_WORKSPACE: it is
 * missing or damaged. */
int objects_get(const struct objects *o, enum object_kind kind, const struct object_id *id,
		struct buf *to, struct err *e) MUST_USE;

/* Calls f for each object of one of OBJECT_FOLDERS folders, with its size. f may remove it. */
enum { OBJECT_FOLDERS = 256 };
typedef int (*objects_each_fn)(void *arg, const struct object_id *id, uint64_t bytes,
			       struct err *e);
int objects_each(const struct objects *o, unsigned folder, objects_each_fn f, void *arg,
		 struct err *e) MUST_USE;
int objects_remove(const struct objects *o, const struct object_id *id, struct err *e) MUST_USE;

/* Opens the folder name in dir, which is made if missing and which only its owner may enter. */
int folder_open(int dir, const char *name, struct err *e) MUST_USE;
/* Removes all that is in a folder, and with `itself` the folder. Follows no link. */
int folder_clear(int dir, const char *name, bool itself, struct err *e) MUST_USE;
