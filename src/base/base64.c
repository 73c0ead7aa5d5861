#include "base/base64.h"

#include <stdint.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char standard[] = LETTERS "+/";
static const char of_urls[] = LETTERS "-_";

static uint32_t byte_at(struct str s, size_t i)
{
	return i < s.n ? (unsigned char)s.p[i] : 0;
}

/* n: of the characters that are kept, with or without the padding. */
static int encode(struct buf *to, struct str bytes, const char *alphabet, size_t n, struct err *e)
{
	char *out = buf_reserve(to, (bytes.n + 2) / 3 * 4, e);

	if (!out)
		return -1;
	for (size_t i = 0; i < bytes.n; i += 3) {
		uint32_t v = byte_at(bytes, i) << 16 | byte_at(bytes, i + 1) << 8 |
			     byte_at(bytes, i + 2);

		*out++ = alphabet[v >> 18];
		*out++ = alphabet[v >> 12 & 63];
		*out++ = i + 1 < bytes.n ? alphabet[v >> 6 & 63] : '=';
		*out++ = i + 2 < bytes.n ? alphabet[v & 63] : '=';
	}
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

/* 0 to 63, or -1. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int base64_decode(struct buf *to, struct str text, struct err *e)
{
	size_t pad = text.n >= 2 && text.p[text.n - 1] == '=' ? text.p[text.n - 2] == '=' ? 2 : 1
							      : 0;
	size_t n = text.n - pad, made = n * 3 / 4;
	char *out;
	uint32_t v = 0;

	if (text.n % 4 != 0)
		return err_set(e, ERR_INVALID,
			       "%zu characters are no base64: pad them to a multiple of 4", text.n);
	out = buf_reserve(to, made, e);
	if (!out)
		return -1;
	for (size_t i = 0; i < n; i++) {
		int d = value_of(text.p[i]);

		if (d < 0)
			return err_set(e, ERR_INVALID, "character %zu is none of base64", i + 1);
		v = v << 6 | (uint32_t)d;
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
