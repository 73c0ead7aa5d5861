#pragma once
/*
 * Parsers for the parts of a request that are checked first: authorities, origins, media types,
 * tokens, query text. Pure functions over untrusted bytes. Anything not plainly valid is invalid.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct http_authority {
	struct str host; /* with the brackets of an IPv6 literal */
	int port; /* -1: absent */
	/* of an allowed host: matches all names with one more label, but not the name itself */
	bool below;
};

/* Parses host[:port] of RFC 3986 section 3.2 without userinfo: letters, digits, dots and hyphens,
 * or an IPv6 literal; no empty label, so no dot at the end; a port from 1 to 65535 without leading
 * zeros. */
bool http_authority_parse(struct str text, struct http_authority *ret);

/* True if text is an authority whose host is one of the n allowed ones, case ignored. An allowed
 * authority with a port requires that port. */
bool http_authority_in(struct str text, const struct http_authority *allowed, size_t n);

/* True if origin is scheme://authority, byte for byte (RFC 6454 section 6.2). */
bool http_origin_is(struct str origin, const char *scheme, struct str authority);

/* True for application/json, with no parameter but charset=utf-8. */
bool http_type_is_json(struct str type);

/* The token of "Bearer TOKEN" (RFC 6750 section 2.1); STR_NONE for anything else. */
struct str http_bearer(struct str authorization);

/* A field's name must be a token (RFC 9110 section 5.6.2); its value must have no control
 * characters but tabs. */
bool http_name_ok(struct str name);
bool http_value_ok(struct str value);

/* Checks the path of a request target: visible ASCII that begins with a slash, with no fragment,
 * backslash, invalid escape or escaped control character, and no segment "." or "..", escaped or
 * not. */
bool http_path_ok(struct str path);

/* Whether a path matches a route's pattern (server.h). *ret_rest is what follows a closing
 * slash. */
bool http_path_is(const char *pattern, struct str path, struct str *ret_rest);

/* The segment of a matching path that stands for {name}; STR_NONE if the pattern has no such
 * segment. */
struct str http_path_segment(const char *pattern, struct str path, const char *name);

/* Finds the next cookie of this name in the value of a Cookie field (RFC 6265), and moves *cookies
 * behind it. False: there is no more. */
bool http_cookie_next(struct str *cookies, const char *name, struct str *ret_value);

/* Parses decimal digits and nothing else; false if the number is too large. */
bool http_length_parse(struct str text, unsigned long long *ret);

/* Decodes %XX and '+' of a query's value. STR_NONE if an escape is invalid, the result is not UTF-8
 * or has a NUL, or there is no memory. */
struct str http_query_decode(struct str text, struct arena *arena);

/* Whether a comma-separated list of tokens contains this one, case ignored. */
bool http_list_has(struct str list, const char *token);

/* Compares ASCII, case ignored. */
bool http_same_bytes(const char *a, const char *b, size_t n);
static inline bool http_same(struct str a, struct str b)
{
	return a.n == b.n && http_same_bytes(a.p, b.p, a.n);
}
