/*
 * Assignments in shell, JSON, YAML, INI files, URLs and programs: what a secret's name is given.
 * The name decides how sure it is, then the value: a variable, a call, a type, a word of a sentence
 * or an example is no secret.
 */
#include "base/mem.h"
#include "guard/redact/internal.h"

enum {
	KEY_MAX = 64,
	WORDS_MAX = 12,
	VALUE_LOOK = HOLD_MAX,
	BEGINNING = 64, /* of a value, which tells what it is */
};

/* How sure a name is. */
enum sure {
	NOT_AT_ALL,
	MAYBE, /* the value has to look random */
	SURE,
};

/* ---- names ----------------------------------------------------------------------------------- */

struct key {
	struct str text;
	struct str words[WORDS_MAX];
	unsigned is[WORDS_MAX]; /* what word_is() says */
	size_t n;
	bool upper; /* all of its letters are capitals */
	bool quoted;
	char before; /* what stands before it */
};

static bool ends_in(struct str w, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(list[i]);

		if (w.n >= k && str_is_any_case((struct str){ w.p + w.n - k, k }, list[i]))
			return true;
	}
	return false;
}
#define ENDS_IN(w, list) ends_in((w), (list), ARRAY_LEN(list))

static const char *const joined[] = {
	"password",    "passwd",       "passphrase", "secret",	  "apikey",    "secretkey",
	"privatekey",  "authkey",      "accountkey", "sharedkey", "authtoken", "accesstoken",
	"bearertoken", "refreshtoken", "apitoken",   "bottoken",
};

static void key_split(struct key *k)
{
	size_t begin = 0;

	for (size_t i = 0; i <= k->text.n; i++) {
		unsigned c = i < k->text.n ? char_class(k->text.p[i]) : 0;
		unsigned before = i > begin ? char_class(k->text.p[i - 1]) : 0;
		bool camel = (c & IS_UPPER) && (before & (IS_LOWER | IS_DIGIT));

		k->upper &= !(c & IS_LOWER);
		if ((c & ALNUM) && !camel)
			continue;
		if (i > begin && k->n == WORDS_MAX) {
			k->n = 0; /* a sentence */
			return;
		}
		if (i > begin) {
			k->words[k->n] = (struct str){ k->text.p + begin, i - begin };
			k->is[k->n] = word_is(k->words[k->n]);
			k->n++;
		}
		begin = camel ? i : i + 1;
	}
}

/* Judges the word i alone, with those around it. */
static enum sure key_word(const struct key *k, size_t i)
{
	struct str w = k->words[i];
	unsigned is = k->is[i], before = i ? k->is[i - 1] : 0;

	if (is & WORD_SURE)
		return SURE;
	if (is & WORD_PWD) /* PWD=/home/joe, but not in ;UID=joe;PWD=x */
		return k->n == 1 && k->upper && k->before != ';' ? NOT_AT_ALL : SURE;
	if (is & WORD_PW)
		return k->n > 1 ? SURE : NOT_AT_ALL;
	if (is & WORD_PASS)
		return i + 1 < k->n || (before & WORD_NO_PASS) ? NOT_AT_ALL
		     : k->n > 1				       ? SURE
							       : MAYBE;
	if (is & WORD_SECRET)
		return k->n > 1 ? SURE : MAYBE;
	if (is & WORD_TOKEN)
		return before & WORD_NO_TOKEN	 ? NOT_AT_ALL
		     : k->n > 1 && i + 1 == k->n ? SURE
						 : MAYBE;
	if (is & WORD_KEY)
		return before & WORD_SURE_KEY ? SURE : before & WORD_MAYBE_KEY ? MAYBE : NOT_AT_ALL;
	if (is & WORD_AUTH)
		return i + 1 == k->n ? MAYBE : NOT_AT_ALL;
	if (is & WORD_CREDENTIAL)
		return MAYBE;
	if (w.n > 6 && ENDS_IN(w, joined))
		return SURE;
	if (w.n > 5 && str_is_any_case((struct str){ w.p + w.n - 5, 5 }, "token"))
		return MAYBE;
	if (k->upper && w.n > 4 && str_is_any_case((struct str){ w.p + w.n - 4, 4 }, "pass") &&
	    !(is & WORD_NO_PASS))
		return SURE;
	return NOT_AT_ALL;
}

static enum sure key_judge(const struct key *k)
{
	enum sure sure = NOT_AT_ALL;

	for (size_t i = 0; i < k->n; i++) {
		enum sure of = key_word(k, i);

		if (of != NOT_AT_ALL)
			sure = of;
		else if (sure != NOT_AT_ALL && (k->is[i] & WORD_OTHER))
			return NOT_AT_ALL;
	}
	return k->n > 1 && (k->is[0] & WORD_ASKS) ? NOT_AT_ALL : sure;
}

