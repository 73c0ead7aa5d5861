#include "mcp/oauth/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#include "http/client/address.h"

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool oauth_is_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alnum(s.p[i]) && s.p[i] != '_' && s.p[i] != '.' && s.p[i] != '-')
			return false;
	}
	return s.n > 0 && s.n <= OAUTH_WORD_MAX;
}

/* --- reading --- */

static bool host_ok(struct str host)
{
	bool v6 = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';

	if (host.n == 0 || host.n > 255 || host.p[0] == '-' || host.p[0] == '.')
		return false;
	for (size_t i = v6; i < host.n - v6; i++) {
		char c = host.p[i];

		if (v6 ? !isxdigit((unsigned char)c) && c != ':' && c != '.'
		       : !is_alnum(c) && c != '-' && c != '.')
			return false;
	}
	return true;
}

/* Parses the digits after a colon: 1 to 65535. */
static bool port_ok(struct str s, unsigned *ret)
{
	unsigned port = 0;

	if (s.n == 0 || s.n > 5)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		port = port * 10 + (unsigned)(s.p[i] - '0');
	}
	*ret = port;
	return port > 0 && port <= 65535;
}

static bool has_prefix(struct str s, const char *z)
{
	return s.n >= strlen(z) && strncasecmp(s.p, z, strlen(z)) == 0;
}

/* Parses host and port from the part between the scheme and the path. */
static bool read_authority(struct str a, struct oauth_url *u)
{
	size_t n = a.n;

	while (n > 0 && a.p[n - 1] >= '0' && a.p[n - 1] <= '9')
		n--;
	u->host = a;
	u->port = u->tls ? 443 : 80;
	if (n > 0 && a.p[n - 1] == ':' && (n < 2 || a.p[0] != '[' || a.p[n - 2] == ']')) {
		u->host.n = n - 1;
		return port_ok((struct str){ a.p + n, a.n - n }, &u->port) && host_ok(u->host);
	}
	return host_ok(u->host);
}

int oauth_url_read(struct str text, const char *what, struct oauth_url *ret, struct err *e)
{
	struct oauth_url u = { .text = text, .tls = has_prefix(text, "https://") };
	size_t at = u.tls ? 8 : 7, n;

	if (!u.tls && !has_prefix(text, "http://"))
		return err_set(e, ERR_INVALID, "%s is no URL of https", what);
	if (text.n > OAUTH_URL_MAX)
		return err_set(e, ERR_INVALID, "%s is longer than %d bytes", what, OAUTH_URL_MAX);
	/* these are not allowed in URLs, or parsers treat them differently */
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}#", c))
			return err_set(e, ERR_INVALID, "%s has a character that no URL has", what);
	}
	for (n = at; n < text.n && text.p[n] != '/' && text.p[n] != '?';)
		n++;
	if (!read_authority((struct str){ text.p + at, n - at }, &u))
		return err_set(e, ERR_INVALID, "%s has no plain host", what);
	u.base = (struct str){ text.p, n };
	for (at = n; n < text.n && text.p[n] != '?';)
		n++;
	u.path = (struct str){ text.p + at, n - at };
	u.query = (struct str){ text.p + n, text.n - n };
	*ret = u;
	return 0;
}

/* --- classification --- */

/* Four plain decimal numbers, the first of them 127. */
static bool is_127(struct str host)
{
	char text[16] = "";
	unsigned a, b, c, d;
	char back[16 + 32], end;

	if (host.n >= sizeof(text))
		return false;
	memcpy(text, host.p, host.n);
	if (sscanf(text, "%3u.%3u.%3u.%3u%c", &a, &b, &c, &d, &end) != 4)
		return false;
	snprintf(back, sizeof(back), "%u.%u.%u.%u", a, b, c, d); /* 0127 would be another number */
	return a == 127 && b < 256 && c < 256 && d < 256 && strcmp(back, text) == 0;
}

bool oauth_url_is_loopback(const struct oauth_url *u)
{
	return (u->host.n == 9 && strncasecmp(u->host.p, "localhost", 9) == 0) ||
	       str_is(u->host, "[::1]") || is_127(u->host);
}

/* Whether browsers take a host with this ending for an address: decimal, or hexadecimal after
 * 0x. */
static bool is_number(struct str label)
{
	bool hex = label.n >= 2 && label.p[0] == '0' && (label.p[1] | 0x20) == 'x';

	for (size_t i = hex ? 2 : 0; i < label.n; i++) {
		if (hex ? !isxdigit((unsigned char)label.p[i])
			: label.p[i] < '0' || label.p[i] > '9')
			return false;
	}
	return label.n > 0;
}

