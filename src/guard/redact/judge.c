/* Decides about what Vectorscan found: tokens, URLs, JWTs and blocks in ASCII armour. */
#include <stdlib.h>

#include "base/mem.h"
#include "guard/redact/internal.h"

const uint16_t char_classes[256] = {
	['a' ... 'f'] = IS_LOWER | IS_HEX,
	['g' ... 'z'] = IS_LOWER,
	['A' ... 'Z'] = IS_UPPER,
	['0' ... '9'] = IS_DIGIT | IS_HEX,
	['_'] = IS_UNDER,
	['-'] = IS_DASH,
	['.'] = IS_DOT,
	['~'] = IS_DOT,
	['%'] = IS_ESCAPE,
	['+'] = IS_BASE64,
	['/'] = IS_BASE64,
	['='] = IS_BASE64,
};

void finder_add(struct finder *f, struct span s)
{
	if (f->n_spans == f->cap) {
		size_t cap = f->cap ? 2 * f->cap : 64;
		struct span *more = realloc(f->spans, cap * sizeof(*more));

		f->failed |= !more;
		if (!more)
			return;
		f->spans = more;
		f->cap = cap;
	}
	s.rank = f->rank;
	if (s.n > 0)
		f->spans[f->n_spans++] = s;
}

bool is_binary(const char *p, size_t n)
{
	size_t follow = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];

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

bool is_chance(const struct finder *f, size_t at, struct str value)
{
	/* Of a value in binary data. "pwd=" stands somewhere in each half gigabyte of random bytes,
	 * and a few characters of text behind it are no rarity either. */
	enum { BINARY_VALUE_MIN = 8 };
	size_t before = at < REDACT_NEAR ? at : REDACT_NEAR;

	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] < ' ' && value.p[i] != '\t')
			return true;
	}
	return is_binary(value.p, value.n) ||
	       (value.n && ((unsigned char)value.p[0] & 0xc0) == 0x80) ||
	       (value.n < BINARY_VALUE_MIN && is_binary(f->p + at - before, before));
}

/* ---- texts that are no secrets --------------------------------------------------------------- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

bool str_is_any_case(struct str s, const char *word)
{
	size_t i = 0;

	for (; i < s.n && word[i] && lower(s.p[i]) == word[i]; i++)
		;
	return i == s.n && !word[i];
}

bool str_has_word(struct str s, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= s.n; i++) {
		if (lower(s.p[i]) == word[0] && str_is_any_case((struct str){ s.p + i, n }, word))
			return true;
	}
	return false;
}

/* One character again and again, or the alphabet. */
static bool is_sequence(struct str v)
{
	size_t same = 0;

	if (v.n < 3)
		return false;
	for (size_t i = 1; i < v.n; i++) {
		int step = v.p[i] - v.p[i - 1];

		same += step == 0 || step == 1 || (v.n > 8 && step == -9);
	}
	return same == v.n - 1 || (v.n >= 12 && 3 * same >= 2 * v.n);
}

/* Signs for what is not shown, also of three bytes; or it ends in dots. */
static bool is_filler(struct str v)
{
	size_t n = 0, bullets = 0;

	for (size_t i = 0; i < v.n; i++) {
		n += v.p[i] && strchr("*.xX-_#?", v.p[i]) != NULL;
		bullets += (v.p[i] & 0x80) && v.p[i] == v.p[i % 3];
	}
	return v.n >= 3 && (n == v.n || bullets == v.n || str_ends(v, "..."));
}

/* $NAME, ${…}, $(…), %NAME%, %s, {{…}}, {…}, <…>, __NAME__, @NAME@ */
static bool is_variable(struct str v)
{
	char first = v.p[0], last = v.p[v.n - 1];
	size_t name = 0;

	if (first == '<' || first == '{' || (first == '\\' && v.n > 1 && v.p[1] == '$'))
		return true;
	if (first == '#' && v.n > 1 && v.p[1] == '{')
		return true;
	if (v.n <= 2 && (first == '$' || first == '%'))
		return true;
	if (v.n < 2)
		return false;
	if (first == '$' && (v.p[1] == '{' || v.p[1] == '(' || v.p[1] == '$' || v.p[1] == '@'))
		return true;
	for (size_t i = 1; i < v.n; i++)
		name += (char_class(v.p[i]) & (WORD | IS_DOT)) != 0 || v.p[i] == ':';
	if (first == '$' && name == v.n - 1 && !(char_class(v.p[1]) & IS_DIGIT))
		return true;
	if (first == '%' && (v.n <= 3 || last == '%' || v.p[1] == '('))
		return true;
	if (first == '@' && last == '@')
		return true;
	return v.n > 4 && first == '_' && v.p[1] == '_' && last == '_';
}