/* What may stand between a name and its separator: quotes and brackets, also escaped. */
static bool is_closer(char c)
{
	return (char_class(c) & IS_CLOSER) != 0;
}

/* The name before the separator at `at`. Most of a key is not initialised: it is large. */
static bool key_before(const struct finder *f, size_t at, struct key *ret)
{
	size_t end;

	ret->n = 0;
	ret->upper = true;
	at -= at > 0 && f->p[at - 1] == '!'; /* != */
	while (at > 0 && (f->p[at - 1] == ' ' || f->p[at - 1] == '\t'))
		at--;
	end = at;
	while (at > 0 && end - at < 4 && is_closer(f->p[at - 1]))
		at--;
	ret->quoted = at < end;
	end = at;
	while (at > 0 && end - at < KEY_MAX && (char_class(f->p[at - 1]) & (URL64 | IS_DOT)) &&
	       f->p[at - 1] != '~')
		at--;
	/* The n of an escaped line end is no letter of the name. */
	if (at > 0 && at < end && f->p[at - 1] == '\\' && strchr("nrt", f->p[at]))
		at++;
	ret->text = (struct str){ f->p + at, end - at };
	ret->before = at > 0 ? f->p[at - 1] : '\n';
	if (ret->text.n > 0)
		key_split(ret);
	return ret->n > 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct shape {
	bool digit, letter, upper, lower, special;
	bool name; /* letters, digits, _ and . only, and no digit first */
	bool path; /* small letters, digits and / . - _ only, and it looks like a path */
};

/* A path in small letters: /a, ~/a, ./a, a/b/c, a.json */
static bool is_path(struct str v)
{
	static const char *const suffixes[] = { ".json", ".yaml", ".yml", ".toml", ".conf", ".txt",
						".md",	 ".pem",  ".key", ".crt",  ".env" };
	const struct str first = { v.p, v.n < BEGINNING ? v.n : BEGINNING };
	const char *slash = memchr(first.p, '/', first.n);

	if (v.p[0] == '/' || v.p[0] == '~' ||
	    (v.n > 1 && v.p[0] == '.' && (v.p[1] == '/' || v.p[1] == '.')))
		return true;
	if (slash && memchr(slash + 1, '/', (size_t)(first.p + first.n - slash) - 1))
		return true;
	return v.n < BEGINNING && memrchr(v.p, '.', v.n) && ENDS_IN(v, suffixes);
}

static struct shape shape_of(struct finder *f, struct str v)
{
	struct shape s = {
		.digit = str_has_sort(f, v, SORT_DIGIT),
		.upper = str_has_sort(f, v, SORT_UPPER),
		.lower = str_has_sort(f, v, SORT_LOWER),
		.special = str_has_sort(f, v, SORT_SPECIAL),
		.name = v.n > 0 && !(char_class(v.p[0]) & IS_DIGIT) &&
			!str_has_sort(f, v, SORT_NO_NAME),
		.path = v.n > 1 && !str_has_sort(f, v, SORT_NO_PATH) && is_path(v),
	};

	s.letter = s.upper || s.lower;
	return s;
}

/* Letters and digits, or letters of both sizes where it is long. */
static bool looks_random(struct finder *f, struct str v, const struct shape *s)
{
	return v.n >= 8 && s->letter &&
	       (s->digit || (v.n >= 16 && s->upper && s->lower &&
			     (s->special || str_has_sort(f, v, SORT_TWO_UPPER))));
}

struct assigned {
	struct str text;
	size_t at, end; /* end: behind it, and behind its quote */
	bool quoted;
	bool whole; /* its end was seen */
	bool closed; /* by its quote */
	char quote;
};

/* -1: more bytes are needed. */
static int value_quoted(const struct finder *f, size_t at, bool escaped, struct assigned *ret)
{
	size_t end = at + VALUE_LOOK < f->n ? at + VALUE_LOOK : f->n, i;

	for (i = at; i < end; i++) {
		char c = f->p[i];

		if (c == '\n' || c == '\r' || c == '\0')
			break;
		if (c == '\\' && i + 1 < end && (!escaped || f->p[i + 1] == '\\')) {
			i++;
			continue;
		}
		if (c == '\\' && escaped && i + 1 < end && f->p[i + 1] == ret->quote)
			break;
		if (c == '\\' && i + 1 == end)
			continue;
		if (c == ret->quote)
			break;
	}
	i = i < end ? i : end;
	ret->whole = i < end;
	ret->closed = i < end && (f->p[i] == ret->quote || f->p[i] == '\\');
	ret->text = (struct str){ f->p + at, i - at };
	ret->at = at;
	ret->end = i;
	return !ret->whole && end == f->n && !f->final && end - at < VALUE_LOOK ? -1 : 0;
}

static int value_plain(struct finder *f, size_t at, struct assigned *ret)
{
	size_t end = at + VALUE_LOOK < f->n ? at + VALUE_LOOK : f->n, i;
	bool list = f->p[at] == '[', curly = f->p[at] == '{' || f->p[at] == '$' || f->p[at] == '%';

	i = sweep_to(f, SORT_ENDS, f->p[at] == '<' ? at + 1 : at, end);
	if (!list)
		i = sweep_to(f, SORT_CLOSES_SQUARE, at, i);
	if (!curly)
		i = sweep_to(f, SORT_CLOSES_CURLY, at, i);
	ret->whole = i < end;
	if (list && i < end && i > at + 1 && f->p[i - 1] != ']')
		i = at; /* a list over several words */
	ret->text = (struct str){ f->p + at, i - at };
	ret->at = at;
	ret->end = i;
	return !ret->whole && end == f->n && !f->final && end - at < VALUE_LOOK ? -1 : 0;
}

/* In YAML an & ends no value. */
static void value_over_ampersands(struct finder *f, struct assigned *v)
{
	enum { MANY = 4 };
	size_t end = v->at + VALUE_LOOK < f->n ? v->at + VALUE_LOOK : f->n;

	for (size_t i = 0; i < MANY && v->end + 1 < end && v->text.n > 0 && f->p[v->end] == '&' &&
			   !(char_class(f->p[v->end + 1]) & IS_END);
	     i++) {
		v->end = sweep_to(f, SORT_ENDS, v->end + 1, end);
		v->text.n = v->end - v->at;
		v->whole = v->end < end;
	}
}

/* What stands behind a value on its line. */
struct behind {
	bool line_ends; /* nothing, or a comment */
	bool closes; /* at once a comma or a bracket, as behind an argument */
	bool calls;
};

static int look_behind(const struct finder *f, size_t at, struct behind *ret)
{
	enum { LOOK = 64 };
	size_t i = at;

	*ret = (struct behind){ .closes = at < f->n && f->p[at] && strchr(",)}];\"'", f->p[at]) };
	while (i < f->n && i - at < LOOK && (f->p[i] == ' ' || f->p[i] == '\t'))
		i++;
	if (i == f->n && !f->final && i - at < LOOK)
		return -1;
	ret->line_ends = i == f->n || (unsigned char)f->p[i] < ' ' || f->p[i] == '#' ||
			 (f->p[i] == '\\' && i + 1 < f->n && strchr("nrt", f->p[i + 1]));
	return 0;
}

/* ---- the decision ---------------------------------------------------------------------------- */

static bool is_title(struct str v)
{
	return v.n > 1 && (char_class(v.p[0]) & IS_UPPER) && (char_class(v.p[1]) & IS_LOWER);
}

/* DataTypes.STRING, ed25519.Ed25519PrivateKey */
static bool is_member(struct str v, const struct shape *s)
{
	const char *dot = s->name && v.n < BEGINNING ? memrchr(v.p, '.', v.n) : NULL;

	return dot && (!s->digit || (dot + 1 < v.p + v.n && (char_class(dot[1]) & IS_UPPER)));
}

/* The first letter is a capital, there are three words, and no digits; or a statement of SQL. */
static bool is_sentence(struct str v, const struct shape *s)
{
	static const char *const verbs[] = { "select", "insert", "update", "delete" };
	const char *end = v.p + (v.n < BEGINNING ? v.n : BEGINNING);
	const char *space = memchr(v.p, ' ', (size_t)(end - v.p));

	return space && memchr(space + 1, ' ', (size_t)(end - space) - 1) &&
	       (char_class(v.p[0]) & IS_UPPER) &&
	       ((!s->digit && is_title(v)) ||
		ENDS_IN(((struct str){ v.p, (size_t)(space - v.p) }), verbs));
}

/* NAME: value */
static bool accepts_colon(struct finder *f, enum sure sure, struct str v, const struct shape *s,
			  const struct behind *b, size_t spaces, const struct key *k)
{
	bool random = looks_random(f, v, s);
	const struct str first = { v.p, v.n < BEGINNING ? v.n : BEGINNING };

	if (k->before == '$')
		return false; /* "$pwd": and "$pwd: $!" */
	if (is_member(v, s))
		return false;
	/* A URL, or FILE:LINE:TEXT or a line of FILE, as grep shows it. */
	if (spaces == 0 && !k->quoted && (str_has_sort(f, v, SORT_AT) || memchr(v.p, ':', first.n)))
		return false;
	if (spaces == 0 && !k->quoted)
		return random || (sure == SURE && s->digit && s->letter && v.n > 3);
	if (!b->line_ends && !b->closes)
		return random && !s->name; /* a sentence */
	if (sure == MAYBE || (b->closes && s->name))
		return random;
	return !(s->name && is_title(v) && !random) && !(v.n > 1 && strchr("&*[", v.p[0]));
}

/* NAME=value, and NAME = value, which may be of a program. */
static bool accepts_equals(struct finder *f, enum sure sure, struct str v, const struct shape *s,
			   const struct behind *b, size_t spaces, const struct key *k)
{
	bool random = looks_random(f, v, s), dotted = str_has_sort(f, v, SORT_DOT);

	if (sure == MAYBE)
		return random && !(s->name && dotted);
	if (spaces > 0)
		return (random || (s->special && s->letter && v.n >= 8)) && !(s->name && dotted) &&
		       !strchr("&*[", v.p[0]);
	if (k->upper || random)
		return true;
	return !(s->name && !s->digit && (b->closes || dotted));
}

/* ^1.2.3, >=1.0 <2.0, 3.0.0-beta.1, npm:x@1.2.3, workspace:*: of a package. */
static bool is_version(struct str v)
{
	static const char *const from[] = { "npm:",  "workspace:", "github:", "file:",
					    "link:", "portal:",	   "patch:",  "git+" };
	size_t at = 0, digits, dots = 0;

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		if (v.p[0] == from[i][0] && str_starts(v, from[i]))
			return true;
	}
	if (v.n > BEGINNING || (v.n == 1 && v.p[0] == '*'))
		return v.n == 1;
	while (at < v.n && v.p[at] && strchr("^~<>=v ", v.p[at]))
		at++;
	for (digits = at; at < v.n && ((char_class(v.p[at]) & IS_DIGIT) || v.p[at] == '.'); at++)
		dots += v.p[at] == '.';
	if (at == digits)
		return false;
	return at == v.n ? dots > 0 || digits > 0
			 : dots > 1 && v.p[at] && strchr("-+ |x*.", v.p[at]);
}