/* True for names that are not in public DNS, and for addresses that are not public. */
static bool is_special(struct str host)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	char text[256] = "";
	struct str last; /* the part after the last dot */

	if (host.n > 1 && host.p[host.n - 1] == '.')
		host.n--;
	if (host.p[0] == '[') {
		memcpy(text, host.p + 1, host.n - 2);
		return inet_pton(AF_INET6, text, &six.sin6_addr) != 1 ||
		       !http_address_public((struct sockaddr *)&six);
	}
	for (last = (struct str){ host.p + host.n, 0 }; last.p > host.p && last.p[-1] != '.';)
		last = (struct str){ last.p - 1, last.n + 1 };
	if (!is_number(last))
		return last.n == 9 && strncasecmp(last.p, "localhost", 9) == 0;
	memcpy(text, host.p, host.n);
	return inet_pton(AF_INET, text, &four.sin_addr) != 1 ||
	       !http_address_public((struct sockaddr *)&four);
}

int oauth_url_check(const struct oauth_url *u, const char *what, enum oauth_reach reach,
		    struct err *e)
{
	bool loopback = oauth_url_is_loopback(u);

	if (loopback && reach == OAUTH_PUBLIC)
		return err_set(e, ERR_NOT_PUBLIC, "%s is on this machine, and the server is not",
			       what);
	if (!u->tls && !loopback)
		return err_set(e, ERR_UNTRUSTED, "%s is not https", what);
	if (!loopback && reach != OAUTH_ANYWHERE && is_special(u->host))
		return err_set(e, ERR_NOT_PUBLIC, "%s is at an address that is not public", what);
	return 0;
}

bool oauth_url_same_origin(const struct oauth_url *a, const struct oauth_url *b)
{
	return a->tls == b->tls && a->port == b->port && a->host.n == b->host.n &&
	       strncasecmp(a->host.p, b->host.p, a->host.n) == 0;
}

bool oauth_url_is_root(const struct oauth_url *u)
{
	return u->path.n <= 1;
}

static struct str without_slash(struct str path)
{
	if (path.n > 0 && path.p[path.n - 1] == '/')
		path.n--;
	return path;
}

bool oauth_url_names(const struct oauth_url *resource, const struct oauth_url *server)
{
	return oauth_url_same_origin(resource, server) &&
	       str_eq(without_slash(resource->path), without_slash(server->path)) &&
	       (resource->query.n == 0 || str_eq(resource->query, server->query));
}

int oauth_url_well_known(const struct oauth_url *u, enum oauth_place place, const char *suffix,
			 struct buf *to, struct err *e)
{
	struct str path = without_slash(u->path);

	if (place == OAUTH_APPENDED)
		return buf_addf(to, e, "%.*s%.*s/.well-known/%s", STR_ARG(u->base), STR_ARG(path),
				suffix);
	if (place == OAUTH_ROOT)
		return buf_addf(to, e, "%.*s/.well-known/%s", STR_ARG(u->base), suffix);
	return buf_addf(to, e, "%.*s/.well-known/%s%.*s%.*s", STR_ARG(u->base), suffix,
			STR_ARG(path), STR_ARG(u->query));
}

/* --- forms --- */

int oauth_form_encode(struct buf *to, struct str value, struct err *e)
{
	static const char hex[] = "0123456789ABCDEF";
	char *out = buf_reserve(to, 3 * value.n, e), *p = out;

	if (!out)
		return -1;
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];

		if (is_alnum((char)c) || c == '-' || c == '.' || c == '_') {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = hex[c >> 4];
		*p++ = hex[c & 15];
	}
	buf_advance(to, (size_t)(p - out));
	return 0;
}

int oauth_form_add(struct buf *to, const char *name, struct str value, struct err *e)
{
	bool first = to->n == 0 || to->p[to->n - 1] == '?';

	if (buf_addf(to, e, "%s%s=", first ? "" : "&", name) < 0)
		return -1;
	return oauth_form_encode(to, value, e);
}

/* --- redirects --- */

static int hex_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool url_decode(struct str from, char *to, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < from.n; i++) {
		char c = from.p[i] == '+' ? ' ' : from.p[i];

		if (c == '%') {
			int high = i + 2 < from.n ? hex_of(from.p[i + 1]) : -1;
			int low = i + 2 < from.n ? hex_of(from.p[i + 2]) : -1;

			if (high < 0 || low < 0)
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		if (!c || n == max)
			return false;
		to[n++] = c;
	}
	to[n] = '\0';
	return true;
}

struct slot {
	const char *name;
	char *to;
	size_t max;
	unsigned bit;
};

