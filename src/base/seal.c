/*
 * The text, before base64url:
 *
 *	version (1)  key (4)  nonce (24)  encrypted: expiry (8, big-endian) plain (n)  tag (16)
 *
 * `key` names the key, so that a ring of several tries one: the first bytes of a hash of it.
 * Version, key and the context are authenticated with the rest. A random nonce of 192 bits never
 * comes twice, whoever else seals with the same key.
 */
#include "base/seal.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum {
	VERSION = 1,
	ID_BYTES = 4,
	NONCE_BYTES = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
	TAG_BYTES = crypto_aead_xchacha20poly1305_ietf_ABYTES,
	HEAD_BYTES = 1 + ID_BYTES,
	EXPIRY_BYTES = 8,
	OVERHEAD = HEAD_BYTES + NONCE_BYTES + EXPIRY_BYTES + TAG_BYTES,
	CONTEXT_BYTES = 32, /* contexts are hashed: they may be long */
	VARIANT = sodium_base64_VARIANT_URLSAFE_NO_PADDING,
};

_Static_assert(SEAL_KEY_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
	       "a key of the ring is a key of the cipher");

struct key {
	unsigned char id[ID_BYTES];
	unsigned char bytes[SEAL_KEY_BYTES];
};

struct seal_ring {
	struct key keys[SEAL_KEYS]; /* newest first */
	unsigned n;
};

/* --- the ring --- */

static int seal_refuse(struct err *e)
{
	return err_set(e, ERR_INVALID, "the sealed text is not valid here");
}

static const struct key *seal_find(const struct seal_ring *r, const unsigned char id[ID_BYTES])
{
	for (unsigned i = 0; i < r->n; i++) {
		if (memcmp(r->keys[i].id, id, ID_BYTES) == 0)
			return &r->keys[i];
	}
	return NULL;
}

/* Puts the key first. It replaces itself, nothing, or the oldest key. */
static void seal_add(struct seal_ring *r, const unsigned char bytes[SEAL_KEY_BYTES])
{
	const struct key *old;
	struct key k;
	size_t at;

	memcpy(k.bytes, bytes, SEAL_KEY_BYTES);
	crypto_generichash(k.id, ID_BYTES, bytes, SEAL_KEY_BYTES, NULL, 0);
	old = seal_find(r, k.id);
	at = old ? (size_t)(old - r->keys) : r->n < SEAL_KEYS ? r->n++ : SEAL_KEYS - 1;
	memmove(r->keys + 1, r->keys, at * sizeof(k));
	r->keys[0] = k;
	sodium_memzero(&k, sizeof(k));
}

struct seal_ring *seal_ring_new(struct err *e)
{
	struct seal_ring *r;

	if (sodium_init() < 0) {
		err_set(e, ERR_IO, "libsodium can't start");
		return NULL;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	seal_ring_turn(r);
	return r;
}

void seal_ring_free(struct seal_ring *r)
{
	if (!r)
		return;
	sodium_memzero(r, sizeof(*r));
	free(r);
}

int seal_ring_add(struct seal_ring *r, struct str key, struct err *e)
{
	if (key.n != SEAL_KEY_BYTES)
		return err_set(e, ERR_INVALID, "a key has %d bytes, not %zu", SEAL_KEY_BYTES,
			       key.n);
	seal_add(r, (const unsigned char *)key.p);
	return 0;
}

void seal_ring_turn(struct seal_ring *r)
{
	unsigned char bytes[SEAL_KEY_BYTES];

	randombytes_buf(bytes, sizeof(bytes));
	seal_add(r, bytes);
	sodium_memzero(bytes, sizeof(bytes));
}

void seal_ring_trim(struct seal_ring *r)
{
	sodium_memzero(r->keys + 1, sizeof(r->keys) - sizeof(r->keys[0]));
	r->n = 1;
}

/* --- sealing --- */

/* Additional authenticated data: version, key id and context. */
static void take_bound(unsigned char out[HEAD_BYTES + CONTEXT_BYTES],
		       const unsigned char head[HEAD_BYTES], struct str context)
{
	memcpy(out, head, HEAD_BYTES);
	crypto_generichash(out + HEAD_BYTES, CONTEXT_BYTES, (const unsigned char *)context.p,
			   context.n, NULL, 0);
}

static void put_be64(unsigned char *to, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		to[i] = (unsigned char)(v >> (56 - 8 * i));
}

static uint64_t get_be64(const unsigned char *from)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | from[i];
	return v;
}

