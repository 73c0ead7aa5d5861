/*
 * URI templates, RFC 6570 level 1 and {+name}: is a URI an expansion of a template? There is no
 * backtracking: each variable takes as little as possible, and the last one everything up to the
 * literal at the end.
 */
#include "mcp/server/server.h"

enum { URI_MAX = 8192 };

/* The literal text of a template up to its next variable or its end. */
static size_t literal(const char *t)
{
	return strcspn(t, "{");
}

/* The first position of the literal in s; s.n if it does not occur. */
static size_t uri_find(struct str s, const char *text, size_t n)
{
	for (size_t i = 0; n <= s.n && i <= s.n - n; i++) {
		if (memcmp(s.p + i, text, n) == 0)
			return i;
	}
	return s.n;
}

/* Removes the template's next literal from the front of both. */
static bool take_literal(const char **t, struct str *uri)
{
	size_t n = literal(*t);

	if (uri->n < n || memcmp(uri->p, *t, n) != 0)
		return false;
	*t += n;
	uri->p += n;
	uri->n -= n;
	return true;
}

/* Removes a variable from the template, and its value from the URI. */
static bool take_value(const char **t, struct str *uri, struct str *ret)
{
	const char *name = *t + 1, *end = strchr(name, '}');
	size_t n, length = uri->n;

	if (!end)
		return false;
	*t = end + 1;
	n = literal(*t);
	if (n > 0 && (*t)[n] == '\0')
		length = uri->n > n ? uri->n - n : 0; /* the last literal is at the end */
	else if (n > 0)
		length = uri_find(*uri, *t, n);
	*ret = (struct str){ uri->p, length };
	uri->p += length;
	uri->n -= length;
	return length > 0 && (*name == '+' || !memchr(ret->p, '/', length));
}

bool mcp_uri_match(const char *t, struct str uri, struct str *ret_values, size_t max)
{
	struct str value;

	if (uri.n > URI_MAX || !take_literal(&t, &uri))
		return false;
	for (size_t i = 0; *t == '{'; i++) {
		if (!take_value(&t, &uri, &value) || !take_literal(&t, &uri))
			return false;
		if (ret_values && i < max)
			ret_values[i] = value;
	}
	return uri.n == 0;
}
