#include "json/document/write.h"

#include <math.h>
#include <yyjson.h>

#include "base/base64.h"
#include "base/word.h"
#include "json/document/utf8.h"

void json_writer_init(struct json_writer *w, struct buf *buf)
{
	w->buf = buf;
	w->err.code = ERR_NONE;
	w->depth = 0;
	w->comma = false;
}

struct json_writer json_writer(struct buf *buf)
{
	return (struct json_writer){ .buf = buf };
}

void json_write_fail(struct json_writer *w, const struct err *e)
{
	if (w->err.code == ERR_NONE)
		w->err = *e;
}

static char *more_room(struct json_writer *w, size_t n)
{
	struct err e;
	char *to;

	if (w->err.code != ERR_NONE)
		return NULL;
	to = buf_reserve(w->buf, n, &e);
	if (!to)
		json_write_fail(w, &e);
	return to;
}

/* Returns where to write the next n bytes, which the caller then counts; NULL without room or after
 * a failure. Must be inlined, since every byte is written through it. */
static inline __attribute__((always_inline)) char *room(struct json_writer *w, size_t n)
{
	const struct buf *b = w->buf;

	return w->err.code == ERR_NONE && n < b->cap - b->n ? b->p + b->n : more_room(w, n);
}

static void write_count(struct json_writer *w, size_t n)
{
	w->buf->n += n;
	w->buf->p[w->buf->n] = '\0';
}

static void write_put(struct json_writer *w, const char *p, size_t n)
{
	char *to = n > 0 ? room(w, n) : NULL;

	if (!to)
		return;
	memcpy(to, p, n);
	write_count(w, n);
}

static void put_byte(struct json_writer *w, char c)
{
	char *to = room(w, 1);

	if (!to)
		return;
	*to = c;
	write_count(w, 1);
}

/* Writes the separator, if one is needed, before any value. */
static void begin(struct json_writer *w)
{
	if (w->comma)
		put_byte(w, ',');
	w->comma = true;
}

/* Writes separator and bytes in one step. */
static void begin_with(struct json_writer *w, const char *p, size_t n)
{
	char *to = room(w, n + w->comma);

	if (!to)
		return;
	if (w->comma)
		*to++ = ',';
	if (n > 0)
		memcpy(to, p, n);
	write_count(w, n + w->comma);
	w->comma = true;
}

static void write_enter(struct json_writer *w, char bracket)
{
	begin_with(w, &bracket, 1);
	w->comma = false;
	w->depth++;
}

static void write_leave(struct json_writer *w, char bracket)
{
	put_byte(w, bracket);
	w->comma = true;
	w->depth--;
}

void json_write_object(struct json_writer *w)
{
	write_enter(w, '{');
}

void json_write_object_end(struct json_writer *w)
{
	write_leave(w, '}');
}

void json_write_array(struct json_writer *w)
{
	write_enter(w, '[');
}

void json_write_array_end(struct json_writer *w)
{
	write_leave(w, ']');
}

