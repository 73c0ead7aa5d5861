#include "door/e2b/upload.h"

#include <limits.h>
#include <stdint.h>
#include <zlib.h>

#include "base/library.h"
#include "http/message/head.h"

enum {
	PIECE = 32 << 10,
	BOUNDARY_MAX = 200, /* RFC 2046 says 70 */
	HEADERS_MAX = 8 << 10, /* bytes of a part's fields */
};

/* ---- gzip ---------------------------------------------------------------------------------- */

static int inflate_all(z_stream *z, struct buf *to, struct err *e)
{
	char piece[PIECE];
	int rc = Z_OK;

	while (rc != Z_STREAM_END) {
		z->next_out = (Bytef *)piece;
		z->avail_out = sizeof(piece);
		rc = inflate(z, Z_NO_FLUSH);
		if (rc != Z_OK && rc != Z_STREAM_END)
			return err_set(e, ERR_INVALID, "the body is no whole gzip");
		if (buf_add(to, piece, sizeof(piece) - z->avail_out, e) < 0)
			return err_wrap(e, "the body, unpacked");
	}
	return z->avail_in ? err_set(e, ERR_INVALID, "there is more behind the gzip") : 0;
}

int upload_gunzip(struct str packed, struct buf *to, struct err *e)
{
	enum { GZIP_ONLY = 16 };
	z_stream z = { .next_in = (Bytef *)(uintptr_t)packed.p, .avail_in = (uInt)packed.n };
	int rc;

	if (packed.n > UINT_MAX)
		return err_set(e, ERR_TOO_LARGE, "the body is too large");
	if (library_load("z", e) < 0)
		return -1;
	if (inflateInit2(&z, GZIP_ONLY + MAX_WBITS) != Z_OK)
		return err_set(e, ERR_LIMIT, "out of memory");
	rc = inflate_all(&z, to, e);
	inflateEnd(&z);
	return rc;
}

/* ---- multipart ----------------------------------------------------------------------------- */

/* The value of a parameter: name=value or name="value". */
static struct str parameter(struct str text, const char *name)
{
	size_t n = strlen(name);

	while (text.n) {
		const char *end = memchr(text.p, ';', text.n);
		struct str one =
			str_trim((struct str){ text.p, end ? (size_t)(end - text.p) : text.n });

		/* A quoted value may have one of these signs in it. */
		if (one.n > n + 1 && http_same_bytes(one.p, name, n) && one.p[n] == '=') {
			struct str value = { one.p + n + 1,
					     (size_t)(text.p + text.n - (one.p + n + 1)) };
			const char *quote;

			if (!value.n || value.p[0] != '"')
				return str_trim((struct str){ value.p, one.n - n - 1 });
			quote = memchr(value.p + 1, '"', value.n - 1);
			return quote ? (struct str){ value.p + 1, (size_t)(quote - value.p - 1) }
				     : STR_NONE;
		}
		if (!end)
			break;
		text.n -= (size_t)(end + 1 - text.p);
		text.p = end + 1;
	}
	return STR_NONE;
}

struct str upload_boundary(struct str type)
{
	static const struct str form = STR_LIT("multipart/form-data");
	struct str b;

	if (type.n < form.n || !http_same((struct str){ type.p, form.n }, form))
		return STR_NONE;
	b = parameter(type, "boundary");
	return b.n > 0 && b.n <= BOUNDARY_MAX ? b : STR_NONE;
}

/* Browsers and Node write quotes and line ends in names as escapes. */
static struct str unescape(struct str name, struct arena *a, struct err *e)
{
	static const struct {
		const char *as;
		char c;
	} rows[] = { { "%22", '"' }, { "%0D", '\r' }, { "%0A", '\n' } };
	char *to = arena_dup(a, name, e);
	size_t n = 0;

	for (size_t i = 0; to && i < name.n; i++, n++) {
		to[n] = name.p[i];
		for (size_t k = 0; k < ARRAY_LEN(rows); k++) {
			if (str_starts((struct str){ name.p + i, name.n - i }, rows[k].as)) {
				to[n] = rows[k].c;
				i += 2;
				break;
			}
		}
	}
	return (struct str){ to, to ? n : 0 };
}

