#pragma once
/*
 * What a server says with 401 and 403: WWW-Authenticate (RFC 9110 section 11.6.1), as far as OAuth is meant
 * by it (RFC 6750, RFC 9449, RFC 9728). Pure.
 */
#include "mcp/oauth_scope.h"
#include "mcp/oauth_url.h"

enum { OAUTH_CHALLENGE_MAX = 16384 }; /* bytes of the header */

/* Strings are "" where absent. */
struct oauth_challenge {
	bool bearer, dpop; /* the schemes that are offered */
	char resource_metadata[OAUTH_URL_MAX + 1]; /* any text: not checked */
	char scope[OAUTH_SCOPE_MAX + 1]; /* well-formed */
	char error[OAUTH_WORD_MAX + 1]; /* a word */
};

/* Several challenges may stand in one header; those of other schemes are skipped. Of one that breaks the
 * grammar and what follows it nothing is taken: who sends garbage gets what the well-known URLs say.
 * Values that are too long, or no scope or word, are as if absent. */
void oauth_challenge_read(struct str header, struct oauth_challenge *ret);
