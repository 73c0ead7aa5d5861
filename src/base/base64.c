#include "base/base64.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
/* Two letters of the standard alphabet for each 12 bits. */
#define PAIRS(a)                                                                                   \
	a "A" a "B" a "C" a "D" a "E" a "F" a "G" a "H" a "I" a "J" a "K" a "L" a "M" a "N" a "O"  \
	a "P" a "Q" a "R" a "S" a "T" a "U" a "V" a "W" a "X" a "Y" a "Z" a "a" a "b" a "c" a "d"  \
	a "e" a "f" a "g" a "h" a "i" a "j" a "k" a "l" a "m" a "n" a "o" a "p" a "q" a "r" a "s"  \
	a "t" a "u" a "v" a "w" a "x" a "y" a "z" a "0" a "1" a "2" a "3" a "4" a "5" a "6" a "7"  \
	a "8" a "9" a "+" a "/"
static const char pairs[] =
	PAIRS("A") PAIRS("B") PAIRS("C") PAIRS("D") PAIRS("E") PAIRS("F") PAIRS("G") PAIRS("H")
	PAIRS("I") PAIRS("J") PAIRS("K") PAIRS("L") PAIRS("M") PAIRS("N") PAIRS("O") PAIRS("P")
	PAIRS("Q") PAIRS("R") PAIRS("S") PAIRS("T") PAIRS("U") PAIRS("V") PAIRS("W") PAIRS("X")
	PAIRS("Y") PAIRS("Z") PAIRS("a") PAIRS("b") PAIRS("c") PAIRS("d") PAIRS("e") PAIRS("f")
	PAIRS("g") PAIRS("h") PAIRS("i") PAIRS("j") PAIRS("k") PAIRS("l") PAIRS("m") PAIRS("n")
	PAIRS("o") PAIRS("p") PAIRS("q") PAIRS("r") PAIRS("s") PAIRS("t") PAIRS("u") PAIRS("v")
	PAIRS("w") PAIRS("x") PAIRS("y") PAIRS("z") PAIRS("0") PAIRS("1") PAIRS("2") PAIRS("3")
	PAIRS("4") PAIRS("5") PAIRS("6") PAIRS("7") PAIRS("8") PAIRS("9") PAIRS("+") PAIRS("/");
/* clang-format on */
static_assert(sizeof(pairs) == 2 * 64 * 64 + 1, "there is a pair for each 12 bits");

static void put_pair(char *out, uint64_t v)
{
	memcpy(out, &pairs[2 * (v & 4095)], 2);
}

/* Three bytes. */
static void encode_three(char *out, const unsigned char *in)
{
	uint32_t v = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];

	put_pair(out, v >> 12);
	put_pair(out + 2, v);
}

/* The first six of eight bytes: all audited output goes through here. */
static void encode_six(char *out, const unsigned char *in)
{
	uint64_t v;

	memcpy(&v, in, sizeof(v));
	v = be64toh(v);
	put_pair(out, v >> 52);
	put_pair(out + 2, v >> 40);
	put_pair(out + 4, v >> 28);
	put_pair(out + 6, v >> 16);
}

/* With padding; what remains at the end is one byte or two. */
static char *encode(struct buf *to, struct str bytes, struct err *e)
{
	const unsigned char *in = (const unsigned char *)bytes.p;
	char *text = buf_reserve(to, (bytes.n + 2) / 3 * 4, e), *out = text;
	size_t left = bytes.n;

	if (!text)
		return NULL;
	for (; left >= 8; left -= 6, in += 6, out += 8)
		encode_six(out, in);
	for (; left >= 3; left -= 3, in += 3, out += 4)
		encode_three(out, in);
	if (left > 0) {
		encode_three(out, (const unsigned char[]){ in[0], left > 1 ? in[1] : 0, 0 });
		out[2] = left > 1 ? out[2] : '=';
		out[3] = '=';
	}
	return text;
}

int base64_encode(struct buf *to, struct str bytes, struct err *e)
{
	if (!encode(to, bytes, e))
		return -1;
	buf_advance(to, (bytes.n + 2) / 3 * 4);
	return 0;
}

int base64url_encode(struct buf *to, struct str bytes, struct err *e)
{
	size_t n = (bytes.n * 4 + 2) / 3;
	char *text = encode(to, bytes, e);

	if (!text)
		return -1;
	for (size_t i = 0; i < n; i++)
		text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
	buf_advance(to, n);
	return 0;
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

int base64_replace(struct str *text, struct arena *a, struct err *e)
{
	size_t most = text->n / 4 * 3;
	/* The arena's own room, which holds any result and so never grows. */
	struct buf bytes = { .p = arena_alloc(a, most + 1, e), .cap = most, .max = most };

	if (!bytes.p || base64_decode(&bytes, *text, e) < 0)
		return -1;
	*text = buf_str(&bytes);
	return 0;
}
