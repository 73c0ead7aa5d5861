#include "door/expose/expose_head.h"

#include <assert.h>
#include <stdio.h>

#include "http/message/head.h"

enum { HEAD_MAX = 8 << 10 }; /* bytes of an answer's fields, if the door has room for them */

/* ---- which fields -------------------------------------------------------------------------- */

enum {
	NEVER = 1, /* concerns one connection, reaches beyond the name, or is written by the hub */
	NOT_HUB = 2, /* must not be passed where it would concern the hub's own origin */
	FRONT = 4, /* the row means all names with this beginning */
};

struct rule {
	struct str name;
	unsigned what;
};

/* RFC 9110 section 7.6.1, and other fields that proxies use. */
#define OF_A_CONNECTION                                                                            \
	{ STR_LIT("Connection"), NEVER }, { STR_LIT("Keep-Alive"), NEVER },                        \
		{ STR_LIT("TE"), NEVER }, { STR_LIT("Trailer"), NEVER },                           \
		{ STR_LIT("Transfer-Encoding"), NEVER }, { STR_LIT("Upgrade"), NEVER },            \
		{ STR_LIT("Content-Length"), NEVER },                                              \
	{                                                                                          \
		STR_LIT("Proxy-"), NEVER | FRONT                                                   \
	}

static const struct rule of_requests[] = {
	OF_A_CONNECTION,
	{ STR_LIT("Host"), NEVER },
	{ STR_LIT("Origin"), NEVER }, /* the door has checked it */
	{ STR_LIT("Expect"), NEVER },
	{ STR_LIT("Referer"), NEVER }, /* may contain what a page's address contained */
	{ STR_LIT("Forwarded"), NEVER },
	{ STR_LIT("X-Forwarded-"), NEVER | FRONT },
	{ STR_LIT("Sec-WebSocket-"), NEVER | FRONT }, /* see expose_socket.c */
	{ STR_LIT("Cookie"), NEVER }, /* but see put_cookies() */
	{ STR_LIT("Authorization"), NOT_HUB }, /* contains the hub's token */
	/* credentials of E2B's clients, under whatever name they ask */
	{ STR_LIT("X-API-KEY"), NEVER },
	{ STR_LIT("X-Access-Token"), NEVER },
	{ STR_LIT("E2B-Traffic-Access-Token"), NEVER },
};

static const struct rule of_answers[] = {
	OF_A_CONNECTION,
	{ STR_LIT("Date"), NEVER }, /* the door writes it */
	{ STR_LIT("Location"), NEVER }, /* but see put_changed() */
	{ STR_LIT("Set-Cookie"), NEVER | FRONT }, /* likewise */
	{ STR_LIT("Access-Control-"), NEVER | FRONT }, /* the door decides who may ask */
	{ STR_LIT("Alt-Svc"), NEVER }, /* would send clients of this name to another server */
	{ STR_LIT("Strict-Transport-Security"), NEVER },
	{ STR_LIT("Public-Key-Pins"), NEVER | FRONT },
	{ STR_LIT("Expect-CT"), NEVER },
	{ STR_LIT("Clear-Site-Data"), NEVER }, /* would also clear the cookies of the names above */
	{ STR_LIT("NEL"), NEVER },
	{ STR_LIT("Report"), NEVER | FRONT },
	{ STR_LIT("Origin-Trial"), NEVER },
	{ STR_LIT("Service-Worker-Allowed"), NOT_HUB },
	/* would make a browser ask its user for the hub's credentials */
	{ STR_LIT("WWW-Authenticate"), NOT_HUB },
	{ STR_LIT("Authentication-Info"), NOT_HUB },
	{ STR_LIT("Content-Security-Policy"), NOT_HUB | FRONT },
	{ STR_LIT("X-Content-Type-Options"), NOT_HUB },
	{ STR_LIT("Cross-Origin-"), NOT_HUB | FRONT },
	{ STR_LIT("Content-Location"), NOT_HUB },
	{ STR_LIT("Refresh"), NOT_HUB },
	{ STR_LIT("Link"), NOT_HUB },
};

