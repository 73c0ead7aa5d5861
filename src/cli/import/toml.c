#include "cli/import/toml.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"
#include "json/document/utf8.h"
#include "json/document/write.h"

enum { ARENA_MAX = 16 << 20 };

enum toml_kind { TOML_TABLE, TOML_ARRAY, TOML_STRING, TOML_INT, TOML_REAL, TOML_BOOL };

struct toml_node {
	struct str key; /* in a table */
	enum toml_kind kind;
	/* A table: what a header has named; what no header may name any more. */
	bool named, closed;
	bool of_tables; /* an array that [[headers]] add to */
	struct str text; /* STRING */
	int64_t i; /* INT, BOOL */
	double d; /* REAL */
	struct toml_node *first, *last, *next;
};

struct toml {
	struct str text;
	size_t at;
	unsigned nodes;
	struct arena arena;
	struct err *e;
};

static int toml_refuse(struct toml *t, const char *what)
{
	unsigned line = 1;

	for (size_t i = 0; i < t->at && i < t->text.n; i++)
		line += t->text.p[i] == '\n';
	return err_set(t->e, ERR_INVALID, "line %u: %s", line, what);
}

/* ---- the tree ------------------------------------------------------------------------------ */

static struct toml_node *toml_add(struct toml *t, struct toml_node *to, struct str key,
				  enum toml_kind kind)
{
	struct toml_node *n;

	if (++t->nodes > TOML_VALUES_MAX) {
		err_set(t->e, ERR_TOO_LARGE, "more than %d values", TOML_VALUES_MAX);
		return NULL;
	}
	n = arena_alloc(&t->arena, sizeof(*n), t->e);
	if (!n)
		return NULL;
	n->key = key;
	n->kind = kind;
	if (to->last)
		to->last->next = n;
	else
		to->first = n;
	to->last = n;
	return n;
}

static struct toml_node *toml_find(const struct toml_node *in, struct str key)
{
	for (struct toml_node *n = in->first; n; n = n->next) {
		if (str_eq(n->key, key))
			return n;
	}
	return NULL;
}

/* ---- characters ---------------------------------------------------------------------------- */

/* '\0' at the end: a NUL in the text is refused before. */
static char toml_peek(const struct toml *t, size_t ahead)
{
	return t->at + ahead < t->text.n ? t->text.p[t->at + ahead] : '\0';
}

static bool toml_starts(const struct toml *t, const char *z)
{
	return str_starts((struct str){ t->text.p + t->at, t->text.n - t->at }, z);
}

static void toml_skip_blanks(struct toml *t)
{
	while (toml_peek(t, 0) == ' ' || toml_peek(t, 0) == '\t')
		t->at++;
}

static bool toml_newline(struct toml *t)
{
	if (toml_peek(t, 0) == '\r' && toml_peek(t, 1) == '\n')
		t->at++;
	if (toml_peek(t, 0) != '\n')
		return false;
	t->at++;
	return true;
}

static void toml_skip_comment(struct toml *t)
{
	toml_skip_blanks(t);
	if (toml_peek(t, 0) != '#')
		return;
	while (t->at < t->text.n && toml_peek(t, 0) != '\n')
		t->at++;
}

/* Blanks, comments and line breaks. */
static void toml_skip(struct toml *t)
{
	do
		toml_skip_comment(t);
	while (toml_newline(t));
}

static int toml_end_of_line(struct toml *t)
{
	toml_skip_comment(t);
	if (toml_newline(t) || t->at == t->text.n)
		return 0;
	return toml_refuse(t, "the line goes on behind its end");
}

/* ---- strings ------------------------------------------------------------------------------- */

static int toml_put_char(struct buf *b, uint32_t c, struct err *e)
{
	char s[4];
	size_t n = 0;

	if (c < 0x80) {
		s[n++] = (char)c;
	} else if (c < 0x800) {
		s[n++] = (char)(0xc0 | c >> 6);
		s[n++] = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		s[n++] = (char)(0xe0 | c >> 12);
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		s[n++] = (char)(0x80 | (c & 0x3f));
	} else {
		s[n++] = (char)(0xf0 | c >> 18);
		s[n++] = (char)(0x80 | (c >> 12 & 0x3f));
		s[n++] = (char)(0x80 | (c >> 6 & 0x3f));
		s[n++] = (char)(0x80 | (c & 0x3f));
	}
	return buf_add(b, s, n, e);
}

static int toml_hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	     : c >= 'a' && c <= 'f' ? c - 'a' + 10
	     : c >= 'A' && c <= 'F' ? c - 'A' + 10
				    : -1;
}

