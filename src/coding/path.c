#include "coding/path.h"

#include <string.h>

#include "base/path.h"
#include "json/document/utf8.h"

#define SCHEME "file://"

static int path_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	     : c >= 'a' && c <= 'f' ? c - 'a' + 10
	     : c >= 'A' && c <= 'F' ? c - 'A' + 10
				    : -1;
}

/* The path of a URI without a host, or of the host "localhost". */
static int path_decode(struct str uri, struct buf *to, struct err *e)
{
	struct str s = { uri.p + strlen(SCHEME), uri.n - strlen(SCHEME) };

	if (str_starts(s, "localhost/"))
		s = (struct str){ s.p + strlen("localhost"), s.n - strlen("localhost") };
	if (!str_starts(s, "/"))
		return err_set(e, ERR_INVALID, "a file URI is file:///PATH");
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			int high = i + 2 < s.n ? path_digit(s.p[i + 1]) : -1;
			int low = i + 2 < s.n ? path_digit(s.p[i + 2]) : -1;

			if (high < 0 || low < 0)
				return err_set(e, ERR_INVALID,
					       "file URI: %% stands before two hexadecimal digits");
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (buf_add(to, &c, 1, e) < 0)
			return -1;
	}
	return 0;
}

/* Removes "." and doubled slashes in place. */
static void path_tidy(struct buf *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n;) {
		size_t end = i + 1;

		while (end < b->n && b->p[end] != '/')
			end++;
		if (end > i + 1 && !(end == i + 2 && b->p[i + 1] == '.')) {
			memmove(b->p + n, b->p + i, end - i);
			n += end - i;
		}
		i = end;
	}
	b->n = n ? n : 1;
	b->p[b->n] = '\0';
}

int path_read(struct str root, struct str said, size_t max, struct buf *to, struct err *e)
{
	struct err long_one = ERR_INIT;
	int rc;

	to->max = 2 * max + root.n;
	if (said.n == 0)
		return err_set(e, ERR_INVALID, "the path is empty");
	if (str_starts(said, SCHEME))
		rc = path_decode(said, to, e);
	else if (said.p[0] == '/')
		rc = buf_add(to, said.p, said.n, e);
	else
		rc = buf_add(to, root.p, root.n, e) < 0 || buf_add(to, "/", 1, e) < 0 ||
				     buf_add(to, said.p, said.n, &long_one) < 0
			   ? -1
			   : 0;
	if (rc < 0)
		return long_one.code ? err_set(e, ERR_INVALID, "the path is too long") : -1;
	if (memchr(to->p, '\0', to->n))
		return err_set(e, ERR_INVALID, "a path has no NUL");
	path_tidy(to);
	return to->n <= max ? 0 : err_set(e, ERR_INVALID, "the path is longer than %zu bytes", max);
}

/* Whether it survives as a line of JSON text. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < ' ' || s.p[i] == 0x7f)
			return false;
	}
	return utf8_valid(s) && !str_starts(s, SCHEME);
}

static int path_encode(struct str path, struct buf *to, struct err *e)
{
	if (buf_addf(to, e, SCHEME) < 0)
		return -1;
	for (size_t i = 0; i < path.n; i++) {
		unsigned char c = (unsigned char)path.p[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("/-._~", c);

		if ((plain && c ? buf_add(to, &path.p[i], 1, e) : buf_addf(to, e, "%%%02X", c)) < 0)
			return -1;
	}
	return 0;
}

int path_say(struct str root, struct str path, struct buf *to, struct err *e)
{
	struct str said = path;

	if (path.n > root.n && memcmp(path.p, root.p, root.n) == 0 && path.p[root.n] == '/')
		said = (struct str){ path.p + root.n + 1, path.n - root.n - 1 };
	return is_plain(said) ? buf_add(to, said.p, said.n, e) : path_encode(path, to, e);
}

int path_read_spelt(struct str root, struct str said, size_t max, struct buf *to, struct err *e)
{
	autobuf struct buf whole = BUF_INIT(0), spelt = BUF_INIT(max);

	if (path_read(root, said, max, &whole, e) < 0 ||
	    path_spell(STR_NONE, buf_str(&whole), &spelt, e) < 0)
		return -1;
	return is_plain(buf_str(&spelt)) ? buf_add(to, spelt.p, spelt.n, e)
					 : path_encode(buf_str(&spelt), to, e);
}
