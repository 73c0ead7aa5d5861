#include "modules/code/clean.h"

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "json/document/hidden.h"
#include "json/document/utf8.h"
#include "json/document/write.h"

enum {
	ESC = 0x1b,
	BLANKS_MAX = 32, /* in a row: enough for any indentation */
	REPLACEMENT = 0xfffd,
};

/* Each form is written in at most this many characters: \u{10ffff}. */
enum { FORM_MAX = 16 };

static const struct str mark = { " … [cut]", sizeof(" … [cut]") - 1 };
enum { MARK_CHARS = 8 };

struct cleaner {
	struct str in;
	size_t at;
	enum clean_mode mode;
	struct buf *to;
	size_t chars, max;
	size_t start, keep; /* of the output: where it began, and where it is cut for the mark */
	unsigned lines, blanks; /* that wait for the next visible character */
	uint32_t last; /* visible character; 0: none yet */
	bool no_end; /* no sequence of terminals ends behind here */
	bool full;
};

static bool clean_between(uint32_t c, uint32_t first, uint32_t last)
{
	return c >= first && c <= last;
}

static bool is_joiner(uint32_t c)
{
	return c == 0x200c || c == 0x200d;
}

static bool is_selector(uint32_t c)
{
	return clean_between(c, 0xfe00, 0xfe0f);
}

