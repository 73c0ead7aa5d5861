/* NAME TAB PATH TAB /^TEXT$/;" TAB KIND TAB line:N TAB signature:S TAB SCOPE-KIND:SCOPE */
#include "coding/tags.h"

#include <string.h>

/* The field at the front of *rest, which then begins behind its tab. */
static struct str tag_field(struct str *rest)
{
	const char *tab = rest->n ? memchr(rest->p, '\t', rest->n) : NULL;
	struct str field = { rest->p, tab ? (size_t)(tab - rest->p) : rest->n };

	rest->p += field.n + (tab != NULL);
	rest->n -= field.n + (tab != NULL);
	return field;
}

static int tag_hex(char c)
{
	return c >= '0' && c <= '9' ? c - '0'
	     : c >= 'a' && c <= 'f' ? c - 'a' + 10
	     : c >= 'A' && c <= 'F' ? c - 'A' + 10
				    : -1;
}

/* The character that an escape at the front of s stands for, and how long it is. */
static char tag_escape(struct str s, size_t *ret_n)
{
	static const char from[] = "abtnvfr", to[] = "\a\b\t\n\v\f\r";
	const char *known = s.n > 1 && s.p[1] ? strchr(from, s.p[1]) : NULL;

	*ret_n = s.n > 1 ? 2 : 1;
	if (known)
		return to[known - from];
	if (s.n < 4 || s.p[1] != 'x' || tag_hex(s.p[2]) < 0 || tag_hex(s.p[3]) < 0)
		return s.n > 1 ? s.p[1] : '\\';
	*ret_n = 4;
	return (char)(tag_hex(s.p[2]) << 4 | tag_hex(s.p[3]));
}

/* plain: a backslash only stands before what would end the text. */
static bool tag_put(struct buf *to, struct str s, bool plain, struct str *ret)
{
	size_t from = to->n;
	struct err none;

	for (size_t i = 0, n; i < s.n; i += n) {
		struct str rest = { s.p + i, s.n - i };
		char c = *rest.p;

		n = 1;
		if (c == '\\' && !plain)
			c = tag_escape(rest, &n);
		else if (c == '\\' && rest.n > 1) {
			c = rest.p[1];
			n = 2;
		}
		if (buf_add(to, &c, 1, &none) < 0)
			return false;
	}
	/* The buffer has room for all of a tag: it does not move. */
	*ret = (struct str){ to->p + from, to->n - from };
	return true;
}

/* "/^TEXT$/" */
static bool tag_text(struct str pattern, struct buf *to, struct str *ret)
{
	size_t backslashes = 0; /* before the last character */

	if (pattern.n < 2 || *pattern.p != '/')
		return true; /* another form: the line alone is known */
	pattern = (struct str){ pattern.p + 1, pattern.n - 2 };
	if (pattern.n && *pattern.p == '^')
		pattern = (struct str){ pattern.p + 1, pattern.n - 1 };
	while (backslashes + 1 < pattern.n && pattern.p[pattern.n - 2 - backslashes] == '\\')
		backslashes++;
	if (pattern.n && pattern.p[pattern.n - 1] == '$' && backslashes % 2 == 0)
		pattern.n--;
	if (!tag_put(to, pattern, true, ret))
		return false;
	*ret = str_trim(*ret);
	return true;
}

/* The line has tabs as they are, so the end of the pattern is looked for. */
static bool tag_pattern(struct str *rest, struct str *ret)
{
	const char *end = rest->n ? memmem(rest->p, rest->n, ";\"\t", 3) : NULL;

	if (!end)
		return false;
	*ret = (struct str){ rest->p, (size_t)(end - rest->p) };
	rest->n -= ret->n + 3;
	rest->p = end + 3;
	return true;
}

static uint64_t tag_number(struct str s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && n < UINT32_MAX; i++)
		n = n * 10 + (uint64_t)(s.p[i] - '0');
	return n;
}

static bool tag_more(struct str field, struct buf *room, struct tag *ret)
{
	const char *colon = field.n ? memchr(field.p, ':', field.n) : NULL;
	struct str key, value;

	if (!colon)
		return true;
	key = (struct str){ field.p, (size_t)(colon - field.p) };
	value = (struct str){ colon + 1, field.n - key.n - 1 };
	if (str_is(key, "line"))
		ret->line = tag_number(value);
	else if (str_is(key, "signature"))
		return tag_put(room, value, false, &ret->signature);
	else
		return tag_put(room, value, false, &ret->scope);
	return true;
}

bool tag_read(struct str line, struct buf *room, struct tag *ret)
{
	struct str rest = line, name = tag_field(&rest), path = tag_field(&rest), pattern;
	struct err none;

	*ret = (struct tag){ .line = 0 };
	room->n = 0;
	/* "!_TAG…" is about the file of tags. */
	if (!name.n || !path.n || str_starts(name, "!_TAG") || !tag_pattern(&rest, &pattern) ||
	    !buf_reserve(room, line.n, &none))
		return false;
	if (!tag_put(room, name, false, &ret->name) || !tag_put(room, path, false, &ret->path) ||
	    !tag_text(pattern, room, &ret->text))
		return false;
	ret->kind = tag_field(&rest);
	while (rest.n) {
		if (!tag_more(tag_field(&rest), room, ret))
			return false;
	}
	return ret->line > 0;
}
