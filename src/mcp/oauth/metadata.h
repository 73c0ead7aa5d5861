#pragma once
/*
 * Parses and checks OAuth documents; their content is copied into an arena. Nothing is fetched
 * here, and nothing is trusted: a member of the wrong type is an error, and a URL must pass url.h,
 * with `reach`. Members that are not needed are ignored. Pure.
 */
#include "base/arena.h"
#include "base/secret.h"
#include "base/sign.h"
#include "json/document/json.h"
#include "mcp/oauth/url.h"

enum {
	OAUTH_DOCUMENT_MAX = 64 << 10, /* bytes of a document */
	OAUTH_ISSUERS_MAX = 16, /* issuers that a resource may name; further ones are ignored */
	OAUTH_TOKEN_MAX = 16 << 10, /* bytes of a token */
};

/* Methods of client authentication: bits. */
enum oauth_method {
	OAUTH_NONE = 1 << 0,
	OAUTH_BASIC = 1 << 1,
	OAUTH_POST = 1 << 2,
	OAUTH_PRIVATE_KEY_JWT = 1 << 3,
};

/* 0 for an unknown name. */
unsigned oauth_method_of(struct str name);
const char *oauth_method_name(enum oauth_method m);

/* Protected resource metadata, RFC 9728. */
struct oauth_resource {
	const char *resource; /* exactly as written there; tokens are requested for it */
	const char *issuers[OAUTH_ISSUERS_MAX];
	size_t issuers_n; /* 0: none */
	const char *scope; /* all supported scopes; NULL: unknown */
	bool dpop; /* supports DPoP, or requires it */
	bool dpop_required;
	unsigned dpop_algs; /* algorithms for DPoP: 1 << SIGN_…; all bits if it does not say */
};

/* The resource that such a document must describe. */
struct oauth_protected {
	const struct oauth_url *server;
	/* it is where the owner of the whole origin publishes, so it may describe the origin */
	bool by_origin;
	enum oauth_reach reach;
};

/* ERR_UNTRUSTED: it describes another resource; ERR_INVALID. */
int oauth_resource_read(struct str text, const struct oauth_protected *of, struct arena *a,
			struct oauth_resource *ret, struct err *e) MUST_USE;

/* Authorization server metadata, RFC 8414 and OpenID Connect Discovery. */
struct oauth_issuer {
	const char *issuer;
	const char *authorization_endpoint, *token_endpoint; /* NULL: none */
	const char *registration_endpoint, *device_endpoint; /* NULL: none */
	bool s256; /* supports PKCE with S256 */
	bool sends_iss; /* RFC 9207 */
	bool reads_client_id_url; /* supports client id metadata documents */
	bool offline; /* offline_access is one of its scopes */
	unsigned methods; /* for the token endpoint: OAUTH_…; 0: unknown */
	/* for private_key_jwt: 1 << SIGN_…; 0: unknown, or none that we support */
	unsigned jwt_algs;
	unsigned dpop_algs; /* the same for DPoP; 0: no DPoP */
};

/* issuer: the issuer that it must name, exactly; or_slash: also the same with a slash appended, if
 * nobody named the issuer. ERR_UNTRUSTED: another issuer, or endpoints that are not https;
 * ERR_INVALID. */
int oauth_issuer_read(struct str text, const char *issuer, bool or_slash, enum oauth_reach reach,
		      struct arena *a, struct oauth_issuer *ret, struct err *e) MUST_USE;

/* The answer to a registration, RFC 7591. */
struct oauth_registered {
	const char *id;
	struct secret *secret; /* may be NULL; owned by the caller */
	int64_t secret_expires; /* seconds since 1970; 0: never */
	unsigned method; /* 0: unknown */
};
int oauth_registered_read(struct str text, struct arena *a, struct oauth_registered *ret,
			  struct err *e) MUST_USE;

/* The answer of a token endpoint. */
struct oauth_token_answer {
	struct secret *access, *refresh; /* owned by the caller; refresh may be NULL */
	bool dpop; /* token_type */
	bool not_access; /* token_type N_A: the result of an exchange is not an access token */
	const char *issued_type; /* of an exchange; NULL: absent */
	int64_t expires_in; /* seconds; 0: unknown or absurd */
};
int oauth_token_read(struct str text, struct arena *a, struct oauth_token_answer *ret,
		     struct err *e) MUST_USE;
void oauth_token_answer_fini(struct oauth_token_answer *t);

/* The error code of a refusal in JSON; "" if it is absent or invalid. */
void oauth_refusal_read(struct str text, char ret[OAUTH_WORD_MAX + 1]);

/* Device authorization, RFC 8628. */
struct oauth_device {
	struct secret *code;
	const char *user_code, *url;
	const char *url_complete; /* may be NULL */
	unsigned expires_s, interval_s; /* clamped to sensible values */
};
int oauth_device_read(struct str text, enum oauth_reach reach, struct arena *a,
		      struct oauth_device *ret, struct err *e) MUST_USE;

/* Whether a secret can be used in a header: printable ASCII without spaces. */
bool oauth_is_opaque(struct str s, size_t max);