/* Where to store a parameter; NULL: it is not needed. */
static struct slot slot_of(struct oauth_redirect *r, struct str name)
{
	const struct slot slots[] = {
		{ "code", r->code, OAUTH_CODE_MAX, 1 << 0 },
		{ "state", r->state, OAUTH_STATE_MAX, 1 << 1 },
		{ "iss", r->iss, OAUTH_URL_MAX, 1 << 2 },
		{ "error", r->error, OAUTH_WORD_MAX, 1 << 3 },
	};

	for (size_t i = 0; i < ARRAY_LEN(slots); i++) {
		if (str_is(name, slots[i].name))
			return slots[i];
	}
	return (struct slot){ .to = NULL };
}

static bool fits(struct str value, size_t max)
{
	for (size_t i = 0; i < value.n; i++) {
		if ((unsigned char)value.p[i] < ' ' || value.p[i] == 0x7f)
			return false;
	}
	return value.n <= max;
}

int oauth_redirect_add(struct oauth_redirect *r, struct str name, struct str value, struct err *e)
{
	struct slot slot = slot_of(r, name);

	if (!slot.to)
		return 0;
	if (r->seen & slot.bit)
		return err_set(e, ERR_INVALID, "the redirect has %s twice", slot.name);
	r->seen |= slot.bit;
	if (!fits(value, slot.max) || (slot.to == r->error && value.n > 0 && !oauth_is_word(value)))
		return err_set(e, ERR_INVALID, "%s of the redirect is broken", slot.name);
	if (value.n > 0)
		memcpy(slot.to, value.p, value.n);
	slot.to[value.n] = '\0';
	return 0;
}

static int add_encoded(struct oauth_redirect *r, struct str name, struct str value, struct err *e)
{
	char text[OAUTH_CODE_MAX + 1] = "";
	int rc;

	if (!slot_of(r, name).to)
		return 0;
	if (!url_decode(value, text, OAUTH_CODE_MAX))
		return err_set(e, ERR_INVALID, "a parameter of the redirect is broken");
	rc = oauth_redirect_add(r, name, str_of(text), e);
	explicit_bzero(text, sizeof(text));
	return rc;
}

int oauth_redirect_read(struct str url, struct oauth_redirect *ret, struct err *e)
{
	const char *end = url.n > 0 ? memchr(url.p, '#', url.n) : NULL, *mark;
	struct str left = { url.p, end ? (size_t)(end - url.p) : url.n };

	memset(ret, 0, sizeof(*ret));
	mark = left.n > 0 ? memchr(left.p, '?', left.n) : NULL;
	if (mark)
		left = (struct str){ mark + 1, left.n - (size_t)(mark + 1 - left.p) };
	while (left.n > 0) {
		const char *amp = memchr(left.p, '&', left.n);
		struct str pair = { left.p, amp ? (size_t)(amp - left.p) : left.n };
		const char *eq = memchr(pair.p, '=', pair.n);
		struct str name = { pair.p, eq ? (size_t)(eq - pair.p) : pair.n };
		struct str value = { eq ? eq + 1 : "", eq ? pair.n - name.n - 1 : 0 };

		if (add_encoded(ret, name, value, e) < 0)
			return -1;
		left.p += pair.n + (amp != NULL);
		left.n -= pair.n + (amp != NULL);
	}
	return 0;
}

/* --- scopes --- */

/* Takes the next word; empty at the end. */
static struct str next_word(struct str *left)
{
	struct str word;

	while (left->n > 0 && left->p[0] == ' ') {
		left->p++;
		left->n--;
	}
	word = (struct str){ left->p, 0 };
	while (word.n < left->n && left->p[word.n] != ' ')
		word.n++;
	left->p += word.n;
	left->n -= word.n;
	return word;
}

bool oauth_scope_ok(struct str scope)
{
	for (size_t i = 0; i < scope.n; i++) {
		char c = scope.p[i];

		if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			return false;
	}
	return scope.n <= OAUTH_SCOPE_MAX;
}

bool oauth_scope_has(struct str scope, struct str word)
{
	for (struct str w = next_word(&scope); w.n > 0; w = next_word(&scope)) {
		if (str_eq(w, word))
			return true;
	}
	return false;
}

bool oauth_scope_covers(struct str a, struct str b)
{
	for (struct str w = next_word(&b); w.n > 0; w = next_word(&b)) {
		if (!oauth_scope_has(a, w))
			return false;
	}
	return true;
}

int oauth_scope_add(struct buf *to, struct str more, struct err *e)
{
	for (struct str w = next_word(&more); w.n > 0; w = next_word(&more)) {
		if (oauth_scope_has(buf_str(to), w))
			continue;
		if (buf_addf(to, e, "%s%.*s", to->n ? " " : "", STR_ARG(w)) < 0)
			return -1;
	}
	return 0;
}
