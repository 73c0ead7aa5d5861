#pragma once
/*
 * Parses WWW-Authenticate of a 401 or 403 (RFC 9110 section 11.6.1), as far as OAuth uses it (RFC
 * 6750, RFC 9449, RFC 9728). Pure.
 */
#include "mcp/oauth/url.h"

enum {
	OAUTH_CHALLENGE_MAX = 16384, /* bytes of the header */
	OAUTH_ALGS_MAX = 255,
};

/* Strings are "" where absent. */
struct oauth_challenge {
	bool bearer, dpop; /* the schemes that are offered */
	char resource_metadata[OAUTH_URL_MAX + 1]; /* any text, not checked */
	char scope[OAUTH_SCOPE_MAX + 1]; /* well-formed */
	char error[OAUTH_WORD_MAX + 1]; /* characters of an error code */
	char algs[OAUTH_ALGS_MAX + 1]; /* for DPoP, separated by spaces */
};

/* A header may have several challenges; those of other schemes are skipped. Values of one of the
 * two schemes take precedence: dpop says which, by the request's token. Nothing is taken from a
 * challenge with a syntax error or from those after it; the well-known URLs are used instead.
 * Values that are too long or invalid count as absent. */
void oauth_challenge_read(struct str header, bool dpop, struct oauth_challenge *ret);