/* Texts of documentation, types and states; whole values. */
static const char *const plain_words[] = {
	"abcd",	       "accepted",  "admin",	  "any",	  "bad",	 "basic",
	"bearer",      "blank",	    "bool",	  "boolean",	  "byte[]",	 "bytes",
	"changed",     "char",	    "configured", "correct",	  "credentials", "default",
	"deleted",     "denied",    "digest",	  "disabled",	  "empty",	 "enabled",
	"error",       "expired",   "failed",	  "fail",	  "false",	 "file",
	"found",       "generated", "given",	  "hidden",	  "incorrect",	 "int",
	"integer",     "invalid",   "is",	  "key",	  "literal",	 "long",
	"masked",      "missing",   "mismatch",	  "n/a",	  "new",	 "nil",
	"no",	       "none",	    "not",	  "null",	  "number",	 "object",
	"off",	       "ok",	    "old",	  "omitted",	  "on",		 "optional",
	"pass",	       "passed",    "passphrase", "passwd",	  "password",	 "prompt",
	"provided",    "pwd",	    "redacted",	  "refreshed",	  "rejected",	 "removed",
	"renewed",     "required",  "reset",	  "revoked",	  "rotated",	 "saved",
	"secret",      "self",	    "set",	  "skipped",	  "str",	 "string",
	"success",     "sensitive", "text",	  "the",	  "this",	 "token",
	"true",	       "type",	    "undefined",  "unknown",	  "unset",	 "updated",
	"user",	       "used",	    "valid",	  "value",	  "varchar",	 "verified",
	"void",	       "wrong",	    "yes",	  "your",	  "a",		 "an",
	"const",       "let",	    "var",	  "from",	  "env",	 "vault",
	"ask",	       "keyring",   "username",	  "unauthorized", "forbidden",	 "unchanged",
	"unavailable", "encrypted", "plaintext",  "hashed",
};
/* Parts of them. */
static const char *const plain_parts[] = {
	"example",	"changeme",    "change_me", "change-me", "change this", "your_",
	"your-",	"your ",       "yourpass",  "yourtoken", "yoursecret",	"yourkey",
	"yourapi",	"placeholder", "redacted",  "replaceme", "replace_",	"replace-",
	"replace with", "dummy",       "insert",    "xxxx",	 "****",	"....",
	"sample",	"goes-here",   "goes_here", "goes here", "<your",	"fixme",
	"todo",		"-here",       "_here",
};

static bool is_key_again(struct str v, struct str key)
{
	static const char *const nouns[] = { "password", "passwd",     "passphrase", "secret",
					     "token",	 "credential", "api_key",    "api-key",
					     "api key",	 "apikey" };
	bool digits = false;

	for (size_t i = 0; i < v.n; i++)
		digits |= (char_class(v.p[i]) & IS_DIGIT) != 0;
	for (size_t i = 0; !digits && i < ARRAY_LEN(nouns); i++) {
		if (str_has_word(v, nouns[i]) && str_has_word(key, nouns[i]))
			return true;
	}
	return key.n == v.n && key.n > 0 && memcmp(key.p, v.p, v.n) == 0;
}

