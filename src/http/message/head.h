#pragma once
/*
 * What the door reads in the fields of a request before anybody else does: authorities, origins,
 * media types, tokens, query text. Pure functions over bytes that a stranger wrote; whatever is not
 * plainly right is wrong.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

struct http_authority {
	struct str host; /* with the brackets of an IPv6 literal */
	int port; /* -1: none said */
	bool below; /* of one that is allowed: all names of one label more, and not that itself */
};

/* host[:port] of RFC 3986 section 3.2 without userinfo: letters, digits, dots and hyphens, or an
 * IPv6 literal; no empty label, so no dot at the end; a port from 1 to 65535 without zeros
 * before. */
bool http_authority_parse(struct str text, struct http_authority *ret);

/* text is an authority whose host is one of the n allowed, in any case; one with a port wants that
 * port. */
bool http_authority_in(struct str text, const struct http_authority *allowed, size_t n);

/* origin is scheme://authority, byte for byte (RFC 6454 section 6.2). */
bool http_origin_is(struct str origin, const char *scheme, struct str authority);

/* application/json, with no parameter but charset=utf-8. */
bool http_type_is_json(struct str type);

/* The token of "Bearer TOKEN" (RFC 6750 section 2.1); STR_NONE if it is none. */
struct str http_bearer(struct str authorization);

/* A field's name is a token (RFC 9110 section 5.6.2); its value has no control characters but
 * tabs. */
bool http_name_ok(struct str name);
bool http_value_ok(struct str value);

/* A request target's path: visible ASCII that begins with a slash, with no fragment, no backslash,
 * no bad escape, no escaped control character, and no segment "." or "..", escaped or not. */
bool http_path_ok(struct str path);

/* Whether a path is that of a route (http.h): *ret_rest is what follows a closing slash. */
bool http_path_is(const char *pattern, struct str path, struct str *ret_rest);

/* What stands for {name} in a path that matches; STR_NONE where the pattern has no such segment. */
struct str http_path_segment(const char *pattern, struct str path, const char *name);

/* Decimal digits and nothing else, not too large. */
bool http_length_parse(struct str text, unsigned long long *ret);

/* Decodes %XX and '+' of a query's value; STR_NONE where an escape is bad or the result is not
 * UTF-8, has a NUL, or there is no memory. */
struct str http_query_decode(struct str text, struct arena *arena);

/* Whether a comma-separated list of tokens has this one, in any case. */
bool http_list_has(struct str list, const char *token);

/* ASCII, in any case. */
bool http_same_bytes(const char *a, const char *b, size_t n);
static inline bool http_same(struct str a, struct str b)
{
	return a.n == b.n && http_same_bytes(a.p, b.p, a.n);
}
