#pragma once
/*
 * Sealed text: data that an untrusted client stores for us and returns, such as the state of a
 * request to be continued. The client can't read or change it, or use it for another purpose.
 * XChaCha20-Poly1305 with a random nonce, encoded in A-Z a-z 0-9 - _.
 *
 * The context says what the sealed data belongs to (a principal, a request). It is not in the text:
 * the opener must give the same context.
 *
 * A ring holds several keys, so that text sealed before a change of the key can be opened for a
 * while, and so that processes with the same keys can open each other's text.
 */
#include <stdint.h>

#include "base/buf.h"

enum {
	SEAL_KEY_BYTES = 32,
	SEAL_KEYS = 4, /* keys of a ring; one more drops the oldest */
	SEAL_PLAIN_MAX = 8 << 20, /* bytes in one text */
};

struct seal_ring;

/* A ring with one random key. NULL with *e: ERR_LIMIT without memory. */
struct seal_ring *seal_ring_new(struct err *e) MUST_USE;
void seal_ring_free(struct seal_ring *r); /* NULL-safe; wipes the keys */
AUTO_DEFINE(seal_ring_free, struct seal_ring)

/* Seals with this key from now on; the others still open. The key is copied. A key that is in
 * the ring already becomes the newest. ERR_INVALID unless it has SEAL_KEY_BYTES bytes. */
int seal_ring_add(struct seal_ring *r, struct str key, struct err *e) MUST_USE;

/* The same with a random key. */
void seal_ring_turn(struct seal_ring *r);

/* Deletes all keys but the newest: text that they sealed no longer opens. */
void seal_ring_trim(struct seal_ring *r);

/* Appends the text. expires: in any unit and clock that the opener shares. ERR_TOO_LARGE over
 * SEAL_PLAIN_MAX or the buffer's maximum. */
int seal(const struct seal_ring *r, struct buf *to, struct str plain, struct str context,
	 uint64_t expires, struct err *e) MUST_USE;

/* Appends the sealed bytes. ERR_INVALID, with one message for all cases, if the text is invalid,
 * changed, of another context, or sealed with a deleted key; ERR_TIMEOUT if it has expired;
 * ERR_TOO_LARGE and ERR_LIMIT from the buffer. */
int seal_open(const struct seal_ring *r, struct buf *to, struct str text, struct str context,
	      uint64_t now, struct err *e) MUST_USE;

/* Bytes that the text of n bytes has. */
size_t seal_text_size(size_t n);