static int toml_escape_hex(struct toml *t, unsigned digits, struct buf *b)
{
	uint32_t c = 0;

	while (digits-- > 0) {
		int d = toml_hex(toml_peek(t, 0));

		if (d < 0)
			return toml_refuse(t, "the escape has too few digits");
		c = c << 4 | (uint32_t)d;
		t->at++;
	}
	if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || c == 0)
		return toml_refuse(t, "the escape is of no character");
	return toml_put_char(b, c, t->e);
}

/* Behind the backslash. */
static int toml_escape(struct toml *t, bool multiline, struct buf *b)
{
	static const char from[] = "btnfre\"\\", to[] = "\b\t\n\f\r\033\"\\";
	char c = toml_peek(t, 0);
	const char *known = c ? strchr(from, c) : NULL;

	if (multiline && (c == '\n' || c == '\r' || c == ' ' || c == '\t')) {
		toml_skip_blanks(t);
		if (!toml_newline(t))
			return toml_refuse(t, "a backslash stands before blanks");
		do
			toml_skip_blanks(t);
		while (toml_newline(t));
		return 0;
	}
	t->at++;
	if (known)
		return buf_add(b, &to[known - from], 1, t->e);
	if (c == 'u' || c == 'U')
		return toml_escape_hex(t, c == 'u' ? 4 : 8, b);
	return toml_refuse(t, "there is no such escape");
}

/* The text up to the quotes that end it; of several in a row the last three do. */
static int toml_string_body(struct toml *t, char quote, bool multiline, struct buf *b)
{
	const char ends[] = { quote, quote, quote, '\0' };

	while (t->at < t->text.n) {
		char c = toml_peek(t, 0);

		if (c == quote && !multiline) {
			t->at++;
			return 0;
		}
		if (c == quote && toml_starts(t, ends) && toml_peek(t, 3) != quote) {
			t->at += 3;
			return 0;
		}
		if (c == '\\' && quote == '"') {
			t->at++;
			if (toml_escape(t, multiline, b) < 0)
				return -1;
			continue;
		}
		if ((unsigned char)c < ' ' && c != '\t' && !(multiline && (c == '\n' || c == '\r')))
			break;
		if (buf_add(b, &c, 1, t->e) < 0)
			return -1;
		t->at++;
	}
	return toml_refuse(t, "the string has no end");
}