static const struct http_header closed_in[] = {
	{ "Content-Security-Policy",
	  STR_LIT("sandbox; default-src 'none'; frame-ancestors 'none'") },
	{ "X-Content-Type-Options", STR_LIT("nosniff") },
	{ "Cross-Origin-Resource-Policy", STR_LIT("same-origin") },
};
static_assert(ARRAY_LEN(closed_in) < EXPOSE_HEADERS_MAX - HTTP_ANSWER_FIELDS,
	      "there is room for them, and for one more");

static bool goes(const struct rule *rules, size_t n, struct str name, bool own_name)
{
	for (size_t i = 0; i < n; i++) {
		struct str front = name;

		if ((rules[i].what & FRONT) && name.n > rules[i].name.n)
			front.n = rules[i].name.n;
		if (http_same(front, rules[i].name))
			return own_name && !(rules[i].what & NEVER);
	}
	return true;
}

/* Whether Connection lists the field, which makes it a field of that one connection. */
static bool is_named(struct str list, struct str name)
{
	char text[64];

	if (!list.p || name.n >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", STR_ARG(name));
	return http_list_has(list, text);
}

/* ---- the request --------------------------------------------------------------------------- */

int expose_target(struct http_request *q, const struct expose_as *as, struct buf *to, struct err *e)
{
	struct str path = http_request_path(q);
	size_t at;

	path = (struct str){ path.p + as->prefix.n, path.n - as->prefix.n };
	if (buf_addf(to, e, "%.*s?", STR_ARG(path.n ? path : STR_LIT("/"))) < 0)
		return -1;
	at = to->n;
	if (http_request_raw_query(q, to, e) < 0)
		return -1;
	if (to->n == at)
		to->p[--to->n] = '\0'; /* there is no query */
	return 0;
}

struct fields {
	struct http_request *q;
	const struct expose_as *as;
	struct str connection;
	struct buf *to;
	struct err *e;
	bool failed, cookies;
};

/* Writes all cookies but the hub's. However many fields they came in, they are sent in one. */
static void put_cookies(struct fields *f, struct str list)
{
	while (list.n > 0 && !f->failed) {
		const char *end = memchr(list.p, ';', list.n);
		struct str one = { list.p, end ? (size_t)(end - list.p) : list.n };

		list = (struct str){ one.p + one.n, list.n - one.n };
		if (end)
			list = (struct str){ list.p + 1, list.n - 1 };
		one = str_trim(one);
		if (one.n == 0 || (one.n > f->as->cookie.n && one.p[f->as->cookie.n] == '=' &&
				   str_eq((struct str){ one.p, f->as->cookie.n }, f->as->cookie)))
			continue;
		f->failed = buf_addf(f->to, f->e, "%s%.*s",
				     f->cookies ? "; " : "Cookie: ", STR_ARG(one)) < 0;
		f->cookies = true;
	}
}

/* A token of the hub, whatever field it was sent in, is for the hub. */
static bool is_for_hub(const struct expose_as *as, struct str name, struct str value)
{
	struct str bearer = http_bearer(value);

	return (as->at_hub && http_same(name, STR_LIT("Authorization"))) ||
	       as->is_token(as->owner, bearer.p ? bearer : value);
}

static void put_field(void *data, struct str name, struct str value)
{
	struct fields *f = data;

	if (f->failed || !goes(of_requests, ARRAY_LEN(of_requests), name, f->as->own_name) ||
	    is_named(f->connection, name) || is_for_hub(f->as, name, value))
		return;
	f->failed = buf_addf(f->to, f->e, "%.*s: %.*s\r\n", STR_ARG(name), STR_ARG(value)) < 0;
}

static void put_cookie_field(void *data, struct str name, struct str value)
{
	if (http_same(name, STR_LIT("Cookie")))
		put_cookies(data, value);
}

int expose_fields(struct http_request *q, const struct expose_as *as, struct buf *to, struct err *e)
{
	struct fields f = { .q = q,
			    .as = as,
			    .connection = http_request_header(q, STR_LIT("Connection")),
			    .to = to,
			    .e = e };

	http_request_each_header(q, put_field, &f);
	if (as->own_name && !as->at_hub)
		http_request_each_header(q, put_cookie_field, &f);
	if (f.failed || (f.cookies && buf_add(to, "\r\n", 2, e) < 0))
		return -1;
	/* As from a page on this machine, the server sees its own name in Origin. */
	if (http_request_header(q, STR_LIT("Origin")).p &&
	    buf_addf(to, e, "Origin: http://localhost:%u\r\n", as->port) < 0)
		return -1;
	return buf_addf(to, e, "X-Forwarded-Host: %.*s\r\nX-Forwarded-Proto: %s\r\n%s%.*s%s",
			STR_ARG(http_request_header(q, STR_LIT("Host"))),
			http_request_is_tls(q) ? "https" : "http",
			as->prefix.n ? "X-Forwarded-Prefix: " : "", STR_ARG(as->prefix),
			as->prefix.n ? "\r\n" : "");
}

static const char *method_name(enum http_method m)
{
	static const struct {
		enum http_method method;
		const char *name;
	} names[] = {
		{ HTTP_GET, "GET" },	     { HTTP_HEAD, "HEAD" },   { HTTP_POST, "POST" },
		{ HTTP_PUT, "PUT" },	     { HTTP_PATCH, "PATCH" }, { HTTP_DELETE, "DELETE" },
		{ HTTP_OPTIONS, "OPTIONS" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i].method == m)
			return names[i].name;
	}
	return "GET";
}

