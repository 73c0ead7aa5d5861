#pragma once
/*
 * Tests eight bytes of a text at once. A result is 0 exactly if no byte matches; which byte it is
 * must be found in another way.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WORD = 8 };

#define WORD_OF(byte) (0x0101010101010101u * (uint64_t)(byte))

static inline uint64_t word_at(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof(x));
	return x;
}

/* 0x80 or more */
static inline uint64_t word_high(uint64_t x)
{
	return x & WORD_OF(0x80);
}

/* less than n (at most 0x80): the byte borrows its high bit, which was clear */
static inline uint64_t word_below(uint64_t x, unsigned char n)
{
	return (x - WORD_OF(n)) & ~x & WORD_OF(0x80);
}

static inline uint64_t word_is(uint64_t x, unsigned char byte)
{
	return word_below(x ^ WORD_OF(byte), 1);
}

/* memcmp() for short texts that are mostly equal, without the call. */
static inline bool word_same(const char *a, const char *b, size_t n)
{
	uint64_t differ;

	if (n < WORD)
		return n == 0 || memcmp(a, b, n) == 0;
	differ = word_at(a + n - WORD) ^ word_at(b + n - WORD);
	for (size_t i = 0; i + WORD < n; i += WORD)
		differ |= word_at(a + i) ^ word_at(b + i);
	return differ == 0;
}