static int toml_string(struct toml *t, bool may_have_lines, struct str *ret)
{
	autobuf struct buf b = BUF_INIT(TOML_BYTES_MAX);
	char quote = toml_peek(t, 0);
	bool multiline = toml_peek(t, 1) == quote && toml_peek(t, 2) == quote;

	if (multiline && !may_have_lines)
		return toml_refuse(t, "a key has one line");
	t->at += multiline ? 3 : 1;
	if (multiline)
		toml_newline(t);
	if (toml_string_body(t, quote, multiline, &b) < 0)
		return -1;
	*ret = (struct str){ arena_dup(&t->arena, buf_str(&b), t->e), b.n };
	return ret->p ? 0 : -1;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static bool toml_is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int toml_key(struct toml *t, struct str *ret)
{
	size_t from = t->at;

	if (toml_peek(t, 0) == '"' || toml_peek(t, 0) == '\'')
		return toml_string(t, false, ret);
	while (toml_is_bare(toml_peek(t, 0)))
		t->at++;
	*ret = (struct str){ t->text.p + from, t->at - from };
	return ret->n ? 0 : toml_refuse(t, "a key is missing");
}

/* The table in which the last part of a dotted key is. dotted: of key = value, else of a header. */
static struct toml_node *toml_path(struct toml *t, struct toml_node *in, bool dotted,
				   struct str *ret_last)
{
	for (unsigned depth = 1;; depth++) {
		struct toml_node *next;

		toml_skip_blanks(t);
		if (toml_key(t, ret_last) < 0)
			return NULL;
		toml_skip_blanks(t);
		if (toml_peek(t, 0) != '.')
			return in;
		t->at++;
		if (depth >= TOML_DEPTH_MAX) {
			toml_refuse(t, "the key is nested too deep");
			return NULL;
		}
		next = toml_find(in, *ret_last);
		if (!next)
			next = toml_add(t, in, *ret_last, TOML_TABLE);
		else if (next->kind == TOML_ARRAY && next->of_tables && !dotted)
			next = next->last;
		if (!next)
			return NULL;
		if (next->kind != TOML_TABLE || next->closed || (dotted && next->named)) {
			toml_refuse(t, "the key goes through a value that is complete");
			return NULL;
		}
		in = next;
	}
}

/* ---- values -------------------------------------------------------------------------------- */

static int toml_value(struct toml *t, struct toml_node *in, struct str key, unsigned depth);
static int toml_pair(struct toml *t, struct toml_node *in, unsigned depth);

static int toml_array(struct toml *t, struct toml_node *n, unsigned depth)
{
	t->at++;
	for (;;) {
		toml_skip(t);
		if (toml_peek(t, 0) == ']')
			break;
		if (toml_value(t, n, STR_NONE, depth + 1) < 0)
			return -1;
		toml_skip(t);
		if (toml_peek(t, 0) == ']')
			break;
		if (toml_peek(t, 0) != ',')
			return toml_refuse(t, "an array has a comma between values");
		t->at++;
	}
	t->at++;
	return 0;
}

static int toml_inline(struct toml *t, struct toml_node *n, unsigned depth)
{
	t->at++;
	toml_skip_blanks(t);
	while (toml_peek(t, 0) != '}') {
		if (toml_pair(t, n, depth + 1) < 0)
			return -1;
		toml_skip_blanks(t);
		if (toml_peek(t, 0) == '}')
			break;
		if (toml_peek(t, 0) != ',')
			return toml_refuse(t, "an inline table has a comma between members");
		t->at++;
		toml_skip_blanks(t);
		if (toml_peek(t, 0) == '}')
			return toml_refuse(t, "an inline table ends with a comma");
	}
	t->at++;
	n->closed = true;
	return 0;
}

static bool toml_is_token(char c)
{
	return toml_is_bare(c) || c == '+' || c == '.' || c == ':';
}

/* Without underscores, which stand between digits. */
static int toml_digits(struct toml *t, struct str token, char ret[64])
{
	size_t n = 0;

	for (size_t i = 0; i < token.n && n < 63; i++) {
		bool between = i > 0 && i + 1 < token.n && toml_hex(token.p[i - 1]) >= 0 &&
			       toml_hex(token.p[i + 1]) >= 0;

		if (token.p[i] != '_')
			ret[n++] = token.p[i];
		else if (!between)
			return toml_refuse(t, "an underscore stands between digits");
	}
	ret[n] = '\0';
	return token.n < 64 ? 0 : toml_refuse(t, "the number is too long");
}

/* Integers of any base, and floats: whatever else strto*() takes is refused before. */
static int toml_number(struct toml *t, struct str token, struct toml_node *n)
{
	char text[64], *end, *from = text;
	int base = 10;

	if (toml_digits(t, token, text) < 0)
		return -1;
	from += *from == '+' || *from == '-';
	if (from[0] == '0' && from == text && from[1] && strchr("xob", from[1])) {
		base = from[1] == 'x' ? 16 : from[1] == 'o' ? 8 : 2;
		from += 2;
	} else if (from[0] == '0' && from[1] >= '0' && from[1] <= '9') {
		return toml_refuse(t, "a number does not begin with 0");
	}
	errno = 0;
	n->kind = TOML_INT;
	n->i = strtoll(base == 10 ? text : from, &end, base);
	if (toml_hex(*from) >= 0 && *end == '\0' && end > from && errno == 0)
		return 0;
	if (base != 10 || strspn(from, "0123456789.eE+-") != strlen(from) || *from < '0' ||
	    *from > '9' || strstr(from, ".e") || strstr(from, ".E") ||
	    from[strlen(from) - 1] == '.')
		return toml_refuse(t, "that is no value: a string has quotes");
	n->kind = TOML_REAL;
	n->d = strtod(text, &end);
	return *end == '\0' && n->d <= 1e308 && n->d >= -1e308
		     ? 0
		     : toml_refuse(t, "that is no number that JSON has");
}

/* A date or a time, by its shape. */
static bool toml_is_time(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!strchr("0123456789-:.+ TtZz", s.p[i]))
			return false;
	}
	return s.n >= 8 && *s.p >= '0' && *s.p <= '9' && (s.p[4] == '-' || s.p[2] == ':');
}

/* true, numbers, dates and times. */
static int toml_scalar(struct toml *t, struct toml_node *n)
{
	struct str token = { t->text.p + t->at, 0 }, digits;

	while (toml_is_token(toml_peek(t, token.n)))
		token.n++;
	if (token.n == 10 && token.p[4] == '-' && toml_peek(t, 10) == ' ' &&
	    toml_hex(toml_peek(t, 11)) >= 0)
		for (token.n++; toml_is_token(toml_peek(t, token.n));)
			token.n++;
	t->at += token.n;
	digits = token;
	if (digits.n && (*digits.p == '+' || *digits.p == '-')) {
		digits.p++;
		digits.n--;
	}
	if (str_is(token, "true") || str_is(token, "false")) {
		n->kind = TOML_BOOL;
		n->i = token.n == 4;
		return 0;
	}
	n->kind = TOML_STRING;
	n->text = token;
	if (str_is(digits, "inf") || str_is(digits, "nan"))
		return 0;
	return toml_is_time(token) ? 0 : toml_number(t, token, n);
}