enum { FRONT = 4 }; /* bytes of CRLF and two dashes, before a boundary */

/* Whether a delimiter ends at this place: CRLF or two dashes stand behind it. */
static bool is_delimiter(const struct upload_parts *p, size_t end)
{
	struct str behind = { p->body.p + end, p->body.n - end };

	return str_starts(behind, "\r\n") || str_starts(behind, "--");
}

static void cut_at(struct upload_parts *p, size_t at, size_t end, struct str *ret)
{
	*ret = (struct str){ p->body.p, at };
	p->body = (struct str){ p->body.p + end, p->body.n - end };
}

/* The bytes up to the next delimiter; false: there is none. Only what stands before each boundary
 * is searched for, since a text that is nearly the boundary everywhere would take long. A boundary
 * has no CR, so no byte is compared with it twice. */
static bool upload_cut(struct upload_parts *p, struct str *ret)
{
	char text[FRONT + BOUNDARY_MAX];
	size_t n = FRONT + p->boundary.n, from = 0;
	const char *at;

	if (n > sizeof(text))
		return false;
	memcpy(text, "\r\n--", FRONT);
	memcpy(text + FRONT, p->boundary.p, p->boundary.n);
	/* The first may stand at the front of the body, without CRLF. */
	if (!p->begun && p->body.n >= n - 2 && memcmp(p->body.p, text + 2, n - 2) == 0 &&
	    is_delimiter(p, n - 2)) {
		cut_at(p, 0, n - 2, ret);
		return true;
	}
	while (from < p->body.n && (at = memmem(p->body.p + from, p->body.n - from, text, FRONT))) {
		bool whole = p->body.n - (size_t)(at - p->body.p) >= n && memcmp(at, text, n) == 0;

		from = (size_t)(at - p->body.p) + (whole ? n : FRONT);
		if (whole && is_delimiter(p, from)) {
			cut_at(p, from - n, from, ret);
			return true;
		}
	}
	return false;
}

static int upload_broken(struct err *e)
{
	return err_set(e, ERR_INVALID, "the body is no well-formed multipart/form-data");
}

/* The fields of a part, and what is left of it. */
static int read_fields(struct str *part, struct str *ret_disposition, struct err *e)
{
	static const struct str field = STR_LIT("content-disposition:");

	*ret_disposition = STR_NONE;
	for (size_t bytes = 0; bytes < HEADERS_MAX;) {
		const char *end = part->n > 1 ? memmem(part->p, part->n, "\r\n", 2) : NULL;
		struct str line = { part->p, end ? (size_t)(end - part->p) : 0 };

		if (!end)
			return upload_broken(e);
		part->n -= line.n + 2;
		part->p += line.n + 2;
		bytes += line.n + 2;
		if (line.n == 0)
			return 0;
		if (line.n > field.n && http_same((struct str){ line.p, field.n }, field))
			*ret_disposition = (struct str){ line.p + field.n, line.n - field.n };
	}
	return upload_broken(e);
}

int upload_next(struct upload_parts *p, struct upload_part *ret, struct arena *a, struct err *e)
{
	struct str part, disposition, name;

	if (!p->begun && !upload_cut(p, &part))
		return upload_broken(e);
	p->begun = true;
	if (p->ended || str_starts(p->body, "--")) {
		p->ended = true;
		return 0;
	}
	if (!str_starts(p->body, "\r\n"))
		return upload_broken(e);
	p->body = (struct str){ p->body.p + 2, p->body.n - 2 };
	if (!upload_cut(p, &part) || read_fields(&part, &disposition, e) < 0)
		return upload_broken(e);
	name = parameter(disposition, "filename");
	*ret = (struct upload_part){ name.p ? unescape(name, a, e) : STR_NONE, part };
	return name.p && !ret->filename.p ? -1 : 1;
}