static bool is_ascii(struct str v)
{
	unsigned char all = 0;

	for (size_t i = 0; i < v.n && i < BEGINNING; i++)
		all |= (unsigned char)v.p[i];
	return all < 0x80;
}

/* Source code between two strings: "password=", "b" and "password=" + b + "c" */
static bool is_between_strings(struct str v)
{
	return v.p[0] == ' ' || (strchr(",)]", v.p[0]) && (v.n == 1 || v.p[1] == ' '));
}

static bool accepts_quoted(struct finder *f, enum sure sure, struct str v, const struct shape *s)
{
	const struct str first = { v.p, v.n < BEGINNING ? v.n : BEGINNING };

	if (is_version(v) || str_has_sort(f, first, SORT_TEMPLATE) || is_format(v) ||
	    is_member(v, s) || is_sentence(v, s) || is_between_strings(v) ||
	    (sure == MAYBE && (!is_ascii(v) || str_has_sort(f, v, SORT_SPACE))) ||
	    (v.n == 1 && s->special))
		return false;
	return sure == SURE || looks_random(f, v, s) ||
	       (v.n >= 20 && !str_has_sort(f, v, SORT_SPACE) && s->letter);
}

struct separator {
	bool equals;
	bool weak; /* ==, or a comma: only what looks random is meant */
	size_t before, behind; /* spaces */
};

