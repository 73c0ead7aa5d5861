/*
 * Assignments in shell, JSON, YAML, INI files, URLs and programs: what a secret's name is given.
 * The name decides how sure it is, then the value: a variable, a call, a type, a word of a sentence
 * or an example is no secret.
 */
#include "base/mem.h"
#include "guard/redact/internal.h"

enum { KEY_MAX = 64, WORDS_MAX = 12, VALUE_LOOK = HOLD_MAX };

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
	size_t n;
	bool upper; /* all of its letters are capitals */
	bool quoted;
};

static bool is_one_of(struct str w, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (str_is_any_case(w, list[i]))
			return true;
	}
	return false;
}
#define IS_ONE_OF(w, list) is_one_of((w), (list), ARRAY_LEN(list))

static bool ends_in(struct str w, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(list[i]);

		if (w.n > k && str_is_any_case((struct str){ w.p + w.n - k, k }, list[i]))
			return true;
	}
	return false;
}
#define ENDS_IN(w, list) ends_in((w), (list), ARRAY_LEN(list))

static const char *const passwords[] = { "password", "passwd", "passphrase", "passcode", "pword" };
static const char *const joined[] = {
	"password",    "passwd",      "passphrase",   "secret",	    "apikey",	 "secretkey",
	"accesskey",   "privatekey",  "authkey",      "accountkey", "sharedkey", "authtoken",
	"accesstoken", "bearertoken", "refreshtoken", "apitoken",   "bottoken",
};
static const char *const sure_keys[] = { "api",	    "secret", "private", "encryption",
					 "signing", "master", "auth" };
static const char *const other_keys[] = {
	"access",      "account",   "shared", "storage",  "service",	  "app",
	"application", "deploy",    "admin",  "consumer", "license",	  "session",
	"aes",	       "hmac",	    "jwt",    "webhook",  "subscription", "instrumentation",
	"integration", "server",    "root",   "client",	  "cipher",	  "host",
	"primary",     "secondary", "app",    "django",	  "crypt",	  "sas",
	"function",
};
/* Behind the noun they make it something else. */
static const char *const harmless[] = {
	"count",     "limit",	    "name",	   "names",	   "type",	"types",
	"url",	     "uri",	    "file",	   "files",	   "path",	"dir",
	"policy",    "length",	    "len",	   "size",	   "ttl",	"expiry",
	"expires",   "expire",	    "expiration",  "exp",	   "id",	"ids",
	"ref",	     "refs",	    "field",	   "hash",	   "hint",	"label",
	"prompt",    "env",	    "var",	   "at",	   "by",	"for",
	"in",	     "version",	    "format",	   "algorithm",	   "alg",	"budget",
	"usage",     "used",	    "max",	   "min",	   "regex",	"pattern",
	"enabled",   "required",    "index",	   "endpoint",	   "header",	"manager",
	"store",     "provider",    "arn",	   "rotation",	   "class",	"input",
	"param",     "parameter",   "request",	   "response",	   "error",	"errors",
	"bucket",    "age",	    "days",	   "seconds",	   "minutes",	"rules",
	"rule",	     "strength",    "placeholder", "source",	   "scope",	"scopes",
	"audience",  "issuer",	    "reset",	   "change",	   "method",	"location",
	"key",	     "mode",	    "status",	   "state",	   "valid",	"validation",
	"validator", "visible",	    "changed",	   "confirmation", "text",	"title",
	"message",   "description", "help",	   "link",	   "page",	"form",
	"attempts",  "lifetime",    "duration",	   "timeout",	   "prefix",	"suffix",
	"encoding",  "encoder",	    "hasher",	   "service",	   "handler",	"callback",
	"cache",     "storage",	    "ring",	   "word",	   "words",	"board",
	"chain",     "code",	    "map",	   "set",	   "list",	"vault",
	"engine",    "kind",	    "mount",	   "volume",	   "namespace", "annotations",
	"labels",    "selector",
};
/* Before it, likewise. */
static const char *const asking[] = {
	"has",	   "is",       "no",	 "use",	    "show",	"enable",  "disable", "allow",
	"require", "requires", "forgot", "reset",   "invalid",	"missing", "bad",     "wrong",
	"num",	   "count",    "max",	 "min",	    "validate", "check",   "verify",  "get",
	"set",	   "update",   "hide",	 "without", "with",	"skip",	   "need",    "needs",
};
/* Tokens of pages, of texts and of threads. */
static const char *const other_tokens[] = {
	"next",	  "page",	  "continuation", "sync",  "eos",      "pad",	  "bos",
	"unk",	  "mask",	  "start",	  "stop",  "first",    "last",	  "end",
	"cancel", "cancellation", "current",	  "prev",  "previous", "special", "cls",
	"sep",	  "unexpected",	  "expected",	  "per",   "each",     "begin",	  "word",
	"open",	  "close",	  "total",	  "input", "output",   "prompt",  "completion",
	"cached", "reasoning",	  "new",
};