static bool plain(unsigned char c)
{
	return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The escape of a byte in a string. `more` is how many bytes follow the backslash; 0 where the byte
 * stands for itself. */
struct escape {
	char text[7];
	unsigned char more;
};

/* clang-format off */
#define CONTROL(hex) { "\\u00" hex, 5 }
static const struct escape escapes[0x80] = {
	CONTROL("00"), CONTROL("01"), CONTROL("02"), CONTROL("03"), CONTROL("04"), CONTROL("05"),
	CONTROL("06"), CONTROL("07"), { "\\b", 1 }, { "\\t", 1 }, { "\\n", 1 }, CONTROL("0b"),
	{ "\\f", 1 }, { "\\r", 1 }, CONTROL("0e"), CONTROL("0f"), CONTROL("10"), CONTROL("11"),
	CONTROL("12"), CONTROL("13"), CONTROL("14"), CONTROL("15"), CONTROL("16"), CONTROL("17"),
	CONTROL("18"), CONTROL("19"), CONTROL("1a"), CONTROL("1b"), CONTROL("1c"), CONTROL("1d"),
	CONTROL("1e"), CONTROL("1f"), ['"'] = { "\\\"", 1 }, ['\\'] = { "\\\\", 1 },
};
/* clang-format on */

static bool are_plain(uint64_t word)
{
	return (word_high(word) | word_below(word, 0x20) | word_is(word, '"') |
		word_is(word, '\\')) == 0;
}

/* The number of first bytes that can be copied without looking at each of them. */
static size_t plain_run(struct str s)
{
	size_t i = 0;

	while (i + WORD <= s.n && are_plain(word_at(s.p + i)))
		i += WORD;
	while (i < s.n && plain((unsigned char)s.p[i]))
		i++;
	return i;
}

/* Without a branch: which bytes need an escape can't be foreseen. Touches 8 bytes. */
static char *put_ascii(char *to, char c)
{
	const struct escape *e = &escapes[(unsigned char)c];

	memcpy(to, e, sizeof(*e));
	*to = e->more ? '\\' : c;
	return to + 1 + e->more;
}

/* A character of several bytes, or what stands for bytes that are none. */
static char *put_other(char *to, struct str s, size_t *ret_n)
{
	bool is_one = utf8_next(s, ret_n);
	struct str said = is_one ? (struct str){ s.p, *ret_n } : STR_LIT("\xef\xbf\xbd");

	memcpy(to, said.p, said.n);
	return to + said.n;
}

/* Writes the contents of a string from byte i on, by way of the stack: how long that becomes is not
 * known before. */
static void put_chars(struct json_writer *w, struct str s, size_t i)
{
	char text[4096], *const last = text + sizeof(text) - WORD * sizeof(struct escape);

	while (i < s.n && w->err.code == ERR_NONE) {
		char *to = text;

		while (i < s.n && to < last) {
			size_t end = i + WORD <= s.n ? i + WORD : s.n, n;

			if (end == i + WORD && are_plain(word_at(s.p + i))) {
				memcpy(to, s.p + i, WORD);
				to += WORD;
				i = end;
				continue;
			}
			while (i < end && (unsigned char)s.p[i] < 0x80)
				to = put_ascii(to, s.p[i++]);
			if (i < end) {
				to = put_other(to, (struct str){ s.p + i, s.n - i }, &n);
				i += n;
			}
		}
		write_put(w, text, (size_t)(to - text));
	}
}

/* Nearly all strings need no escapes; these take one step. */
static void put_string(struct json_writer *w, struct str s)
{
	size_t run = plain_run(s);
	char *to = run == s.n ? room(w, s.n + 2) : NULL;

	if (to) {
		*to = '"';
		if (s.n > 0)
			memcpy(to + 1, s.p, s.n);
		to[s.n + 1] = '"';
		write_count(w, s.n + 2);
		return;
	}
	put_byte(w, '"');
	write_put(w, s.p, run);
	put_chars(w, s, run);
	put_byte(w, '"');
}

void json_write_key_str(struct json_writer *w, struct str key)
{
	begin(w);
	put_string(w, key);
	put_byte(w, ':');
	w->comma = false;
}

void json_write_name_str(struct json_writer *w, struct str quoted)
{
	begin_with(w, quoted.p, quoted.n);
	w->comma = false;
}

void json_write_null(struct json_writer *w)
{
	json_write_raw(w, STR_LIT("null"));
}

void json_write_bool(struct json_writer *w, bool b)
{
	json_write_raw(w, b ? STR_LIT("true") : STR_LIT("false"));
}

static void write_digits(struct json_writer *w, bool negative, uint64_t u)
{
	char text[20], *at = text + sizeof(text); /* of 2^64 - 1, or -2^63 */

	do
		*--at = (char)('0' + u % 10);
	while (u /= 10);
	if (negative)
		*--at = '-';
	json_write_raw(w, (struct str){ at, (size_t)(text + sizeof(text) - at) });
}

void json_write_int(struct json_writer *w, int64_t i)
{
	write_digits(w, i < 0, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

void json_write_uint(struct json_writer *w, uint64_t u)
{
	write_digits(w, false, u);
}

/* In yyjson's form: the shortest text that reads back as the same number, in every locale. */
static void put_real(struct json_writer *w, double d)
{
	char memory[512];
	yyjson_alc alc;
	yyjson_val v = { .tag = YYJSON_TYPE_NUM | YYJSON_SUBTYPE_REAL, .uni.f64 = d };
	size_t n = 0;
	const char *text;

	yyjson_alc_pool_init(&alc, memory, sizeof(memory));
	text = yyjson_val_write_opts(&v, YYJSON_WRITE_NOFLAG, &alc, &n, NULL);
	if (text)
		json_write_raw(w, (struct str){ text, n });
	else
		json_write_fail(w, &(struct err){ ERR_BUG, "a number that JSON can't hold" });
}

void json_write_real(struct json_writer *w, double d)
{
	if (d == trunc(d) && fabs(d) < 1e15)
		json_write_int(w, (int64_t)d);
	else
		put_real(w, d);
}

void json_write_str(struct json_writer *w, struct str s)
{
	begin(w);
	put_string(w, s);
}

void json_write_text(struct json_writer *w, const char *z)
{
	json_write_str(w, str_of(z));
}

void json_write_base64(struct json_writer *w, struct str bytes)
{
	struct err e;

	begin(w);
	put_byte(w, '"');
	if (w->err.code == ERR_NONE && base64_encode(w->buf, bytes, &e) < 0)
		json_write_fail(w, &e);
	put_byte(w, '"');
}

void json_write_raw(struct json_writer *w, struct str json)
{
	begin_with(w, json.p, json.n);
}

static void write_number(struct json_writer *w, const struct json_val *v)
{
	int64_t i;
	uint64_t u;

	if (json_type(v) == JSON_REAL)
		put_real(w, json_real(v));
	else if (json_int64(v, &i))
		json_write_int(w, i);
	else if (json_uint64(v, &u))
		json_write_uint(w, u);
}

void json_write_val(struct json_writer *w, const struct json_val *v)
{
	struct json_iter it = json_iter(v);

	switch (json_type(v)) {
	case JSON_ABSENT:
	case JSON_NULL:
		json_write_null(w);
		break;
	case JSON_BOOL:
		json_write_bool(w, json_bool(v));
		break;
	case JSON_INT:
	case JSON_REAL:
		write_number(w, v);
		break;
	case JSON_STR:
		json_write_str(w, json_str(v));
		break;
	case JSON_ARRAY:
		json_write_array(w);
		while (json_next(&it))
			json_write_val(w, it.val);
		json_write_array_end(w);
		break;
	case JSON_OBJECT:
		json_write_object(w);
		while (json_next(&it)) {
			json_write_key_str(w, it.key);
			json_write_val(w, it.val);
		}
		json_write_object_end(w);
		break;
	}
}

int json_write_done(struct json_writer *w, struct err *e)
{
	if (w->err.code == ERR_NONE && w->depth != 0)
		err_set(&w->err, ERR_BUG, "an object or array was left open");
	if (w->err.code == ERR_NONE)
		return 0;
	*e = w->err;
	return -1;
}
