/*
 * Rewrites an expression of ECMA-262 into one of PCRE2, construct by construct. Unknown constructs
 * are refused, so no feature that only PCRE2 has can be reached. PCRE2 calls back before each item
 * that it tries (PCRE2_AUTO_CALLOUT); the callback counts the work, and ends a search over its
 * budget. A repeated single character, as in a*, may run over the whole text without a callback, so
 * the price of a callback grows with the length of the text.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "json/schema/regex.h"

#include <pcre2.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/library.h"
#include "json/document/utf8.h"

struct regex {
	pcre2_code *code;
};

/* --- from ECMA-262 to PCRE2 -------------------------------------------------------------- */

/* White space of ECMA-262 (\s), in the syntax of a character class. */
#define SPACES                                                                                     \
	"\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"                            \
	"\\x{202f}\\x{205f}\\x{3000}\\x{feff}"

/* Long names of general categories, which PCRE2 lacks. */
static const struct {
	const char *name, *is;
} categories[] = {
	{ "Any", "Any" },
	{ "Letter", "L" },
	{ "Cased_Letter", "L&" },
	{ "Uppercase_Letter", "Lu" },
	{ "Lowercase_Letter", "Ll" },
	{ "Titlecase_Letter", "Lt" },
	{ "Modifier_Letter", "Lm" },
	{ "Other_Letter", "Lo" },
	{ "Mark", "M" },
	{ "Nonspacing_Mark", "Mn" },
	{ "Spacing_Mark", "Mc" },
	{ "Enclosing_Mark", "Me" },
	{ "Number", "N" },
	{ "Decimal_Number", "Nd" },
	{ "digit", "Nd" },
	{ "Letter_Number", "Nl" },
	{ "Other_Number", "No" },
	{ "Punctuation", "P" },
	{ "punct", "P" },
	{ "Connector_Punctuation", "Pc" },
	{ "Dash_Punctuation", "Pd" },
	{ "Open_Punctuation", "Ps" },
	{ "Close_Punctuation", "Pe" },
	{ "Initial_Punctuation", "Pi" },
	{ "Final_Punctuation", "Pf" },
	{ "Other_Punctuation", "Po" },
	{ "Symbol", "S" },
	{ "Math_Symbol", "Sm" },
	{ "Currency_Symbol", "Sc" },
	{ "Modifier_Symbol", "Sk" },
	{ "Other_Symbol", "So" },
	{ "Separator", "Z" },
	{ "Space_Separator", "Zs" },
	{ "Line_Separator", "Zl" },
	{ "Paragraph_Separator", "Zp" },
	{ "Other", "C" },
	{ "Control", "Cc" },
	{ "Format", "Cf" },
	{ "Private_Use", "Co" },
	{ "Unassigned", "Cn" },
};

/* The state of a rewrite. */
struct rewrite {
	const char *at, *end;
	struct buf *out;
	bool in_class;
	struct err *e;
};

static int regex_refuse(struct rewrite *w, const char *why)
{
	return err_set(w->e, ERR_INVALID, "not a regular expression: %s", why);
}

