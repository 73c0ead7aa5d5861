#include "base/sha256.h"

#include <assert.h>
#include <sodium.h>

void sha256_hex(struct str bytes, char ret[SHA256_HEX])
{
	unsigned char raw[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(raw, (const unsigned char *)bytes.p, bytes.n);
	sodium_bin2hex(ret, SHA256_HEX, raw, sizeof(raw));
}

static_assert(sizeof(crypto_hash_sha256_state) <= sizeof(struct sha256), "the state has room");

void sha256_begin(struct sha256 *h)
{
	crypto_hash_sha256_init((crypto_hash_sha256_state *)h->state);
}

void sha256_add(struct sha256 *h, struct str bytes)
{
	crypto_hash_sha256_update((crypto_hash_sha256_state *)h->state,
				  (const unsigned char *)bytes.p, bytes.n);
}

void sha256_end(struct sha256 *h, unsigned char ret[SHA256_BYTES])
{
	crypto_hash_sha256_final((crypto_hash_sha256_state *)h->state, ret);
}