/* From behind the separator to where the value begins. False: it is none. */
static bool value_begins(const struct finder *f, size_t *at, struct separator *s)
{
	size_t i = *at;

	s->equals = f->p[i - 1] == '=';
	for (size_t k = i - 1; k > 0 && (f->p[k - 1] == ' ' || f->p[k - 1] == '\t'); k--)
		s->before++;
	if (i - 1 > 0 && f->p[i - 2] == f->p[i - 1])
		return false;
	s->weak = s->equals && ((i < f->n && f->p[i] == '=') || (i > 1 && f->p[i - 2] == '!'));
	for (size_t k = 0; s->weak && k < 2 && i < f->n && f->p[i] == '='; k++)
		i++;
	if (!s->weak && i < f->n && (f->p[i] == '=' || f->p[i] == '>')) {
		s->equals = true;
		i++;
	} else if (!s->weak && i < f->n &&
		   (f->p[i] == ':' || f->p[i] == '~' || (!s->equals && f->p[i] == '-'))) {
		return false;
	}
	while (i < f->n && s->behind < 16 && (f->p[i] == ' ' || f->p[i] == '\t')) {
		i++;
		s->behind++;
	}
	*at = i;
	return i < f->n;
}

/* Over the prefix of a string in a program, and over the quote; ret->quote is '\0' without one. */
static size_t value_unquote(const struct finder *f, size_t at, bool *ret_escaped,
			    struct assigned *ret)
{
	size_t i = at;

	*ret_escaped = false;
	if (i + 1 < f->n && strchr("brufBRUF@$", f->p[i]) && f->p[i] &&
	    (f->p[i + 1] == '"' || f->p[i + 1] == '\''))
		i++;
	while (i + 1 < f->n && i - at < 4 && f->p[i] == '\\') {
		*ret_escaped = true;
		i++;
	}
	if (i < f->n && (f->p[i] == '"' || f->p[i] == '\'' || f->p[i] == '`')) {
		ret->quote = f->p[i];
		ret->quoted = true;
		return i + 1;
	}
	*ret_escaped = false;
	return at;
}

