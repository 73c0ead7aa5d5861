#include "coding/glob.h"

#include <string.h>

static struct str glob_from(struct str s, size_t at)
{
	return (struct str){ s.p + at, s.n - at };
}

/* ---- alternatives -------------------------------------------------------------------------- */

/* Where the class that begins at [ ends; 0: nowhere. A ] in front is one of its characters. */
static size_t glob_class_end(struct str s, size_t at)
{
	size_t i = at + 1;

	i += i < s.n && (s.p[i] == '!' || s.p[i] == '^');
	i += i < s.n && s.p[i] == ']';
	while (i < s.n && s.p[i] != ']' && s.p[i] != '/')
		i += s.p[i] == '\\' ? 2 : 1;
	return i < s.n && s.p[i] == ']' ? i : 0;
}

/* The first { that is neither escaped nor in a class; s.n: none. -1: a class is not closed. */
static int glob_find_brace(struct str s, size_t *ret, struct err *e)
{
	for (*ret = 0; *ret < s.n && s.p[*ret] != '{'; ++*ret) {
		if (s.p[*ret] == '\\') {
			++*ret;
		} else if (s.p[*ret] == '[') {
			size_t end = glob_class_end(s, *ret);

			if (!end)
				return err_set(e, ERR_INVALID, "pattern: a [ is not closed by ]");
			*ret = end;
		}
	}
	*ret = *ret < s.n ? *ret : s.n;
	return 0;
}

/* The , or } that ends the alternative which begins at i; 0: nowhere. */
static size_t glob_part_end(struct str s, size_t i)
{
	for (unsigned depth = 0; i < s.n; i++) {
		if (s.p[i] == '\\')
			i++;
		else if (s.p[i] == '{')
			depth++;
		else if (depth == 0 && (s.p[i] == ',' || s.p[i] == '}'))
			return i;
		else if (s.p[i] == '}')
			depth--;
	}
	return 0;
}

static size_t glob_close(struct str s, size_t open)
{
	size_t at = open;

	do
		at = glob_part_end(s, at + 1);
	while (at && s.p[at] != '}');
	return at;
}

/* Each level opens one {, so that the depth is bounded by the pattern's length. */
static int glob_expand(struct glob *g, struct str s, struct err *e)
{
	char text[GLOB_PATTERN_MAX];
	size_t open, close, from;

	if (glob_find_brace(s, &open, e) < 0)
		return -1;
	if (open == s.n) {
		if (g->n == GLOB_EITHER_MAX)
			return err_set(e, ERR_INVALID, "pattern: at most %d alternatives by {}",
				       GLOB_EITHER_MAX);
		memcpy(g->either[g->n].text, s.p, s.n);
		g->either[g->n++].n = s.n;
		return 0;
	}
	close = glob_close(s, open);
	if (!close)
		return err_set(e, ERR_INVALID, "pattern: a { is not closed by }");
	for (from = open + 1; from <= close;) {
		size_t end = glob_part_end(s, from), n = open;

		memcpy(text, s.p, open);
		memcpy(text + n, s.p + from, end - from);
		n += end - from;
		memcpy(text + n, s.p + close + 1, s.n - close - 1);
		n += s.n - close - 1;
		if (glob_expand(g, (struct str){ text, n }, e) < 0)
			return -1;
		from = end + 1;
	}
	return 0;
}

int glob_init(struct glob *g, struct str pattern, struct err *e)
{
	g->n = 0;
	if (pattern.n > GLOB_PATTERN_MAX)
		return err_set(e, ERR_INVALID, "pattern: at most %d bytes", GLOB_PATTERN_MAX);
	return glob_expand(g, pattern, e);
}

/* ---- names --------------------------------------------------------------------------------- */

/* Whether c is in the class at the front of p; *ret_n: its length. */
static bool glob_in_class(struct str p, unsigned char c, size_t *ret_n)
{
	size_t end = glob_class_end(p, 0), i = 1;
	bool not = p.p[1] == '!' || p.p[1] == '^', in = false;

	*ret_n = end + 1;
	for (i += not ; i < end; i++) {
		unsigned char low, high;

		i += p.p[i] == '\\' && i + 1 < end;
		low = high = (unsigned char)p.p[i];
		if (i + 2 < end && p.p[i + 1] == '-') {
			i += 2;
			i += p.p[i] == '\\' && i + 1 < end;
			high = (unsigned char)p.p[i];
		}
		in |= low <= c && c <= high;
	}
	return in != not ;
}

/* One character of a name, which is as long as its UTF-8 says. */
static size_t glob_character(struct str s)
{
	size_t n = 1;

	while ((unsigned char)s.p[0] >= 0xc0 && n < s.n && n < 4 &&
	       ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

/* Whether the front of p, which is no "*", takes something of s; how much of each. */
static bool glob_one(struct str p, struct str s, size_t *ret_p, size_t *ret_s)
{
	*ret_p = 1;
	*ret_s = 1;
	if (s.n == 0)
		return false;
	if (p.p[0] == '?') {
		*ret_s = glob_character(s);
		return true;
	}
	if (p.p[0] == '[')
		return glob_in_class(p, (unsigned char)s.p[0], ret_p);
	if (p.p[0] == '\\' && p.n > 1) {
		*ret_p = 2;
		return p.p[1] == s.p[0];
	}
	return p.p[0] == s.p[0];
}

/* Only the last "*" is ever tried again. */
static bool glob_name(struct str p, struct str s)
{
	struct str star = STR_NONE, rest = STR_NONE;
	size_t np, ns;

	while (s.n > 0 || p.n > 0) {
		if (p.n > 0 && p.p[0] == '*') {
			p = glob_from(p, 1);
			star = p;
			rest = s;
		} else if (p.n > 0 && glob_one(p, s, &np, &ns)) {
			p = glob_from(p, np);
			s = glob_from(s, ns);
		} else if (star.p && rest.n > 0) {
			rest = glob_from(rest, 1);
			p = star;
			s = rest;
		} else {
			return false;
		}
	}
	return true;
}

/* Takes the first name off. */
static struct str glob_next(struct str *path)
{
	const char *slash = memchr(path->p, '/', path->n);
	struct str name = { path->p, slash ? (size_t)(slash - path->p) : path->n };

	*path = glob_from(*path, name.n + (slash != NULL));
	return name;
}

/* The same with "**" for any names. */
static bool glob_path(struct str p, struct str s)
{
	struct str star = STR_NONE, rest = STR_NONE;

	while (s.n > 0 || p.n > 0) {
		struct str p_rest = p, s_rest = s, name = glob_next(&p_rest);

		if (p.n > 0 && str_is(name, "**")) {
			if (p_rest.n == 0)
				return s.n > 0;
			star = p = p_rest;
			rest = s;
		} else if (p.n > 0 && s.n > 0 && glob_name(name, glob_next(&s_rest))) {
			p = p_rest;
			s = s_rest;
		} else if (star.p && rest.n > 0) {
			glob_next(&rest);
			p = star;
			s = rest;
		} else {
			return false;
		}
	}
	return true;
}

bool glob_finds(const struct glob *g, struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);
	struct str last = slash ? glob_from(path, (size_t)(slash - path.p) + 1) : path;

	for (size_t i = 0; i < g->n; i++) {
		struct str p = { g->either[i].text, g->either[i].n };

		if (memchr(p.p, '/', p.n) || str_is(p, "**") ? glob_path(p, path)
							     : glob_name(p, last))
			return true;
	}
	return false;
}
