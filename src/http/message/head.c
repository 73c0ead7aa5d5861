#include "http/message/head.h"

#include "base/word.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool is_alnum(char c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z');
}

static int head_hex(char c)
{
	if (is_digit(c))
		return c - '0';
	c = lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http_same_bytes(const char *a, const char *b, size_t n)
{
	if (word_same(a, b, n))
		return true; /* as nearly all write it */
	for (size_t i = 0; i < n; i++) {
		if (a[i] != b[i] && lower(a[i]) != lower(b[i]))
			return false;
	}
	return true;
}

/* ---- authorities and origins --------------------------------------------------------------- */

/* Labels of letters, digits and hyphens with single dots between them. */
static bool is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		bool edge = i == 0 || s.p[i - 1] == '.' || i + 1 == s.n || s.p[i + 1] == '.';

		if (s.p[i] == '.' ? i == 0 || i + 1 == s.n || s.p[i - 1] == '.'
				  : !is_alnum(s.p[i]) && (edge || s.p[i] != '-'))
			return false;
	}
	return s.n > 0 && s.n <= 253;
}

static bool is_ipv6(struct str s)
{
	if (s.n < 4 || s.n > 47 || s.p[0] != '[' || s.p[s.n - 1] != ']')
		return false;
	for (size_t i = 1; i + 1 < s.n; i++) {
		if (head_hex(s.p[i]) < 0 && s.p[i] != ':' && s.p[i] != '.')
			return false;
	}
	return true;
}

static bool parse_port(struct str s, int *ret)
{
	int port = 0;

	if (s.n == 0 || s.n > 5 || s.p[0] == '0')
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (!is_digit(s.p[i]))
			return false;
		port = port * 10 + (s.p[i] - '0');
	}
	*ret = port;
	return port <= 65535;
}

bool http_authority_parse(struct str text, struct http_authority *ret)
{
	struct http_authority a = { .host = text, .port = -1 };
	const char *colon;

	if (text.n == 0)
		return false;
	if (text.p[0] == '[') {
		const char *end = memchr(text.p, ']', text.n);

		if (!end)
			return false;
		a.host.n = (size_t)(end - text.p) + 1;
		colon = a.host.n < text.n ? end + 1 : NULL;
		if (colon && *colon != ':')
			return false;
	} else {
		colon = memchr(text.p, ':', text.n);
		if (colon)
			a.host.n = (size_t)(colon - text.p);
	}
	if (colon && !parse_port((struct str){ colon + 1, text.n - a.host.n - 1 }, &a.port))
		return false;
	if (!is_name(a.host) && !is_ipv6(a.host))
		return false;
	*ret = a;
	return true;
}

static bool is_allowed(const struct http_authority *a, const struct http_authority *by)
{
	struct str host = a->host;
	/* length of the labels before by's name, without the dot */
	size_t label = host.n > by->host.n ? host.n - by->host.n - 1 : 0;

	if (by->port >= 0 && by->port != a->port)
		return false;
	if (!by->below)
		return http_same(host, by->host);
	return label > 0 && host.p[label] == '.' && !memchr(host.p, '.', label) &&
	       http_same((struct str){ host.p + label + 1, by->host.n }, by->host);
}

bool http_authority_in(struct str text, const struct http_authority *allowed, size_t n)
{
	struct http_authority a;

	if (!http_authority_parse(text, &a))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (is_allowed(&a, &allowed[i]))
			return true;
	}
	return false;
}

bool http_origin_is(struct str origin, const char *scheme, struct str authority)
{
	size_t n = strlen(scheme);

	return origin.n == n + 3 + authority.n && memcmp(origin.p, scheme, n) == 0 &&
	       memcmp(origin.p + n, "://", 3) == 0 &&
	       memcmp(origin.p + n + 3, authority.p, authority.n) == 0;
}

/* ---- fields -------------------------------------------------------------------------------- */

/* The text before the first c, trimmed; *rest is what follows c, or STR_NONE at the end. */
static struct str cut(struct str s, char c, struct str *rest)
{
	const char *at = s.n > 0 ? memchr(s.p, c, s.n) : NULL;
	size_t n = at ? (size_t)(at - s.p) : s.n;

	*rest = at ? (struct str){ at + 1, s.n - n - 1 } : STR_NONE;
	return str_trim((struct str){ s.p, n });
}