static int regex_put(struct rewrite *w, const char *z)
{
	return buf_add(w->out, z, strlen(z), w->e);
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int regex_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads n hexadecimal digits; -1 if there are fewer. */
static long read_hex(struct rewrite *w, int n)
{
	long v = 0;

	if (w->end - w->at < n)
		return -1;
	for (int i = 0; i < n; i++) {
		int d = regex_hex(w->at[i]);

		if (d < 0)
			return -1;
		v = v * 16 + d;
	}
	w->at += n;
	return v;
}

/* Reads {10FFFF}, after \u. */
static long read_braced(struct rewrite *w)
{
	long v = 0;
	int d;

	w->at++;
	if (w->at == w->end || *w->at == '}')
		return -1;
	for (; w->at < w->end && *w->at != '}'; w->at++) {
		d = regex_hex(*w->at);
		if (d < 0 || v > 0x10ffff)
			return -1;
		v = v * 16 + d;
	}
	if (w->at++ == w->end)
		return -1;
	return v;
}

static long read_u(struct rewrite *w)
{
	long v, low;

	if (w->at < w->end && *w->at == '{')
		return read_braced(w);
	v = read_hex(w, 4);
	if (v < 0xd800 || v > 0xdfff)
		return v;
	if (v > 0xdbff || w->end - w->at < 6 || w->at[0] != '\\' || w->at[1] != 'u')
		return -1;
	w->at += 2;
	low = read_hex(w, 4);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	return 0x10000 + ((v - 0xd800) << 10) + (low - 0xdc00);
}

static int put_code_point(struct rewrite *w, long v)
{
	if (v < 0 || v > 0x10ffff)
		return regex_refuse(w, "\\x or \\u wants hexadecimal digits of a character");
	return buf_addf(w->out, w->e, "\\x{%lx}", (unsigned long)v);
}

/* \p{…}: a general category or script; General_Category= and Script= may stand before it. */
static int put_property(struct rewrite *w, char p)
{
	struct str name = { w->at + 1, 0 };
	const char *close;

	if (w->at == w->end || *w->at != '{')
		return regex_refuse(w, "\\p wants a name in braces");
	close = memchr(w->at, '}', (size_t)(w->end - w->at));
	if (!close)
		return regex_refuse(w, "\\p{ without }");
	name.n = (size_t)(close - name.p);
	w->at = close + 1;
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] == '=') {
			name = (struct str){ name.p + i + 1, name.n - i - 1 };
			i = (size_t)-1;
		} else if (!is_alnum(name.p[i]) && name.p[i] != '_') {
			return regex_refuse(w, "\\p with a name that is none");
		}
	}
	if (name.n == 0)
		return regex_refuse(w, "\\p without a name");
	for (size_t i = 0; i < ARRAY_LEN(categories); i++) {
		if (str_is(name, categories[i].name))
			return buf_addf(w->out, w->e, "\\%c{%s}", p, categories[i].is);
	}
	return buf_addf(w->out, w->e, "\\%c{%.*s}", p, STR_ARG(name));
}

/* \k<name> */
static int put_named(struct rewrite *w)
{
	const char *close = memchr(w->at, '>', (size_t)(w->end - w->at));

	if (w->at == w->end || *w->at != '<' || !close)
		return regex_refuse(w, "\\k wants a name in <>");
	if (buf_addf(w->out, w->e, "\\k%.*s", (int)(close + 1 - w->at), w->at) < 0)
		return -1;
	w->at = close + 1;
	return 0;
}

static int put_back_reference(struct rewrite *w)
{
	const char *from = w->at - 1;

	if (w->in_class)
		return regex_refuse(w, "a reference to a group inside []");
	while (w->at < w->end && *w->at >= '0' && *w->at <= '9')
		w->at++;
	if (w->at - from > 3)
		return regex_refuse(w, "a reference to a group that is not there");
	return buf_addf(w->out, w->e, "\\g{%.*s}", (int)(w->at - from), from);
}

