/*
 * Previews: the same servers, at a door and under host names of their own (hub/core/preview.h). A
 * link's token is used once: it becomes a cookie of that host name, and the browser is redirected
 * to the address without the token. So the token is in no history, no Referer and no address that a
 * page could read. The sandbox neither sees that cookie nor can set it.
 *
 * This door serves no route of the hub, and accepts no token of the hub.
 */
#include <stdio.h>

#include "door/expose/internal.h"
#include "hub/core/hub.h"
#include "base/clock.h"
#include "http/message/head.h"

#define COOKIE "holt_preview"

enum { QUERY_MAX = 16 << 10, LOCATION_MAX = 32 << 10 };

/* ---- the token ----------------------------------------------------------------------------- */

struct search {
	const struct previews *previews;
	struct str host;
	struct preview_right *ret;
	bool found;
};

/* A page of another name below the same domain may have set cookies of this name too, so any valid
 * one opens the preview. */
static void look_for_cookie(void *data, struct str name, struct str value)
{
	struct search *s = data;
	struct str token;
	struct err e;

	if (!http_same(name, STR_LIT("Cookie")))
		return;
	while (!s->found && http_cookie_next(&value, COOKIE, &token))
		s->found = preview_open(s->previews, token, s->host, s->ret, &e) == 0;
}

/* The query without the token. */
static int rest_of_query(struct http_request *q, struct buf *to, struct err *e)
{
	autobuf struct buf raw = BUF_INIT(QUERY_MAX);
	struct str left;

	if (http_request_raw_query(q, &raw, e) < 0)
		return -1;
	left = buf_str(&raw);
	while (left.n > 0) {
		const char *end = memchr(left.p, '&', left.n);
		struct str one = { left.p, end ? (size_t)(end - left.p) : left.n };

		left = end ? (struct str){ end + 1, left.n - one.n - 1 } : STR_NONE;
		if (!str_starts(one, "token=") &&
		    buf_addf(to, e, "%c%.*s", to->n ? '&' : '?', STR_ARG(one)) < 0)
			return -1;
	}
	return 0;
}

/* Redirects to the same address without the token, and sets the cookie. */
static int expose_preview_enter(struct http_request *q, struct str token,
				const struct preview_right *r, struct err *e)
{
	autobuf struct buf location = BUF_INIT(LOCATION_MAX), query = BUF_INIT(QUERY_MAX),
			   cookie = BUF_INIT(1 << 10);
	struct http_header headers[] = {
		{ "Location", STR_NONE },
		{ "Set-Cookie", STR_NONE },
		{ "Cache-Control", STR_LIT("no-store") },
		{ "Referrer-Policy", STR_LIT("no-referrer") },
	};

	if (rest_of_query(q, &query, e) < 0 ||
	    buf_addf(&location, e, "%.*s%.*s", STR_ARG(http_request_path(q)),
		     STR_ARG(buf_str(&query))) < 0 ||
	    buf_addf(&cookie, e, COOKIE "=%.*s; Path=/; HttpOnly; SameSite=Lax; Max-Age=%lld%s",
		     STR_ARG(token), (long long)(r->expires_s - clock_unix_ms() / 1000),
		     http_request_is_tls(q) ? "; Secure" : "") < 0)
		return -1;
	headers[0].value = buf_str(&location);
	headers[1].value = buf_str(&cookie);
	http_reply(q, &(struct http_reply){
			      .status = 303, .headers = headers, .n_headers = ARRAY_LEN(headers) });
	return 0;
}

/* Names below one domain are one site: browsers send its cookies along with requests from any of
 * its pages. So requests are told apart by the fetch metadata that browsers send: only a person's
 * navigation may go from page to page. Browsers send them only in secure contexts, that is, over
 * TLS or below localhost, so a door of another domain needs TLS. Old browsers never send them. */
static bool is_for_another_page(struct http_request *q)
{
	struct str from = http_request_header(q, STR_LIT("Sec-Fetch-Site"));

	if (!from.p || str_is(from, "same-origin") || str_is(from, "none"))
		return false;
	return !str_is(http_request_header(q, STR_LIT("Sec-Fetch-Mode")), "navigate") ||
	       !str_is(http_request_header(q, STR_LIT("Sec-Fetch-Dest")), "document");
}

/* Returns 1 if the request was answered. */
static int expose_preview_judge(struct expose *x, struct http_request *q, struct preview_right *ret,
				struct err *e)
{
	struct search s = { .previews = hub_previews(ops_hub(x->ops)),
			    .host = http_request_header(q, STR_LIT("Host")),
			    .ret = ret };
	struct str token = http_request_query(q, STR_LIT("token"));
	bool looks = http_request_method(q) & (HTTP_GET | HTTP_HEAD);

	if (!s.previews)
		return err_set(e, ERR_UNAUTHORIZED, "there are no previews");
	if (is_for_another_page(q))
		return err_set(e, ERR_ORIGIN, "pages of another name may not ask here");
	/* A server may have tokens of its own in its addresses. */
	if (looks && token.n && preview_open(s.previews, token, s.host, ret, e) == 0)
		return expose_preview_enter(q, token, ret, e) < 0 ? -1 : 1;
	http_request_each_header(q, look_for_cookie, &s);
	return s.found ? 0
		       : err_set(e, ERR_LINK,
				 "the link is over, or none of this server's: ask for a new one");
}

/* ---- the request --------------------------------------------------------------------------- */

static size_t expose_preview_drop(void *owner, struct str bytes)
{
	return bytes.n;
}

static void ignore(void *owner)
{
}

/* Makes a refusal wait for the end of the request's body, since the sender would not read it
 * earlier. */
static const struct http_body_events unheard = { expose_preview_drop, ignore, ignore };

void expose_public(struct expose *x, struct http_request *q, const struct preview_right *right,
		   bool at_hub, const struct err *e)
{
	if (right) {
		expose_start(x, q, right, at_hub);
		return;
	}
	http_body_start(q, &unheard, NULL);
	http_reply_error(q, e);
}

static void on_request(void *owner, struct http_request *q)
{
	struct preview_right right;
	struct err e = ERR_INIT;
	int rc = expose_preview_judge(owner, q, &right, &e);

	if (rc <= 0)
		expose_public(owner, q, rc == 0 ? &right : NULL, false, &e);
}

#define ROW(path_)                                                                                 \
	{                                                                                          \
		.path = path_, .methods = EXPOSE_METHODS, .open = true, .any_type = true,          \
		.streams = true, .run = on_request, .doc = "The answer of a server in a sandbox.", \
	}

/* All paths except those that begin with two slashes, which browsers take for another host. */
static const struct http_route rows[] = { ROW("/"), ROW("/{first}"), ROW("/{first}/") };

struct http_routes expose_previews(struct expose *x)
{
	return (struct http_routes){
		.p = rows, .n = ARRAY_LEN(rows), .owner = x, .below = "/", .explain = api_explain
	};
}

struct expose_as expose_as_preview(uint16_t port)
{
	return (struct expose_as){
		.port = port, .prefix = STR_LIT(""), .own_name = true, .cookie = STR_LIT(COOKIE)
	};
}
