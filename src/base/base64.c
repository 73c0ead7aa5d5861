#include "base/base64.h"

#include <stdbool.h>
#include <stdint.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char standard[] = LETTERS "+/";
static const char of_urls[] = LETTERS "-_";

/* What remains at the end: one byte or two. */
static void encode_last(char *out, const unsigned char *in, size_t n, const char *alphabet)
{
	uint32_t v = (uint32_t)in[0] << 16 | (n > 1 ? (uint32_t)in[1] << 8 : 0);

	out[0] = alphabet[v >> 18];
	out[1] = alphabet[v >> 12 & 63];
	out[2] = n > 1 ? alphabet[v >> 6 & 63] : '=';
	out[3] = '=';
}

/* n: characters kept, with or without the padding. */
static int encode(struct buf *to, struct str bytes, const char *alphabet, size_t n, struct err *e)
{
	const unsigned char *in = (const unsigned char *)bytes.p;
	char *out = buf_reserve(to, (bytes.n + 2) / 3 * 4, e);
	size_t left = bytes.n;

	if (!out)
		return -1;
	for (; left >= 3; left -= 3, in += 3, out += 4) {
		uint32_t v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];

		out[0] = alphabet[v >> 18];
		out[1] = alphabet[v >> 12 & 63];
		out[2] = alphabet[v >> 6 & 63];
		out[3] = alphabet[v & 63];
	}
	if (left > 0)
		encode_last(out, in, left, alphabet);
	buf_advance(to, n);
	return 0;
}

int base64_encode(struct buf *to, struct str bytes, struct err *e)
{
	return encode(to, bytes, standard, (bytes.n + 2) / 3 * 4, e);
}

int base64url_encode(struct buf *to, struct str bytes, struct err *e)
{
	return encode(to, bytes, of_urls, (bytes.n * 4 + 2) / 3, e);
}

/* A character's value plus one; 0: not in the alphabet. */
static const unsigned char values[256] = {
	['A'] = 1,  ['B'] = 2,	['C'] = 3,  ['D'] = 4,	['E'] = 5,  ['F'] = 6,	['G'] = 7,
	['H'] = 8,  ['I'] = 9,	['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14,
	['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21,
	['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28,
	['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35,
	['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42,
	['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49,
	['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
	['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
	['/'] = 64,
};

/* Decodes four characters to three bytes; false if one is not in the alphabet. */
static bool decode_four(char *out, const unsigned char *in)
{
	uint32_t a = values[in[0]], b = values[in[1]], c = values[in[2]], d = values[in[3]], v;

	if (!a || !b || !c || !d)
		return false;
	v = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
	out[0] = (char)(v >> 16);
	out[1] = (char)(v >> 8 & 255);
	out[2] = (char)(v & 255);
	return true;
}

int base64_decode(struct buf *to, struct str text, struct err *e)
{
	size_t pad = text.n >= 2 && text.p[text.n - 1] == '=' ? text.p[text.n - 2] == '=' ? 2 : 1
							      : 0;
	size_t n = text.n - pad, made = n * 3 / 4;
	const unsigned char *in = (const unsigned char *)text.p;
	char *out;
	uint32_t v = 0;
	size_t i = 0;

	if (text.n % 4 != 0)
		return err_set(e, ERR_INVALID,
			       "%zu characters are no base64: pad them to a multiple of 4", text.n);
	out = buf_reserve(to, made, e);
	if (!out)
		return -1;
	while (i + 4 <= n && decode_four(out, in + i)) {
		i += 4;
		out += 3;
	}
	for (; i < n; i++) {
		if (!values[in[i]])
			return err_set(e, ERR_INVALID, "character %zu is none of base64", i + 1);
		v = v << 6 | (values[in[i]] - 1u);
		if (i % 4 == 0)
			continue;
		*out++ = (char)(v >> (6 - i % 4 * 2) & 255);
	}
	if ((pad == 1 && (v & 3) != 0) || (pad == 2 && (v & 15) != 0))
		return err_set(e, ERR_INVALID,
			       "the last character before the padding has stray bits");
	buf_advance(to, made);
	return 0;
}