/* Rewrites an escape; w->at is after the backslash. */
static int put_escape(struct rewrite *w)
{
	char c;

	if (w->at == w->end)
		return regex_refuse(w, "a backslash at its end");
	c = *w->at++;
	switch (c) {
	case 's':
		return regex_put(w, w->in_class ? SPACES : "[" SPACES "]");
	case 'S':
		/* inside a class, \S can only be written as its complement */
		return w->in_class
			     ? regex_put(w,
					 "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}"
					 "\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}"
					 "\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}"
					 "\\x{e000}-\\x{fefe}\\x{ff00}-\\x{10ffff}")
			     : regex_put(w, "[^" SPACES "]");
	case 'd':
	case 'D':
	case 'w':
	case 'W':
	case 't':
	case 'n':
	case 'r':
	case 'f':
		return buf_addf(w->out, w->e, "\\%c", c);
	case 'v':
		return regex_put(w, "\\x{b}"); /* in PCRE2, \v is a class */
	case 'b':
		return regex_put(w, w->in_class ? "\\x{8}" : "\\b");
	case 'B':
		return w->in_class ? regex_refuse(w, "\\B inside []") : regex_put(w, "\\B");
	case 'c':
		if (w->at == w->end || !is_alnum(*w->at) || *w->at <= '9')
			return regex_refuse(w, "\\c wants a letter");
		return buf_addf(w->out, w->e, "\\x{%x}", (unsigned)*w->at++ & 0x1f);
	case 'x':
		return put_code_point(w, read_hex(w, 2));
	case 'u':
		return put_code_point(w, read_u(w));
	case 'p':
	case 'P':
		return put_property(w, c);
	case 'k':
		return w->in_class ? regex_refuse(w, "\\k inside []") : put_named(w);
	case '0':
		if (w->at < w->end && *w->at >= '0' && *w->at <= '9')
			return regex_refuse(w, "an octal escape");
		return regex_put(w, "\\x{0}");
	default:
		break;
	}
	if (c >= '1' && c <= '9')
		return put_back_reference(w);
	if (is_alnum(c) || (c & 0x80))
		return regex_refuse(w, "an escape that ECMA-262 has not");
	return buf_addf(w->out, w->e, "\\%c", c);
}

/* Rewrites the beginning of a group. */
static int put_group(struct rewrite *w)
{
	static const char *const kinds[] = { "?:", "?=", "?!", "?<=", "?<!", "?<" };
	struct str rest = { w->at, (size_t)(w->end - w->at) };

	if (regex_put(w, "(") < 0)
		return -1;
	if (str_starts(rest, "*"))
		return regex_refuse(w, "nothing to repeat at *");
	if (!str_starts(rest, "?"))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (str_starts(rest, kinds[i])) {
			w->at += strlen(kinds[i]);
			return regex_put(w, kinds[i]);
		}
	}
	return regex_refuse(w, "a group of a kind that ECMA-262 has not");
}

static int put_plain(struct rewrite *w, char c)
{
	bool repeats = !w->in_class && (c == '*' || c == '+' || c == '?' || c == '}');

	switch (c) {
	case '(':
		return w->in_class ? regex_put(w, "(") : put_group(w);
	case '[':
		if (w->in_class)
			return regex_put(w, "\\["); /* so that [:alpha:] is no class */
		w->in_class = true;
		if (w->at < w->end && *w->at == '^') {
			w->at++;
			return regex_put(w, "[^");
		}
		return regex_put(w, "[");
	case ']':
		w->in_class = false;
		return regex_put(w, "]");
	case '.':
		/* everything but the line ends of ECMA-262 */
		return regex_put(w, w->in_class ? "." : "[^\\n\\r\\x{2028}\\x{2029}]");
	default:
		break;
	}
	if (repeats && w->at < w->end && *w->at == '+')
		return regex_refuse(w, "nothing to repeat at +");
	return buf_add(w->out, &c, 1, w->e);
}

static int rewrite(struct str source, struct buf *out, struct err *e)
{
	struct rewrite w = { .at = source.p, .end = source.p + source.n, .out = out, .e = e };

	while (w.at < w.end) {
		char c = *w.at++;

		if ((c == '\\' ? put_escape(&w) : put_plain(&w, c)) < 0)
			return -1;
	}
	return 0;
}

/* --- PCRE2 ------------------------------------------------------------------------------- */

