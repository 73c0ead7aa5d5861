/* Decides about what Vectorscan found: tokens, URLs, JWTs and blocks in ASCII armour. */
#include <stdlib.h>

#include "base/mem.h"
#include "guard/redact/internal.h"

const uint16_t char_classes[256] = {
	['\0' ... '\b'] = IS_END | IS_CONTROL,
	['\t'] = IS_END,
	['\n' ... 31] = IS_END | IS_CONTROL,
	[' '] = IS_END,
	['"'] = IS_END | IS_CLOSER,
	['#'] = IS_SIGN,
	['%'] = IS_ESCAPE,
	['&'] = IS_END,
	['\''] = IS_END | IS_CLOSER,
	[')'] = IS_END | IS_CLOSER,
	['*'] = IS_SIGN,
	['+'] = IS_BASE64,
	[','] = IS_END,
	['-'] = IS_DASH | IS_SIGN,
	['.'] = IS_DOT | IS_SIGN,
	['/'] = IS_BASE64,
	['0' ... '9'] = IS_DIGIT | IS_HEX,
	[';'] = IS_END,
	['<'] = IS_END,
	['='] = IS_BASE64,
	['>'] = IS_END,
	['?'] = IS_SIGN,
	['A' ... 'W'] = IS_UPPER,
	['X'] = IS_UPPER | IS_SIGN,
	['Y' ... 'Z'] = IS_UPPER,
	['['] = IS_CLOSER,
	['\\'] = IS_CLOSER,
	[']'] = IS_CLOSER,
	['_'] = IS_UNDER | IS_SIGN,
	['`'] = IS_END,
	['a' ... 'f'] = IS_LOWER | IS_HEX,
	['g' ... 'w'] = IS_LOWER,
	['x'] = IS_LOWER | IS_SIGN,
	['y' ... 'z'] = IS_LOWER,
	['|'] = IS_END,
	['~'] = IS_DOT,
	[127] = IS_END,
};

bool finder_has(const struct finder *f, size_t at, size_t end)
{
	const struct span *last = f->n_spans > 0 ? &f->spans[f->n_spans - 1] : NULL;

	return last && at >= last->at && end <= last->at + last->n && f->rank >= last->rank;
}

void finder_add(struct finder *f, struct span s)
{
	s.rank = f->rank;
	if (s.n == 0 || finder_has(f, s.at, s.at + s.n))
		return;
	if (f->n_spans == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 64;
		struct span *more = realloc(f->spans, cap * sizeof(*more));

		f->failed |= !more;
		if (!more)
			return;
		f->spans = more;
		f->cap = cap;
	}
	f->spans[f->n_spans++] = s;
}

/* Whether eight bytes are of ASCII text, without an escape. */
static bool is_text8(const char *p)
{
	const uint64_t ones = 0x0101010101010101, high = 128 * ones;
	uint64_t x, low;

	memcpy(&x, p, sizeof(x));
	low = x & ~high;
	/* The high bit of a sum says whether its byte is at least 7, 14 and 32. */
	return !((x | ~(low + 121 * ones) | ((low + 114 * ones) & ~(low + 96 * ones))) & high);
}

bool is_binary(const char *p, size_t n)
{
	size_t follow = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c;

		while (follow == 0 && n - i > sizeof(uint64_t) && is_text8(p + i))
			i += sizeof(uint64_t);
		c = (unsigned char)p[i];
		if (c < ' ' && (c < 7 || (c > 13 && c != 27)))
			return true;
		if ((c & 0xc0) == 0x80) {
			if (follow == 0 && i > 2)
				return true;
			follow -= follow > 0;
			continue;
		}
		if (follow > 0 || c > 0xf4 || c == 0xc0 || c == 0xc1)
			return true;
		follow = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : c >= 0x80 ? 1 : 0;
	}
	return false;
}

bool is_chance(struct finder *f, struct str value)
{
	/* A value in binary data: "pwd=" stands somewhere in each half gigabyte of random bytes,
	 * and a few characters of text behind it are no rarity either. */
	enum { BINARY_VALUE_MIN = 8 };
	size_t at = (size_t)(value.p - f->p), before = at < REDACT_NEAR ? at : REDACT_NEAR;

	/* In the order of places, for the sweep: so no byte before a value is looked at twice. */
	return (value.n < BINARY_VALUE_MIN && sweep_to(f, SORT_NO_TEXT, at - before, at) < at) ||
	       str_has_sort(f, value, SORT_NO_TEXT) || str_has_sort(f, value, SORT_CONTROL) ||
	       (value.n > 0 && ((unsigned char)value.p[0] & 0xc0) == 0x80);
}