static int toml_value(struct toml *t, struct toml_node *in, struct str key, unsigned depth)
{
	char c = toml_peek(t, 0);
	struct toml_node *n;

	if (depth >= TOML_DEPTH_MAX)
		return toml_refuse(t, "the value is nested too deep");
	n = toml_add(t, in, key, TOML_STRING);
	if (!n)
		return -1;
	switch (c) {
	case '"':
	case '\'':
		return toml_string(t, true, &n->text);
	case '[':
		n->kind = TOML_ARRAY;
		return toml_array(t, n, depth);
	case '{':
		n->kind = TOML_TABLE;
		return toml_inline(t, n, depth);
	default:
		return toml_scalar(t, n);
	}
}

/* key = value */
static int toml_pair(struct toml *t, struct toml_node *in, unsigned depth)
{
	struct str key;

	in = toml_path(t, in, true, &key);
	if (!in)
		return -1;
	if (toml_peek(t, 0) != '=')
		return toml_refuse(t, "a key is followed by =");
	if (toml_find(in, key))
		return toml_refuse(t, "the key stands twice");
	t->at++;
	toml_skip_blanks(t);
	return toml_value(t, in, key, depth);
}

/* ---- headers ------------------------------------------------------------------------------- */

/* [table] or [[table]]: what follows it goes into *ret. */
static int toml_header(struct toml *t, struct toml_node *root, struct toml_node **ret)
{
	bool many = toml_peek(t, 1) == '[';
	struct toml_node *in, *n;
	struct str key;

	t->at += many ? 2 : 1;
	in = toml_path(t, root, false, &key);
	if (!in)
		return -1;
	if (toml_peek(t, 0) != ']' || (many && toml_peek(t, 1) != ']'))
		return toml_refuse(t, "the header has no end");
	t->at += many ? 2 : 1;
	n = toml_find(in, key);
	if (many) {
		if (n && !n->of_tables)
			return toml_refuse(t, "the key stands twice");
		if (!n)
			n = toml_add(t, in, key, TOML_ARRAY);
		if (!n)
			return -1;
		n->of_tables = true;
		n = toml_add(t, n, STR_NONE, TOML_TABLE);
	} else if (n && (n->kind != TOML_TABLE || n->named || n->closed)) {
		return toml_refuse(t, "the table stands twice");
	} else if (!n) {
		n = toml_add(t, in, key, TOML_TABLE);
	}
	if (!n)
		return -1;
	n->named = true;
	*ret = n;
	return toml_end_of_line(t);
}

static int toml_read(struct toml *t, struct toml_node *root)
{
	struct toml_node *in = root;

	if (toml_starts(t, "\xef\xbb\xbf"))
		t->at += 3;
	for (;;) {
		toml_skip(t);
		if (t->at == t->text.n)
			return 0;
		if (toml_peek(t, 0) == '[') {
			if (toml_header(t, root, &in) < 0)
				return -1;
		} else if (toml_pair(t, in, 1) < 0 || toml_end_of_line(t) < 0) {
			return -1;
		}
	}
}

static void toml_write(const struct toml_node *n, struct json_writer *w)
{
	switch (n->kind) {
	case TOML_TABLE:
		json_write_object(w);
		for (const struct toml_node *m = n->first; m; m = m->next) {
			json_write_key_str(w, m->key);
			toml_write(m, w);
		}
		json_write_object_end(w);
		break;
	case TOML_ARRAY:
		json_write_array(w);
		for (const struct toml_node *m = n->first; m; m = m->next)
			toml_write(m, w);
		json_write_array_end(w);
		break;
	case TOML_STRING:
		json_write_str(w, n->text);
		break;
	case TOML_INT:
		json_write_int(w, n->i);
		break;
	case TOML_REAL:
		json_write_real(w, n->d);
		break;
	case TOML_BOOL:
		json_write_bool(w, n->i != 0);
		break;
	}
}

int toml_to_json(struct str text, struct buf *to, struct err *e)
{
	struct toml_node root = { .kind = TOML_TABLE };
	struct toml t = { .text = text, .e = e };
	struct json_writer w = json_writer(to);
	int rc;

	if (text.n > TOML_BYTES_MAX)
		return err_set(e, ERR_TOO_LARGE, "more than %d bytes", TOML_BYTES_MAX);
	if (text.n && (memchr(text.p, '\0', text.n) || !utf8_valid(text)))
		return err_set(e, ERR_INVALID, "it is no text in UTF-8");
	arena_init(&t.arena, ARENA_MAX);
	rc = toml_read(&t, &root);
	if (rc == 0) {
		toml_write(&root, &w);
		rc = json_write_done(&w, e);
	}
	arena_fini(&t.arena);
	return rc;
}