/* !a, !!a.b */
static bool is_negation(struct str v)
{
	size_t i = v.n > 1 && v.p[1] == '!' ? 2 : 1;

	if (i == v.n || v.n > BEGINNING || (char_class(v.p[i]) & IS_DIGIT))
		return false;
	while (i < v.n && ((char_class(v.p[i]) & (ALNUM | IS_UNDER)) || v.p[i] == '.'))
		i++;
	return i == v.n;
}

static bool is_hex_number(struct str v)
{
	enum { NUMBER_MAX = 10 };

	if (v.n < 3 || v.n > NUMBER_MAX || v.p[0] != '0' || (v.p[1] | 32) != 'x')
		return false;
	for (size_t i = 2; i < v.n; i++) {
		if (!is_hex_any_case(v.p[i]))
			return false;
	}
	return true;
}

static bool value_accept(struct finder *f, const struct key *k, enum sure sure,
			 const struct separator *sep, const struct assigned *v,
			 const struct behind *b)
{
	struct shape s = shape_of(f, v->text);

	if (is_placeholder(f, v->text, k->text) || s.path || is_chance(f, v->text))
		return false;
	/* "|".join(…), and x->y */
	if (v->closed && v->end + 1 < f->n && f->p[v->end + 1] == '.' && v->quoted)
		return false;
	if (v->text.p[v->text.n - 1] == '-' && v->end < f->n && f->p[v->end] == '>')
		return false;
	if (v->quoted && sep->weak && !s.digit)
		return false;
	/* A block of armour is found as such. */
	if (v->quoted && str_starts(v->text, "-----BEGIN "))
		return false;
	if (v->quoted)
		return accepts_quoted(f, v->closed || v->text.n >= VALUE_LOOK ? sure : MAYBE,
				      v->text, &s);
	if (str_has_sort(f, v->text, SORT_OPEN) || (v->end < f->n && f->p[v->end] == '('))
		return false;
	/* x[0] is of a program. */
	if (v->text.p[0] != '[' && str_has_sort(f, v->text, SORT_SQUARE))
		return false;
	/* !0, !x.y and -1 of a program, and a list over several lines. */
	if (v->text.p[0] == '!' && (v->text.n == 2 || is_negation(v->text)))
		return false;
	if (v->text.p[0] == '-' && v->text.n < 4 && !s.letter)
		return false;
	if (v->text.n == 1 && strchr("[({", v->text.p[0]))
		return false;
	if (is_version(v->text) && str_has_sort(f, v->text, SORT_DOT))
		return false;
	/* A size, a count or a time, also as 0x8803, and .* of an expression. */
	if (is_hex_number(v->text))
		return false;
	if (v->text.n < 8 && !s.letter && !s.digit && is_ascii(v->text))
		return false;
	if (!s.letter && !s.special && (sure == MAYBE || v->text.n < 3))
		return false;
	return sep->equals ? accepts_equals(f, sure, v->text, &s, b, sep->before + sep->behind, k)
			   : accepts_colon(f, sure, v->text, &s, b, sep->behind, k);
}

/* More bytes may decide otherwise: hold back from where the value begins. */
static void value_judge(struct finder *f, const char *kind, const struct key *k, enum sure sure,
			const struct separator *sep, size_t at)
{
	struct assigned v = { 0 };
	struct behind b;
	bool escaped;
	size_t begin = value_unquote(f, at, &escaped, &v);
	int rc;

	if (begin >= f->n || (sep->weak && !v.quoted))
		return;
	/* A command of a shell or of Perl, and the end of code in Markdown. */
	if (v.quote == '`' && sep->equals && (k->n == 0 || k->before == '$'))
		return;
	if (sep->weak)
		sure = MAYBE;
	else if (k->upper && sep->equals && sep->before + sep->behind == 0 &&
		 !str_is_any_case(k->text, "accesskey"))
		sure = SURE; /* as in an environment */
	rc = v.quoted ? value_quoted(f, begin, escaped, &v) : value_plain(f, begin, &v);
	if (!v.quoted && !sep->equals && sep->behind > 0)
		value_over_ampersands(f, &v);
	if (rc == 0 && finder_has(f, v.at, v.at + v.text.n))
		return;
	if (rc < 0 || (v.whole && look_behind(f, v.end, &b) < 0)) {
		finder_open(f, at);
		return;
	}
	if (!v.whole && look_behind(f, v.end, &b) < 0)
		b = (struct behind){ .line_ends = true };
	if (value_accept(f, k, sure, sep, &v, &b))
		finder_add(f, (struct span){ v.at, v.text.n, kind,
					     v.whole || v.end - v.at < VALUE_LOOK ? SPAN_ENDS
					     : v.quoted				  ? SPAN_QUOTED
										  : SPAN_TOKEN,
					     v.quote, 0 });
}

