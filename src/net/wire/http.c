#include "net/wire/http.h"

#include <stdio.h>
#include <string.h>

const char *const net_http_then_names[NET_HTTP_THENS] = {
	[NET_HTTP_DENY] = "deny",
	[NET_HTTP_ALLOW] = "allow",
	[NET_HTTP_ASK] = "ask",
};

/* ---- texts ----------------------------------------------------------------------------------- */

/* RFC 9110 section 5.6.2 */
static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", s.p[i]))
			return false;
	}
	return s.n > 0;
}

/* A segment that servers leave out, or an empty one. The last may be empty. */
static bool has_odd_segment(struct str path)
{
	for (size_t i = 0; i < path.n; i++) {
		struct str rest = { path.p + i + 1, path.n - i - 1 };
		size_t n = 0;

		if (path.p[i] != '/')
			continue;
		while (n < rest.n && rest.p[n] != '/')
			n++;
		rest.n = n;
		if ((n == 0 && i + 1 < path.n) || str_is(rest, ".") || str_is(rest, ".."))
			return true;
	}
	return false;
}

/* Why no path could match it, or not as it was meant. */
static const char *check_pattern(struct str s)
{
	if (s.n >= NET_PATTERN_MAX)
		return "is too long";
	if (str_is(s, "*"))
		return NULL;
	if (s.n == 0 || s.p[0] != '/')
		return "does not begin with a slash";
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= 0x20 || s.p[i] >= 0x7f)
			return "has a character that is not printable ASCII";
		if (s.p[i] == '*' && i + 1 < s.n)
			return "has a star before its end";
		if (strchr("?#", s.p[i]))
			return "has a query: rules are about the path alone";
		if (strchr("%;\\", s.p[i]))
			return "has an escape: write the path as it is after decoding";
	}
	return has_odd_segment(s) ? "has an empty segment, or one of dots" : NULL;
}

int net_http_make(enum net_http_then then, struct str method, struct str path,
		  struct net_http_rule *ret, struct err *e)
{
	struct net_http_rule r = { .then = then };
	const char *why;

	if (str_is(method, "*"))
		method.n = 0;
	if (path.n == 0)
		path = STR_LIT("*");
	if (method.n >= NET_METHOD_MAX || (method.n > 0 && !is_token(method)))
		return err_set(e, ERR_INVALID, "\"%.*s\" is no HTTP method", STR_CUT(method, 40));
	why = check_pattern(path);
	if (why)
		return err_set(e, ERR_INVALID, "the path \"%.*s\" %s", STR_CUT(path, 80), why);
	memcpy(r.method, method.p ? method.p : "", method.n);
	memcpy(r.pattern, path.p, path.n);
	*ret = r;
	return 0;
}

static bool take_word(struct str *text, char end, struct str *ret)
{
	const char *at = memchr(text->p ? text->p : "", end, text->n);

	*ret = (struct str){ text->p, at ? (size_t)(at - text->p) : text->n };
	text->p += ret->n + (at != NULL);
	text->n -= ret->n + (at != NULL);
	return at != NULL;
}

static bool read_then(struct str word, enum net_http_then *ret)
{
	for (int i = 0; i < NET_HTTP_THENS; i++) {
		if (!str_is(word, net_http_then_names[i]))
			continue;
		*ret = (enum net_http_then)i;
		return true;
	}
	return false;
}

static int parse_one(struct str text, struct net_http_rule *ret, struct err *e)
{
	enum net_http_then then = NET_HTTP_ALLOW;
	struct str rest = text, method;

	if (!take_word(&rest, ' ', &method) ||
	    (read_then(method, &then) && !take_word(&rest, ' ', &method)))
		return err_set(e, ERR_INVALID,
			       "\"%.*s\" is no HTTP rule: write [allow|deny|ask] METHOD PATH",
			       STR_CUT(text, 80));
	return net_http_make(then, method, rest, ret, e);
}

int net_http_parse(struct str text, struct net_http_rule *ret, size_t max, size_t *ret_n,
		   struct err *e)
{
	size_t n = 0;

	for (bool more = true; more;) {
		const char *end = memmem(text.p, text.n, ", ", 2);
		struct str one = { text.p, end ? (size_t)(end - text.p) : text.n };

		if (n == max)
			return err_set(e, ERR_LIMIT, "at most %zu HTTP rules of one grant", max);
		if (parse_one(one, &ret[n++], e) < 0)
			return -1;
		more = end != NULL;
		text = more ? (struct str){ end + 2, text.n - one.n - 2 } : STR_NONE;
	}
	*ret_n = n;
	return 0;
}

int net_http_split(struct str text, struct str *ret_host, struct net_http_rule *ret, size_t max,
		   size_t *ret_n, struct err *e)
{
	*ret_n = 0;
	return take_word(&text, ' ', ret_host) ? net_http_parse(text, ret, max, ret_n, e) : 0;
}

static const char *method_of(const struct net_http_rule *r)
{
	return r->method[0] ? r->method : "*";
}

void net_http_print(const struct net_http_rule *r, char ret[NET_HTTP_TEXT])
{
	snprintf(ret, NET_HTTP_TEXT, "%s %.15s %.255s", net_http_then_names[r->then], method_of(r),
		 r->pattern);
}

void net_http_print_word(const struct net_http_rule *r, char ret[NET_HTTP_TEXT])
{
	snprintf(ret, NET_HTTP_TEXT, "=%s,%.15s,%.255s", net_http_then_names[r->then], method_of(r),
		 r->pattern);
}

