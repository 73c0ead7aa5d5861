/*
 * URI templates, RFC 6570 level 1 and {+name}: is a URI an expansion of one? There is no backtracking:
 * each variable takes as little as it can, and the last one all up to the literal at the end.
 */
#include "mcp/server.h"

enum { URI_MAX = 8192 };

static bool takes_slash(const char *name)
{
	return *name == '+';
}

/* The literal text of a template up to its next variable or end. */
static size_t literal(const char *t)
{
	return strcspn(t, "{");
}

static bool has_slash(struct str s)
{
	return s.n > 0 && memchr(s.p, '/', s.n) != NULL;
}

/* The first place in s where the literal stands; s.n where there is none. */
static size_t find(struct str s, const char *text, size_t n)
{
	for (size_t i = 0; n <= s.n && i <= s.n - n; i++) {
		if (memcmp(s.p + i, text, n) == 0)
			return i;
	}
	return s.n;
}

bool mcp_uri_match(const char *t, struct str uri, struct str *ret_values, size_t max)
{
	size_t n = literal(t), found, i = 0;

	if (uri.n > URI_MAX || uri.n < n || memcmp(uri.p, t, n) != 0)
		return false;
	t += n;
	uri.p += n;
	uri.n -= n;
	while (*t == '{') {
		const char *name = t + 1;
		size_t name_n = strcspn(name, "}");
		struct str value = uri;

		if (name[name_n] != '}')
			return false;
		t = name + name_n + 1;
		n = literal(t);
		found = n > 0 ? find(uri, t, n) : uri.n;
		if (n > 0 && found == uri.n)
			return false;
		/* the last literal stands at the end: {+name} may hold it before */
		if (n > 0 && t[n] == '\0') {
			if (uri.n < n || memcmp(uri.p + uri.n - n, t, n) != 0)
				return false;
			found = uri.n - n;
		}
		value.n = found;
		if (value.n == 0 || (!takes_slash(name) && has_slash(value)))
			return false;
		if (ret_values && i < max)
			ret_values[i] = value;
		i++;
		t += n;
		uri.p += found + n;
		uri.n -= found + n;
	}
	return uri.n == 0;
}
