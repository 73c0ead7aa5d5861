#pragma once
/*
 * holt-pack: archives of snapshots, between tar and tar.zst. The hub starts one for each; what it reads is
 * hostile, so the work is done in a confined process (box/archive/confine.h) with two descriptors and nothing else.
 *
 *	holt-pack pack MAX META		a tar without its end from 0, at most MAX bytes, into the file 1, on the disk
 *	holt-pack unpack MAX DIGEST	the file 0 to 1 as tar; it was damaged if the answer says so, at the end
 *	holt-pack check MAX		copies 0 into the file 1, on the disk: is it a whole archive, and what does it
 *					say of itself; ERR_TOO_LARGE where that allows less than is in it
 *
 * The answer goes to 3, and no answer is a failure.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

enum { PACK_ANSWER_FD = 3, PACK_META_MAX = 2048 };

/* How much tar there may be of a sandbox with this disk: files, with heads of entries and what fills them up. */
static inline uint64_t pack_max(uint64_t disk)
{
	return disk + disk / 2 + (1ull << 30);
}

/* An archive's first entry, what it says of itself. */
#define PACK_META ".wh..wh.holt"

struct pack_answer {
	struct err
		err; /* the rest is good where its code is ERR_NONE. ERR_SNAPSHOT: it is damaged */
	uint64_t bytes; /* of tar.zst */
	uint64_t unpacked; /* of tar */
	char digest[HASH_HEX + 1]; /* SHA-256 of tar.zst */
	char meta[PACK_META_MAX +
		  1]; /* of check: the first entry's content; "": it has no such entry */
};
