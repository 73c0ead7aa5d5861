#pragma once
/*
 * URLs of OAuth, which are untrusted: parsed by so narrow a grammar that no other parser can see
 * another host in them. Also redirects and forms. Pure.
 */
#include "base/buf.h"

enum {
	OAUTH_URL_MAX = 2048, /* bytes of a URL */
	OAUTH_CODE_MAX = 4096, /* bytes of an authorization code */
	OAUTH_WORD_MAX = 64, /* characters of an error code */
	OAUTH_STATE_MAX = 128,
};

/* Where a URL may lead, judged by its text. The addresses of a name are checked when it is
 * connected to. */
enum oauth_reach {
	OAUTH_PUBLIC, /* names, and addresses of the public Internet */
	OAUTH_LOOPBACK, /* also this machine */
	OAUTH_ANYWHERE, /* also the operator's own network */
};

/* Borrowed from the text. */
struct oauth_url {
	struct str text;
	bool tls; /* true: https, false: http */
	struct str host; /* with the brackets of IPv6 */
	unsigned port; /* the scheme's default if none is named */
	struct str base; /* from the scheme to the port */
	struct str path; /* from the first slash on; "" if absent */
	struct str query; /* from the question mark on; "" if absent */
};

/* Parses an absolute URL, http or https, of printable ASCII, with a host of letters, digits, dots
 * and dashes or an IPv6 literal; no credentials, no fragment. ERR_INVALID; the message calls it
 * `what` ("the token endpoint"). */
int oauth_url_read(struct str text, const char *what, struct oauth_url *ret,
		   struct err *e) MUST_USE;

/* True for localhost, 127.0.0.0/8 and ::1 as literals: they never leave this machine, so http is
 * safe. */
bool oauth_url_is_loopback(const struct oauth_url *u);

/* Requires https, or loopback where that is allowed, and a target within `reach`. An address in a
 * form that only some parsers accept ("127.1", "0x7f000001") is not public. ERR_NOT_PUBLIC;
 * ERR_UNTRUSTED if it is not https. */
int oauth_url_check(const struct oauth_url *u, const char *what, enum oauth_reach reach,
		    struct err *e) MUST_USE;

bool oauth_url_same_origin(const struct oauth_url *a, const struct oauth_url *b);

/* Whether a resource's identifier is the server's URL: the same origin and path, except for a slash
 * at the end; if it has a query, the same query. */
bool oauth_url_names(const struct oauth_url *resource, const struct oauth_url *server);

enum oauth_place {
	OAUTH_INSERTED, /* host, well-known, path: RFC 8414 and RFC 9728 */
	OAUTH_ROOT, /* host, well-known */
	OAUTH_APPENDED, /* host, path, well-known: OpenID Connect Discovery */
};

/* Appends the URL of a well-known document of u; suffix: "oauth-authorization-server", …. */
int oauth_url_well_known(const struct oauth_url *u, enum oauth_place place, const char *suffix,
			 struct buf *to, struct err *e) MUST_USE;

/* Whether the path is empty or a single slash. */
bool oauth_url_is_root(const struct oauth_url *u);

/* Appends a parameter to a form or query, after & unless it is the first or follows a question
 * mark. */
int oauth_form_add(struct buf *to, const char *name, struct str value, struct err *e) MUST_USE;

/* Appends the bytes of value, encoded as above. */
int oauth_form_encode(struct buf *to, struct str value, struct err *e) MUST_USE;

/* The parameters of an authorization server's redirect. Strings are "" if absent. */
struct oauth_redirect {
	unsigned seen; /* used by the parser */
	char code[OAUTH_CODE_MAX + 1];
	char state[OAUTH_STATE_MAX + 1];
	char iss[OAUTH_URL_MAX + 1];
	char error[OAUTH_WORD_MAX + 1]; /* only letters, digits and _.- */
};

/* Parses the query of a URL, or a query alone. ERR_INVALID: too long, a repeated parameter, an
 * invalid escape, a control character. The values are not checked. */
int oauth_redirect_read(struct str url, struct oauth_redirect *ret, struct err *e) MUST_USE;

/* The same for single decoded parameters; r must be zeroed first. */
int oauth_redirect_add(struct oauth_redirect *r, struct str name, struct str value,
		       struct err *e) MUST_USE;

/* True for letters, digits and _.- only, as in error codes, which may be shown. */
bool oauth_is_word(struct str s);

/* --- scopes, RFC 6749 section 3.3: words with single spaces between them --- */

enum { OAUTH_SCOPE_MAX = 4096 };

/* Parses words of printable ASCII without quotes and backslashes, with any spacing; "": none. */
bool oauth_scope_ok(struct str scope);

bool oauth_scope_has(struct str scope, struct str word);

/* True if every word of b is in a. */
bool oauth_scope_covers(struct str a, struct str b);

/* Appends those words of more that are not in it yet. */
int oauth_scope_add(struct buf *to, struct str more, struct err *e) MUST_USE;
