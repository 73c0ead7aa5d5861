#pragma once
/*
 * A tree of files that is built from what strangers say, layer upon layer, below one open directory
 * and never outside of it: every path is resolved by the kernel with that directory as its root
 * (openat2), so that neither "..", nor absolute names, nor any symbolic link leads out, and what
 * was resolved is used by its descriptor.
 *
 * Paths are relative, as archives have them ("./" before them is passed over); refused with
 * ERR_IMAGE are absolute ones, "..", names over 255 and paths over 4,000 bytes, more than 200
 * directories below each other, ways through links that lead nowhere and through what is no
 * directory. A layer has a path once: the second time is ERR_IMAGE too, unless both are
 * directories. What a layer says takes the place of what an earlier one said.
 *
 * All that is made belongs to whoever runs; permissions are the nine bits, and the sticky one of
 * directories, which can always be read, written and searched by their owner. There are no
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
/* Gives a descriptor to write its `size` bytes to, which the caller closes. ERR_TOO_LARGE over the
 * limit. */
int tree_file(struct tree *t, struct str path, uint32_t mode, uint64_t size,
	      struct err *e) MUST_USE;
int tree_symlink(struct tree *t, struct str path, struct str target, struct err *e) MUST_USE;
/* target: path of an existing file or symbolic link. */
int tree_link(struct tree *t, struct str path, struct str target, struct err *e) MUST_USE;
/* Removes what earlier layers had at a path, if anything. Counts as an entry. */
int tree_whiteout(struct tree *t, struct str path, struct err *e) MUST_USE;
/* Removes what earlier layers had in that directory. Counts as an entry. */
int tree_opaque(struct tree *t, struct str path, struct err *e) MUST_USE;

/* Opens a path below root, resolved as above, and creates nothing; flags as of openat(2), with
 * O_CLOEXEC. -1 with errno. */
int tree_open(int root, const char *path, int flags);

/* Removes `name` and all below it. A missing name is no error. -1 with errno. */
int tree_remove(int dir, const char *name);
