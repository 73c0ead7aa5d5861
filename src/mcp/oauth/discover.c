/*
 * Finds the resource (protected resource metadata, RFC 9728), then its authorization server
 * (authorization server metadata, RFC 8414, and OpenID Connect Discovery). Each has a list of URLs,
 * tried in order. If there is no document at one, the next is tried. A wrong document ends the
 * search, since it comes from a broken server or an attacker; so does a server that can't answer
 * now. A page of HTML counts as no document.
 *
 * A server of 2025-03-26 has no resource metadata. It is its own authorization server, with
 * metadata, or endpoints of fixed names, below its host.
 */
#include "mcp/oauth/internal.h"

#define OF_RESOURCE "oauth-protected-resource"
#define OF_SERVER "oauth-authorization-server"
#define OF_OPENID "openid-configuration"

static int fetch_resource(struct mcp_oauth *o, struct err *e);
static int fetch_issuer(struct mcp_oauth *o, struct err *e);

/* --- the lists of URLs: 1 and the URL, or 0 at the end --- */

static int resource_url(struct mcp_oauth *o, unsigned at, struct buf *to, struct err *e)
{
	const char *named = o->challenge.resource_metadata;
	struct oauth_url u;

	if (named[0] && at == 0) {
		if (oauth_url_read(str_of(named), "resource_metadata", &u, e) < 0 ||
		    oauth_url_check(&u, "resource_metadata", o->reach, e) < 0 ||
		    buf_addf(to, e, "%s", named) < 0)
			return -1;
		return 1;
	}
	at -= named[0] != '\0';
	if (oauth_url_is_root(&o->server))
		at++;
	if (at > 1)
		return 0;
	return oauth_url_well_known(&o->server, at == 0 ? OAUTH_INSERTED : OAUTH_ROOT, OF_RESOURCE,
				    to, e) < 0
		     ? -1
		     : 1;
}

static int issuer_url(struct mcp_oauth *o, unsigned at, struct buf *to, struct err *e)
{
	static const struct {
		enum oauth_place place;
		const char *suffix;
	} list[] = {
		{ OAUTH_INSERTED, OF_SERVER },
		{ OAUTH_INSERTED, OF_OPENID },
		{ OAUTH_APPENDED, OF_OPENID },
	};
	struct oauth_url u;

	if (oauth_url_read(str_of(o->issuer_url), "the authorization server", &u, e) < 0)
		return -1;
	if (at >= ARRAY_LEN(list) - oauth_url_is_root(&u))
		return 0;
	return oauth_url_well_known(&u, list[at].place, list[at].suffix, to, e) < 0 ? -1 : 1;
}

/* --- the authorization server --- */

/* Takes the endpoints that 2025-03-26 defines for servers without metadata. */
static int discover_without(struct mcp_oauth *o, struct err *e)
{
	struct oauth_issuer *s = &o->issuer;

	if (!o->legacy)
		return err_set(e, ERR_INVALID, "the authorization server %.150s has no metadata",
			       o->issuer_url);
	*s = (struct oauth_issuer){ .issuer = o->issuer_url, .s256 = true };
	s->authorization_endpoint = arena_printf(o->found, e, "%s/authorize", o->issuer_url);
	s->token_endpoint = arena_printf(o->found, e, "%s/token", o->issuer_url);
	s->registration_endpoint = arena_printf(o->found, e, "%s/register", o->issuer_url);
	return s->authorization_endpoint && s->token_endpoint && s->registration_endpoint ? 0 : -1;
}

/* Whether it is a document: 1, or 0 if there is none. A server with a problem leaves that open: its
 * document may exist, so neither the next URL nor an older revision may replace it. */
static int discover_look(const struct oauth_answer *a, struct err *e)
{
	size_t i = 0;

	if (a->status == 429 || a->status >= 500)
		return err_set(e, ERR_TRANSPORT, "answered with HTTP %d", a->status);
	while (i < a->body.n && strchr(" \t\r\n", a->body.p[i]) && a->body.p[i])
		i++;
	return a->status == 200 && i < a->body.n && a->body.p[i] == '{';
}

static void on_issuer(struct mcp_oauth *o, const struct oauth_answer *a, const struct err *why)
{
	struct err e = why ? *why : ERR_INIT;
	int is = why ? -1 : discover_look(a, &e), rc = -1;

	if (is < 0) {
		err_wrap(&e, "metadata of the authorization server");
	} else if (is) {
		rc = oauth_issuer_read(a->body, o->issuer_url, o->legacy, o->reach, o->found,
				       &o->issuer, &e) < 0
			   ? -1
			   : 1;
	} else {
		o->at++;
		rc = fetch_issuer(o, &e);
	}
	if (rc < 0) {
		o->issuer.issuer = NULL;
		oauth_flow_failed(o, &e);
	} else if (rc > 0) {
		oauth_flow_found(o);
	}
}

