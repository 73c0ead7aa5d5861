#include "http/client/answer.h"

#include "http/message/head.h"

enum { DIGITS_MAX = 15, EXTRA_MAX = 8 << 10 };

/* ---- the head ------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Parses "HTTP/1.1 200 OK"; the words may be missing. */
static bool read_status(struct str line, struct http_answer *ret)
{
	if (line.n < 12 || (!str_starts(line, "HTTP/1.1 ") && !str_starts(line, "HTTP/1.0 ")))
		return false;
	for (size_t i = 9; i < 12; i++) {
		if (!is_digit(line.p[i]))
			return false;
		ret->status = ret->status * 10 + (line.p[i] - '0');
	}
	return (line.n == 12 || line.p[12] == ' ') && ret->status >= 100 && ret->status < 600 &&
	       http_value_ok(line);
}

static bool read_framing(struct http_answer *a, struct str name, struct str value)
{
	if (http_same(name, STR_LIT("Content-Length"))) {
		if (a->has_length || !http_length_parse(value, &a->length))
			return false;
		a->has_length = true;
	} else if (http_same(name, STR_LIT("Transfer-Encoding"))) {
		if (a->chunked || !http_same(value, STR_LIT("chunked")))
			return false;
		a->chunked = true;
	}
	return true;
}

static bool read_field(struct str line, struct http_answer *a)
{
	const char *colon = memchr(line.p, ':', line.n);
	struct http_answer_field *f = &a->fields[a->n_fields];

	if (!colon || a->n_fields == HTTP_ANSWER_FIELDS)
		return false;
	f->name = (struct str){ line.p, (size_t)(colon - line.p) };
	f->value = str_trim((struct str){ colon + 1, (size_t)(line.p + line.n - colon) - 1 });
	a->n_fields++;
	return http_name_ok(f->name) && http_value_ok(f->value) &&
	       read_framing(a, f->name, f->value);
}

/* Takes the line at the front, without its end; false if it is incomplete. */
static bool take_line(struct str *text, struct str *ret)
{
	const char *end = text->n ? memmem(text->p, text->n, "\r\n", 2) : NULL;

	if (!end)
		return false;
	*ret = (struct str){ text->p, (size_t)(end - text->p) };
	*text = (struct str){ end + 2, text->n - ret->n - 2 };
	return true;
}

static bool read_head(struct str head, struct http_answer *a)
{
	struct str line;
	bool old = str_starts(head, "HTTP/1.0"), more;

	if (!take_line(&head, &line) || !read_status(line, a))
		return false;
	while ((more = take_line(&head, &line)) && line.n > 0) {
		if (!read_field(line, a))
			return false;
	}
	return more && head.n == 0 && !(a->chunked && (a->has_length || old));
}

int http_answer_parse(struct str head, struct http_answer *ret, struct err *e)
{
	ret->status = 0;
	ret->has_length = ret->chunked = false;
	ret->length = 0;
	ret->n_fields = 0;
	if (head.n <= HTTP_ANSWER_HEAD_MAX && read_head(head, ret))
		return 0;
	return err_set(e, ERR_PORT, "its answer is no well-formed HTTP");
}

struct str http_answer_field(const struct http_answer *a, const char *name)
{
	for (size_t i = 0; i < a->n_fields; i++) {
		if (http_same(a->fields[i].name, str_of(name)))
			return a->fields[i].value;
	}
	return STR_NONE;
}

/* ---- chunks -------------------------------------------------------------------------------- */

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_EXTENSION,
	CHUNK_SIZE_END, /* a line feed must follow, as in all states named so */
	CHUNK_DATA,
	CHUNK_DATA_RETURN,
	CHUNK_DATA_END,
	CHUNK_TRAILER, /* at the start of a line */
	CHUNK_TRAILER_LINE,
	CHUNK_TRAILER_END,
	CHUNK_LAST_END,
	CHUNK_OVER,
};

static int answer_hex(char c)
{
	return is_digit(c)	    ? c - '0'
	     : c >= 'a' && c <= 'f' ? c - 'a' + 10
	     : c >= 'A' && c <= 'F' ? c - 'A' + 10
				    : -1;
}

static int take_size(struct http_chunks *c, char byte)
{
	int digit = answer_hex(byte);

	if (digit >= 0 && c->digits++ < DIGITS_MAX) {
		c->left = c->left * 16 + (unsigned)digit;
		return CHUNK_SIZE;
	}
	if (digit >= 0 || c->digits == 0)
		return -1;
	return byte == '\r'				  ? CHUNK_SIZE_END
	     : byte == ';' || byte == ' ' || byte == '\t' ? CHUNK_EXTENSION
							  : -1;
}

/* Skips a line whose text is not needed. */
static int skip_line(struct http_chunks *c, char byte, int same, int end)
{
	if (byte == '\r')
		return end;
	return byte == '\n' || byte == '\0' || ++c->extra > EXTRA_MAX ? -1 : same;
}

/* The next state; -1 if the byte is invalid. */
static int take_byte(struct http_chunks *c, char byte)
{
	bool feed = byte == '\n';

	switch ((enum chunk_state)c->state) {
	case CHUNK_SIZE:
		return take_size(c, byte);
	case CHUNK_EXTENSION:
		return skip_line(c, byte, CHUNK_EXTENSION, CHUNK_SIZE_END);
	case CHUNK_SIZE_END:
		c->digits = 0;
		return !feed ? -1 : c->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
	case CHUNK_DATA_RETURN:
		return byte == '\r' ? CHUNK_DATA_END : -1;
	case CHUNK_DATA_END:
		return feed ? CHUNK_SIZE : -1;
	case CHUNK_TRAILER:
		return skip_line(c, byte, CHUNK_TRAILER_LINE, CHUNK_LAST_END);
	case CHUNK_TRAILER_LINE:
		return skip_line(c, byte, CHUNK_TRAILER_LINE, CHUNK_TRAILER_END);
	case CHUNK_TRAILER_END:
		return feed ? CHUNK_TRAILER : -1;
	case CHUNK_LAST_END:
		return feed ? CHUNK_OVER : -1;
	default:
		return -1;
	}
}

int http_chunks_next(struct http_chunks *c, struct str *in, struct str *ret, struct err *e)
{
	*ret = STR_LIT("");
	while (in->n > 0) {
		if (c->state == CHUNK_DATA) {
			*ret = (struct str){ in->p, in->n < c->left ? in->n : (size_t)c->left };
			*in = (struct str){ in->p + ret->n, in->n - ret->n };
			c->left -= ret->n;
			if (c->left == 0)
				c->state = CHUNK_DATA_RETURN;
			return 1;
		}
		c->state = take_byte(c, *in->p);
		*in = (struct str){ in->p + 1, in->n - 1 };
		if (c->state < 0)
			return err_set(e, ERR_PORT, "the chunks of its answer are not well-formed");
		if (c->state == CHUNK_OVER)
			return 0;
	}
	return 1;
}
