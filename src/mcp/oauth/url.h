#pragma once
/*
 * URLs of OAuth, which are data of strangers: read by a grammar so narrow that no other reader of
 * them can see another host in it. What comes back by a redirect, and forms. Pure.
 */
#include "base/buf.h"

enum {
	OAUTH_URL_MAX = 2048, /* bytes of a URL */
	OAUTH_CODE_MAX = 4096, /* of a code that comes by a redirect */
	OAUTH_WORD_MAX = 64, /* of an error code */
	OAUTH_STATE_MAX = 128,
};

/* Where a URL of theirs may lead, by its text: what a name stands for is looked at when it is
 * connected to. */
enum oauth_reach {
	OAUTH_PUBLIC, /* a name, or an address of the public Internet */
	OAUTH_LOOPBACK, /* or this machine */
	OAUTH_ANYWHERE, /* or the operator's own network */
};

/* Borrowed from the text. */
struct oauth_url {
	struct str text;
	bool tls; /* https, else http */
	struct str host; /* brackets of IPv6 included */
	unsigned port; /* of the scheme where none is named */
	struct str base; /* scheme to port: the text as far as the path */
	struct str path; /* from its slash on; "" where there is none */
	struct str query; /* from its question mark on; "" likewise */
};

/* An absolute URL, http or https, of printable ASCII, with a host of letters, digits, dots and
 * dashes or an IPv6 literal; no credentials, no fragment. ERR_INVALID, naming it as what ("the
 * token endpoint"). */
int oauth_url_read(struct str text, const char *what, struct oauth_url *ret,
		   struct err *e) MUST_USE;

/* localhost, 127.0.0.0/8 and ::1 as literals: they lead nowhere else, so http will do. */
bool oauth_url_is_loopback(const struct oauth_url *u);

/* https, or loopback where it may be, and no further than reach. An address that is written as only
 * some readers read it ("127.1", "0x7f000001") is none of the public Internet. ERR_NOT_PUBLIC;
 * ERR_UNTRUSTED where it is not https. */
int oauth_url_check(const struct oauth_url *u, const char *what, enum oauth_reach reach,
		    struct err *e) MUST_USE;

bool oauth_url_same_origin(const struct oauth_url *a, const struct oauth_url *b);

/* Whether a resource's identifier is the server's URL: the same origin and path, but for a slash at
 * the end; if it has a query, the same one. */
bool oauth_url_names(const struct oauth_url *resource, const struct oauth_url *server);

enum oauth_place {
	OAUTH_INSERTED, /* host, well-known, path: RFC 8414 and RFC 9728 */
	OAUTH_ROOT, /* host, well-known */
	OAUTH_APPENDED, /* host, path, well-known: OpenID Connect Discovery */
};

/* Appends the URL of a well-known document of u; suffix: "oauth-authorization-server", …. */
int oauth_url_well_known(const struct oauth_url *u, enum oauth_place place, const char *suffix,
			 struct buf *to, struct err *e) MUST_USE;

/* No path but a single slash. */
bool oauth_url_is_root(const struct oauth_url *u);

/* Appends a parameter to a form or query, with & before it unless it is the first (or the last byte
 * is a question mark). */
int oauth_form_add(struct buf *to, const char *name, struct str value, struct err *e) MUST_USE;

/* The bytes of value, encoded as above. */
int oauth_form_encode(struct buf *to, struct str value, struct err *e) MUST_USE;

/* What an authorization server says by sending the browser back. Strings are "" where absent. */
struct oauth_redirect {
	unsigned seen; /* the reader's */
	char code[OAUTH_CODE_MAX + 1];
	char state[OAUTH_STATE_MAX + 1];
	char iss[OAUTH_URL_MAX + 1];
	char error[OAUTH_WORD_MAX + 1]; /* of letters, digits and _.- */
};

/* Reads the query of a URL, or a query alone. ERR_INVALID: too long, a parameter twice, a broken
 * escape, a control character. What it holds is not checked against anything. */
int oauth_redirect_read(struct str url, struct oauth_redirect *ret, struct err *e) MUST_USE;

/* The same for one decoded parameter after the other; r is zeroed at first. */
int oauth_redirect_add(struct oauth_redirect *r, struct str name, struct str value,
		       struct err *e) MUST_USE;

/* Letters, digits and _.- only: what an error code is made of, and may be shown. */
bool oauth_is_word(struct str s);

/* --- scopes, RFC 6749 section 3.3: words with single spaces between them --- */

enum { OAUTH_SCOPE_MAX = 4096 };

/* Words of printable ASCII without quotes and backslashes, however they are spaced; "" is none. */
bool oauth_scope_ok(struct str scope);

bool oauth_scope_has(struct str scope, struct str word);

/* Whether every word of b is in a. */
bool oauth_scope_covers(struct str a, struct str b);

/* Appends those words of more that are not there yet. */
int oauth_scope_add(struct buf *to, struct str more, struct err *e) MUST_USE;
