#pragma once
/*
 * Documents of OAuth, read and checked; what they say is copied into an arena. Nothing is fetched
 * here and nothing is believed: a member of a wrong type is an error, a URL is one that url.h reads
 * and checks by `reach`. What nobody needs is not looked at. Pure.
 */
#include "base/arena.h"
#include "base/secret.h"
#include "base/sign.h"
#include "json/document/json.h"
#include "mcp/oauth/url.h"

enum {
	OAUTH_DOCUMENT_MAX = 64 << 10, /* bytes of a document */
	OAUTH_ISSUERS_MAX = 16, /* that a resource names; more are not looked at */
	OAUTH_TOKEN_MAX = 16 << 10, /* bytes of a token */
};

/* How a client proves who it is: bits. */
enum oauth_method {
	OAUTH_NONE = 1 << 0,
	OAUTH_BASIC = 1 << 1,
	OAUTH_POST = 1 << 2,
	OAUTH_PRIVATE_KEY_JWT = 1 << 3,
};

/* 0 where the name is none of these. */
unsigned oauth_method_of(struct str name);
const char *oauth_method_name(enum oauth_method m);

/* Protected resource metadata, RFC 9728. */
struct oauth_resource {
	const char *resource; /* as it is written there; that is what tokens are asked for */
	const char *issuers[OAUTH_ISSUERS_MAX];
	size_t issuers_n; /* 0: none is named */
	const char *scope; /* all that are supported; NULL: not said */
	bool dpop; /* it takes DPoP, or wants it */
	bool dpop_required;
	unsigned dpop_algs; /* that it takes: 1 << SIGN_…; all where it does not say */
};

/* What such a document has to be of. */
struct oauth_protected {
	const struct oauth_url *server;
	bool by_origin; /* it stands where who has the whole origin publishes: it may be of that */
	enum oauth_reach reach;
};

/* ERR_UNTRUSTED where it is another resource's; else ERR_INVALID. */
int oauth_resource_read(struct str text, const struct oauth_protected *of, struct arena *a,
			struct oauth_resource *ret, struct err *e) MUST_USE;

/* Authorization server metadata, RFC 8414 and OpenID Connect Discovery. */
struct oauth_issuer {
	const char *issuer;
	const char *authorization_endpoint, *token_endpoint; /* NULL: none */
	const char *registration_endpoint, *device_endpoint; /* NULL: none */
	bool s256; /* PKCE as it must be */
	bool sends_iss; /* RFC 9207 */
	bool reads_client_id_url; /* client id metadata documents */
	bool offline; /* offline_access is a scope of it */
	unsigned methods; /* of the token endpoint: OAUTH_…; 0: not said */
	unsigned jwt_algs; /* of private_key_jwt: 1 << SIGN_…; 0: not said, or none that we know */
	unsigned dpop_algs; /* the same; 0: no DPoP */
};

/* issuer: who it must be of, to the letter; or_slash: the same with a slash behind it will do,
 * where nobody told the issuer. ERR_UNTRUSTED for another's, and for endpoints that are not https;
 * else ERR_INVALID. */
int oauth_issuer_read(struct str text, const char *issuer, bool or_slash, enum oauth_reach reach,
		      struct arena *a, struct oauth_issuer *ret, struct err *e) MUST_USE;

/* The answer to a registration, RFC 7591. */
struct oauth_registered {
	const char *id;
	struct secret *secret; /* may be NULL; the reader's */
	int64_t secret_expires; /* seconds since 1970; 0: never */
	unsigned method; /* 0: not said */
};
int oauth_registered_read(struct str text, struct arena *a, struct oauth_registered *ret,
			  struct err *e) MUST_USE;

/* The answer of a token endpoint. */
struct oauth_token_answer {
	struct secret *access, *refresh; /* the reader's; refresh may be NULL */
	bool dpop; /* token_type */
	bool not_access; /* token_type N_A: what was exchanged is no access token */
	const char *issued_type; /* of an exchange; NULL */
	int64_t expires_in; /* seconds; 0: not said, or nothing to believe */
};
int oauth_token_read(struct str text, struct arena *a, struct oauth_token_answer *ret,
		     struct err *e) MUST_USE;
void oauth_token_answer_fini(struct oauth_token_answer *t);

/* The error code of a refusal in JSON; "" where there is none, or no word. */
void oauth_refusal_read(struct str text, char ret[OAUTH_WORD_MAX + 1]);

/* Device authorization, RFC 8628. */
struct oauth_device {
	struct secret *code;
	const char *user_code, *url;
	const char *url_complete; /* may be NULL */
	unsigned expires_s, interval_s; /* within bounds */
};
int oauth_device_read(struct str text, enum oauth_reach reach, struct arena *a,
		      struct oauth_device *ret, struct err *e) MUST_USE;

/* What a secret must be made of to stand in a header: printable ASCII without spaces. */
bool oauth_is_opaque(struct str s, size_t max);
