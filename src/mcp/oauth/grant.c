/*
 * Requests to token endpoints: a form for the grant, the client's identity, and a proof if tokens
 * are bound. If the server requires a nonce, the request is sent again with it, a few times.
 */
#include "mcp/oauth/internal.h"

#define URN "urn:ietf:params:oauth:"

enum { NONCE_TRIES = 3 };

struct target {
	const char *url;
	const struct oauth_client *who;
	unsigned methods, algs;
	const char *audience; /* for an assertion */
	bool proof;
};

static struct target target_of(const struct mcp_oauth *o)
{
	if (o->state == OAUTH_EXCHANGE)
		return (struct target){ .url = o->opt.enterprise.token_endpoint,
					.who = &o->idp,
					.methods = o->idp.method ? o->idp.method : OAUTH_POST,
					.audience = o->opt.enterprise.token_endpoint };
	return (struct target){ .url = o->issuer.token_endpoint,
				.who = o->me,
				.methods = o->issuer.methods,
				.algs = o->issuer.jwt_algs,
				.audience = o->issuer.issuer,
				.proof = oauth_dpop_is_on(o) };
}

/* --- the forms --- */

static struct str expose(const struct secret *s)
{
	return secret_expose(s, "sent to a token endpoint");
}

static int add_scope(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	return o->scope.n > 0 ? oauth_form_add(to, "scope", buf_str(&o->scope), e) : 0;
}

static int form_code(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	if (oauth_form_add(to, "grant_type", STR_LIT("authorization_code"), e) < 0 ||
	    oauth_form_add(to, "code", expose(o->code), e) < 0 ||
	    oauth_form_add(to, "redirect_uri", str_of(o->redirect), e) < 0)
		return -1;
	return oauth_form_add(to, "code_verifier", expose(o->verifier), e);
}

static int form_device(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	if (oauth_form_add(to, "grant_type", STR_LIT(URN "grant-type:device_code"), e) < 0)
		return -1;
	return oauth_form_add(to, "device_code", expose(o->code), e);
}

static int form_credentials(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	if (oauth_form_add(to, "grant_type", STR_LIT("client_credentials"), e) < 0)
		return -1;
	return add_scope(o, to, e);
}

static int form_assertion(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	if (oauth_form_add(to, "grant_type", STR_LIT(URN "grant-type:jwt-bearer"), e) < 0 ||
	    oauth_form_add(to, "assertion", expose(o->code), e) < 0)
		return -1;
	return add_scope(o, to, e);
}

static int form_exchange(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	if (oauth_form_add(to, "grant_type", STR_LIT(URN "grant-type:token-exchange"), e) < 0 ||
	    oauth_form_add(to, "requested_token_type", STR_LIT(URN "token-type:id-jag"), e) < 0 ||
	    oauth_form_add(to, "audience", str_of(o->issuer.issuer), e) < 0 ||
	    oauth_form_add(to, "subject_token", expose(o->code), e) < 0 ||
	    oauth_form_add(to, "subject_token_type", STR_LIT(URN "token-type:id_token"), e) < 0)
		return -1;
	return add_scope(o, to, e);
}

static int form_refresh(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	if (oauth_form_add(to, "grant_type", STR_LIT("refresh_token"), e) < 0)
		return -1;
	return oauth_form_add(to, "refresh_token", expose(o->token.refresh), e);
}

static int write_form(struct mcp_oauth *o, struct buf *to, struct err *e)
{
	static int (*const by_grant[])(struct mcp_oauth *, struct buf *, struct err *) = {
		[MCP_OAUTH_CODE] = form_code,
		[MCP_OAUTH_DEVICE] = form_device,
		[MCP_OAUTH_CLIENT_CREDENTIALS] = form_credentials,
		[MCP_OAUTH_ENTERPRISE] = form_assertion,
		[MCP_OAUTH_WORKLOAD] = form_assertion,
	};
	int rc = o->state == OAUTH_REFRESH  ? form_refresh(o, to, e)
	       : o->state == OAUTH_EXCHANGE ? form_exchange(o, to, e)
					    : by_grant[o->opt.grant](o, to, e);

	return rc < 0 ? -1 : oauth_form_add(to, "resource", str_of(o->resource.resource), e);
}

/* --- the answers --- */