/* ---- texts that are no secrets --------------------------------------------------------------- */

static char judge_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

bool str_is_any_case(struct str s, const char *word)
{
	size_t i = 0;

	for (; i < s.n && word[i] && judge_lower(s.p[i]) == word[i]; i++)
		;
	return i == s.n && !word[i];
}

bool is_filler(struct str v)
{
	enum { LOOK = 36 }; /* one that is longer is known by its beginning */
	size_t n = v.n < LOOK ? v.n : LOOK, other = 0, signs = 0, bullets = 0;

	if (v.n < 3)
		return false;
	for (size_t i = 1; i < n && 3 * other <= n; i++) {
		int step = v.p[i] - v.p[i - 1];

		other += !(step == 0 || step == 1 || (v.n > 8 && step == -9));
	}
	if (other == 0 || (n >= 12 && 3 * (n - 1 - other) >= 2 * n) || str_ends(v, "..."))
		return true;
	while (signs < n && (char_class(v.p[signs]) & IS_SIGN))
		signs++;
	/* Bullets are three bytes each. */
	while (bullets < n && (v.p[bullets] & 0x80) && v.p[bullets] == v.p[bullets % 3])
		bullets++;
	return signs == n || bullets == n;
}

bool is_format(struct str v)
{
	enum { LOOK = 64 };
	unsigned classes = 0, was = 0;
	bool found = false, space = false, caps = false;

	for (size_t i = 0; i < v.n && i < LOOK; i++) {
		bool directive = v.p[i] == '%' && i + 1 < v.n;
		unsigned is = directive ? 0 : char_class(v.p[i]);

		i += directive;
		found |= directive && v.p[i] && strchr("cdfiprsuvx", v.p[i]);
		space |= v.p[i] == ' ';
		caps |= (is & was & IS_UPPER) != 0;
		classes |= was = is;
	}
	return found && (space || ((classes | (caps ? IS_DIGIT : 0)) & MIXED) != MIXED);
}

/* %s\n, and %CONSTANT in comments of the kernel. */
static bool is_directive(struct str v)
{
	size_t i = 1;

	if (char_class(v.p[1]) & IS_LOWER)
		return !(char_class(v.p[2]) & (ALNUM | IS_UNDER)) && is_format(v);
	while (i < v.n && (char_class(v.p[i]) & (IS_UPPER | IS_DIGIT | IS_UNDER)))
		i++;
	return (char_class(v.p[1]) & IS_UPPER) && (i == v.n || (i + 1 == v.n && v.p[i] == '.'));
}

/* $NAME/… */
static bool is_below_variable(struct str v)
{
	enum { NAME_LOOK = 32 };
	size_t i = 1;

	while (i < v.n && i < NAME_LOOK && (char_class(v.p[i]) & WORD))
		i++;
	return i > 2 && i < v.n && v.p[i] == '/';
}

/* $NAME, $NAME/…, ${…}, $(…), %NAME%, %s, {{…}}, {…}, <…>, __NAME__, @NAME@ */
static bool is_variable(struct finder *f, struct str v)
{
	char first = v.p[0], last = v.p[v.n - 1];

	if (first == '<' || first == '{' || (first == '\\' && v.n > 1 && v.p[1] == '$'))
		return true;
	if (first == '#' && v.n > 1 && v.p[1] == '{')
		return true;
	if (first == '\\' && v.n > 2 && v.p[1] == 'f' && strchr("BIRP", v.p[2]))
		return true; /* a font of a manual page */
	if (v.n <= 2 && (first == '$' || first == '%'))
		return true;
	if (v.n < 2)
		return false;
	if (first == '$' && (v.p[1] == '{' || v.p[1] == '(' || v.p[1] == '$' || v.p[1] == '@'))
		return true;
	if (first == '$' && !(char_class(v.p[1]) & IS_DIGIT) &&
	    (is_below_variable(v) ||
	     !str_has_sort(f, (struct str){ v.p + 1, v.n - 1 }, SORT_NO_VARIABLE)))
		return true;
	if (first == '%' && (v.n <= 3 || v.p[1] == '(' || is_directive(v)))
		return true;
	if ((first == '%' || first == '@') && first == last)
		return !str_has_sort(f, (struct str){ v.p + 1, v.n - 2 }, SORT_NO_VARIABLE);
	return v.n > 4 && str_starts(v, "__") && str_ends(v, "__");
}