/* Over the type in NAME: TYPE = "value". False: more bytes are needed. */
static bool type_skip(struct finder *f, size_t *at, struct separator *s)
{
	enum { TYPE_MAX = 48 };
	size_t i = *at, end = f->n - i > TYPE_MAX ? i + TYPE_MAX : f->n;

	while (i < end && ((char_class(f->p[i]) & (WORD | IS_DOT)) ||
			   (f->p[i] && strchr("&'<>|[]?*, ", f->p[i]))))
		i++;
	if (i == f->n && !f->final) {
		finder_open(f, *at);
		return false;
	}
	if (i + 1 >= end || f->p[i] != '=' || f->p[i + 1] == '=' || f->p[i + 1] == '>' || i == *at)
		return true;
	for (i++; i < f->n && i - *at < 2 * TYPE_MAX && f->p[i] == ' ';)
		i++;
	if (i < f->n && f->p[i] && strchr("\"'`", f->p[i])) {
		*at = i;
		s->equals = true;
	}
	return true;
}

static void assign_judge(struct finder *f, const struct pattern *p, size_t end)
{
	struct key k;
	struct separator sep = { .equals = false };
	enum sure sure;
	size_t at = end;

	if (!key_before(f, end - 1, &k))
		return;
	sure = key_judge(&k);
	if (sure == NOT_AT_ALL || !value_begins(f, &at, &sep))
		return;
	if (!sep.equals && !type_skip(f, &at, &sep))
		return;
	value_judge(f, p->kind, &k, sure, &sep, at);
}

/* --password VALUE, and likewise; end is behind the first space. */
void judge_flag(struct finder *f, const struct pattern *p, size_t end)
{
	const struct separator sep = { .equals = true };
	static const struct key k = { .text = STR_LIT("password") };
	size_t at = end;

	while (at < f->n && at - end < 4 && f->p[at] == ' ')
		at++;
	if (at >= f->n || f->p[at] == '-')
		return;
	value_judge(f, p->kind, &k, f->p[at] == '"' || f->p[at] == '\'' ? SURE : MAYBE, &sep, at);
}

/* Whether a word in any case ends before `at`, but for spaces. */
static bool word_before(const struct finder *f, size_t at, const char *word)
{
	size_t n = strlen(word), spaces = 0;

	while (at > 0 && spaces < 8 && f->p[at - 1] && strchr(" \t\r\n", f->p[at - 1])) {
		at--;
		spaces++;
	}
	return spaces > 0 && at >= n && str_is_any_case((struct str){ f->p + at - n, n }, word);
}

/* Whether one of two words and a name stand before `at`: "login NAME", as in ~/.netrc. */
static bool named_before(const struct finder *f, size_t at, const char *word, const char *other)
{
	enum { NAME_LOOK = 128 };
	size_t from = at;

	while (at > 0 && from - at < NAME_LOOK && f->p[at - 1] && strchr(" \t\r\n", f->p[at - 1]))
		at--;
	while (at > 0 && from - at < NAME_LOOK && (unsigned char)f->p[at - 1] > ' ')
		at--;
	return word_before(f, at, word) || word_before(f, at, other);
}

/* CREATE USER joe IDENTIFIED BY 'VALUE', and in prose "an interface identified by NAME". */
void judge_identified(struct finder *f, const struct pattern *p, size_t end)
{
	size_t begin = end - strlen("identified by ");

	if (named_before(f, begin, "user", "role") || named_before(f, begin, "to", "exists"))
		judge_flag(f, p, end);
}

/* A name that ends in a space: of a flag, of ENV in a Dockerfile, or behind a login. */
static void judge_spaced(struct finder *f, const struct pattern *p, size_t end)
{
	static const char *const nouns[] = { "password", "passwd",  "token",  "secret",
					     "api-key",	 "api_key", "apikey", "pass" };
	size_t begin = end - 1;
	struct str name;

	while (begin > 0 && end - begin < KEY_MAX && (char_class(f->p[begin - 1]) & URL64))
		begin--;
	name = (struct str){ f->p + begin, end - 1 - begin };
	if (((str_starts(name, "-") || word_before(f, begin, "env")) && ENDS_IN(name, nouns)) ||
	    (str_is_any_case(name, "password") && named_before(f, begin, "login", "user")) ||
	    str_is_any_case(name, "requirepass") || str_is_any_case(name, "masterauth") ||
	    word_before(f, begin, "setx"))
		judge_flag(f, p, end);
}

/* The text of an element of XML, from `at` to the next tag. */
static void element_judge(struct finder *f, const struct pattern *p, const struct key *k,
			  enum sure sure, size_t at)
{
	size_t end = f->n - at > VALUE_LOOK ? at + VALUE_LOOK : f->n;
	size_t stop = at < end ? sweep_to(f, SORT_LESS, at, end) : at;
	const struct str v = { f->p + at, stop - at };
	struct shape s;

