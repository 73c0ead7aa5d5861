/*
 * The browser's way. It leaves with PKCE (RFC 7636), the resource (RFC 8707) and a state that is
 * valid for one answer. It returns with the same state and, if the server says that it sends one,
 * its issuer (RFC 9207), compared exactly. The verifier is sent only to the token endpoint of that
 * issuer.
 */
#include "base/clock.h"
#include "mcp/oauth/internal.h"

enum { QUERY_MAX = 32 << 10 };

void oauth_authorize_end(struct mcp_oauth *o)
{
	secret_free(take_ptr(o->verifier));
	secret_free(take_ptr(o->code));
	explicit_bzero(o->consent, sizeof(o->consent));
}

static int make_secrets(struct mcp_oauth *o, struct err *e)
{
	AUTO(secret_free) struct secret *state = secret_random("", e);
	struct str text;

	oauth_authorize_end(o);
	o->verifier = secret_random("", e); /* 64 characters: RFC 7636 wants 43 to 128 */
	if (!o->verifier || !state)
		return -1;
	text = secret_expose(state, "state of a login");
	memcpy(o->consent, text.p, text.n);
	o->consent[text.n] = '\0';
	return 0;
}

static int write_url(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	const char *endpoint = o->issuer.authorization_endpoint;
	const struct str scope = buf_str(&o->scope);
	autobuf struct buf challenge = BUF_INIT(128), print = BUF_INIT(128);

	if (sign_digest(secret_expose(o->verifier, "its digest for a login"), &challenge, e) < 0 ||
	    buf_addf(to, e, "%s%s", endpoint, strchr(endpoint, '?') ? "" : "?") < 0 ||
	    oauth_form_add(to, "response_type", STR_LIT("code"), e) < 0 ||
	    oauth_form_add(to, "client_id", str_of(o->me->id), e) < 0 ||
	    oauth_form_add(to, "redirect_uri", str_of(o->redirect), e) < 0 ||
	    oauth_form_add(to, "code_challenge", buf_str(&challenge), e) < 0 ||
	    oauth_form_add(to, "code_challenge_method", STR_LIT("S256"), e) < 0 ||
	    oauth_form_add(to, "state", str_of(o->consent), e) < 0 ||
	    oauth_form_add(to, "resource", str_of(o->resource.resource), e) < 0 ||
	    (scope.n > 0 && oauth_form_add(to, "scope", scope, e) < 0))
		return -1;
	/* OpenID Connect Core, section 11: without it offline_access may be ignored */
	if (oauth_scope_has(scope, STR_LIT("offline_access")) &&
	    oauth_form_add(to, "prompt", STR_LIT("consent"), e) < 0)
		return -1;
	if (!o->dpop)
		return 0;
	if (sign_key_thumbprint(o->dpop_key, &print, e) < 0)
		return -1;
	return oauth_form_add(to, "dpop_jkt", buf_str(&print), e);
}

int oauth_authorize_start(struct mcp_oauth *o, struct err *e)
{
	autobuf struct buf url = BUF_INIT(QUERY_MAX);

	if (make_secrets(o, e) < 0 || write_url(o, &url, e) < 0)
		return -1;
	oauth_set_state(o, OAUTH_CONSENT);
	o->shown = true;
	o->opt.handler->browse(o->opt.owner, url.p); /* the handler may answer at once */
	return 0;
}

int oauth_authorize_read(struct mcp_oauth *o, const struct oauth_redirect *r, bool *is_ours,
			 struct err *e)
{
	AUTO(secret_free)
	struct secret *state = o->consent[0] ? secret_new(str_of(o->consent), e) : NULL;

	*is_ours = o->state == OAUTH_CONSENT && state && secret_is(state, str_of(r->state));
	if (!*is_ours)
		return err_set(e, ERR_INVALID, "this is no answer to the login that is waited for");
	explicit_bzero(o->consent, sizeof(o->consent));
	if (r->iss[0] ? strcmp(r->iss, o->issuer.issuer) != 0 : o->issuer.sends_iss)
		return err_set(e, ERR_UNTRUSTED, "the login was answered by %s, not by %.120s",
			       r->iss[0] ? "another issuer" : "nobody who says who it is",
			       o->issuer.issuer);
	if (r->error[0])
		return err_set(e, ERR_LOGIN, "the login was refused: %s", r->error);
	if (!oauth_is_opaque(str_of(r->code), OAUTH_CODE_MAX))
		return err_set(e, ERR_INVALID, "the login brought no code");
	o->code = secret_new(str_of(r->code), e);
	return o->code ? 0 : -1;
}

/* --- without a browser: device authorization, RFC 8628. The user types a code in elsewhere, and we
 * poll meanwhile. --- */

static int device_take(struct mcp_oauth *o, struct str body, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(OAUTH_DOCUMENT_MAX * 2);
	const struct mcp_oauth_handler *h = o->opt.handler;
	struct oauth_device d;
	unsigned ms;

	if (!a)
		return oauth_no_memory(e);
	if (oauth_device_read(body, o->reach, a, &d, e) < 0)
		return -1;
	ms = d.expires_s * 1000 < o->opt.person_ms ? d.expires_s * 1000 : o->opt.person_ms;
	o->code = d.code;
	o->device_ms = d.interval_s * 1000;
	o->device_end = clock_ms() + ms;
	o->shown = true;
	oauth_flow_device_shown(o);
	h->device(o->opt.owner, d.url, d.user_code, d.url_complete, (ms + 999) / 1000);
	return 0;
}

static void device_answered(struct mcp_oauth *o, const struct oauth_answer *a,
			    const struct err *why)
{
	struct err e = why ? *why : ERR_INIT;
	char word[OAUTH_WORD_MAX + 1];

	if (why) {
		err_wrap(&e, "device endpoint");
	} else if (a->status == 200) {
		if (device_take(o, a->body, &e) == 0)
			return;
	} else {
		oauth_refusal_read(a->body, word);
		err_set(&e, ERR_LOGIN, "the device endpoint refused: %s (HTTP %d)",
			word[0] ? word : "no reason given", a->status);
	}
	oauth_flow_failed(o, &e);
}

int oauth_device_start(struct mcp_oauth *o, struct err *e)
{
	autowipe struct buf form = BUF_INIT(OAUTH_FORM_MAX),
			    authorization = BUF_INIT(OAUTH_FORM_MAX);
	struct oauth_request q = { .url = o->issuer.device_endpoint,
				   .type = "application/x-www-form-urlencoded" };

	oauth_authorize_end(o);
	if (!buf_reserve(&form, OAUTH_FORM_ROOM, e) ||
	    oauth_client_prove(o->me, o->issuer.methods, o->issuer.jwt_algs, o->issuer.issuer,
			       &form, &authorization, e) < 0 ||
	    (o->scope.n > 0 && oauth_form_add(&form, "scope", buf_str(&o->scope), e) < 0) ||
	    oauth_form_add(&form, "resource", str_of(o->resource.resource), e) < 0)
		return -1;
	q.body = buf_str(&form);
	q.authorization = authorization.p;
	return oauth_fetch_start(o, &q, device_answered, e);
}
