#pragma once
/*
 * Cached results of build steps, so that a change of the last step does not repeat the others: a
 * file step/KEY of the store for each step. KEY is the digest of everything that the first step
 * sees, of what the steps may reach and of all steps up to this one. The file holds the sandbox's
 * changes since the start of the build, as sandbox_write_start() (box/host/box.h) writes them, with
 * the end of an archive; then the SHA-256 of that, in hex.
 *
 * The cache is optional: a result that is damaged, too large or can't be written counts as absent,
 * and no build fails for it. Files appear whole, by a rename. Writing leaves BUILD_CACHE_SPARE of
 * the disk free for the image being built and for others. Beyond BUILD_CACHE_BYTES or
 * BUILD_CACHE_MAX files, the least recently used ones are removed.
 */
#include "hub/image/images.h"

enum { BUILD_CACHE_MAX = 512, BUILD_CACHE_DAYS = 7 };
#define BUILD_CACHE_BYTES (8ull << 30)
#define BUILD_CACHE_SPARE (256ull << 20)

struct build_cache {
	const struct images *s; /* borrowed, as are the next two */
	int aside; /* an open folder that is its user's alone */
	const struct field_strs *lines;
	struct str network; /* image_build.network */
	bool forget; /* nothing is found */
	bool no_keep; /* nothing is stored */
	char (*keys)[HASH_HEX + 1]; /* owned: of each line */
};

/* begin: the digest of everything that the first step sees. The caller sets the rest of *c
 * before. */
int build_cache_init(struct build_cache *c, const char *begin, struct err *e) MUST_USE;
void build_cache_fini(struct build_cache *c);
#define autocache __attribute__((cleanup(build_cache_fini)))

/* The cached result of the most steps: an open file at its start, of which *ret_size bytes are
 * the archive; *ret_done: after how many steps. -1: none. */
int build_cache_find(const struct build_cache *c, size_t *ret_done, uint64_t *ret_size);

/* The result of these first steps is unusable: the next build must not find it. */
void build_cache_forget(const struct build_cache *c, size_t done);

/* An archive that is being stored; NULL if that is impossible. */
struct build_kept;
struct build_kept *build_kept_new(const struct build_cache *c) MUST_USE;
/* false: storing has failed; send no more */
bool build_kept_add(struct build_kept *k, const char *p, size_t n);
/* All is written but the end of the archive: it is the result of the steps up to this one (from
 * 0). Frees k. */
void build_kept_publish(struct build_kept *k, size_t line);
void build_kept_drop(struct build_kept *k); /* NULL-safe */

/* Requires the store's lock. Removes results unused for BUILD_CACHE_DAYS, or all. *ret_n: how
 * many. */
int build_cache_prune(const struct images *s, bool all, uint32_t *ret_n, struct err *e) MUST_USE;
