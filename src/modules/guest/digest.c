/* SHA-1 and SHA-2 (FIPS 180-4), for crypto.subtle.digest(): holt-js is linked with no library. */
#include "modules/guest/internal.h"

/* The fractions of the cube roots of the first primes; SHA-256 has the upper halves. */
static const uint64_t constants[80] = {
	0x428a2f98d728ae22, 0x7137449123ef65cd, 0xb5c0fbcfec4d3b2f, 0xe9b5dba58189dbbc,
	0x3956c25bf348b538, 0x59f111f1b605d019, 0x923f82a4af194f9b, 0xab1c5ed5da6d8118,
	0xd807aa98a3030242, 0x12835b0145706fbe, 0x243185be4ee4b28c, 0x550c7dc3d5ffb4e2,
	0x72be5d74f27b896f, 0x80deb1fe3b1696b1, 0x9bdc06a725c71235, 0xc19bf174cf692694,
	0xe49b69c19ef14ad2, 0xefbe4786384f25e3, 0x0fc19dc68b8cd5b5, 0x240ca1cc77ac9c65,
	0x2de92c6f592b0275, 0x4a7484aa6ea6e483, 0x5cb0a9dcbd41fbd4, 0x76f988da831153b5,
	0x983e5152ee66dfab, 0xa831c66d2db43210, 0xb00327c898fb213f, 0xbf597fc7beef0ee4,
	0xc6e00bf33da88fc2, 0xd5a79147930aa725, 0x06ca6351e003826f, 0x142929670a0e6e70,
	0x27b70a8546d22ffc, 0x2e1b21385c26c926, 0x4d2c6dfc5ac42aed, 0x53380d139d95b3df,
	0x650a73548baf63de, 0x766a0abb3c77b2a8, 0x81c2c92e47edaee6, 0x92722c851482353b,
	0xa2bfe8a14cf10364, 0xa81a664bbc423001, 0xc24b8b70d0f89791, 0xc76c51a30654be30,
	0xd192e819d6ef5218, 0xd69906245565a910, 0xf40e35855771202a, 0x106aa07032bbd1b8,
	0x19a4c116b8d2d0c8, 0x1e376c085141ab53, 0x2748774cdf8eeb99, 0x34b0bcb5e19b48a8,
	0x391c0cb3c5c95a63, 0x4ed8aa4ae3418acb, 0x5b9cca4f7763e373, 0x682e6ff3d6b2b8a3,
	0x748f82ee5defb2fc, 0x78a5636f43172f60, 0x84c87814a1f0ab72, 0x8cc702081a6439ec,
	0x90befffa23631e28, 0xa4506cebde82bde9, 0xbef9a3f7b2c67915, 0xc67178f2e372532b,
	0xca273eceea26619c, 0xd186b8c721c0c207, 0xeada7dd6cde0eb1e, 0xf57d4f7fee6ed178,
	0x06f067aa72176fba, 0x0a637dc5a2c898a6, 0x113f9804bef90dae, 0x1b710b35131c471b,
	0x28db77f523047d84, 0x32caab7b40c72493, 0x3c9ebe0a15c9bebc, 0x431d67c49c100d4c,
	0x4cc5d4becb3e42b6, 0x597f299cfc657e2a, 0x5fcb6fab3ad6faec, 0x6c44198c4a475817,
};

/* The fractions of the square roots: of the first eight primes, and of the next for SHA-384. */
static const uint64_t roots[16] = {
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
	0xcbbb9d5dc1059ed8, 0x629a292a367cd507, 0x9159015a3070dd17, 0x152fecd8f70e5939,
	0x67332667ffc00b31, 0x8eb44a8768581511, 0xdb0c2e0d64f98fa7, 0x47b5481dbefa4fa4,
};

struct digest {
	unsigned bits; /* of a word: 32 or 64 */
	unsigned size; /* of the result, in bytes */
	bool sha1;
	uint64_t h[8];
};

static uint64_t ror(uint64_t x, unsigned n, unsigned bits)
{
	return bits == 64 ? x >> n | x << (64 - n)
			  : (uint32_t)((uint32_t)x >> n | (uint32_t)x << (32 - n));
}

