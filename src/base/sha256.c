#include "base/sha256.h"

#include <sodium.h>

void sha256_hex(struct str bytes, char ret[SHA256_HEX])
{
	unsigned char raw[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(raw, (const unsigned char *)bytes.p, bytes.n);
	sodium_bin2hex(ret, SHA256_HEX, raw, sizeof(raw));
}
