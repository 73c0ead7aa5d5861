#include "json/document/utf8.h"

#include "base/word.h"

/* The second bytes that may follow a first byte; all later bytes are 80..BF. */
static const struct lead {
	unsigned char first, last; /* range of the first byte */
	unsigned char len;
	unsigned char low, high; /* range of the second byte */
} leads[] = {
	{ 0xc2, 0xdf, 2, 0x80, 0xbf }, { 0xe0, 0xe0, 3, 0xa0, 0xbf }, { 0xe1, 0xec, 3, 0x80, 0xbf },
	{ 0xed, 0xed, 3, 0x80, 0x9f }, { 0xee, 0xef, 3, 0x80, 0xbf }, { 0xf0, 0xf0, 4, 0x90, 0xbf },
	{ 0xf1, 0xf3, 4, 0x80, 0xbf }, { 0xf4, 0xf4, 4, 0x80, 0x8f },
};

static const struct lead *lead_of(unsigned char c)
{
	for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
		if (c >= leads[i].first && c <= leads[i].last)
			return &leads[i];
	}
	return NULL;
}

bool utf8_next(struct str s, size_t *ret_n)
{
	const unsigned char *p = (const unsigned char *)s.p;
	const struct lead *lead;
	size_t i;

	*ret_n = 1;
	if (p[0] < 0x80)
		return true;
	lead = lead_of(p[0]);
	if (!lead || s.n < 2 || p[1] < lead->low || p[1] > lead->high)
		return false;
	for (i = 2; i < lead->len; i++) {
		if (i >= s.n || p[i] < 0x80 || p[i] > 0xbf)
			break;
	}
	*ret_n = i;
	return i == lead->len;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Most texts are ASCII, of which eight bytes are one step. */
size_t utf8_run(struct str s)
{
	size_t i = 0, n;

	while (i < s.n) {
		if (i + WORD <= s.n && !word_high(word_at(s.p + i)))
			i += WORD;
		else if (utf8_next((struct str){ s.p + i, s.n - i }, &n))
			i += n;
		else
			break;
	}
	return i;
}

bool utf8_valid(struct str s)
{
	return utf8_run(s) == s.n;
}

size_t utf8_count(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += !continues(s.p[i]);
	return n;
}

struct str utf8_cut(struct str s, size_t n)
{
	if (s.n <= n)
		return s;
	while (n > 0 && continues(s.p[n]))
		n--;
	return (struct str){ s.p, n };
}

struct str utf8_line(struct str s, char *room, size_t n)
{
	struct str cut = utf8_cut(s, n - 1);

	for (size_t i = 0; i < cut.n; i++)
		room[i] = (unsigned char)cut.p[i] < ' ' || cut.p[i] == 0x7f ? ' ' : cut.p[i];
	return (struct str){ room, cut.n };
}