bool http_type_is_json(struct str type)
{
	struct str rest;

	if (str_is(type, "application/json"))
		return true; /* as nearly all write it */
	if (!http_same(cut(type, ';', &rest), STR_LIT("application/json")))
		return false;
	while (rest.p) {
		struct str parameter = cut(rest, ';', &rest);

		if (parameter.n > 0 && !http_same(parameter, STR_LIT("charset=utf-8")) &&
		    !http_same(parameter, STR_LIT("charset=\"utf-8\"")))
			return false;
	}
	return true;
}

struct str http_bearer(struct str authorization)
{
	static const struct str scheme = STR_LIT("Bearer ");
	struct str token;

	if (authorization.n <= scheme.n ||
	    !http_same((struct str){ authorization.p, scheme.n }, scheme))
		return STR_NONE;
	token = str_trim((struct str){ authorization.p + scheme.n, authorization.n - scheme.n });
	for (size_t i = 0; i < token.n; i++) {
		char c = token.p[i];

		if (!is_alnum(c) && (!c || !strchr("-._~+/=", c)))
			return STR_NONE;
	}
	return token.n > 0 ? token : STR_NONE;
}

/* Tables of what a byte may be part of, since every byte of every field is checked. */
enum { VALUE = 1, NAME = 2, BOTH = VALUE | NAME };

static const unsigned char part_of[256] = {
	['\t'] = VALUE,	       [' '] = VALUE,	      ['!'] = BOTH,	    ['"'] = VALUE,
	['#' ... '\''] = BOTH, ['(' ... ')'] = VALUE, ['*' ... '+'] = BOTH, [','] = VALUE,
	['-' ... '.'] = BOTH,  ['/'] = VALUE,	      ['0' ... '9'] = BOTH, [':' ... '@'] = VALUE,
	['A' ... 'Z'] = BOTH,  ['[' ... ']'] = VALUE, ['^' ... 'z'] = BOTH, ['{'] = VALUE,
	['|'] = BOTH,	       ['}'] = VALUE,	      ['~'] = BOTH,	    [0x80 ... 0xff] = VALUE,
};

static bool all_of(struct str s, unsigned char what)
{
	unsigned char common = what;

	for (size_t i = 0; i < s.n; i++)
		common &= part_of[(unsigned char)s.p[i]];
	return common & what;
}

/* Tests eight bytes for letters and hyphens, which make up nearly all names: 0x80 for each match.
 * All bytes must be below 0x80. */
static uint64_t letters(uint64_t x)
{
	uint64_t low = x | WORD_OF(0x20);
	uint64_t letter = (low + WORD_OF(0x80 - 'a')) & ~(low + WORD_OF(0x7f - 'z'));
	uint64_t other = (x ^ WORD_OF('-')) + WORD_OF(0x7f); /* than a hyphen */

	return (letter | ~other) & WORD_OF(0x80);
}

static bool is_easy_name(struct str s)
{
	uint64_t high = word_high(word_at(s.p + s.n - WORD)),
		 all = letters(word_at(s.p + s.n - WORD));

	for (size_t i = 0; i + WORD < s.n; i += WORD) {
		high |= word_high(word_at(s.p + i));
		all &= letters(word_at(s.p + i));
	}
	return high == 0 && all == WORD_OF(0x80);
}

bool http_name_ok(struct str name)
{
	return (name.n >= WORD && is_easy_name(name)) || (name.n > 0 && all_of(name, NAME));
}

static uint64_t odd_of_value(uint64_t x)
{
	return word_below(x, 0x20) | word_is(x, 0x7f);
}

/* Without tabs, which are rare. */
static bool is_easy_value(struct str s)
{
	uint64_t odd = odd_of_value(word_at(s.p + s.n - WORD));

	for (size_t i = 0; i + WORD < s.n; i += WORD)
		odd |= odd_of_value(word_at(s.p + i));
	return odd == 0;
}

bool http_value_ok(struct str value)
{
	return (value.n >= WORD && is_easy_value(value)) || all_of(value, VALUE);
}

bool http_list_has(struct str list, const char *token)
{
	while (list.p) {
		if (http_same(cut(list, ',', &list), str_of(token)))
			return true;
	}
	return false;
}

bool http_length_parse(struct str text, unsigned long long *ret)
{
	unsigned long long value = 0;

	if (text.n == 0 || text.n > 18)
		return false;
	for (size_t i = 0; i < text.n; i++) {
		if (!is_digit(text.p[i]))
			return false;
		value = value * 10 + (unsigned)(text.p[i] - '0');
	}
	*ret = value;
	return true;
}

