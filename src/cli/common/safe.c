#include "cli/common/safe.h"

#include <stdint.h>

#include "json/document/hidden.h"
#include "json/document/utf8.h"
#include "json/document/write.h"

enum { JSON_MAX = 256 << 20, TAB = '\t', STEP = 2 };

/* Length of the printable ASCII at the start of s: the usual case. */
static size_t plain(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] >= ' ' && s.p[n] < 0x7f)
		n++;
	return n;
}

/* Prints printable ASCII, one character or one invalid part at the start of s, which is not
 * empty. Returns its length. */
static size_t put_char(FILE *out, struct str s)
{
	size_t n = plain(s);
	uint32_t c;

	if (n > 0) {
		fwrite(s.p, 1, n, out);
		return n;
	}
	if (!utf8_next(s, &n)) {
		for (size_t i = 0; i < n; i++)
			fprintf(out, "\\x%02x", (unsigned char)s.p[i]);
		return n;
	}
	c = hidden_char_of(s.p, n);
	if (!hidden_char(c))
		fwrite(s.p, 1, n, out);
	else if (c < 0x100)
		fprintf(out, "\\x%02x", c);
	else
		fprintf(out, c > 0xffff ? "\\U%08x" : "\\u%04x", c);
	return n;
}

static struct str safe_behind(struct str s, size_t n)
{
	return (struct str){ s.p + n, s.n - n };
}

void safe_line(FILE *out, struct str s)
{
	while (s.n > 0) {
		if (*s.p == '\n' || *s.p == '\r') {
			fputs(*s.p == '\n' ? "\\n" : "\\r", out);
			s = safe_behind(s, 1);
		} else {
			s = safe_behind(s, put_char(out, s));
		}
	}
}

void safe_puts(FILE *out, struct str s)
{
	safe_line(out, s);
	fputc('\n', out);
}

void safe_short(FILE *out, struct str s, size_t max)
{
	struct str cut = utf8_cut(s, max);

	safe_line(out, cut);
	if (cut.n < s.n)
		fputs("…", out);
}

void safe_text(FILE *out, struct str s, unsigned indent)
{
	bool begun = false;

	while (s.n > 0) {
		if (s.n > 1 && s.p[0] == '\r' && s.p[1] == '\n')
			s = safe_behind(s, 1);
		if (!begun && *s.p != '\n')
			fprintf(out, "%*s", (int)indent, "");
		begun = true;
		if (*s.p == '\n' || *s.p == TAB) {
			begun = *s.p != '\n';
			fputc(*s.p, out);
			s = safe_behind(s, 1);
		} else {
			s = safe_behind(s, put_char(out, s));
		}
	}
	if (begun)
		fputc('\n', out);
}

/* The writer has escaped C0 and repaired UTF-8. Unescaped characters are only found in strings. */
void safe_json_text(FILE *out, struct str s)
{
	while (s.n > 0) {
		size_t n = plain(s);
		uint32_t c = ' ';

		if (n == 0) {
			if (!utf8_next(s, &n))
				n = 1;
			c = hidden_char_of(s.p, n);
		}
		if (!hidden_char(c))
			fwrite(s.p, 1, n, out);
		else if (c > 0xffff)
			fprintf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
				0xdc00 + ((c - 0x10000) & 0x3ff));
		else
			fprintf(out, "\\u%04x", c);
		s = safe_behind(s, n);
	}
}

void safe_json_puts(FILE *out, struct str s)
{
	safe_json_text(out, s);
	fputc('\n', out);
}

int safe_json(FILE *out, const struct json_val *v, struct err *e)
{
	autobuf struct buf b = BUF_INIT(JSON_MAX);
	struct json_writer w = json_writer(&b);

	json_write_val(&w, v);
	if (json_write_done(&w, e) < 0)
		return -1;
	safe_json_text(out, buf_str(&b));
	return 0;
}

static int put_key(FILE *out, const struct json_iter *it, struct err *e)
{
	if (!it->name)
		return 0;
	if (safe_json(out, it->name, e) < 0)
		return -1;
	fputs(": ", out);
	return 0;
}

int safe_json_lines(FILE *out, const struct json_val *v, unsigned indent, struct err *e)
{
	bool object = json_type(v) == JSON_OBJECT;
	struct json_iter it = json_iter(v);
	size_t n = 0;

	if ((!object && json_type(v) != JSON_ARRAY) || json_len(v) == 0)
		return safe_json(out, v, e);
	fputc(object ? '{' : '[', out);
	while (json_next(&it)) {
		fprintf(out, "%s\n%*s", n++ ? "," : "", (int)indent + STEP, "");
		if (put_key(out, &it, e) < 0 || safe_json_lines(out, it.val, indent + STEP, e) < 0)
			return -1;
	}
	fprintf(out, "\n%*s%c", (int)indent, "", object ? '}' : ']');
	return 0;
}
