/* Where the next byte of a sort stands, without looking twice at a byte. */
#include <assert.h>

#include "base/mem.h"
#include "guard/redact/internal.h"

/* Parts of values that are no secrets, by their first letter. */
static const char *const plain_parts[128][9] = {
	['*'] = { "***" },
	['-'] = { "-here" },
	['.'] = { "...." },
	['<'] = { "<your" },
	['_'] = { "_here" },
	['c'] = { "changeme", "change_me", "change-me", "change this" },
	['d'] = { "dummy" },
	['e'] = { "example" },
	['f'] = { "fixme" },
	['g'] = { "goes-here", "goes_here", "goes here" },
	['i'] = { "insert" },
	['p'] = { "placeholder" },
	['r'] = { "redacted", "replaceme", "replace_", "replace-", "replace with" },
	['s'] = { "sample" },
	['t'] = { "todo" },
	['x'] = { "xxxx" },
	['y'] = { "your_", "your-", "your ", "yourpass", "yourtoken", "yoursecret", "yourkey",
		  "yourapi" },
};
/* Words that can name a value or be one. */
static const char *const nouns[128][6] = {
	['a'] = { "api_key", "api-key", "api key", "apikey" },
	['c'] = { "credential" },
	['p'] = { "password", "passwd", "passphrase", "privatekey", "private_key" },
	['s'] = { "secret" },
	['t'] = { "token" },
};
static const char *const templates[128][5] = {
	['#'] = { "#{" },
	['$'] = { "${" },
	['%'] = { "%(" },
	['('] = { "(?" },
	['['] = { "[a-z", "[^", "[A-Z", "[0-9" },
	['\\'] = { "\\s", "\\w", "\\d", "\\b" },
	['{'] = { "{}", "{{" },
};

/* The word of a list that stands at the beginning of n bytes, or NULL. Letters count in any case,
 * but for templates. */
static inline const char *word_at(const char *p, size_t n, const char *const *list, bool any_case)
{
	for (; *list; list++) {
		const char *word = *list;
		size_t k = 1; /* by its first it was found */

		while (word[k] && k < n &&
		       (p[k] | (any_case && (char_class(p[k]) & IS_UPPER) ? 32 : 0)) == word[k])
			k++;
		if (!word[k])
			return word;
	}
	return NULL;
}

/* The sort whose word stands at the beginning of n bytes, or NULL. */
static inline const char *part_at(const char *p, size_t n, enum sort sort)
{
	unsigned c = (unsigned char)*p;

	c |= char_class(*p) & IS_UPPER ? 32 : 0;
	if (c > 127)
		return NULL;
	if (sort == SORT_TEMPLATE)
		return word_at(p, n, templates[c], false);
	return word_at(p, n, sort == SORT_NOUN ? nouns[c] : plain_parts[c], true);
}

enum { LETTER = IS_UPPER | IS_LOWER };

/* A run of one letter does not count. */
static bool both_letters(char a, char b)
{
	return (char_class(a) & LETTER) && (char_class(b) & LETTER) && a != b;
}

/* Random characters spell a short word now and then. It counts in one case, but for its first
 * letter, and one of four letters with no other letter beside it, but for more of the same. */
static bool stands_alone(const struct finder *f, size_t i, const char *word)
{
	enum { SHORT = 6, SHORTER = 4 };
	const char *p = f->p + i, *end = f->p + f->n;
	size_t n = strlen(word), first = char_class(*word) & LETTER ? 1 : 2, letters = 0;
	unsigned cases = 0;

	for (size_t k = 0; k < n && n <= SHORT; k++) {
		letters += (char_class(p[k]) & LETTER) != 0;
		cases |= k < first ? 0 : char_class(p[k]) & LETTER;
	}
	if (cases == LETTER)
		return false;
	if (letters == 0 || letters > SHORTER)
		return true;
	return (i == 0 || !both_letters(p[-1], p[0])) &&
	       (p + n == end || !both_letters(p[n - 1], p[n]));
}

/* A bit for the first letter of a noun, or 0: those that begin alike mean the same. */
static unsigned noun_at(const char *p, size_t n)
{
	const char *word = part_at(p, n, SORT_NOUN);

	return word ? 1u << (*word - 'a') : 0;
}

