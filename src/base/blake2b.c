#include "base/blake2b.h"

#include <sodium.h>
#include <string.h>

void blake2b(char kind, const void *p, size_t n, uint8_t ret[BLAKE2B_BYTES])
{
	crypto_generichash_state s;

	/* these fail for lengths only that are out of bounds */
	(void)crypto_generichash_init(&s, NULL, 0, BLAKE2B_BYTES);
	(void)crypto_generichash_update(&s, (const unsigned char *)&kind, 1);
	(void)crypto_generichash_update(&s, p, n);
	(void)crypto_generichash_final(&s, ret, BLAKE2B_BYTES);
}

void blake2b_hex(const uint8_t hash[BLAKE2B_BYTES], char ret[BLAKE2B_HEX + 1])
{
	sodium_bin2hex(ret, BLAKE2B_HEX + 1, hash, BLAKE2B_BYTES);
}

int blake2b_of_hex(const char *text, size_t n, uint8_t ret[BLAKE2B_BYTES])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < BLAKE2B_HEX; i++) {
		const char *at = n == BLAKE2B_HEX ? memchr(digits, text[i], 16) : NULL;

		if (!at)
			return -1;
		ret[i / 2] = (uint8_t)((i % 2 ? ret[i / 2] << 4 : 0) | (at - digits));
	}
	return 0;
}
