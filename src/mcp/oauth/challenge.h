#pragma once
/*
 * What a server says with 401 and 403: WWW-Authenticate (RFC 9110 section 11.6.1), as far as OAuth
 * is meant by it (RFC 6750, RFC 9449, RFC 9728). Pure.
 */
#include "mcp/oauth/url.h"

enum {
	OAUTH_CHALLENGE_MAX = 16384, /* bytes of the header */
	OAUTH_ALGS_MAX = 255,
};

/* Strings are "" where absent. */
struct oauth_challenge {
	bool bearer, dpop; /* the schemes that are offered */
	char resource_metadata[OAUTH_URL_MAX + 1]; /* any text: not checked */
	char scope[OAUTH_SCOPE_MAX + 1]; /* well-formed */
	char error[OAUTH_WORD_MAX + 1]; /* a word */
	char algs[OAUTH_ALGS_MAX + 1]; /* of DPoP, with spaces between */
};

/* Several challenges may stand in one header; those of other schemes are skipped. What those of one
 * scheme say goes before what the other's do: dpop tells which, by what the request was sent with.
 * Of one that breaks the grammar and what follows it nothing is taken: who sends garbage gets what
 * the well-known URLs say. Values that are too long, or no scope or word, are as if absent. */
void oauth_challenge_read(struct str header, bool dpop, struct oauth_challenge *ret);