bool shares_noun(struct str a, struct str b)
{
	unsigned has = 0;

	for (size_t i = 0; i < a.n; i++)
		has |= noun_at(a.p + i, a.n - i);
	for (size_t i = 0; i < b.n && has; i++) {
		if (noun_at(b.p + i, b.n - i) & has)
			return true;
	}
	return false;
}

/* A byte of no text, or of UTF-8 that is none. */
static bool is_no_text(const struct finder *f, size_t i)
{
	unsigned char c = (unsigned char)f->p[i];
	size_t back = 0, n;

	if (c < 0x80)
		return c < ' ' && (c < 7 || (c > 13 && c != 27));
	while (back < 3 && back < i && ((unsigned char)f->p[i - back] & 0xc0) == 0x80)
		back++;
	c = (unsigned char)f->p[i - back];
	if (back == i && (c & 0xc0) == 0x80)
		return i > 2; /* the window begins within a character */
	n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	if (c < 0xc2 || c > 0xf4 || n <= back)
		return true;
	for (size_t k = i - back + 1; k < i - back + n && k < f->n; k++) {
		if (((unsigned char)f->p[k] & 0xc0) != 0x80)
			return true;
	}
	return false;
}

#define IN(c, from, to) ((c) >= (from) && (c) <= (to))
#define IN_VARIABLE(c)                                                                             \
	(IN(c, '0', '9') || IN(c, 'A', 'Z') || IN(c, 'a', 'z') || (c) == '_' || (c) == '.')
#define IN_PATH(c) (IN(c, '0', '9') || IN(c, 'a', 'z') || IN(c, '-', '/') || (c) == '_')
/* A bit for each sort that a byte is of, or may begin. */
#define BYTE(c)                                                                                    \
	(IN(c, '0', '9') << SORT_DIGIT | IN(c, 'A', 'Z') << SORT_UPPER |                           \
	 IN(c, 'a', 'z') << SORT_LOWER | !(IN_VARIABLE(c) || (c) == '~') << SORT_SPECIAL |         \
	 !IN_VARIABLE(c) << SORT_NO_NAME | !(IN_PATH(c) || (c) == '~') << SORT_NO_PATH |           \
	 !(IN_VARIABLE(c) || (c) == '~' || (c) == ':') << SORT_NO_VARIABLE |                       \
	 ((c) < ' ' && (c) != '\t') << SORT_CONTROL | ((c) < ' ' || (c) > 127) << SORT_NO_TEXT |   \
	 ((c) == '@') << SORT_AT | ((c) == '(') << SORT_OPEN | ((c) == '[') << SORT_SQUARE |       \
	 ((c) == '.') << SORT_DOT | ((c) == ' ') << SORT_SPACE | ((c) == ':') << SORT_SCHEME)
#define BYTES(c) BYTE(c), BYTE((c) + 1), BYTE((c) + 2), BYTE((c) + 3)
#define ROW(c) BYTES(c), BYTES((c) + 4), BYTES((c) + 8), BYTES((c) + 12)
static const uint16_t byte_sorts[256] = {
	ROW(0),	  ROW(16),  ROW(32),  ROW(48),	ROW(64),  ROW(80),  ROW(96),  ROW(112),
	ROW(128), ROW(144), ROW(160), ROW(176), ROW(192), ROW(208), ROW(224), ROW(240),
};
static_assert(SORTS_OF_BYTES <= 16, "a bit each");

static inline bool is_class(const struct finder *f, size_t i, unsigned set)
{
	return (char_class(f->p[i]) & set) != 0;
}

static inline __attribute__((always_inline)) bool is_sort(const struct finder *f, enum sort sort,
							  size_t i)
{
	if (sort < SORTS_OF_BYTES && !(byte_sorts[(unsigned char)f->p[i]] & 1u << sort))
		return false;
	switch (sort) {
	case SORT_NO_TEXT:
		return is_no_text(f, i);
	case SORT_SCHEME:
		return f->n - i >= 3 && f->p[i + 1] == '/' && f->p[i + 2] == '/';
	case SORT_TWO_UPPER:
		return is_class(f, i, IS_UPPER) && i + 1 < f->n && is_class(f, i + 1, IS_UPPER);
	case SORT_PART: {
		const char *word = part_at(f->p + i, f->n - i, sort);

		return word && stands_alone(f, i, word);
	}
	case SORT_NOUN:
	case SORT_TEMPLATE:
		return part_at(f->p + i, f->n - i, sort) != NULL;
	case SORT_ENDS:
		return is_class(f, i, IS_END);
	case SORT_CLOSES_SQUARE:
		return f->p[i] == ']';
	case SORT_CLOSES_CURLY:
		return f->p[i] == '}';
	case SORT_LESS:
		return f->p[i] == '<';
	case SORT_NAME_ENDS:
		return !is_class(f, i, URL64 | IS_DOT) || f->p[i] == '~';
	case SORT_LINE_ENDS:
		return is_line_end(f, i);
	default:
		return true; /* the bit says it */
	}
}

