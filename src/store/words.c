#include "store/words.h"

#include "json/document/utf8.h"

enum kind_of_char { NO_WORD, LOWER, UPPER, DIGIT, OTHER };

static enum kind_of_char char_kind(char c)
{
	return c >= 'a' && c <= 'z'	? LOWER
	     : c >= 'A' && c <= 'Z'	? UPPER
	     : c >= '0' && c <= '9'	? DIGIT
	     : (unsigned char)c >= 0x80 ? OTHER
					: NO_WORD;
}

bool words_has(char c)
{
	return char_kind(c) != NO_WORD;
}

struct str words_part(struct str s, size_t *at)
{
	size_t from;
	enum kind_of_char was;

	while (*at < s.n && char_kind(s.p[*at]) == NO_WORD)
		++*at;
	from = *at;
	while (*at < s.n) {
		enum kind_of_char now = char_kind(s.p[*at]);
		bool next_lower = *at + 1 < s.n && char_kind(s.p[*at + 1]) == LOWER;

		was = *at > from ? char_kind(s.p[*at - 1]) : now;
		if (now == NO_WORD || (now == UPPER && (was == LOWER || was == DIGIT)) ||
		    (now == UPPER && was == UPPER && next_lower && *at > from) ||
		    (now == DIGIT) != (was == DIGIT))
			break;
		++*at;
	}
	return (struct str){ s.p + from, *at - from };
}

int words_add(struct buf *to, const char *before, struct str s, const char *behind, struct err *e)
{
	size_t from;

	if (buf_add(to, before, strlen(before), e) < 0)
		return -1;
	from = to->n;
	if (buf_add(to, s.p, s.n, e) < 0)
		return -1;
	for (size_t i = from, n; i < to->n; i += n) {
		if (!utf8_next((struct str){ to->p + i, to->n - i }, &n))
			memset(to->p + i, ' ', n);
	}
	return buf_add(to, behind, strlen(behind), e);
}

int words_add_parts(struct buf *to, struct str name, int most, struct err *e)
{
	size_t at = 0;

	for (int i = 0; i < most; i++) {
		struct str part = words_part(name, &at);

		if (part.n == 0)
			return 0;
		if (words_add(to, "", part, " ", e) < 0)
			return -1;
	}
	return 0;
}