int expose_request(struct http_request *q, const struct expose_as *as, struct buf *to,
		   struct err *e)
{
	struct str length = http_request_header(q, STR_LIT("Content-Length"));
	unsigned long long n;

	if (buf_addf(to, e, "%s ", method_name(http_request_method(q))) < 0 ||
	    expose_target(q, as, to, e) < 0 ||
	    buf_addf(to, e, " HTTP/1.1\r\nHost: localhost:%u\r\nConnection: close\r\n", as->port) <
		    0 ||
	    expose_fields(q, as, to, e) < 0)
		return -1;
	if (http_length_parse(length, &n))
		return buf_addf(to, e, "Content-Length: %llu\r\n\r\n", n);
	if (http_request_header(q, STR_LIT("Transfer-Encoding")).p)
		return buf_addf(to, e, "Transfer-Encoding: chunked\r\n\r\n");
	return buf_addf(to, e, "\r\n");
}

/* ---- the answer ---------------------------------------------------------------------------- */

/* Rejects characters that readers of URLs remove or change, and any way up. */
static bool is_plain(struct str path)
{
	struct str rest = path;
	const char *end;

	for (size_t i = 0; i < path.n; i++) {
		if (path.p[i] <= 0x20 || path.p[i] >= 0x7f || path.p[i] == '\\')
			return false;
	}
	end = path.n ? memchr(path.p, '#', path.n) : NULL;
	rest.n = end ? (size_t)(end - path.p) : rest.n;
	end = rest.n ? memchr(rest.p, '?', rest.n) : NULL;
	rest.n = end ? (size_t)(end - rest.p) : rest.n;
	return rest.n == 0 || http_path_ok(rest);
}

/* If the location begins with the server's own name, as the request gave it, the part after
 * that. */
static struct str behind_own_name(struct str location, unsigned port)
{
	static const char *const hosts[] = { "localhost", "127.0.0.1", "[::1]" };
	char front[64];

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		size_t n = (size_t)snprintf(front, sizeof(front), "http://%s:%u", hosts[i], port);

		if (location.n >= n && http_same((struct str){ location.p, n }, str_of(front)) &&
		    (location.n == n || location.p[n] == '/'))
			return location.n == n ? STR_LIT("/")
					       : (struct str){ location.p + n, location.n - n };
	}
	return location;
}

bool expose_location(struct str location, const struct expose_as *as, struct buf *to)
{
	struct str path = behind_own_name(location, as->port);
	bool absolute = path.n > 0 && path.p[0] == '/' && (path.n == 1 || path.p[1] != '/');
	struct err e;

	/* A path from the root is relative to the server's root, which has another place here. All
	 * other forms are relative to the client's URL, or lead elsewhere; that is harmless only
	 * under a name of its own. */
	if (absolute && is_plain(path))
		return buf_addf(to, &e, "%.*s%.*s", STR_ARG(as->prefix), STR_ARG(path)) == 0;
	return as->own_name && buf_add(to, path.p, path.n, &e) == 0;
}

