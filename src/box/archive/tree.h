#pragma once
/*
 * A tree of files that is built from untrusted archives, layer upon layer, below one open
 * directory. The kernel resolves every path with that directory as its root (openat2), so neither
 * "..", nor absolute names, nor symbolic links lead out. Resolved directories are then used by
 * their descriptors.
 *
 * Paths are relative, as in archives (a leading "./" is ignored). Refused with ERR_IMAGE are
 * absolute paths, "..", names over 255 and paths over 4,000 bytes, more than 200 nested
 * directories, and paths through dangling links or through something that is not a directory. A
 * layer names a path once: the second time is ERR_IMAGE too, unless both are directories. A layer
 * replaces what earlier layers had.
 *
 * Everything belongs to the calling user. Permissions are the nine bits, and the sticky bit of
 * directories; the owner can always read, write and search directories. There are no extended
 * attributes.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

struct tree_limits {
	/* sizes of all files, including holes, and of archive data for them */
	uint64_t bytes;
	uint64_t entries;
};

struct tree_count {
	uint64_t bytes, entries;
};

struct tree;

/* root is borrowed. Counts continue from `count`, those of earlier layers. */
struct tree *tree_new(int root, const struct tree_limits *limits, const struct tree_count *count,
		      struct err *e) MUST_USE;
void tree_free(struct tree *t); /* NULL-safe; leaves the files */
AUTO_DEFINE(tree_free, struct tree)

const struct tree_count *tree_count(const struct tree *t);

int tree_dir(struct tree *t, struct str path, uint32_t mode, struct err *e) MUST_USE;
/* Returns a descriptor to write the file's `size` bytes to, which the caller closes. ERR_TOO_LARGE:
 * over the limit. */
int tree_file(struct tree *t, struct str path, uint32_t mode, uint64_t size,
	      struct err *e) MUST_USE;
int tree_symlink(struct tree *t, struct str path, struct str target, struct err *e) MUST_USE;
/* target: path of an existing file or symbolic link. */
int tree_link(struct tree *t, struct str path, struct str target, struct err *e) MUST_USE;
/* Removes what earlier layers had at a path, if anything. Counts as an entry. */
int tree_whiteout(struct tree *t, struct str path, struct err *e) MUST_USE;
/* Removes what earlier layers had in that directory. Counts as an entry. */
int tree_opaque(struct tree *t, struct str path, struct err *e) MUST_USE;

/* Opens a path below root, resolved as above, without creating anything; flags: those of openat(2),
 * with O_CLOEXEC. -1 with errno. */
int tree_open(int root, const char *path, int flags);

/* Removes `name` and all below it. A missing name is no error. -1 with errno. */
int tree_remove(int dir, const char *name);