static bool is_line_end(uint32_t c)
{
	return clean_between(c, '\n', '\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static bool is_blank(uint32_t c)
{
	return c == ' ' || c == '\t' || c == 0xa0 || c == 0x1680 ||
	       clean_between(c, 0x2000, 0x200a) || c == 0x202f || c == 0x205f;
}

/* Not in hidden_char(), whose readers keep them. */
bool clean_hides(uint32_t c)
{
	return hidden_char(c) || clean_between(c, 0x180b, 0x180f) ||
	       clean_between(c, 0xfff0, 0xfff8) || clean_between(c, 0x13430, 0x1343f) ||
	       clean_between(c, 0x1bca0, 0x1bca3) || clean_between(c, 0x1d173, 0x1d17a);
}

/* Private use and noncharacters: what they look like is up to a font. */
static bool is_private(uint32_t c)
{
	return clean_between(c, 0xe000, 0xf8ff) || clean_between(c, 0xfdd0, 0xfdef) ||
	       (c & 0xfffe) == 0xfffe || c >= 0xf0000;
}

uint32_t clean_char(struct str s, size_t *at)
{
	size_t n;
	bool valid = utf8_next((struct str){ s.p + *at, s.n - *at }, &n);
	uint32_t c = valid ? hidden_char_of(s.p + *at, n) : REPLACEMENT;

	*at += n;
	return c;
}

/* ---- sequences of terminals (ECMA-48) ------------------------------------------------------- */

static unsigned char byte_at(const struct cleaner *c, size_t i)
{
	return i < c->in.n ? (unsigned char)c->in.p[i] : 0;
}

static size_t skip_range(const struct cleaner *c, size_t i, unsigned char first, unsigned char last)
{
	while (i < c->in.n && byte_at(c, i) >= first && byte_at(c, i) <= last)
		i++;
	return i;
}

/* Parameters, intermediates and a final byte. What is no whole sequence stays as text. */
static size_t csi_end(const struct cleaner *c, size_t i)
{
	size_t end = skip_range(c, skip_range(c, i, 0x30, 0x3f), 0x20, 0x2f);

	return byte_at(c, end) >= 0x40 && byte_at(c, end) <= 0x7e ? end + 1 : i;
}

/* A string up to BEL or ST. Without an end it would swallow the rest unseen, so it stays as text.
 */
static size_t string_end(struct cleaner *c, size_t i)
{
	for (size_t k = i; !c->no_end && k < c->in.n; k++) {
		if (byte_at(c, k) == '\a')
			return k + 1;
		if (byte_at(c, k) == ESC && byte_at(c, k + 1) == '\\')
			return k + 2;
		if (byte_at(c, k) == 0xc2 && byte_at(c, k + 1) == 0x9c)
			return k + 2;
	}
	c->no_end = true;
	return i;
}

static size_t escape_end(struct cleaner *c, size_t i)
{
	unsigned char kind = byte_at(c, i);
	size_t end;

	if (kind == '[' || (kind && strchr("]PX^_", kind))) {
		end = kind == '[' ? csi_end(c, i + 1) : string_end(c, i + 1);
		return end > i + 1 ? end : i;
	}
	end = skip_range(c, i, 0x20, 0x2f);
	if (end > i)
		return byte_at(c, end) >= 0x30 && byte_at(c, end) <= 0x7e ? end + 1 : i;
	return kind >= 0x30 && kind <= 0x7e ? i + 1 : i;
}

/* Moves behind the sequence that ch begins. */
static void skip_sequence(struct cleaner *c, uint32_t ch)
{
	if (ch == ESC)
		c->at = escape_end(c, c->at);
	else if (ch == 0x9b)
		c->at = csi_end(c, c->at);
	else if (ch == 0x90 || ch == 0x98 || clean_between(ch, 0x9d, 0x9f))
		c->at = string_end(c, c->at);
}

/* ---- output --------------------------------------------------------------------------------- */

/* Bytes that must not stand before the mark of a cut: they belong to what is cut off. */
static size_t dangling(struct str s)
{
	if (str_ends(s, " "))
		return 1;
	if (s.n >= 3 && (memcmp(s.p + s.n - 3, "\xe2\x80\x8c", 3) == 0 ||
			 memcmp(s.p + s.n - 3, "\xe2\x80\x8d", 3) == 0 ||
			 memcmp(s.p + s.n - 3, "\xef\xb8", 2) == 0))
		return 3;
	return 0;
}

/* `chars` characters, all or none: past the maximum the output goes back to where the mark fits. */
static int clean_put(struct cleaner *c, struct str bytes, size_t chars, struct err *e)
{
	if (c->full)
		return 0;
	if (c->chars + chars > c->max) {
		c->full = true;
		c->to->n = c->keep;
		for (size_t n = 1; n && c->to->n > c->start; c->to->n -= n)
			n = dangling((struct str){ c->to->p + c->start, c->to->n - c->start });
		return c->max < MARK_CHARS ? 0 : buf_add(c->to, mark.p, mark.n, e);
	}
	if (buf_add(c->to, bytes.p, bytes.n, e) < 0)
		return -1;
	c->chars += chars;
	if (c->chars + MARK_CHARS <= c->max)
		c->keep = c->to->n;
	return 0;
}

static int put_blanks(struct cleaner *c, struct err *e)
{
	unsigned lines = c->mode == CLEAN_LINE ? 0 : c->lines, blanks = c->blanks;

	if (c->mode == CLEAN_LINE && (c->lines || c->blanks))
		blanks = 1;
	c->lines = c->blanks = 0;
	if (!c->last)
		return 0;
	for (unsigned i = 0; i < lines; i++) {
		if (clean_put(c, STR_LIT("\n"), 1, e) < 0)
			return -1;
	}
	for (unsigned i = 0; i < blanks; i++) {
		if (clean_put(c, STR_LIT(" "), 1, e) < 0)
			return -1;
	}
	return 0;
}

static int put_visible(struct cleaner *c, struct str bytes, uint32_t ch, struct err *e)
{
	bool joined = c->lines || c->blanks;

	if (put_blanks(c, e) < 0)
		return -1;
	if (c->mode == CLEAN_COMMENT && ch == '/' && c->last == '*' && !joined) {
		if (clean_put(c, STR_LIT("\\/"), 2, e) < 0)
			return -1;
	} else if (clean_put(c, bytes, 1, e) < 0) {
		return -1;
	}
	c->last = ch;
	return 0;
}

static int reveal(struct cleaner *c, uint32_t ch, struct err *e)
{
	char form[FORM_MAX];
	int n;

	if (ch == '\n' || ch == '\r' || ch == '\t')
		n = snprintf(form, sizeof(form), "\\%c", ch == '\n' ? 'n' : ch == '\r' ? 'r' : 't');
	else
		n = snprintf(form, sizeof(form), "\\u{%x}", ch);
	if (put_blanks(c, e) < 0 || clean_put(c, (struct str){ form, (size_t)n }, (size_t)n, e) < 0)
		return -1;
	c->last = '}';
	return 0;
}

/* ---- the walk ------------------------------------------------------------------------------- */

/* Joiners shape the letters of some scripts and tie pictures together; selectors choose how a
 * picture looks. One of them, between what needs it, stays. */
static bool is_needed(const struct cleaner *c, uint32_t ch)
{
	size_t at = c->at;
	uint32_t next = at < c->in.n ? clean_char(c->in, &at) : 0;

	if (c->lines || c->blanks)
		return false;
	if (is_joiner(ch))
		return (c->last >= 0x600 || is_selector(c->last)) && !is_joiner(c->last) &&
		       next >= 0x600 && !is_joiner(next) && !is_selector(next) &&
		       !clean_hides(next) && !is_private(next) && !is_blank(next);
	return (ch == 0xfe0e || ch == 0xfe0f) && !is_selector(c->last) && !is_joiner(c->last) &&
	       (c->last >= 0xa9 || next == 0x20e3);
}

static bool is_hidden(const struct cleaner *c, uint32_t ch)
{
	if (is_joiner(ch) || is_selector(ch))
		return !is_needed(c, ch);
	return clean_hides(ch);
}

static void take_blank(struct cleaner *c, uint32_t ch)
{
	unsigned width = ch == '\t' ? 4 : 1;

	if (!is_line_end(ch)) {
		c->blanks = c->blanks + width < BLANKS_MAX ? c->blanks + width : BLANKS_MAX;
		return;
	}
	if (ch == '\r' && byte_at(c, c->at) == '\n')
		c->at++;
	c->lines = c->lines < 2 ? c->lines + 1 : 2;
	c->blanks = 0;
}

static int clean_next(struct cleaner *c, struct err *e)
{
	size_t from = c->at;
	uint32_t ch = clean_char(c->in, &c->at);
	struct str bytes = { c->in.p + from, c->at - from };

	if (c->mode == CLEAN_REVEAL) {
		if (ch != ' ' &&
		    (is_blank(ch) || is_line_end(ch) || is_hidden(c, ch) || is_private(ch)))
			return reveal(c, ch, e);
	} else if (!is_blank(ch) && !is_line_end(ch) && is_hidden(c, ch)) {
		skip_sequence(c, ch);
		return 0;
	}
	if (is_blank(ch) || is_line_end(ch)) {
		take_blank(c, ch);
		return 0;
	}
	if (ch == REPLACEMENT || is_private(ch))
		bytes = STR_LIT("\xef\xbf\xbd");
	return put_visible(c, bytes, ch, e);
}

int clean_text(struct buf *to, struct str text, enum clean_mode mode, size_t chars, struct err *e)
{
	struct cleaner c = { .in = text, .mode = mode, .to = to, .max = chars };

	c.start = c.keep = to->n;
	while (c.at < c.in.n && !c.full) {
		if (clean_next(&c, e) < 0)
			return -1;
	}
	return 0;
}

bool clean_changes(struct str text)
{
	struct cleaner c = { .in = text };

	while (c.at < c.in.n) {
		struct str rest = { text.p + c.at, text.n - c.at };
		uint32_t ch = clean_char(c.in, &c.at);

		if (ch == '\n' || ch == '\t' || str_starts(rest, "\r\n"))
			continue;
		if (ch == REPLACEMENT && !str_starts(rest, "\xef\xbf\xbd"))
			return true;
		if (is_hidden(&c, ch) || is_private(ch) || is_line_end(ch))
			return true;
		c.last = ch;
	}
	return false;
}

/* ---- documents ------------------------------------------------------------------------------ */

static void write_cleaned(struct json_writer *w, struct str s, enum clean_mode mode)
{
	autobuf struct buf b = BUF_INIT(CLEAN_CHARS * 4);
	struct err e;

	if (clean_text(&b, s, mode, CLEAN_CHARS, &e) < 0)
		json_write_fail(w, &e);
	json_write_str(w, buf_str(&b));
}

static void write_key(struct json_writer *w, struct str key)
{
	autobuf struct buf b = BUF_INIT(CLEAN_KEY_CHARS * 4 + SHA256_HEX);
	char hex[SHA256_HEX];
	struct err e;

	if (clean_text(&b, key, CLEAN_REVEAL, CLEAN_KEY_CHARS, &e) < 0)
		json_write_fail(w, &e);
	if (!str_eq(buf_str(&b), key)) {
		sha256_hex(key, hex);
		if (buf_addf(&b, &e, "~%.8s", hex) < 0)
			json_write_fail(w, &e);
	}
	json_write_key_str(w, buf_str(&b));
}

static void write_json(struct json_writer *w, const struct json_val *v, enum clean_mode mode)
{
	struct json_iter it = json_iter(v);

	switch (json_type(v)) {
	case JSON_STR:
		write_cleaned(w, json_str(v), mode);
		return;
	case JSON_OBJECT:
		json_write_object(w);
		while (json_next(&it)) {
			write_key(w, it.key);
			write_json(w, it.val, mode);
		}
		json_write_object_end(w);
		return;
	case JSON_ARRAY:
		json_write_array(w);
		while (json_next(&it))
			write_json(w, it.val, mode);
		json_write_array_end(w);
		return;
	default:
		json_write_val(w, v);
	}
}

int clean_json(struct buf *to, const struct json_val *v, enum clean_mode mode, struct err *e)
{
	struct json_writer w = json_writer(to);

	write_json(&w, v, mode);
	return json_write_done(&w, e);
}
