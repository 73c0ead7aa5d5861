#pragma once
/*
 * Sealed text: what a stranger keeps for us and gives back, such as the state of a request that is
 * to be continued. He can neither read nor change it, nor pass it off as belonging to something
 * else. XChaCha20-Poly1305 with a random nonce, as text of A-Z a-z 0-9 - _.
 *
 * The context says what the sealed bytes belong to (whose they are, which request). It is not in
 * the text: who opens it has to say the same. A ring holds several keys, so that what was sealed
 * before a change of the key still opens for a while, and so that several processes with the same
 * keys open each other's.
 */
#include <stdint.h>

#include "base/buf.h"

enum {
	SEAL_KEY_BYTES = 32,
	SEAL_KEYS = 4, /* of a ring; one more drops the oldest */
	SEAL_PLAIN_MAX = 8 << 20, /* bytes in one text */
};

struct seal_ring;

/* A ring with one random key. NULL with *e: ERR_LIMIT without memory. */
struct seal_ring *seal_ring_new(struct err *e) MUST_USE;
void seal_ring_free(struct seal_ring *r); /* NULL-safe; wipes the keys */
AUTO_DEFINE(seal_ring_free, struct seal_ring)

/* From now on this key seals; the others still open. Copied. A key that is in the ring already
 * becomes its newest. ERR_INVALID unless it has SEAL_KEY_BYTES bytes. */
int seal_ring_add(struct seal_ring *r, struct str key, struct err *e) MUST_USE;

/* The same with a random key. */
void seal_ring_turn(struct seal_ring *r);

/* Forgets all keys but the newest: nothing that they sealed opens any more. */
void seal_ring_trim(struct seal_ring *r);

/* Appends the text. expires: in whatever unit and clock the opener counts. ERR_TOO_LARGE over
 * SEAL_PLAIN_MAX or the buffer's maximum. */
int seal(const struct seal_ring *r, struct buf *to, struct str plain, struct str context,
	 uint64_t expires, struct err *e) MUST_USE;

/* Appends the bytes that were sealed. ERR_INVALID, with the same words for all, where the text is
 * none of ours, was changed, belongs to another context or was sealed with a forgotten key;
 * ERR_TIMEOUT where now is past its time; ERR_TOO_LARGE and ERR_LIMIT from the buffer. */
int seal_open(const struct seal_ring *r, struct buf *to, struct str text, struct str context,
	      uint64_t now, struct err *e) MUST_USE;

/* Bytes that the text of n bytes has. */
size_t seal_text_size(size_t n);
