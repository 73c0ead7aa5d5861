/* URI references: RFC 3986 §5.2, for $id and $ref. */
#include "json/schema/internal.h"

struct uri {
	struct str scheme, authority, path, query; /* STR_NONE if absent, except path */
};

static struct str uri_cut(struct str s, size_t from, size_t to)
{
	return (struct str){ s.p + from, to - from };
}

static size_t uri_find(struct str s, size_t from, const char *any)
{
	while (from < s.n && !(s.p[from] && strchr(any, s.p[from])))
		from++;
	return from;
}

static bool is_scheme(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = (char)(s.p[i] | 0x20);

		if (!(c >= 'a' && c <= 'z') &&
		    (i == 0 || !(s.p[i] == '+' || s.p[i] == '-' || s.p[i] == '.' ||
				 (s.p[i] >= '0' && s.p[i] <= '9'))))
			return false;
	}
	return s.n > 0;
}

static struct uri uri_split(struct str s, struct str *ret_fragment)
{
	struct uri u = { STR_NONE };
	size_t at = 0, end = uri_find(s, 0, "#"), colon = uri_find(s, 0, ":/?#");

	*ret_fragment = end < s.n ? uri_cut(s, end + 1, s.n) : STR_NONE;
	s.n = end;
	if (colon < s.n && s.p[colon] == ':' && is_scheme(uri_cut(s, 0, colon))) {
		u.scheme = uri_cut(s, 0, colon);
		at = colon + 1;
	}
	if (s.n - at >= 2 && s.p[at] == '/' && s.p[at + 1] == '/') {
		end = uri_find(s, at + 2, "/?");
		u.authority = uri_cut(s, at + 2, end);
		at = end;
	}
	end = uri_find(s, at, "?");
	u.path = uri_cut(s, at, end);
	if (end < s.n)
		u.query = uri_cut(s, end + 1, s.n);
	return u;
}

/* Joins the base's path up to its last slash and the reference's path. */
static struct str merge(struct arena *a, const struct uri *base, struct str path, struct err *e)
{
	size_t keep = base->path.n;
	const char *between = base->authority.p && keep == 0 ? "/" : "";
	char *z;

	while (keep > 0 && base->path.p[keep - 1] != '/')
		keep--;
	z = arena_printf(a, e, "%.*s%s%.*s", (int)keep, base->path.p ? base->path.p : "", between,
			 STR_ARG(path));
	return str_of(z);
}

/* Removes the segments "." and "..", in place. */
static struct str without_dots(char *p, size_t n)
{
	size_t out = 0;
	bool rooted = n > 0 && p[0] == '/';

	for (size_t i = 0; i < n;) {
		size_t from = i + (p[i] == '/'), end = from;
		bool last;

		while (end < n && p[end] != '/')
			end++;
		last = end == n;
		if (end - from == 1 && p[from] == '.') {
			if (last)
				p[out++] = '/';
		} else if (end - from == 2 && p[from] == '.' && p[from + 1] == '.') {
			while (out > 0 && p[--out] != '/') {
			}
			if (last)
				p[out++] = '/';
		} else {
			memmove(p + out, p + i, end - i);
			out += end - i;
		}
		i = end;
	}
	if (!rooted && out > 0 && p[0] == '/')
		return (struct str){ p + 1, out - 1 };
	return (struct str){ p, out };
}

int schema_uri(struct arena *a, struct str base, struct str ref, struct str *ret_uri,
	       struct str *ret_fragment, struct err *e)
{
	struct str ignored;
	struct uri r = uri_split(ref, ret_fragment), b = uri_split(base, &ignored), t = r;
	char *z;

	if (ref.n > 0 && memchr(ref.p, '\0', ref.n))
		return err_set(e, ERR_INVALID, "must be a URI reference");
	if (!r.scheme.p) {
		t.scheme = b.scheme;
		if (!r.authority.p) {
			t.authority = b.authority;
			if (r.path.n == 0) {
				t.path = b.path;
				t.query = r.query.p ? r.query : b.query;
			} else if (r.path.p[0] != '/') {
				t.path = merge(a, &b, r.path, e);
				if (!t.path.p)
					return -1;
			}
		}
	}
	z = arena_dup(a, t.path, e);
	if (!z)
		return -1;
	t.path = without_dots(z, t.path.n);
	z = arena_printf(a, e, "%.*s%s%s%.*s%.*s%s%.*s", STR_ARG(t.scheme), t.scheme.p ? ":" : "",
			 t.authority.p ? "//" : "", STR_ARG(t.authority), STR_ARG(t.path),
			 t.query.p ? "?" : "", STR_ARG(t.query));
	if (!z)
		return -1;
	*ret_uri = str_of(z);
	return 0;
}