static int compile(struct regex *r, struct str text, struct err *e)
{
	const uint32_t options = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_UCP |
				 PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT |
				 PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
				 PCRE2_MATCH_UNSET_BACKREF;
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	PCRE2_SIZE at;
	int why;

	if (!context)
		return err_set(e, ERR_LIMIT, "out of memory");
	pcre2_set_parens_nest_limit(context, 64);
	r->code = pcre2_compile((PCRE2_SPTR)text.p, text.n, options, &why, &at, context);
	pcre2_compile_context_free(context);
	if (!r->code) {
		PCRE2_UCHAR said[120];

		if (why == PCRE2_ERROR_HEAP_FAILED)
			return err_set(e, ERR_LIMIT, "out of memory");
		pcre2_get_error_message(why, said, sizeof(said));
		return err_set(e, ERR_INVALID, "not a regular expression: %s", (char *)said);
	}
	return 0;
}

struct regex *regex_new(struct str source, struct err *e)
{
	autobuf struct buf text = BUF_INIT((size_t)REGEX_BYTES_MAX * 16);
	AUTO(regex_free) struct regex *r = NULL;

	if (library_load("pcre2", e) < 0)
		return NULL;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(e, ERR_LIMIT, "out of memory"), NULL;
	if (source.n > REGEX_BYTES_MAX) {
		err_set(e, ERR_TOO_LARGE, "a regular expression of more than %d bytes",
			REGEX_BYTES_MAX);
		return NULL;
	}
	if (rewrite(source, &text, e) < 0 || compile(r, buf_str(&text), e) < 0)
		return NULL;
	return take_ptr(r);
}

void regex_free(struct regex *r)
{
	if (!r)
		return;
	pcre2_code_free(r->code);
	free(r);
}

size_t regex_footprint(const struct regex *r)
{
	size_t n = 0;

	pcre2_pattern_info(r->code, PCRE2_INFO_SIZE, &n);
	return n + sizeof(*r);
}

struct toll {
	uint64_t left, price;
};

/* Called before each item. A value other than 0 ends the search. */
static int pay(pcre2_callout_block *at, void *data)
{
	struct toll *t = data;

	if (t->left < t->price)
		return PCRE2_ERROR_CALLOUT;
	t->left -= t->price;
	return 0;
}

/* *ret_end: the end of the match, if there is one. */
static int search(const struct regex *r, struct str text, uint32_t how, struct toll *t,
		  size_t *ret_end)
{
	pcre2_match_context *context = pcre2_match_context_create(NULL);
	pcre2_match_data *found = pcre2_match_data_create(1, NULL);
	int n = PCRE2_ERROR_NOMEMORY;

	if (context && found) {
		pcre2_set_heap_limit(context, REGEX_HEAP_MAX);
		pcre2_set_callout(context, pay, t);
		n = pcre2_match(r->code, (PCRE2_SPTR)(text.p ? text.p : ""), text.n, 0,
				PCRE2_NO_UTF_CHECK | how, found, context);
		if (n >= 0)
			*ret_end = pcre2_get_ovector_pointer(found)[1];
	}
	pcre2_match_data_free(found);
	pcre2_match_context_free(context);
	return n;
}

int regex_search(const struct regex *r, struct str text, uint64_t *steps, struct err *e)
{
	size_t end;

	return regex_find(r, text, 0, steps, &end, e);
}

int regex_find(const struct regex *r, struct str text, unsigned part, uint64_t *steps,
	       size_t *ret_end, struct err *e)
{
	struct toll toll = { .left = *steps, .price = 1 + text.n / REGEX_STRIDE };
	uint32_t how = (part & REGEX_PART_BEHIND ? PCRE2_NOTBOL : 0u) |
		       (part & REGEX_PART_BEFORE ? PCRE2_NOTEOL : 0u);
	int n;

	if (text.n > REGEX_TEXT_MAX)
		return err_set(e, ERR_TOO_LARGE, "a text of more than %d bytes for a pattern",
			       REGEX_TEXT_MAX);
	n = search(r, text, how, &toll, ret_end);
	*steps = toll.left;
	if (n >= 0)
		return 1;
	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	if (n == PCRE2_ERROR_NOMEMORY)
		return err_set(e, ERR_LIMIT, "out of memory");
	return err_set(e, ERR_TOO_LARGE, "a pattern takes too long for this text");
}
