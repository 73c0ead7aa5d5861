#pragma once
/*
 * What the lines of a build have made, so that who changes the last one does not run those before
 * it again: a file of the store for each line, step/KEY. KEY is the digest of all that the first
 * line finds and of all lines up to this one. In the file is what the sandbox had changed then
 * against what the build began with, as sandbox_write_start() (box/host/box.h) writes it, with the
 * end of an archive; behind it the SHA-256 of that, in hex.
 *
 * Nobody needs it: what is damaged, too large or can't be written is as if it had never been, and
 * no build fails for it. It comes into being by a rename, whole. What is being written leaves
 * BUILD_CACHE_SPARE of the disk to the image that is being built and to others. Past
 * BUILD_CACHE_BYTES or BUILD_CACHE_MAX files those go that were not used for the longest time.
 */
#include "hub/image/images.h"

enum { BUILD_CACHE_MAX = 512, BUILD_CACHE_DAYS = 7 };
#define BUILD_CACHE_BYTES (8ull << 30)
#define BUILD_CACHE_SPARE (256ull << 20)

struct build_cache {
	const struct images *s; /* borrowed, as are the next two */
	int aside; /* an open folder that is its user's alone */
	const struct field_strs *lines;
	bool forget; /* nothing is found */
	char (*keys)[HASH_HEX + 1]; /* owned: of each line */
};

/* begin: the digest of all that the first line finds. The rest of *c is set before. */
int build_cache_init(struct build_cache *c, const char *begin, struct err *e) MUST_USE;
void build_cache_fini(struct build_cache *c);
#define autocache __attribute__((cleanup(build_cache_fini)))

/* What the most lines have made that was kept: the file, from its beginning, of which *ret_size
 * bytes are the archive; *ret_done: of how many lines. -1: of none. */
int build_cache_find(const struct build_cache *c, size_t *ret_done, uint64_t *ret_size);

/* What these first lines have made is of no use: the next build shall not find it. */
void build_cache_forget(const struct build_cache *c, size_t done);

/* An archive that is being kept; NULL where it can't be. */
struct build_kept;
struct build_kept *build_kept_new(const struct build_cache *c) MUST_USE;
/* false: this one is not kept, and nothing more is wanted of it. */
bool build_kept_add(struct build_kept *k, const char *p, size_t n);
/* All of it has come but the end of the archive: it is what the lines up to this one (from 0) have
 * made. Frees k. */
void build_kept_publish(struct build_kept *k, size_t line);
void build_kept_drop(struct build_kept *k); /* NULL-safe */

/* With the store's lock: removes what was not used for BUILD_CACHE_DAYS, or all; *ret_n: how
 * many. */
int build_cache_prune(const struct images *s, bool all, uint32_t *ret_n, struct err *e) MUST_USE;