static void key_split(struct key *k)
{
	size_t begin = 0;

	k->upper = true;
	for (size_t i = 0; i <= k->text.n; i++) {
		unsigned c = i < k->text.n ? char_class(k->text.p[i]) : 0;
		unsigned before = i > begin ? char_class(k->text.p[i - 1]) : 0;
		bool camel = (c & IS_UPPER) && (before & (IS_LOWER | IS_DIGIT));

		k->upper &= !(c & IS_LOWER);
		if ((c & ALNUM) && !camel)
			continue;
		if (i > begin && k->n < WORDS_MAX)
			k->words[k->n++] = (struct str){ k->text.p + begin, i - begin };
		begin = camel ? i : i + 1;
	}
}

/* Of the word i alone, with those around it. */
static enum sure key_word(const struct key *k, size_t i)
{
	struct str w = k->words[i], before = i ? k->words[i - 1] : STR_NONE;

	if (IS_ONE_OF(w, passwords))
		return SURE;
	if (str_is_any_case(w, "pwd"))
		return k->n == 1 && k->upper ? NOT_AT_ALL : SURE;
	if (str_is_any_case(w, "pw"))
		return k->n > 1 ? SURE : NOT_AT_ALL;
	if (str_is_any_case(w, "pass"))
		return i + 1 < k->n ? NOT_AT_ALL : k->n > 1 ? SURE : MAYBE;
	if (str_is_any_case(w, "secret") || str_is_any_case(w, "secrets"))
		return k->n > 1 ? SURE : MAYBE;
	if (str_is_any_case(w, "token"))
		return IS_ONE_OF(before, other_tokens) ? NOT_AT_ALL : k->n > 1 ? SURE : MAYBE;
	if (str_is_any_case(w, "key"))
		return IS_ONE_OF(before, sure_keys)  ? SURE
		     : IS_ONE_OF(before, other_keys) ? MAYBE
						     : NOT_AT_ALL;
	if (str_is_any_case(w, "auth"))
		return i + 1 == k->n ? MAYBE : NOT_AT_ALL;
	if (str_is_any_case(w, "credential") || str_is_any_case(w, "credentials") ||
	    str_is_any_case(w, "cred") || str_is_any_case(w, "creds"))
		return MAYBE;
	if (str_is_any_case(w, "apikey") || ENDS_IN(w, joined))
		return SURE;
	if (w.n > 5 && str_is_any_case((struct str){ w.p + w.n - 5, 5 }, "token"))
		return MAYBE;
	if (k->upper && w.n > 4 && str_is_any_case((struct str){ w.p + w.n - 4, 4 }, "pass") &&
	    !str_is_any_case(w, "bypass") && !str_is_any_case(w, "compass"))
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
		else if (sure != NOT_AT_ALL && IS_ONE_OF(k->words[i], harmless))
			return NOT_AT_ALL;
	}
	return k->n > 1 && IS_ONE_OF(k->words[0], asking) ? NOT_AT_ALL : sure;
}

/* What may stand between a name and its separator: quotes and brackets, also escaped. */
static bool is_closer(char c)
{
	return c && strchr("\"'[])\\", c);
}