static bool is_key_again(struct finder *f, struct str v, struct str key)
{
	enum { LOOK = 48 }; /* of a value */

	if (key.n == v.n && key.n > 0 && memcmp(key.p, v.p, v.n) == 0)
		return true;
	/* exports.Socks5Auth = Socks5Auth */
	if (v.n > 3 && key.n > v.n && memcmp(key.p + key.n - v.n, v.p, v.n) == 0)
		return true;
	/* accessToken: _this14.accessToken */
	if (v.n > key.n && key.n > 3 && v.p[v.n - key.n - 1] == '.' &&
	    memcmp(key.p, v.p + v.n - key.n, key.n) == 0)
		return true;
	if (key.n == 0 || str_has_sort(f, v, SORT_DIGIT) || !str_has_sort(f, v, SORT_NOUN))
		return false;
	v.n = v.n < LOOK ? v.n : LOOK;
	return shares_noun(key, v);
}

bool is_placeholder(struct finder *f, struct str v, struct str key)
{
	return v.n == 0 || is_variable(f, v) || is_filler(v) || (word_is(v) & WORD_PLAIN) ||
	       str_has_sort(f, v, SORT_PART) || str_has_sort(f, v, SORT_SCHEME) ||
	       is_key_again(f, v, key);
}

/* Has enough kinds of characters, and different ones, for something made at random. */
static bool is_random(struct finder *f, struct str v, unsigned needs)
{
	enum { LOOK = 32, DIFFERENT = 6, LETTERS = 20 };
	uint64_t seen[4] = { 0 };
	size_t n = v.n < LOOK ? v.n : LOOK, want = v.n < 12 ? v.n / 2 : DIFFERENT, different = 0;

	for (size_t i = 0; i < n && different < want; i++) {
		unsigned char c = (unsigned char)v.p[i];

		different += !(seen[c / 64] >> c % 64 & 1);
		seen[c / 64] |= 1ull << c % 64;
	}
	/* One of letters alone is rare, and a name of a program has few capitals side by side. */
	if (v.n >= LETTERS && needs == MIXED && !str_has_sort(f, v, SORT_DIGIT))
		return different >= want && str_has_sort(f, v, SORT_LOWER) &&
		       str_has_sort(f, v, SORT_TWO_UPPER);
	return different >= want && (!(needs & IS_UPPER) || str_has_sort(f, v, SORT_UPPER)) &&
	       (!(needs & IS_LOWER) || str_has_sort(f, v, SORT_LOWER)) &&
	       (!(needs & IS_DIGIT) || str_has_sort(f, v, SORT_DIGIT));
}

/* ---- tokens ---------------------------------------------------------------------------------- */

bool is_hex_any_case(char c)
{
	return (char_class(c) & IS_HEX) || (c >= 'A' && c <= 'F');
}

/* Whether a token may begin at `at`: behind no letter or digit, but for those of %3D, \n, \u0022
 * and of what colours a terminal. */
static bool may_begin(const struct finder *f, size_t at)
{
	const char *p = f->p + at;

	if (at == 0 || !(char_class(p[-1]) & ALNUM))
		return true;
	if (at >= 3 && p[-3] == '%' && is_hex_any_case(p[-1]) && is_hex_any_case(p[-2]))
		return true;
	if (at >= 2 && p[-2] == '\\' && strchr("nrtfb", p[-1]))
		return true;
	if (at >= 6 && p[-6] == '\\' && p[-5] == 'u')
		return true;
	if (p[-1] != 'm')
		return false;
	for (size_t i = 2; i <= at && i < 20; i++) {
		if (p[-(ssize_t)i] == '[')
			return true;
		if (p[-(ssize_t)i] != ';' && !(char_class(p[-(ssize_t)i]) & IS_DIGIT))
			return false;
	}
	return false;
}

