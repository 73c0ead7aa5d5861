#pragma once
/*
 * A directory of a revision as an object, in its one canonical form: entries in the order of their
 * names' bytes, numbers in big-endian order. Equal directories are equal objects, so they are
 * stored once, and are compared without being read.
 */
#include "hub/workspace/object.h"

enum tree_type {
	TREE_PIECE = 'f', /* a file of one piece */
	TREE_PIECES = 'F', /* a file of several: the object is a list of them */
	TREE_LINK = 'l', /* a symbolic link */
	TREE_DIR = 'd',
};

/* The limits of a workspace; docs/workspaces.md has them. */
enum {
	WORKSPACE_FILES_MAX = 500000, /* entries of every kind */
	WORKSPACE_DEPTH_MAX = 64, /* directories inside each other */
	WORKSPACE_NAME_MAX = 255, /* bytes of one name */
	WORKSPACE_PATH_MAX = 3072, /* bytes of a path, and of what a link says */
};
#define WORKSPACE_BYTES_MAX (64ull << 30)

/* Strings are borrowed from the object's bytes. */
struct tree_entry {
	enum tree_type type;
	uint16_t mode; /* 0777 */
	int64_t mtime;
	uint32_t mtime_ns;
	uint64_t bytes; /* of a file; of all files in a directory */
	uint32_t count; /* of entries in a directory, at every depth; else 0 */
	struct str name, link;
	struct object_id id; /* of all but links */
};

/* Reads all entries of an object's bytes; owned. NULL with ERR_WORKSPACE: it is not in its
 * canonical form. */
struct tree_entry *tree_read(struct str bytes, size_t *ret_n, struct err *e) MUST_USE;

/* Appends an entry; the caller keeps the order. */
int tree_write(struct buf *to, const struct tree_entry *t, struct err *e) MUST_USE;

/* As names are ordered. */
int tree_compare(struct str a, struct str b);
/* Whether two entries have the same type, mode and contents. */
bool tree_same(const struct tree_entry *a, const struct tree_entry *b);

/* One directory with its bytes. */
struct tree {
	struct buf bytes;
	struct tree_entry *entries;
	size_t n;
};
int tree_load(const struct objects *o, const struct object_id *id, struct tree *ret,
	      struct err *e) MUST_USE;
void tree_fini(struct tree *t); /* of a zeroed one, too */
/* NULL: there is none of that name. */
const struct tree_entry *tree_find(const struct tree *t, struct str name);

/* The pieces of a file. */
struct tree_piece {
	uint32_t bytes;
	struct object_id id;
};
int tree_list_write(struct buf *to, const struct tree_piece *p, struct err *e) MUST_USE;
/* Appends the list of a file's pieces, also of a file of one. */
int tree_list_load(const struct objects *o, const struct tree_entry *file, struct buf *to,
		   struct err *e) MUST_USE;
/* The first piece of a list, which *list loses; false: there is none. */
bool tree_list_next(struct str *list, struct tree_piece *ret);
/* Calls f for each piece of a file, in order, without its contents. */
int tree_pieces(const struct objects *o, const struct tree_entry *file,
		int (*f)(void *arg, const struct tree_piece *p, struct err *e), void *arg,
		struct err *e) MUST_USE;
/* Calls f with the contents of a file from offset on, piece by piece. f returns 1 to stop. */
int tree_content(const struct objects *o, const struct tree_entry *file,
		 int (*f)(void *arg, struct str bytes, struct err *e), void *arg,
		 struct err *e) MUST_USE;
