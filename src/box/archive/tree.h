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
	uint64_t bytes; /* of all files, holes included, and of what archives have of them */
	uint64_t entries;
};

struct tree_count {
	uint64_t bytes, entries;
};

struct tree;

/* root is borrowed. Counts go on from `count`: what earlier layers had. */
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
/* target: a path as the others, of a file or symbolic link that is there. */
int tree_link(struct tree *t, struct str path, struct str target, struct err *e) MUST_USE;
/* Removes what earlier layers had there; no error where they had nothing. Counts as an entry. */
int tree_whiteout(struct tree *t, struct str path, struct err *e) MUST_USE;
/* Removes what earlier layers had in that directory. Counts as an entry. */
int tree_opaque(struct tree *t, struct str path, struct err *e) MUST_USE;

/* A path below root resolved as above, without making anything; flags as of openat(2), O_CLOEXEC is
 * added. -1 with errno. */
int tree_open(int root, const char *path, int flags);

/* Removes `name` and all below it. -1 with errno; what is not there is no error. */
int tree_remove(int dir, const char *name);