/* The end of what is made of the row's set, at most max + 1 bytes from start. */
static size_t token_end(struct finder *f, const struct pattern *p, size_t start, size_t at,
			size_t max)
{
	size_t end = f->n - start > max ? start + max + 1 : f->n;

	return at < end ? sweep_row(f, p, at, end) : at;
}

/* A sentence may end behind it. */
static size_t without_stop(const struct finder *f, size_t start, size_t end)
{
	while (end > start && f->p[end - 1] == '.')
		end--;
	return end;
}

void judge_token(struct finder *f, const struct pattern *p, size_t end)
{
	size_t start = end - p->width, at;
	struct str rest;

	/* More digits before the colon of a bot's token. */
	while (p->prefix && p->kind[0] == 't' && p->kind[1] == 'e' && p->kind[2] == 'l' &&
	       start > 0 && end - start < 19 && (char_class(f->p[start - 1]) & IS_DIGIT))
		start--;
	if (!may_begin(f, start))
		return;
	at = token_end(f, p, start, end, p->max + 4);
	if (at == f->n && !f->final && at - start <= p->max + 4) {
		finder_open(f, start);
		return;
	}
	at = without_stop(f, start, at);
	rest = (struct str){ f->p + start + p->prefix, at - start - p->prefix };
	if (at - start >= p->min && at - start <= p->max + (end - start - p->width) &&
	    is_random(f, rest, p->needs) && !is_placeholder(f, rest, STR_NONE))
		finder_add(f, (struct span){ start, at - start, p->kind, SPAN_ENDS, '\0', 0 });
}

/* Words are written with small letters, but for the first. */
static bool is_word(struct str v)
{
	for (size_t i = 0; i < v.n && v.n < 24; i++) {
		if (!(char_class(v.p[i]) &
		      (IS_LOWER | (i ? 0u : IS_UPPER) | IS_DASH | IS_DOT | IS_UNDER)))
			return false;
	}
	return v.n < 24;
}

void judge_after(struct finder *f, const struct pattern *p, size_t end)
{
	size_t at = token_end(f, p, end, end, p->max);
	struct str v;

	if (at == f->n && !f->final && at - end <= p->max) {
		finder_open(f, end);
		return;
	}
	at = without_stop(f, end, at);
	v = (struct str){ f->p + end, at - end };
	if (v.n >= p->min && (v.n <= p->max || p->max >= 4000) && is_random(f, v, p->needs) &&
	    !is_word(v) && !is_placeholder(f, v, STR_LIT("token")))
		finder_add(f, (struct span){ end, v.n, p->kind,
					     v.n > p->max ? SPAN_TOKEN : SPAN_ENDS, '\0', 0 });
}

/* ---- JSON Web Tokens -------------------- */

/* end is behind the first character that follows the header's dot. */
void judge_jwt(struct finder *f, const struct pattern *p, size_t end)
{
	enum { HEADER_MAX = 2000, PART_MIN = 8 };
	size_t dot = end - 2, start = dot, at, parts[3] = { 0 }, n = 0;

	while (start > 0 && dot - start < HEADER_MAX && (char_class(f->p[start - 1]) & URL64))
		start--;
	/* The header may stand behind letters of something escaped. */
	while (start < dot && !(f->p[start] == 'e' && dot - start > 3 &&
				!memcmp(f->p + start, "eyJ", 3) && may_begin(f, start)))
		start++;
	if (start == dot)
		return;
	at = token_end(f, p, start, end - 1, HOLD_MAX - 1);
	if (at == f->n && !f->final && at - start < HOLD_MAX) {
		finder_open(f, start);
		return;
	}
	for (size_t i = start; i < at && n < 3; i++) {
		n += f->p[i] == '.';
		if (n < 3)
			parts[n] += f->p[i] != '.';
	}
	/* The one of every documentation: {"sub":"1234567890". */
	if (at - dot > 24 && !memcmp(f->p + dot, ".eyJzdWIiOiIxMjM0NTY3ODkw", 25))
		return;
	if (at - start >= HOLD_MAX)
		finder_add(f, (struct span){ start, at - start, p->kind, SPAN_TOKEN, '\0', 0 });
	else if (n >= 2 && parts[1] >= PART_MIN && parts[2] >= PART_MIN)
		finder_add(f, (struct span){ start, without_stop(f, start, at) - start, p->kind,
					     SPAN_ENDS, '\0', 0 });
}