size_t seal_text_size(size_t n)
{
	return sodium_base64_ENCODED_LEN(n + OVERHEAD, VARIANT) - 1;
}

/* raw has room for OVERHEAD more than plain. */
static void encrypt(const struct key *k, unsigned char *raw, struct str plain, struct str context,
		    uint64_t expires)
{
	unsigned char *nonce = raw + HEAD_BYTES, *body = nonce + NONCE_BYTES;
	unsigned char bound[HEAD_BYTES + CONTEXT_BYTES];

	raw[0] = VERSION;
	memcpy(raw + 1, k->id, ID_BYTES);
	take_bound(bound, raw, context);
	randombytes_buf(nonce, NONCE_BYTES);
	put_be64(body, expires);
	if (plain.n > 0)
		memcpy(body + EXPIRY_BYTES, plain.p, plain.n);
	crypto_aead_xchacha20poly1305_ietf_encrypt(body, NULL, body, EXPIRY_BYTES + plain.n, bound,
						   sizeof(bound), NULL, nonce, k->bytes);
}

int seal(const struct seal_ring *r, struct buf *to, struct str plain, struct str context,
	 uint64_t expires, struct err *e)
{
	autofree unsigned char *raw = NULL;
	size_t n = seal_text_size(plain.n);
	char *text;

	if (plain.n > SEAL_PLAIN_MAX)
		return err_set(e, ERR_TOO_LARGE, "%zu bytes are too many to be sealed", plain.n);
	raw = malloc(plain.n + OVERHEAD);
	if (!raw)
		return err_set(e, ERR_LIMIT, "out of memory");
	text = buf_reserve(to, n, e);
	if (!text)
		return -1;
	encrypt(&r->keys[0], raw, plain, context, expires);
	sodium_bin2base64(text, n + 1, raw, plain.n + OVERHEAD, VARIANT);
	buf_advance(to, n);
	return 0;
}

/* --- opening --- */

/* The raw bytes of a text; owned. NULL if it is invalid, or memory is short. */
static unsigned char *seal_decode(struct str text, size_t *ret_n, struct err *e)
{
	autofree unsigned char *raw = NULL;

	if (text.n < seal_text_size(0) || text.n > seal_text_size(SEAL_PLAIN_MAX)) {
		seal_refuse(e);
		return NULL;
	}
	raw = malloc(text.n);
	if (!raw) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	if (sodium_base642bin(raw, text.n, text.p, text.n, NULL, ret_n, NULL, VARIANT) < 0 ||
	    *ret_n < OVERHEAD || seal_text_size(*ret_n - OVERHEAD) != text.n) {
		seal_refuse(e);
		return NULL;
	}
	return take_ptr(raw);
}

/* Decrypts in place: leaves expiry and plain bytes. */
static int decrypt(const struct seal_ring *r, unsigned char *raw, size_t n, struct str context,
		   struct err *e)
{
	const struct key *k = raw[0] == VERSION ? seal_find(r, raw + 1) : NULL;
	unsigned char *nonce = raw + HEAD_BYTES, *body = nonce + NONCE_BYTES;
	unsigned char bound[HEAD_BYTES + CONTEXT_BYTES];

	if (!k)
		return seal_refuse(e);
	take_bound(bound, raw, context);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(body, NULL, NULL, body,
						       n - HEAD_BYTES - NONCE_BYTES, bound,
						       sizeof(bound), nonce, k->bytes) < 0)
		return seal_refuse(e);
	return 0;
}

int seal_open(const struct seal_ring *r, struct buf *to, struct str text, struct str context,
	      uint64_t now, struct err *e)
{
	size_t n = 0;
	autofree unsigned char *raw = seal_decode(text, &n, e);
	const unsigned char *body;
	int rc;

	if (!raw || decrypt(r, raw, n, context, e) < 0)
		return -1;
	body = raw + HEAD_BYTES + NONCE_BYTES;
	rc = now > get_be64(body) ? err_set(e, ERR_TIMEOUT, "the sealed text has expired")
				  : buf_add(to, body + EXPIRY_BYTES, n - OVERHEAD, e);
	sodium_memzero(raw, n);
	return rc;
}
