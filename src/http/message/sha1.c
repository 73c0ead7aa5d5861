#include "http/message/sha1.h"

#include <stdint.h>

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static uint32_t sha1_choose(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	static const uint32_t constants[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t f = round < 20 ? (b & c) | (~b & d)
		   : round < 40 ? b ^ c ^ d
		   : round < 60 ? (b & c) | (b & d) | (c & d)
				: b ^ c ^ d;

	return f + constants[round / 20];
}

static void sha1_mix(uint32_t h[5], const unsigned char block[64])
{
	uint32_t w[80], a[5], t;

	for (unsigned i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (unsigned i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	memcpy(a, h, sizeof(a));
	for (unsigned i = 0; i < 80; i++) {
		t = rotate(a[0], 5) + sha1_choose(i, a[1], a[2], a[3]) + a[4] + w[i];
		a[4] = a[3];
		a[3] = a[2];
		a[2] = rotate(a[1], 30);
		a[1] = a[0];
		a[0] = t;
	}
	for (unsigned i = 0; i < 5; i++)
		h[i] += a[i];
}

void sha1(struct str text, unsigned char ret[SHA1_BYTES])
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	unsigned char padded[128] = { 0 };
	size_t n = text.n > SHA1_TEXT_MAX ? SHA1_TEXT_MAX : text.n;
	size_t blocks = n < 56 ? 1 : 2;

	if (n > 0)
		memcpy(padded, text.p, n);
	padded[n] = 0x80;
	padded[64 * blocks - 2] = (unsigned char)(8 * n >> 8);
	padded[64 * blocks - 1] = (unsigned char)(8 * n);
	for (size_t i = 0; i < blocks; i++)
		sha1_mix(h, padded + 64 * i);
	for (unsigned i = 0; i < SHA1_BYTES; i++)
		ret[i] = (unsigned char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