/* 1 if there is nothing to fetch. */
static int fetch_issuer(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf url = BUF_INIT(2 * OAUTH_URL_MAX);
	struct oauth_request q = { .revision = o->legacy ? "2025-03-26" : NULL };
	int rc = issuer_url(o, o->at, &url, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return discover_without(o, e) < 0 ? -1 : 1;
	q.url = url.p;
	return oauth_fetch_start(o, &q, on_issuer, e);
}

/* --- the choice of an issuer --- */

static bool names(const struct oauth_resource *r, const char *issuer)
{
	for (size_t i = 0; i < r->issuers_n; i++) {
		if (strcmp(r->issuers[i], issuer) == 0)
			return true;
	}
	return false;
}

static int pick_issuer(struct mcp_oauth *o, struct err *e)
{
	const struct oauth_resource *r = &o->resource;

	o->legacy = !r->resource && !o->opt.issuer;
	if (!o->legacy && r->issuers_n == 0 && !o->opt.issuer)
		return err_set(e, ERR_INVALID,
			       "the server's metadata name no authorization server");
	if (o->opt.issuer && r->issuers_n > 0 && !names(r, o->opt.issuer))
		return err_set(e, ERR_UNTRUSTED,
			       "the server does not name the authorization server that is to be "
			       "used, but %.120s",
			       r->issuers[0]);
	if (o->opt.issuer)
		o->issuer_url = o->opt.issuer;
	else if (o->given.issuer && names(r, o->given.issuer))
		o->issuer_url = o->given.issuer;
	else if (o->token.issuer && names(r, o->token.issuer))
		o->issuer_url = arena_dup(o->found, str_of(o->token.issuer), e);
	else if (r->issuers_n > 0)
		o->issuer_url = r->issuers[0];
	else
		o->issuer_url = arena_dup(o->found, o->server.base, e);
	return o->issuer_url ? 0 : -1;
}

static int go_on(struct mcp_oauth *o, struct err *e)
{
	struct str path = oauth_url_is_root(&o->server) ? STR_LIT("") : o->server.path;

	if (pick_issuer(o, e) < 0)
		return -1;
	/* the server's URL without query, and without the slash if that is the whole path */
	if (!o->resource.resource)
		o->resource.resource = arena_printf(o->found, e, "%.*s%.*s",
						    STR_ARG(o->server.base), STR_ARG(path));
	if (!o->resource.resource)
		return -1;
	o->at = 0;
	return fetch_issuer(o, e);
}

/* --- the resource --- */

/* Whether the document is at a well-known URL of the server's origin, where one of several tenants
 * can't publish. A document elsewhere was named by the server, and speaks for that server only. */
static int is_by_origin(struct mcp_oauth *o, bool *ret, struct err *e)
{
	autobuf struct buf url = BUF_INIT(2 * OAUTH_URL_MAX);
	const char *named = o->challenge.resource_metadata;

	*ret = !named[0] || o->at > 0;
	for (enum oauth_place at = OAUTH_INSERTED; !*ret && at <= OAUTH_ROOT; at++) {
		url.n = 0;
		if (oauth_url_well_known(&o->server, at, OF_RESOURCE, &url, e) < 0)
			return -1;
		*ret = str_is(buf_str(&url), named);
	}
	return 0;
}

static int read_resource(struct mcp_oauth *o, const struct oauth_answer *a, struct err *e)
{
	struct oauth_protected of = { .server = &o->server, .reach = o->reach };

	if (is_by_origin(o, &of.by_origin, e) < 0 ||
	    oauth_resource_read(a->body, &of, o->found, &o->resource, e) < 0)
		return -1;
	return go_on(o, e);
}

static void on_resource(struct mcp_oauth *o, const struct oauth_answer *a, const struct err *why)
{
	struct err e = why ? *why : ERR_INIT;
	int is = why ? -1 : discover_look(a, &e), rc = -1;

	if (is < 0) {
		err_wrap(&e, "metadata of the server");
	} else if (is) {
		rc = read_resource(o, a, &e);
	} else {
		o->at++;
		rc = fetch_resource(o, &e);
	}
	if (rc < 0)
		oauth_flow_failed(o, &e);
	else if (rc > 0)
		oauth_flow_found(o);
}

/* 1 if there is nothing to fetch. */
static int fetch_resource(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf url = BUF_INIT(2 * OAUTH_URL_MAX);
	struct oauth_request q = { .url = NULL };
	int rc = resource_url(o, o->at, &url, e);

	if (rc < 0)
		return -1;
	if (rc == 0)
		return go_on(o, e);
	q.url = url.p;
	return oauth_fetch_start(o, &q, on_resource, e);
}

int oauth_discover_start(struct mcp_oauth *o, struct err *e)
{
	arena_free(o->found);
	o->issuer = (struct oauth_issuer){ .issuer = NULL };
	o->resource = (struct oauth_resource){ .dpop_algs = ~0u };
	o->issuer_url = NULL;
	o->at = 0;
	o->found = arena_new(OAUTH_ARENA_MAX);
	if (!o->found)
		return oauth_no_memory(e);
	return fetch_resource(o, e); /* there is always one to try, so this is never 1 */
}