	if (stop == f->n && !f->final && stop - at < VALUE_LOOK) {
		finder_open(f, at);
		return;
	}
	if (stop + 1 >= f->n || f->p[stop] != '<' || f->p[stop + 1] != '/' || v.n == 0)
		return;
	s = shape_of(f, v);
	if (!is_placeholder(f, v, k->text) && !s.path && !is_chance(f, v) && !is_version(v) &&
	    (looks_random(f, v, &s) || (sure == SURE && !str_has_sort(f, v, SORT_SPACE))))
		finder_add(f, (struct span){ at, v.n, p->kind, SPAN_ENDS, '\0', 0 });
}

/* Whether a word in any case stands at `at`. */
static bool word_stands(const struct finder *f, size_t at, const char *word)
{
	size_t i = 0;

	while (word[i] && i < f->n - at &&
	       (f->p[at + i] | ((char_class(f->p[at + i]) & IS_UPPER) ? 32 : 0)) == word[i])
		i++;
	return !word[i];
}

/* The same at *at, which is moved behind it. */
static bool word_skip(const struct finder *f, size_t *at, const char *word)
{
	if (!word_stands(f, *at, word))
		return false;
	*at += strlen(word);
	return true;
}

/* Whether name=" stands before `at`. */
static bool attribute_before(const struct finder *f, size_t at)
{
	return at >= 6 && str_is_any_case((struct str){ f->p + at - 6, 5 }, "name=");
}

/*
 * A name that ends at `name`, and with its quote at `at`, where what it is given is not behind an
 * equals sign or colon: <name>value<, "name">value<, "name" value="value", name: NAME and value:
 * in the next line, set("name", "value").
 */
static void named_judge(struct finder *f, const struct pattern *p, size_t name, size_t at)
{
	enum { BLANK = 40 };
	struct separator sep = { .equals = true };
	struct key k;
	size_t next = at, from = at;
	enum sure sure;
	bool tag, comma = false;

	if (at >= f->n || !f->p[at] || !strchr(">, \t\r\n/<", f->p[at]))
		return;
	if (!key_before(f, name, &k) || (sure = key_judge(&k)) == NOT_AT_ALL)
		return;
	tag = f->p[at] == '>' && (at == name ? k.before == '<' || k.before == ':'
					     : attribute_before(f, (size_t)(k.text.p - f->p)));
	if (tag || (word_skip(f, &next, "</key>") && k.before == '>')) {
		while (!tag && next < f->n && next - from < BLANK &&
		       (unsigned char)f->p[next] <= ' ')
			next++;
		if (tag || word_skip(f, &next, "<string>"))
			element_judge(f, p, &k, sure, tag ? at + 1 : next);
		return;
	}
	for (; next < f->n && next - from < BLANK &&
	       (f->p[next] == ',' || f->p[next] == ' ' || (f->p[next] >= 9 && f->p[next] <= 13));
	     next++)
		comma |= f->p[next] == ',';
	if (next == f->n && !f->final && next - from < BLANK)
		finder_open(f, name);
	from = next;
	next += next < f->n && (f->p[next] == '"' || f->p[next] == '\'');
	if (word_skip(f, &next, "value")) {
		next += next < f->n && (f->p[next] == '"' || f->p[next] == '\'');
		if (next >= f->n || (f->p[next] != '=' && f->p[next] != ':'))
			return;
		next++;
		if (value_begins(f, &next, &sep))
			value_judge(f, p->kind, &k, sure, &sep, next);
	} else if (comma && at > name && from < f->n && k.text.p - f->p > 1 &&
		   k.text.p[-2] == '(') {
		sep.weak = true;
		value_judge(f, p->kind, &k, sure, &sep, from);
	}
}

/* A word of a name: from here to what it is given. Names are many, and few are given anything, so
 * this is no part of the expression. */
void judge_name(struct finder *f, const struct pattern *p, size_t end)
{
	enum { REST = 24, CLOSERS = 3, SPACES = 3 };
	size_t at = end, from, name;

	at = sweep_to(f, SORT_NAME_ENDS, at, f->n - at > REST ? at + REST : f->n);
	if (at == f->n || at == f->name)
		return;
	f->name = at;
	if (f->p[at] == ' ' || f->p[at] == '\t')
		judge_spaced(f, p, at + 1);
	name = at;
	for (from = at; at < f->n && at - from < CLOSERS && is_closer(f->p[at]);)
		at++;
	named_judge(f, p, name, at);
	for (from = at; at < f->n && at - from < SPACES && (f->p[at] == ' ' || f->p[at] == '\t');)
		at++;
	if (at + 1 < f->n && f->p[at] == '!' && f->p[at + 1] == '=')
		at++;
	if (at < f->n && (f->p[at] == ':' || f->p[at] == '='))
		assign_judge(f, p, at + 1);
}