/* Parsed as browsers do: blanks around the name are ignored, and without a name all of it is the
 * value. */
static bool is_ours(struct str cookie, const struct expose_as *as)
{
	struct str front = str_trim(cookie);
	const char *end;

	while (front.n > 0 && (front.p[0] == '=' || front.p[0] == ' ' || front.p[0] == '\t'))
		front = (struct str){ front.p + 1, front.n - 1 };
	end = front.n ? memchr(front.p, '=', front.n) : NULL;
	front.n = end ? (size_t)(end - front.p) : front.n;
	return str_eq(str_trim(front), as->cookie);
}

/* A cookie is passed on only for the server's own name, and if it is not the hub's. False: drop
 * it. */
static bool clean_cookie(struct str cookie, const struct expose_as *as, struct buf *to)
{
	struct err e;
	size_t n = 0;

	if (!as->own_name || is_ours(cookie, as))
		return false;
	for (bool first = true; cookie.p; first = false) {
		const char *end = memchr(cookie.p, ';', cookie.n);
		struct str part = { cookie.p, end ? (size_t)(end - cookie.p) : cookie.n };

		cookie = end ? (struct str){ end + 1, cookie.n - part.n - 1 } : STR_NONE;
		part = str_trim(part);
		n = part.n < 6 ? part.n : 6;
		if (!first && http_same((struct str){ part.p, n }, STR_LIT("domain")))
			continue;
		if (buf_addf(to, &e, "%s%.*s", first ? "" : "; ", STR_ARG(part)) < 0)
			return false;
	}
	return true;
}

struct headers {
	const struct expose_as *as;
	struct arena *arena;
	struct http_header *to;
	size_t n, bytes;
};

static int put_header(struct headers *h, struct str name, struct str value, struct err *e)
{
	char *name_copy = arena_dup(h->arena, name, e);
	char *value_copy = name_copy ? arena_dup(h->arena, value, e) : NULL;

	if (!value_copy)
		return -1;
	if (value.n == 0)
		return 0; /* the daemon accepts none */
	for (size_t i = 0; i < value.n; i++) {
		if (value_copy[i] == '\t')
			value_copy[i] = ' '; /* nor tabs */
	}
	h->bytes += name.n + value.n + 4;
	h->to[h->n++] = (struct http_header){ name_copy, { value_copy, value.n } };
	return 0;
}

/* Handles fields that are rewritten or dropped. */
static int put_changed(struct headers *h, const struct http_answer_field *f, struct err *e)
{
	autobuf struct buf b = BUF_INIT(HTTP_ANSWER_HEAD_MAX);
	bool goes_on = http_same(f->name, STR_LIT("Location"))
			     ? expose_location(f->value, h->as, &b)
			     : http_same(f->name, STR_LIT("Set-Cookie")) &&
				       clean_cookie(f->value, h->as, &b);

	return goes_on ? put_header(h, f->name, buf_str(&b), e) : 0;
}

int expose_answer(const struct http_answer *a, const struct expose_as *as, size_t room,
		  struct arena *arena, struct http_header ret[EXPOSE_HEADERS_MAX], size_t *ret_n,
		  struct err *e)
{
	struct headers h = { .as = as, .arena = arena, .to = ret };
	struct str connection = http_answer_field(a, "Connection");

	for (size_t i = 0; i < a->n_fields; i++) {
		const struct http_answer_field *f = &a->fields[i];
		bool as_it_is = goes(of_answers, ARRAY_LEN(of_answers), f->name, as->own_name);

		if (is_named(connection, f->name))
			continue;
		if (as_it_is ? put_header(&h, f->name, f->value, e) < 0 : put_changed(&h, f, e) < 0)
			return -1;
	}
	if (h.bytes > HEAD_MAX || h.bytes > room)
		return err_set(e, ERR_PORT, "the head of its answer is too large");
	for (size_t i = 0; !as->own_name && i < ARRAY_LEN(closed_in); i++)
		ret[h.n++] = closed_in[i];
	*ret_n = h.n;
	return 0;
}
