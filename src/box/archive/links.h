#pragma once
/*
 * Files with several names, as a walk of a tree meets them. Where each was met first is remembered
 * by its name and its directory, and a directory only once for all files in it: what a path costs
 * here is less than what its names have cost whoever made them.
 */
#include <sys/stat.h>

#include "box/archive/tar.h"

/* Enough for every file on a disk of so many bytes, where inodes cost as in store.c. */
#define LINKS_FOR_DISK(bytes) ((size_t)((bytes) / 16))

enum { LINKS_BUCKETS = 4096 };

/* Zeroed at the start, but for bytes_max. */
struct links {
	size_t bytes_max; /* that it may take beside itself */
	struct link *buckets[LINKS_BUCKETS];
	struct links_chunk *chunks; /* what all else is allocated from */
	size_t bytes;
	struct link_dir *dir; /* of the file that was remembered last; NULL: the top */
	char path[TAR_PATH_MAX]; /* its path, and further names behind it */
	size_t path_n;
	char first[TAR_PATH_MAX];
};

/* The path under which this file was met first, valid until the next call; NULL: it was not met
 * before, and is remembered under `path`, from the top without a slash. Past bytes_max nothing more
 * is remembered: further names then seem to be files of their own. A walk that goes through
 * directories one after another, as all do, remembers each of them once. */
const char *links_first(struct links *l, const struct stat *st, const char *path);

void links_fini(struct links *l);
