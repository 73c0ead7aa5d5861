/*
 * What strangers say to OAuth: the first byte picks the reader, the rest is the document, the
 * challenge, the URL or the redirect. What is accepted keeps the promises of its header; what is
 * refused is an error of the kinds that are promised.
 *
 */
#include <string.h>

#include "fuzz.h"
#include "mcp/oauth/challenge.h"
#include "mcp/oauth/metadata.h"
#include "mcp/oauth/url.h"

enum { ARENA_MAX = 1 << 18 };

static void check_refusal(int rc, const struct err *e)
{
	MUST(rc == 0 || e->code == ERR_INVALID || e->code == ERR_DENIED ||
	     e->code == ERR_UNTRUSTED || e->code == ERR_NOT_PUBLIC || e->code == ERR_TOO_LARGE);
}

static struct oauth_url url_of(const char *text)
{
	struct oauth_url u;
	struct err e;

	MUST(oauth_url_read(str_of(text), "it", &u, &e) == 0);
	return u;
}

/* A URL of a document: https, or on this machine; nothing in it means anything to a shell or a
 * browser but a place on the net. */
static void check_url(const char *text)
{
	struct oauth_url u;

	if (!text)
		return;
	u = url_of(text);
	MUST(u.tls || oauth_url_is_loopback(&u));
	MUST(!strpbrk(text, "\"<>\\^`{|}# \r\n") && !memchr(u.base.p, '@', u.base.n));
}

static void fuzz_url(struct str text)
{
	struct oauth_url u, again;
	autobuf struct buf to = BUF_INIT(1 << 16);
	struct err e = ERR_INIT;
	int rc = oauth_url_read(text, "it", &u, &e);

	check_refusal(rc, &e);
	if (rc < 0)
		return;
	MUST(u.base.n + u.path.n + u.query.n == text.n && u.host.n > 0 && u.port > 0);
	MUST(u.port <= 65535 && oauth_url_same_origin(&u, &u) && oauth_url_names(&u, &u));
	for (enum oauth_place p = OAUTH_INSERTED; p <= OAUTH_APPENDED; p++) {
		to.n = 0;
		MUST(oauth_url_well_known(&u, p, "x", &to, &e) == 0);
		if (to.n > OAUTH_URL_MAX)
			continue;
		again = url_of(to.p);
		MUST(oauth_url_same_origin(&u, &again));
	}
}

static void fuzz_redirect(struct str text)
{
	struct oauth_redirect r;
	struct err e = ERR_INIT;
	int rc = oauth_redirect_read(text, &r, &e);

	check_refusal(rc, &e);
	MUST(rc < 0 || !r.error[0] || oauth_is_word(str_of(r.error)));
	MUST(rc < 0 || !strpbrk(r.code, "\r\n"));
}

static void fuzz_challenge(struct str text)
{
	struct oauth_challenge c;

	oauth_challenge_read(text, text.n % 2, &c);
	MUST(c.bearer || c.dpop || (!c.scope[0] && !c.error[0] && !c.resource_metadata[0]));
	MUST(oauth_scope_ok(str_of(c.scope)) && (!c.error[0] || oauth_is_word(str_of(c.error))));
	MUST(strlen(c.resource_metadata) <= OAUTH_URL_MAX);
}

static void fuzz_resource(struct str text, struct arena *a)
{
	struct oauth_url server = url_of("https://rs/mcp"), own;
	struct oauth_resource r;
	struct err e = ERR_INIT;
	struct oauth_protected of = { &server, text.n % 2, OAUTH_LOOPBACK };
	int rc = oauth_resource_read(text, &of, a, &r, &e);

	check_refusal(rc, &e);
	if (rc < 0)
		return;
	own = url_of(r.resource);
	MUST(oauth_url_same_origin(&own, &server) && r.issuers_n <= OAUTH_ISSUERS_MAX);
	MUST(oauth_url_names(&own, &server) || (of.by_origin && oauth_url_is_root(&own)));
	for (size_t i = 0; i < r.issuers_n; i++)
		check_url(r.issuers[i]);
	MUST(!r.scope || oauth_scope_ok(str_of(r.scope)));
}

static void fuzz_issuer(struct str text, struct arena *a)
{
	struct oauth_issuer s;
	struct err e = ERR_INIT;
	int rc = oauth_issuer_read(text, "https://as", false, OAUTH_LOOPBACK, a, &s, &e);

	check_refusal(rc, &e);
	if (rc < 0)
		return;
	MUST(strcmp(s.issuer, "https://as") == 0 && s.token_endpoint);
	check_url(s.authorization_endpoint);
	check_url(s.token_endpoint);
	check_url(s.registration_endpoint);
	check_url(s.device_endpoint);
}

static void check_secret(const struct secret *s)
{
	MUST(!s || oauth_is_opaque(secret_expose(s, "fuzzed"), OAUTH_TOKEN_MAX));
}

static void fuzz_token(struct str text, struct arena *a)
{
	struct oauth_token_answer t = { .access = NULL };
	struct err e = ERR_INIT;
	int rc = oauth_token_read(text, a, &t, &e);
	char word[OAUTH_WORD_MAX + 1];

	check_refusal(rc, &e);
	MUST(rc < 0 || (t.access && t.expires_in >= 0));
	check_secret(t.access);
	check_secret(t.refresh);
	oauth_token_answer_fini(&t);
	oauth_refusal_read(text, word);
	MUST(!word[0] || oauth_is_word(str_of(word)));
}

static void fuzz_registered(struct str text, struct arena *a)
{
	struct oauth_registered r = { .id = NULL };
	struct err e = ERR_INIT;
	int rc = oauth_registered_read(text, a, &r, &e);

	check_refusal(rc, &e);
	MUST(rc < 0 || (r.id[0] && r.secret_expires >= 0));
	check_secret(r.secret);
	secret_free(r.secret);
}

static void fuzz_device(struct str text, struct arena *a)
{
	struct oauth_device d = { .code = NULL };
	struct err e = ERR_INIT;
	int rc = oauth_device_read(text, OAUTH_LOOPBACK, a, &d, &e);

	check_refusal(rc, &e);
	if (rc == 0) {
		MUST(d.code && d.user_code[0] && d.interval_s > 0 && d.expires_s > 0);
		check_url(d.url);
		check_url(d.url_complete);
	}
	secret_free(d.code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	AUTO(arena_free) struct arena *a = arena_new(ARENA_MAX);
	struct str text = { (const char *)data + 1, n > 0 ? n - 1 : 0 };

	MUST(a);
	switch (n > 0 ? data[0] : 0) {
	case 'u':
		fuzz_url(text);
		break;
	case 'r':
		fuzz_redirect(text);
		break;
	case 'c':
		fuzz_challenge(text);
		break;
	case 'p':
		fuzz_resource(text, a);
		break;
	case 'i':
		fuzz_issuer(text, a);
		break;
	case 't':
		fuzz_token(text, a);
		break;
	case 'd':
		fuzz_device(text, a);
		break;
	case 'g':
		fuzz_registered(text, a);
		break;
	}
	return 0;
}