/* ---- passwords in URLs -------------------- */

/* end is behind the @. */
void judge_url(struct finder *f, const struct pattern *p, size_t end)
{
	size_t colon = 0, at = end - 1;
	struct str v, user;

	while (at > 0 && end - at < LOOK_BACK - 64 && f->p[at - 1] != '/' &&
	       (unsigned char)f->p[at - 1] > ' ') {
		at--;
		if (f->p[at] == ':')
			colon = at;
	}
	if (colon == 0 || at < 3 || f->p[at - 1] != '/' || f->p[at - 2] != '/')
		return;
	v = (struct str){ f->p + colon + 1, end - colon - 2 };
	user = (struct str){ f->p + at, colon - at };
	/* guest:guest, and [USER[:PASSWORD]@] of a synopsis. */
	if (v.n > 1 && !memchr(v.p, ']', v.n) && !str_eq(user, v) &&
	    !is_placeholder(f, v, STR_NONE) && !is_chance(f, v))
		finder_add(f, (struct span){ colon + 1, v.n, p->kind, SPAN_ENDS, '\0', 0 });
}

/* ---- blocks in ASCII armour -------------------- */

enum {
	HEADER_MAX = 72, /* -----BEGIN … PRIVATE KEY BLOCK----- */
	BODY_LOOK = 1024, /* within this many bytes of the header base64 begins */
	BODY_MIN = 20,
	SHORT_RUN = 16, /* fewer characters are the last line, or a word of a text */
	ARMOUR_MAX = 64 << 10,
};

/* The bytes between lines of base64: line ends, also escaped, quotes, signs of comments. */
static bool is_between(char c)
{
	return c && strchr(" \t\r\n\\\"',+#>|*:;", c);
}

static bool is_base64(char c)
{
	return (char_class(c) & ALNUM) || c == '+' || c == '/' || c == '=' || c == '-' || c == '_';
}

size_t armour_eat(struct armour *a, const char *p, size_t n, bool *ret_done)
{
	size_t i = 0;

	*ret_done = false;
	for (; i < n; i++, a->n++) {
		char c = p[i];
		bool ends = a->n >= ARMOUR_MAX;

		if (a->dashes > 0 && !ends) {
			/* -----END …-----: the dashes, words, and as many dashes again */
			if (c == '-') {
				a->dashes++;
				if (a->dashes >= 10) {
					*ret_done = true;
					return i + 1;
				}
				continue;
			}
			ends = a->dashes < 5 || !((char_class(c) & IS_UPPER) || c == ' ');
			if (!ends)
				continue;
		} else if (c == '-' && a->gap && !ends) {
			a->dashes = 1;
			continue;
		} else if (is_base64(c) && !ends) {
			/* An escaped line end is no text. */
			bool escaped = a->last == '\\' && strchr("nrt", c);

			if (escaped) {
				a->last = c;
				continue;
			}
			ends = a->gap && a->run > 0 && a->run < SHORT_RUN;
			a->run = a->gap ? 1 : a->run + 1;
			a->gap = false;
			if (!ends) {
				a->last = c;
				continue;
			}
		} else if (is_between(c) && !ends) {
			a->gap = true;
			a->last = c;
			continue;
		}
		*ret_done = true;
		return i;
	}
	return i;
}

/* Over lines such as "Proc-Type: 4,ENCRYPTED" to where base64 begins. 1: *ret is there; 0: there is
 * none; -1: more bytes are needed. From a line end that the last look passed, this one would go the
 * same way, so it goes on where that stopped. */
static int armour_body(struct finder *f, size_t at, size_t *ret)
{
	size_t end = at + BODY_LOOK < f->n ? at + BODY_LOOK : f->n, run = 0;
	const struct body_look was = f->body;

	f->body.from = at;
	for (size_t i = at; i < end; i++) {
		char c;

		if (run == 0 && i >= was.from && i < was.until && is_line_end(f, i)) {
			i = was.until;
			run = was.run;
		}
		f->body.until = i;
		f->body.run = run;
		if (i >= end)
			break;
		c = f->p[i];
		if (is_base64(c) && !(run == 0 && c == '-')) {
			/* n, r or t behind a backslash is a line end. */
			if (run == 0 && f->p[i - 1] == '\\' && strchr("nrt", c))
				continue;
			if (++run == BODY_MIN) {
				*ret = i + 1 - run;
				return 1;
			}
		} else if (c == ':' && run > 0) {
			i = sweep_to(f, SORT_LINE_ENDS, i, end) - 1;
			run = 0;
		} else if (is_between(c) && run == 0) {
			continue;
		} else {
			return 0;
		}
	}
	return end == f->n && !f->final && end - at < BODY_LOOK ? -1 : 0;
}