/* The name before the separator at `at`. */
static bool key_before(const struct finder *f, size_t at, struct key *ret)
{
	size_t end;

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
	if (ret->text.n > 0)
		key_split(ret);
	return ret->n > 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

struct shape {
	bool digit, letter, upper, lower, special;
	bool name; /* letters, digits, _ and . only, and no digit first */
	bool path; /* small letters, digits and / . - _ only, and it begins as a path does */
};

static struct shape shape_of(struct str v)
{
	struct shape s = { .name = true, .path = true };

	for (size_t i = 0; i < v.n; i++) {
		unsigned c = char_class(v.p[i]);

		s.digit |= (c & IS_DIGIT) != 0;
		s.upper |= (c & IS_UPPER) != 0;
		s.lower |= (c & IS_LOWER) != 0;
		s.special |= !(c & (WORD | IS_DOT));
		s.name &= (c & (WORD | IS_DOT)) && v.p[i] != '~' && !(i == 0 && (c & IS_DIGIT));
		s.path &= (c & (IS_LOWER | IS_DIGIT | IS_UNDER | IS_DASH | IS_DOT)) ||
			  v.p[i] == '/';
	}
	s.letter = s.upper || s.lower;
	s.path &= v.n > 1 && (v.p[0] == '/' || v.p[0] == '~' ||
			      (v.p[0] == '.' && (v.p[1] == '/' || v.p[1] == '.')));
	return s;
}

/* Letters and digits, or letters of both sizes where it is long. */
static bool looks_random(struct str v, const struct shape *s)
{
	bool inner = false;

	for (size_t i = 1; i < v.n; i++)
		inner |= (char_class(v.p[i]) & IS_UPPER) && (char_class(v.p[i - 1]) & IS_UPPER);
	return v.n >= 8 && s->letter &&
	       (s->digit || (v.n >= 16 && s->upper && s->lower && (inner || s->special)));
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

static int value_plain(const struct finder *f, size_t at, struct assigned *ret)
{
	size_t end = at + VALUE_LOOK < f->n ? at + VALUE_LOOK : f->n, i = at;
	bool list = f->p[at] == '[', curly = f->p[at] == '{' || f->p[at] == '$' || f->p[at] == '%';

	for (; i < end; i++) {
		char c = f->p[i];

		if ((unsigned char)c <= ' ' || c == 127 || strchr("\"'`,;&|<>)", c)) {
			if (!(i == at && c == '<'))
				break;
		}
		if ((c == ']' && !list) || (c == '}' && !curly))
			break;
	}
	if (list && i < end && i > at + 1 && f->p[i - 1] != ']')
		i = at; /* a list over several words */
	ret->whole = i < end;
	ret->text = (struct str){ f->p + at, i - at };
	ret->at = at;
	ret->end = i;
	return !ret->whole && end == f->n && !f->final && end - at < VALUE_LOOK ? -1 : 0;
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

	*ret = (struct behind){ .closes = at < f->n && f->p[at] && strchr(",)}];", f->p[at]) };
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

/* NAME: value */
static bool accepts_colon(enum sure sure, struct str v, const struct shape *s,
			  const struct behind *b, size_t spaces, const struct key *k)
{
	bool random = looks_random(v, s);

	if (spaces == 0 && !k->quoted && memchr(v.p, '@', v.n))
		return false; /* of a URL */
	if (spaces == 0 && !k->quoted)
		return random || (sure == SURE && s->digit && s->letter);
	if (!b->line_ends && !b->closes)
		return random && !s->name; /* a sentence */
	if (sure == MAYBE || (b->closes && s->name))
		return random;
	return !(s->name && is_title(v) && !random) && !(v.n > 1 && strchr("&*[", v.p[0]));
}

/* NAME=value, and NAME = value, which may be of a program. */
static bool accepts_equals(enum sure sure, struct str v, const struct shape *s,
			   const struct behind *b, size_t spaces, const struct key *k)
{
	bool random = looks_random(v, s), dotted = memchr(v.p, '.', v.n) != NULL;

	if (sure == MAYBE)
		return random && !(s->name && dotted);
	if (spaces > 0)
		return (random || (s->special && s->letter && v.n >= 8)) && !(s->name && dotted) &&
		       !strchr("&*[", v.p[0]);
	if (k->upper || random)
		return true;
	return !(s->name && !s->digit && (b->closes || dotted));
}

static bool accepts_quoted(enum sure sure, struct str v, const struct shape *s)
{
	return sure == SURE || looks_random(v, s) ||
	       (v.n >= 20 && !memchr(v.p, ' ', v.n) && s->letter);
}

struct separator {
	bool equals;
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
	if (i < f->n && (f->p[i] == '=' || f->p[i] == '>')) {
		if (s->equals && f->p[i] == '=')
			return false;
		s->equals = true;
		i++;
	} else if (i < f->n &&
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

static bool value_accept(const struct finder *f, const struct key *k, enum sure sure,
			 const struct separator *sep, const struct assigned *v,
			 const struct behind *b)
{
	struct shape s = shape_of(v->text);

	if (is_placeholder(v->text, k->text) || s.path || is_chance(f, v->at, v->text))
		return false;
	/* A block of armour is found as such. */
	if (v->quoted && str_starts(v->text, "-----BEGIN "))
		return false;
	if (v->quoted)
		return accepts_quoted(v->closed || v->text.n >= VALUE_LOOK ? sure : MAYBE, v->text,
				      &s);
	if (memchr(v->text.p, '(', v->text.n) || (v->end < f->n && f->p[v->end] == '('))
		return false;
	/* x[0] is of a program. */
	if (v->text.p[0] != '[' && memchr(v->text.p, '[', v->text.n))
		return false;
	/* A size, a count or a time. */
	if (!s.letter && !s.special && (sure == MAYBE || v->text.n < 3))
		return false;
	return sep->equals ? accepts_equals(sure, v->text, &s, b, sep->before + sep->behind, k)
			   : accepts_colon(sure, v->text, &s, b, sep->behind, k);
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

	if (begin >= f->n)
		return;
	if (k->upper && sep->equals && sep->before + sep->behind == 0)
		sure = SURE; /* as in an environment */
	rc = v.quoted ? value_quoted(f, begin, escaped, &v) : value_plain(f, begin, &v);
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

static void assign_judge(struct finder *f, const struct pattern *p, size_t end)
{
	struct key k = { .n = 0 };
	struct separator sep = { false, 0, 0 };
	enum sure sure;
	size_t at = end;

	if (!key_before(f, end - 1, &k))
		return;
	sure = key_judge(&k);
	if (sure == NOT_AT_ALL || !value_begins(f, &at, &sep))
		return;
	value_judge(f, p->kind, &k, sure, &sep, at);
}

/* --password VALUE, and likewise; end is behind the first space. */
void judge_flag(struct finder *f, const struct pattern *p, size_t end)
{
	const struct separator sep = { true, 0, 0 };
	struct key k = { .text = STR_LIT("password") };
	size_t at = end;

	while (at < f->n && at - end < 4 && f->p[at] == ' ')
		at++;
	if (at >= f->n || f->p[at] == '-')
		return;
	key_split(&k);
	value_judge(f, p->kind, &k, f->p[at] == '"' || f->p[at] == '\'' ? SURE : MAYBE, &sep, at);
}

/* Whether a word in any case ends before `at`, but for spaces. */
static bool word_before(const struct finder *f, size_t at, const char *word)
{
	size_t n = strlen(word), spaces = 0;

	while (at > 0 && spaces < 8 && (f->p[at - 1] == ' ' || f->p[at - 1] == '\t')) {
		at--;
		spaces++;
	}
	return spaces > 0 && at >= n && str_is_any_case((struct str){ f->p + at - n, n }, word);
}

/* Whether "login NAME" stands before `at`, as in ~/.netrc. */
static bool login_before(const struct finder *f, size_t at)
{
	enum { NAME_LOOK = 128 };
	size_t from = at;

	while (at > 0 && from - at < NAME_LOOK && (f->p[at - 1] == ' ' || f->p[at - 1] == '\t'))
		at--;
	while (at > 0 && from - at < NAME_LOOK && (unsigned char)f->p[at - 1] > ' ')
		at--;
	return word_before(f, at, "login") || word_before(f, at, "user");
}

/* A name that ends in a space: of a flag, of ENV in a Dockerfile, or behind a login. */
static void judge_spaced(struct finder *f, const struct pattern *p, size_t end)
{
	static const char *const nouns[] = { "password", "passwd",  "token", "secret",
					     "api-key",	 "api_key", "apikey" };
	size_t begin = end - 1;
	struct str name;

	while (begin > 0 && end - begin < KEY_MAX && (char_class(f->p[begin - 1]) & URL64))
		begin--;
	name = (struct str){ f->p + begin, end - 1 - begin };
	if (((str_starts(name, "-") || word_before(f, begin, "env")) &&
	     (IS_ONE_OF(name, nouns) || ENDS_IN(name, nouns))) ||
	    (str_is_any_case(name, "password") && login_before(f, begin)))
		judge_flag(f, p, end);
}

/* A word of a name: from here to what it is given. Names are many, and few are given anything, so
 * this is no part of the expression. */
void judge_name(struct finder *f, const struct pattern *p, size_t end)
{
	enum { REST = 24, CLOSERS = 3, SPACES = 3 };
	size_t at = end, from;

	while (at < f->n && at - end < REST && (char_class(f->p[at]) & (URL64 | IS_DOT)) &&
	       f->p[at] != '~')
		at++;
	if (at == f->n || at == f->name)
		return;
	f->name = at;
	if (f->p[at] == ' ' || f->p[at] == '\t')
		judge_spaced(f, p, at + 1);
	for (from = at; at < f->n && at - from < CLOSERS && is_closer(f->p[at]);)
		at++;
	for (from = at; at < f->n && at - from < SPACES && (f->p[at] == ' ' || f->p[at] == '\t');)
		at++;
	if (at < f->n && (f->p[at] == ':' || f->p[at] == '='))
		assign_judge(f, p, at + 1);
}

/* curl -u NAME:VALUE */
void judge_user(struct finder *f, const struct pattern *p, size_t end)
{
	const struct separator sep = { true, 0, 0 };
	struct key k = { .text = STR_LIT("password") };
	size_t line = end;

	while (line > 0 && end - line < LOOK_BACK - 64 && f->p[line - 1] != '\n')
		line--;
	if (!str_has_word((struct str){ f->p + line, end - line }, "curl") &&
	    !str_has_word((struct str){ f->p + line, end - line }, "http"))
		return;
	key_split(&k);
	if (end < f->n)
		value_judge(f, p->kind, &k, SURE, &sep, end);
}