bool is_placeholder(struct str v, struct str key)
{
	if (v.n == 0 || is_variable(v) || is_sequence(v) || is_filler(v))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(plain_words); i++) {
		if (str_is_any_case(v, plain_words[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(plain_parts); i++) {
		if (str_has_word(v, plain_parts[i]))
			return true;
	}
	return str_has_word(v, "://") || is_key_again(v, key);
}

/* Has enough kinds of characters, and different ones, for something made at random. */
static bool is_random(struct str v, unsigned needs)
{
	bool seen[256] = { false };
	unsigned has = 0, different = 0;

	for (size_t i = 0; i < v.n; i++) {
		has |= char_class(v.p[i]) & ALNUM;
		different += !seen[(unsigned char)v.p[i]];
		seen[(unsigned char)v.p[i]] = true;
	}
	return (has & needs) == needs && different >= (v.n < 12 ? v.n / 2 : 6);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static bool is_hex_any_case(char c)
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

/* The end of what is made of the set, at most max + 1 bytes from start. */
static size_t token_end(const struct finder *f, size_t start, size_t at, unsigned set, size_t max)
{
	while (at < f->n && at - start <= max && (char_class(f->p[at]) & set))
		at++;
	return at;
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
	at = token_end(f, start, end, p->set, p->max + 4);
	if (at == f->n && !f->final && at - start <= p->max + 4) {
		finder_open(f, start);
		return;
	}
	at = without_stop(f, start, at);
	rest = (struct str){ f->p + start + p->prefix, at - start - p->prefix };
	if (at - start >= p->min && at - start <= p->max + (end - start - p->width) &&
	    is_random(rest, p->needs) && !is_placeholder(rest, STR_NONE))
		finder_add(f, (struct span){ start, at - start, p->kind, SPAN_ENDS, '\0', 0 });
}

/* Words are written with small letters, but for the first. */
static bool is_word(struct str v)
{
	for (size_t i = 0; i < v.n; i++) {
		if (!(char_class(v.p[i]) &
		      (IS_LOWER | (i ? 0u : IS_UPPER) | IS_DASH | IS_DOT | IS_UNDER)))
			return false;
	}
	return v.n < 24;
}

void judge_after(struct finder *f, const struct pattern *p, size_t end)
{
	size_t at = token_end(f, end, end, p->set, p->max);
	struct str v;

	if (at == f->n && !f->final && at - end <= p->max) {
		finder_open(f, end);
		return;
	}
	at = without_stop(f, end, at);
	v = (struct str){ f->p + end, at - end };
	if (v.n >= p->min && (v.n <= p->max || p->max >= 4000) && is_random(v, p->needs) &&
	    !is_word(v) && !is_placeholder(v, STR_LIT("token")))
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
	while (start < dot &&
	       !(may_begin(f, start) && dot - start > 3 && !memcmp(f->p + start, "eyJ", 3)))
		start++;
	if (start == dot)
		return;
	at = token_end(f, start, end - 1, URL64 | IS_DOT, HOLD_MAX - 1);
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
	struct str v;

	while (at > 0 && end - at < LOOK_BACK - 64 && f->p[at - 1] != '/' &&
	       (unsigned char)f->p[at - 1] > ' ') {
		at--;
		if (f->p[at] == ':')
			colon = at;
	}
	if (colon == 0 || at < 3 || f->p[at - 1] != '/' || f->p[at - 2] != '/')
		return;
	v = (struct str){ f->p + colon + 1, end - colon - 2 };
	if (!is_placeholder(v, STR_NONE) && !is_chance(f, colon + 1, v))
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

/* What stands between lines of base64: line ends, also escaped, quotes, signs of comments. */
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
 * none; -1: more bytes are needed. */
static int armour_body(const struct finder *f, size_t at, size_t *ret)
{
	size_t end = at + BODY_LOOK < f->n ? at + BODY_LOOK : f->n, run = 0;

	for (size_t i = at; i < end; i++) {
		char c = f->p[i];

		if (is_base64(c) && !(run == 0 && c == '-')) {
			/* n, r or t behind a backslash is a line end. */
			if (run == 0 && f->p[i - 1] == '\\' && strchr("nrt", c))
				continue;
			if (++run == BODY_MIN) {
				*ret = i + 1 - run;
				return 1;
			}
		} else if (c == ':' && run > 0) {
			while (i < end && f->p[i] != '\n' &&
			       !(f->p[i] == '\\' && i + 1 < end && f->p[i + 1] == 'n'))
				i++;
			run = 0;
			i -= i < end && f->p[i] == '\\';
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