static uint32_t rol(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

static uint64_t word(const struct digest *d, const uint8_t *p)
{
	uint64_t w = 0;

	for (unsigned i = 0; i < d->bits / 8; i++)
		w = w << 8 | p[i];
	return w;
}

static void block_sha1(struct digest *d, const uint8_t *p)
{
	static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t w[80], v[5];

	for (unsigned i = 0; i < 80; i++)
		w[i] = i < 16 ? (uint32_t)word(d, p + 4 * i)
			      : rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (unsigned i = 0; i < 5; i++)
		v[i] = (uint32_t)d->h[i];
	for (unsigned i = 0; i < 80; i++) {
		uint32_t f = i < 20 ? (v[1] & v[2]) | (~v[1] & v[3])
			   : i < 40 ? v[1] ^ v[2] ^ v[3]
			   : i < 60 ? (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])
				    : v[1] ^ v[2] ^ v[3];
		uint32_t t = rol(v[0], 5) + f + v[4] + k[i / 20] + w[i];

		v[4] = v[3];
		v[3] = v[2];
		v[2] = rol(v[1], 30);
		v[1] = v[0];
		v[0] = t;
	}
	for (unsigned i = 0; i < 5; i++)
		d->h[i] = (uint32_t)(d->h[i] + v[i]);
}

static void block_sha2(struct digest *d, const uint8_t *p)
{
	/* How far words are turned: sums of the rounds, and of the schedule with its shifts. */
	static const unsigned turns[2][12] = { { 2, 13, 22, 6, 11, 25, 7, 18, 3, 17, 19, 10 },
					       { 28, 34, 39, 14, 18, 41, 1, 8, 7, 19, 61, 6 } };
	unsigned bits = d->bits, rounds = bits == 64 ? 80 : 64;
	const unsigned *r = turns[bits == 64];
	uint64_t mask = bits == 64 ? UINT64_MAX : UINT32_MAX, w[80], v[8];

	for (unsigned i = 0; i < rounds; i++) {
		if (i < 16) {
			w[i] = word(d, p + bits / 8 * i);
			continue;
		}
		w[i] = w[i - 16] + w[i - 7] +
		       (ror(w[i - 15], r[6], bits) ^ ror(w[i - 15], r[7], bits) ^
			w[i - 15] >> r[8]) +
		       (ror(w[i - 2], r[9], bits) ^ ror(w[i - 2], r[10], bits) ^ w[i - 2] >> r[11]);
		w[i] &= mask;
	}
	memcpy(v, d->h, sizeof(v));
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t k = bits == 64 ? constants[i] : constants[i] >> 32;
		uint64_t t = v[7] +
			     (ror(v[4], r[3], bits) ^ ror(v[4], r[4], bits) ^
			      ror(v[4], r[5], bits)) +
			     ((v[4] & v[5]) ^ (~v[4] & v[6])) + k + w[i];
		uint64_t u = (ror(v[0], r[0], bits) ^ ror(v[0], r[1], bits) ^
			      ror(v[0], r[2], bits)) +
			     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] = (v[4] + t) & mask;
		v[0] = (t + u) & mask;
	}
	for (unsigned i = 0; i < 8; i++)
		d->h[i] = (d->h[i] + v[i]) & mask;
}

static void digest_begin(struct digest *d, unsigned algorithm)
{
	static const uint64_t sha1[] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
					 0xc3d2e1f0 };

	*d = (struct digest){ .bits = algorithm > 256 ? 64 : 32,
			      .size = algorithm == 1 ? 20 : algorithm / 8,
			      .sha1 = algorithm == 1 };
	for (unsigned i = 0; i < 8; i++)
		d->h[i] = algorithm == 1   ? (i < 5 ? sha1[i] : 0)
			: algorithm == 256 ? roots[i] >> 32
					   : roots[i + (algorithm == 384 ? 8 : 0)];
}

size_t guest_digest(unsigned algorithm, const uint8_t *p, size_t n, uint8_t out[64])
{
	uint8_t end[256] = { 0 };
	struct digest d;
	size_t block, whole, left;

	digest_begin(&d, algorithm);
	block = d.bits * 2;
	whole = n / block * block;
	for (size_t at = 0; at < whole; at += block)
		(d.sha1 ? block_sha1 : block_sha2)(&d, p + at);
	left = n - whole;
	if (left)
		memcpy(end, p + whole, left);
	end[left] = 0x80;
	left = left + 1 + d.bits / 4 > block ? 2 * block : block;
	for (unsigned i = 0; i < 8; i++)
		end[left - 1 - i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
	for (size_t at = 0; at < left; at += block)
		(d.sha1 ? block_sha1 : block_sha2)(&d, end + at);
	for (size_t i = 0; i < d.size; i++)
		out[i] = (uint8_t)(d.h[i / (d.bits / 8)] >> (d.bits - 8 - 8 * (i % (d.bits / 8))));
	return d.size;
}