/* ---- targets ------------------------------------------------------------------------------- */

/* Decodes the byte at s.p[*at] and advances *at; -1 if the escape is invalid. */
static int decode_at(struct str s, size_t *at)
{
	int high, low;

	if (s.p[*at] != '%')
		return (unsigned char)s.p[(*at)++];
	if (s.n - *at < 3)
		return -1;
	high = head_hex(s.p[*at + 1]);
	low = head_hex(s.p[*at + 2]);
	*at += 3;
	return high < 0 || low < 0 ? -1 : high * 16 + low;
}

bool http_path_ok(struct str path)
{
	size_t length = 0, dots = 0; /* of the current segment, decoded */

	if (path.n == 0 || path.p[0] != '/')
		return false;
	for (size_t i = 1; i <= path.n;) {
		bool slash = i == path.n || path.p[i] == '/';
		unsigned char raw = slash ? '/' : (unsigned char)path.p[i];
		int c = '/';

		if (slash && length > 0 && length == dots && dots <= 2)
			return false;
		if (slash) {
			length = dots = 0;
			i++;
			continue;
		}
		c = decode_at(path, &i);
		if (raw <= 0x20 || raw >= 0x7f || raw == '#' || raw == '\\' || c < 0x20 ||
		    c == 0x7f || c == '\\')
			return false;
		length++;
		dots += c == '.';
	}
	return true;
}

/* The part up to the next slash or the end. */
static struct str segment_at(struct str path, size_t at)
{
	size_t end = at;

	while (end < path.n && path.p[end] != '/')
		end++;
	return (struct str){ path.p + at, end - at };
}

bool http_path_is(const char *pattern, struct str path, struct str *ret_rest)
{
	const char *p = pattern;
	size_t at = 0;

	while (*p) {
		size_t segment = *p == '{' ? segment_at(path, at).n : 0;

		if (segment > 0) {
			p = strchr(p, '}') + 1;
			at += segment;
		} else if (at == path.n || path.p[at++] != *p++) {
			return false;
		}
	}
	if (at < path.n && (p == pattern + 1 || p[-1] != '/'))
		return false;
	*ret_rest = (struct str){ path.p + at, path.n - at };
	return true;
}

struct str http_path_segment(const char *pattern, struct str path, const char *name)
{
	size_t at = 0, n = strlen(name);

	for (const char *p = pattern; *p;) {
		struct str segment = segment_at(path, at);

		if (*p != '{') {
			p++;
			at++;
			continue;
		}
		if (strncmp(p + 1, name, n) == 0 && p[n + 1] == '}')
			return segment;
		p = strchr(p, '}') + 1;
		at += segment.n;
	}
	return STR_NONE;
}

/* The length of the UTF-8 sequence at s (RFC 3629); 0 if there is none. */
static size_t utf8_at(struct str s)
{
	const unsigned char *p = (const unsigned char *)s.p;
	size_t n = *p < 0x80 ? 1
		 : *p < 0xc2 ? 0
		 : *p < 0xe0 ? 2
		 : *p < 0xf0 ? 3
		 : *p < 0xf5 ? 4
			     : 0;

	if (n > s.n || *p == 0)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
	    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

struct str http_query_decode(struct str text, struct arena *arena)
{
	struct err e;
	char *to = arena_alloc(arena, text.n + 1, &e);
	size_t n = 0, step;

	if (!to)
		return STR_NONE;
	for (size_t i = 0; i < text.n;) {
		int c = text.p[i] == '+' ? i++, ' ' : decode_at(text, &i);

		if (c < 0)
			return STR_NONE;
		to[n++] = (char)c;
	}
	for (size_t i = 0; i < n; i += step) {
		step = utf8_at((struct str){ to + i, n - i });
		if (step == 0)
			return STR_NONE;
	}
	return (struct str){ to, n };
}

bool http_cookie_next(struct str *cookies, const char *name, struct str *ret_value)
{
	size_t n = strlen(name);

	while (cookies->n > 0) {
		const char *end = memchr(cookies->p, ';', cookies->n);
		struct str one = { cookies->p, end ? (size_t)(end - cookies->p) : cookies->n };

		*cookies = end ? (struct str){ end + 1, cookies->n - one.n - 1 } : STR_NONE;
		one = str_trim(one);
		if (one.n <= n || one.p[n] != '=' || !str_starts(one, name))
			continue;
		*ret_value = (struct str){ one.p + n + 1, one.n - n - 1 };
		return true;
	}
	return false;
}
