#pragma once
/*
 * holt-pack: converts archives of snapshots between tar and tar.zst. The hub starts one process for
 * each. Its input is untrusted, so it is confined (box/archive/confine.h) and holds only the
 * descriptors it needs.
 *
 * 	holt-pack pack MAX META		packs a tar of at most MAX bytes without end marker from
 * 					fd 0 into the file fd 1, and syncs it
 * 	holt-pack unpack MAX DIGEST	unpacks the file fd 0 as tar to fd 1; the answer, sent at
 * 					the end, tells whether it was damaged
 * 	holt-pack check MAX		copies fd 0 into the file fd 1, syncs it, and reports its
 * 					description if it is a whole archive; ERR_TOO_LARGE: its
 * 					content exceeds the limit it declares
 *
 * The answer goes to fd 3. No answer means failure.
 */
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"

enum { PACK_ANSWER_FD = 3, PACK_META_MAX = 2048 };

/* Upper limit of the tar of a sandbox with this disk: files, headers and padding. */
static inline uint64_t pack_max(uint64_t disk)
{
	return disk + disk / 2 + (1ull << 30);
}

/* The first entry of an archive: its description. */
#define PACK_META ".wh..wh.holt"

struct pack_answer {
	/* the rest is valid if its code is ERR_NONE. ERR_SNAPSHOT: the archive is damaged */
	struct err err;
	uint64_t bytes; /* size of the tar.zst */
	uint64_t unpacked; /* size of the tar */
	char digest[HASH_HEX + 1]; /* SHA-256 of tar.zst */
	char meta[PACK_META_MAX +
		  1]; /* of check: the first entry's content; "": it has no such entry */
};