/* Programs whose option is a password: TOOL -o VALUE, TOOL -oVALUE. By their first letter, since
 * each byte of a text that has such an option may begin one. */
static const struct tool {
	const char *name;
	char option;
	bool joined;
} tools[128][3] = {
	['7'] = { { "7z ", 'p', true } },
	['a'] = { { "az login", 'p' } },
	['c'] = { { "curl", 'u' } },
	['d'] = { { "docker login", 'p' } },
	['h'] = { { "http", 'u' } },
	['l'] = { { "ldap", 'w' } },
	['m'] = { { "mysql", 'p', true }, { "mariadb", 'p', true }, { "mongo", 'p' } },
	['o'] = { { "openssl", 'k' } },
	['p'] = { { "podman login", 'p' } },
	['r'] = { { "registry login", 'p' }, { "redis-cli", 'a' } },
	['s'] = { { "sqlcmd", 'P' } },
	['z'] = { { "zip ", 'P' } },
};

static inline const struct tool *tool_at(const struct finder *f, size_t at)
{
	unsigned char c = (unsigned char)f->p[at] | ((char_class(f->p[at]) & IS_UPPER) ? 32 : 0);

	if (c > 127 || !tools[c][0].name)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(tools[c]) && tools[c][i].name; i++) {
		if (word_stands(f, at, tools[c][i].name))
			return &tools[c][i];
	}
	return NULL;
}

/* The program that is named last on the line before `end`, or NULL. */
static const struct tool *tool_before(struct finder *f, size_t end)
{
	size_t least = end > LOOK_BACK - 64 ? end - (LOOK_BACK - 64) : 0, at = f->line.at;

	if (at < least) {
		at = least;
		f->line.tool = NULL;
	}
	for (; at < end; at++) {
		const struct tool *t = f->p[at] == '\n' ? NULL : tool_at(f, at);

		if (t || f->p[at] == '\n') {
			f->line.tool = t;
			f->line.begin = at;
		}
	}
	f->line.at = at > f->line.at ? at : f->line.at;
	return f->line.tool && f->line.begin >= least ? f->line.tool : NULL;
}

/* mysql -pVALUE, redis-cli -a VALUE; end is behind the letter. */
void judge_option(struct finder *f, const struct pattern *p, size_t end)
{
	const struct tool *t = tool_before(f, end);
	const struct separator sep = { .equals = true };
	static const struct key k = { .text = STR_LIT("password") };
	size_t at = end;

	while (at < f->n && at - end < 4 && f->p[at] == ' ')
		at++;
	if (!t || t->option != f->p[end - 1] || at >= f->n || t->joined != (at == end) ||
	    f->p[at] == '-')
		return;
	value_judge(f, p->kind, &k, t->joined ? MAYBE : SURE, &sep, at);
}

/* Whether a host stands before PORT:DATABASE:USER: that end at `end`, and not the file of a line
 * that grep shows. */
static bool host_before(const struct finder *f, size_t end)
{
	enum { FIELDS_LOOK = 160 };
	size_t colons = 0, host, at = end;

	while (at > 0 && end - at < FIELDS_LOOK && colons < 4)
		colons += f->p[--at] == ':';
	for (host = at; at > 0 && host - at < FIELDS_LOOK &&
			((char_class(f->p[at - 1]) & (URL64 | IS_DOT)) || f->p[at - 1] == '*');)
		at--;
	return colons == 4 && at < host && (at == 0 || f->p[at - 1] != '/');
}

/* HOST:PORT:DATABASE:USER:VALUE, a line of ~/.pgpass. */
void judge_pgpass(struct finder *f, const struct pattern *p, size_t end)
{
	const struct separator sep = { .equals = true };
	enum { LINE_LOOK = 128 };
	size_t at = end;
	static const struct key k = { .text = STR_LIT("password") };

	if (!host_before(f, end))
		return;
	for (; at < f->n && at - end < LINE_LOOK && (unsigned char)f->p[at] > ' '; at++) {
		if (strchr(":\"'`]", f->p[at]))
			return; /* an address of IPv6 */
	}
	if (at == f->n && !f->final && at - end < LINE_LOOK)
		finder_open(f, end);
	if (at < f->n && f->p[at] == ' ')
		return;
	if (end < f->n)
		value_judge(f, p->kind, &k, MAYBE, &sep, end);
}

/* curl -u NAME:VALUE */
void judge_user(struct finder *f, const struct pattern *p, size_t end)
{
	const struct separator sep = { .equals = true };
	static const struct key k = { .text = STR_LIT("password") };
	const struct tool *t = tool_before(f, end);

	if (!t || t->option != 'u')
		return;
	if (end < f->n)
		value_judge(f, p->kind, &k, SURE, &sep, end);
}
