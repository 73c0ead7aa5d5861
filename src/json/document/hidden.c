#include "json/document/hidden.h"

#include "json/document/utf8.h"

static const struct {
	uint32_t first, last;
} hidden[] = {
	{ 0x00, 0x1f }, /* C0 */
	{ 0x7f, 0x9f }, /* DEL, C1 */
	{ 0xad, 0xad }, /* soft hyphen */
	{ 0x34f, 0x34f }, /* grapheme joiner */
	{ 0x61c, 0x61c }, /* marks of direction */
	{ 0x115f, 0x1160 }, /* fillers */
	{ 0x17b4, 0x17b5 }, { 0x180e, 0x180e }, { 0x200b, 0x200b }, /* zero width space */
	{ 0x200e, 0x200f }, /* marks of direction */
	{ 0x2028, 0x202e }, /* separators, embeddings, overrides */
	{ 0x2060, 0x206f }, /* invisible operators, isolates */
	{ 0x2800, 0x2800 }, { 0x3164, 0x3164 }, /* blank, filler */
	{ 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 }, { 0xfff9, 0xfffb }, { 0xe0000, 0xe0fff }, /* tags */
};

bool hidden_char(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++) {
		if (c >= hidden[i].first && c <= hidden[i].last)
			return true;
	}
	return false;
}

uint32_t hidden_char_of(const char *p, size_t n)
{
	static const unsigned char mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)p[0] & mask[n];

	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)p[i] & 0x3f);
	return c;
}

/* Above U+FFFF a pair of surrogates. */
static int escape(struct buf *to, uint32_t c, struct err *e)
{
	if (c > 0xffff)
		return buf_addf(to, e, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
				0xdc00 + ((c - 0x10000) & 0x3ff));
	return buf_addf(to, e, "\\u%04x", c);
}

int hidden_escape_json(struct buf *to, struct str json, struct err *e)
{
	size_t plain = 0, n;

	for (size_t i = 0; i < json.n; i += n) {
		bool valid = utf8_next((struct str){ json.p + i, json.n - i }, &n);
		uint32_t c = valid ? hidden_char_of(json.p + i, n) : 0xfffd;

		if (valid && !hidden_char(c))
			continue;
		if (buf_add(to, json.p + plain, i - plain, e) < 0 || escape(to, c, e) < 0)
			return -1;
		plain = i + n;
	}
	return buf_add(to, json.p + plain, json.n - plain, e);
}