void judge_pem(struct finder *f, const struct pattern *p, size_t end)
{
	static const char begin[] = "-----BEGIN ";
	size_t start = end, body;
	int rc;

	while (start > 0 && end - start < HEADER_MAX &&
	       (end - start < sizeof(begin) - 1 ||
		memcmp(f->p + start, begin, sizeof(begin) - 1) != 0))
		start--;
	if (end - start < sizeof(begin) || memcmp(f->p + start, begin, sizeof(begin) - 1) != 0)
		return;
	for (size_t i = start + sizeof(begin) - 1; i < end - 5; i++) {
		if (!(char_class(f->p[i]) & (IS_UPPER | IS_DIGIT)) && f->p[i] != ' ')
			return;
	}
	rc = armour_body(f, end, &body);
	if (rc < 0)
		finder_open(f, start);
	else if (rc > 0)
		finder_add(f, (struct span){ start, body - start, p->kind, SPAN_PEM, '\0', 0 });
}

/* Base64 of such a block; end is within its header. */
void judge_pem64(struct finder *f, const struct pattern *p, size_t end)
{
	static const char begin[] = "LS0tLS1CRUdJTiB";
	size_t start = end, at;

	while (start > 0 && end - start < HEADER_MAX &&
	       (end - start < sizeof(begin) - 1 ||
		memcmp(f->p + start, begin, sizeof(begin) - 1) != 0))
		start--;
	at = token_end(f, p, start, end, HOLD_MAX - 1);
	if (at == f->n && !f->final && at - start < HOLD_MAX)
		finder_open(f, start);
	else
		finder_add(f, (struct span){ start, at - start, p->kind,
					     at - start < HOLD_MAX ? SPAN_ENDS : SPAN_TOKEN, '\0',
					     0 });
}

/* The private lines of a key of PuTTY. */
void judge_putty(struct finder *f, const struct pattern *p, size_t end)
{
	size_t body;
	int rc = armour_body(f, end, &body);

	if (rc < 0)
		finder_open(f, end);
	else if (rc > 0)
		finder_add(f, (struct span){ body, 1, p->kind, SPAN_PEM, '\0', 0 });
}

/* NAME:$6$… of /etc/shadow and htpasswd. */
void judge_hash(struct finder *f, const struct pattern *p, size_t end)
{
	enum { HASH_MIN = 20, HASH_MAX = 256 };
	size_t at = end, start = end - 1;

	while (start > 0 && f->p[start - 1] != ':')
		start--;
	while (at < f->n && at - start < HASH_MAX && f->p[at] != ':' && f->p[at] != '"' &&
	       f->p[at] != '\'' && (unsigned char)f->p[at] > ' ')
		at++;
	if (at == f->n && !f->final && at - start < HASH_MAX)
		finder_open(f, start);
	else if (at - start >= HASH_MIN)
		finder_add(f, (struct span){ start, at - start, p->kind, SPAN_ENDS, '\0', 0 });
}

void hold_armour(struct finder *f)
{
	static const char begin[] = "-----BEGIN ";
	size_t least = f->n > HEADER_MAX ? f->n - HEADER_MAX : 0;

	for (size_t at = least; at < f->n; at++) {
		size_t n = f->n - at, i = 0;

		if (f->p[at] != '-')
			continue;
		while (i < n && i < sizeof(begin) - 1 && f->p[at + i] == begin[i])
			i++;
		if (i == sizeof(begin) - 1) {
			while (i < n &&
			       ((char_class(f->p[at + i]) & (IS_UPPER | IS_DIGIT | IS_DASH)) ||
				f->p[at + i] == ' '))
				i++;
		}
		if (i == n) {
			finder_open(f, at);
			return;
		}
	}
}