static int check_exchange(struct mcp_oauth *o, struct oauth_token_answer *t, struct err *e)
{
	if (!t->issued_type || strcmp(t->issued_type, URN "token-type:id-jag") != 0)
		return err_set(e, ERR_INVALID, "the identity provider gave another kind of token");
	secret_free(o->code);
	o->code = take_ptr(t->access);
	return 0;
}

static int check_token(struct mcp_oauth *o, const struct oauth_token_answer *t, struct err *e)
{
	if (t->not_access || (t->dpop && !oauth_dpop_is_on(o)))
		return err_set(e, ERR_INVALID, "token_type is not what was asked for");
	if (!t->dpop && oauth_dpop_is_on(o) &&
	    (o->opt.dpop == MCP_OAUTH_DPOP_ALWAYS || o->resource.dpop_required))
		return err_set(e, ERR_UNTRUSTED, "the token is not bound by DPoP, and must be");
	return 0;
}

static int take(struct mcp_oauth *o, struct str body, struct err *e)
{
	AUTO(arena_free) struct arena *a = arena_new(OAUTH_DOCUMENT_MAX * 2);
	struct oauth_token_answer t = { .access = NULL };
	bool exchange = o->state == OAUTH_EXCHANGE;
	int rc;

	if (!a)
		return oauth_no_memory(e);
	if (oauth_token_read(body, a, &t, e) < 0)
		return -1;
	rc = exchange ? check_exchange(o, &t, e) : check_token(o, &t, e);
	if (rc == 0)
		oauth_flow_granted(o, &t);
	oauth_token_answer_fini(&t);
	return rc;
}

/* The server has a problem. For a device, 429 may also mean only slow_down. */
static bool is_in_trouble(const struct mcp_oauth *o, int status)
{
	return status >= 500 || (status == 429 && o->state == OAUTH_REFRESH);
}

static void on_answer(struct mcp_oauth *o, const struct oauth_answer *a, const struct err *why)
{
	struct err e = why ? *why : ERR_INIT;
	char word[OAUTH_WORD_MAX + 1];

	if (why && o->state == OAUTH_DEVICE && (e.code == ERR_TIMEOUT || e.code == ERR_TRANSPORT)) {
		oauth_flow_refused(o, "slow_down"); /* as slow_down, RFC 8628 section 3.5 */
		return;
	}
	if (why) {
		err_wrap(&e, "token endpoint");
		oauth_flow_failed(o, &e);
		return;
	}
	oauth_dpop_nonce(o->nonce_issuer, a->nonce);
	oauth_refusal_read(a->body, word); /* some servers send it with 200 */
	if (strcmp(word, "use_dpop_nonce") == 0 && a->nonce.n > 0 && oauth_dpop_is_on(o) &&
	    ++o->nonce_tries <= NONCE_TRIES) {
		if (oauth_grant_start(o, &e) < 0)
			oauth_flow_failed(o, &e);
	} else if (word[0] && !is_in_trouble(o, a->status)) {
		oauth_flow_refused(o, word);
	} else if (a->status != 200) {
		err_set(&e, ERR_TRANSPORT, "the token endpoint answered with HTTP %d", a->status);
		oauth_flow_failed(o, &e);
	} else if (take(o, a->body, &e) < 0) {
		oauth_flow_failed(o, &e);
	}
}

int oauth_grant_start(struct mcp_oauth *o, struct err *e)
{
	autowipe struct buf form = BUF_INIT(OAUTH_FORM_MAX),
			    authorization = BUF_INIT(OAUTH_FORM_MAX);
	autobuf struct buf proof = BUF_INIT(OAUTH_PROOF_MAX);
	struct target t = target_of(o);
	struct oauth_request q = { .url = t.url, .type = "application/x-www-form-urlencoded" };

	if (!buf_reserve(&form, OAUTH_FORM_MAX, e) || write_form(o, &form, e) < 0 ||
	    oauth_client_prove(t.who, t.methods, t.algs, t.audience, &form, &authorization, e) < 0)
		return -1;
	if (t.proof && oauth_dpop_proof(o, "POST", t.url, STR_NONE, o->nonce_issuer, &proof, e) < 0)
		return -1;
	q.body = buf_str(&form);
	q.authorization = authorization.p;
	q.proof = proof.p;
	return oauth_fetch_start(o, &q, on_answer, e);
}