int net_http_parse_word(struct str word, struct net_http_rule *ret, struct err *e)
{
	enum net_http_then then = NET_HTTP_DENY;
	struct str rest = word, first, method;

	if (str_starts(word, "=") && take_word(&rest, ',', &first) &&
	    read_then((struct str){ first.p + 1, first.n - 1 }, &then) &&
	    take_word(&rest, ',', &method))
		return net_http_make(then, method, rest, ret, e);
	return err_set(e, ERR_INVALID, "\"%.*s\" is no HTTP rule", STR_CUT(word, 80));
}

bool net_http_same(const struct net_http_rule *a, const struct net_http_rule *b)
{
	return a->then == b->then && strcmp(a->method, b->method) == 0 &&
	       strcmp(a->pattern, b->pattern) == 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* The two ways in which servers understand a path: an escaped slash is a part of a segment and
 * parameters are too, or the slash separates segments and the parameters are left out. Of one in
 * parameters there are more ways: it may end them, or be left out with them. */
struct path {
	size_t n_joined, n_split;
	char joined[NET_PATH_READ_MAX * 3], split[NET_PATH_READ_MAX];
};

static int http_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = c >= 'A' && c <= 'F' ? (char)(c + 32) : c;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The character at the front, decoded; *ret_n: how many bytes it is. -1: an escape that servers
 * read differently, such as one of an escape. */
static int take_char(struct str s, size_t *ret_n)
{
	int high, low, c;

	*ret_n = 1;
	if (s.p[0] != '%')
		return s.p[0] == '\\' ? -1 : (unsigned char)s.p[0];
	high = s.n > 2 ? http_hex(s.p[1]) : -1;
	low = s.n > 2 ? http_hex(s.p[2]) : -1;
	if (high < 0 || low < 0)
		return -1;
	c = high * 16 + low;
	*ret_n = 3;
	return c < 0x20 || c == 0x7f || strchr("%;\\", c) ? -1 : c;
}

/* Whether bytes write a character with more of them than it needs, as UTF-8 forbids: some servers
 * take them for the character. */
static bool has_overlong(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		unsigned char next = i + 1 < s.n ? (unsigned char)s.p[i + 1] : 0xff;

		if (c == 0xc0 || c == 0xc1 || (c == 0xe0 && next < 0xa0) ||
		    (c == 0xf0 && next < 0x90))
			return true;
	}
	return false;
}

static bool read_path(struct str path, struct path *ret)
{
	bool in_parameters = false;
	size_t n;

	ret->n_joined = ret->n_split = 0;
	if (path.n == 0 || path.n > NET_PATH_READ_MAX)
		return false;
	for (size_t i = 0; i < path.n; i += n) {
		int c = take_char((struct str){ path.p + i, path.n - i }, &n);

		if (c < 0 || (c == '/' && n == 3 && in_parameters))
			return false;
		if (c == '/' && n == 3) {
			memcpy(ret->joined + ret->n_joined, "%2F", 3);
			ret->n_joined += 3;
		} else {
			ret->joined[ret->n_joined++] = (char)c;
		}
		in_parameters = (in_parameters || c == ';') && c != '/';
		if (!in_parameters)
			ret->split[ret->n_split++] = (char)c;
	}
	return str_is(path, "*") ||
	       (path.p[0] == '/' && !has_overlong((struct str){ ret->joined, ret->n_joined }) &&
		!has_odd_segment((struct str){ ret->split, ret->n_split }));
}

/* ---- decisions ------------------------------------------------------------------------------- */

static bool pattern_matches(const char *pattern, struct str path)
{
	size_t n = strlen(pattern);

	if (n > 0 && pattern[n - 1] == '*')
		return path.n >= n - 1 && memcmp(path.p, pattern, n - 1) == 0;
	return path.n == n && memcmp(path.p, pattern, n) == 0;
}

static char to_upper(char c)
{
	return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

/* Some servers take a method in lower case for the same in upper case. */
static bool method_matches(const struct net_http_rule *r, struct str method, bool upper)
{
	size_t n = strlen(r->method);

	for (size_t i = 0; i < n && n == method.n; i++) {
		if (method.p[i] != r->method[i] &&
		    !(upper && to_upper(method.p[i]) == to_upper(r->method[i])))
			return false;
	}
	return n == 0 || n == method.n;
}

static int http_find(const struct net_http_rule *http, size_t n, int i, struct str method,
		     bool upper, struct str path)
{
	for (size_t k = 0; k < n; k++) {
		if ((int)http[k].rule == i && method_matches(&http[k], method, upper) &&
		    pattern_matches(http[k].pattern, path))
			return (int)k;
	}
	return -1;
}

static unsigned strictness(const struct net_http_rule *http, int found)
{
	static const unsigned of[NET_HTTP_THENS] = {
		[NET_HTTP_ALLOW] = 0, [NET_HTTP_ASK] = 1, [NET_HTTP_DENY] = 2
	};

	return found < 0 ? of[NET_HTTP_DENY] : of[http[found].then];
}

struct net_http_decision net_http_decide(const struct net_http_rule *http, size_t n, int i,
					 struct str method, struct str path)
{
	struct net_http_decision d = { .then = NET_HTTP_ALLOW, .found = -1 };
	struct path p;

	for (size_t k = 0; k < n && !d.any; k++)
		d.any = (int)http[k].rule == i;
	if (!d.any)
		return d;
	d.then = NET_HTTP_DENY;
	d.odd = !read_path(path, &p);
	if (d.odd)
		return d;
	for (int way = 0; way < 4; way++) {
		struct str as = way & 1 ? (struct str){ p.split, p.n_split }
					: (struct str){ p.joined, p.n_joined };
		int found = http_find(http, n, i, method, way & 2, as);

		if (way == 0 || strictness(http, found) > strictness(http, d.found))
			d.found = found;
	}
	if (d.found >= 0)
		d.then = (enum net_http_then)http[d.found].then;
	return d;
}