/* row: NULL, or is_sort() is asked. */
static inline __attribute__((always_inline)) size_t sweep(struct finder *f, struct sweep *s,
							  enum sort sort, const struct pattern *row,
							  size_t at, size_t end)
{
	size_t i;

#define FOUND(i) (row ? !is_class(f, (i), row->set) : is_sort(f, sort, (i)))
	if (at > s->until)
		*s = (struct sweep){ at, at };
	for (i = at; i < s->from; i++) {
		if (i == end || FOUND(i))
			return i;
	}
	s->from = at < s->from ? at : s->from;
	for (i = s->until; i < end && !FOUND(i);)
		i++;
#undef FOUND
	s->until = i;
	return i < end ? i : end;
}

size_t sweep_row(struct finder *f, const struct pattern *p, size_t at, size_t end)
{
	return sweep(f, &f->rows[p - pattern_table], SORTS, p, at, end);
}

#define SORT_CASE(name)                                                                            \
	case SORT_##name:                                                                          \
		return sweep(f, &f->sweeps[SORT_##name], SORT_##name, NULL, at, end)

/* A loop for each sort. */
size_t sweep_to(struct finder *f, enum sort sort, size_t at, size_t end)
{
	switch (sort) {
		SORT_CASE(DIGIT);
		SORT_CASE(UPPER);
		SORT_CASE(LOWER);
		SORT_CASE(SPECIAL);
		SORT_CASE(NO_NAME);
		SORT_CASE(NO_PATH);
		SORT_CASE(NO_VARIABLE);
		SORT_CASE(CONTROL);
		SORT_CASE(NO_TEXT);
		SORT_CASE(AT);
		SORT_CASE(OPEN);
		SORT_CASE(SQUARE);
		SORT_CASE(DOT);
		SORT_CASE(SPACE);
		SORT_CASE(SCHEME);
		SORT_CASE(TWO_UPPER);
		SORT_CASE(PART);
		SORT_CASE(NOUN);
		SORT_CASE(TEMPLATE);
		SORT_CASE(ENDS);
		SORT_CASE(CLOSES_SQUARE);
		SORT_CASE(CLOSES_CURLY);
		SORT_CASE(LESS);
		SORT_CASE(NAME_ENDS);
		SORT_CASE(LINE_ENDS);
	case SORTS:
		break;
	}
	return end;
}

/* Bytes of what stands at i. */
static size_t sort_width(const struct finder *f, enum sort sort, size_t i)
{
	if (sort == SORT_PART || sort == SORT_NOUN || sort == SORT_TEMPLATE)
		return strlen(part_at(f->p + i, f->n - i, sort));
	return sort == SORT_SCHEME ? 3 : sort == SORT_TWO_UPPER ? 2 : 1;
}

bool str_has_sort(struct finder *f, struct str part, enum sort sort)
{
	enum { LOOK = 64 };
	size_t at = (size_t)(part.p - f->p), end = at + part.n;
	size_t look = part.n < LOOK ? end : at + LOOK;

	if (sort < SORTS_OF_BYTES) {
		if (f->part.at != at || f->part.end != end) {
			f->part.at = at;
			f->part.end = end;
			f->part.sorts = 0;
			for (size_t i = at; i < look; i++)
				f->part.sorts |= byte_sorts[(unsigned char)f->p[i]];
		}
		if (!(f->part.sorts & 1u << sort) && look == end)
			return false; /* and nothing that was looked at is forgotten */
		if (!(f->part.sorts & 1u << sort))
			at = look;
		else if (sort != SORT_NO_TEXT && sort != SORT_SCHEME)
			return true;
	}
	at = sweep_to(f, sort, at, end);
	/* One that the end cuts, and shorter ones behind where it begins. */
	while (at < end && (!is_sort(f, sort, at) || at + sort_width(f, sort, at) > end))
		at++;
	return at < end;
}
