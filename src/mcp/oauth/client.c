/*
 * Our identity at an authorization server. Credentials for one server are shown to no other: they
 * are bound to the issuer that is configured with them, or to the first that the server named.
 */
#include "base/base64.h"
#include "mcp/oauth/internal.h"

#include <time.h>

enum { BASIC_MAX = 64 << 10 };

void oauth_client_fini(struct oauth_client *c)
{
	free(c->id);
	secret_free(c->secret);
	sign_key_free(c->key);
	free(c->key_id);
	free(c->issuer);
	free(c->redirect);
	*c = (struct oauth_client){ .alg = SIGN_ALGS };
}

static int copy_text(char **to, const char *from, struct err *e)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? oauth_no_memory(e) : 0;
}

static int read_ways(struct oauth_client *to, const struct mcp_oauth_client *from, struct err *e)
{
	to->alg = from->algorithm ? sign_alg_of(str_of(from->algorithm)) : SIGN_ALGS;
	to->method = from->method ? oauth_method_of(str_of(from->method)) : 0;
	if (from->algorithm && to->alg == SIGN_ALGS)
		return err_set(e, ERR_INVALID, "algorithm is ES256, EdDSA, PS256 or RS256");
	if (from->method && !to->method)
		return err_set(e, ERR_INVALID,
			       "method is none, client_secret_basic, client_secret_post or "
			       "private_key_jwt");
	if (to->key && to->alg < SIGN_ALGS && !sign_key_can(to->key, to->alg))
		return err_set(e, ERR_INVALID, "the private key can't sign with %s",
			       sign_alg_name(to->alg));
	if ((to->method == OAUTH_PRIVATE_KEY_JWT && !to->key) ||
	    (to->method & (OAUTH_BASIC | OAUTH_POST) && !to->secret))
		return err_set(e, ERR_INVALID, "%s needs a %s", from->method,
			       to->key ? "client secret" : "private key or client secret");
	return 0;
}

int oauth_client_copy(struct oauth_client *to, const struct mcp_oauth_client *from, struct err *e)
{
	struct oauth_client c = { .alg = SIGN_ALGS };

	if (copy_text(&c.id, from->id, e) == 0 && copy_text(&c.key_id, from->key_id, e) == 0 &&
	    copy_text(&c.issuer, from->issuer, e) == 0 &&
	    (!from->secret || (c.secret = secret_new(str_of(from->secret), e))) &&
	    (!from->private_key || (c.key = sign_key_read(str_of(from->private_key), e))) &&
	    read_ways(&c, from, e) == 0) {
		oauth_client_fini(to);
		*to = c;
		return 0;
	}
	oauth_client_fini(&c);
	return -1;
}

/* --- client authentication --- */

static enum oauth_method pick_method(const struct oauth_client *c, unsigned methods)
{
	if (c->method)
		return (enum oauth_method)c->method;
	if (c->key)
		return OAUTH_PRIVATE_KEY_JWT;
	if (!c->secret)
		return OAUTH_NONE;
	if (!methods || methods & OAUTH_BASIC) /* RFC 8414: the default */
		return OAUTH_BASIC;
	return methods & OAUTH_POST ? OAUTH_POST : OAUTH_NONE;
}

static int prove_basic(const struct oauth_client *c, struct buf *authorization, struct err *e)
{
	autowipe struct buf pair = BUF_INIT(BASIC_MAX);
	struct str secret = secret_expose(c->secret, "proves who the client is");

	if (!buf_reserve(&pair, BASIC_MAX, e) || !buf_reserve(authorization, BASIC_MAX * 2, e))
		return -1;
	if (oauth_form_encode(&pair, str_of(c->id), e) < 0 || buf_add(&pair, ":", 1, e) < 0 ||
	    oauth_form_encode(&pair, secret, e) < 0 || buf_addf(authorization, e, "Basic ") < 0)
		return -1;
	return base64_encode(authorization, buf_str(&pair), e);
}

static int prove_jwt(const struct oauth_client *c, unsigned algs, const char *audience,
		     struct buf *form, struct err *e)
{
	autowipe struct buf jwt = BUF_INIT(OAUTH_PROOF_MAX);
	enum sign_alg alg = c->alg;

	for (enum sign_alg a = 0; alg == SIGN_ALGS && a < SIGN_ALGS; a++) {
		if (sign_key_can(c->key, a) && (!algs || algs & 1u << a))
			alg = a;
	}
	if (alg == SIGN_ALGS)
		return err_set(e, ERR_DENIED,
			       "the authorization server takes no signature of our private key");
	if (!buf_reserve(&jwt, OAUTH_PROOF_MAX, e) ||
	    oauth_jwt_client(c, alg, audience, &jwt, e) < 0)
		return -1;
	if (oauth_form_add(form, "client_assertion_type",
			   STR_LIT("urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
			   e) < 0)
		return -1;
	return oauth_form_add(form, "client_assertion", buf_str(&jwt), e);
}

int oauth_client_prove(const struct oauth_client *c, unsigned methods, unsigned algs,
		       const char *audience, struct buf *form, struct buf *authorization,
		       struct err *e)
{
	switch (pick_method(c, methods)) {
	case OAUTH_BASIC:
		return prove_basic(c, authorization, e);
	case OAUTH_PRIVATE_KEY_JWT:
		return prove_jwt(c, algs, audience, form, e);
	case OAUTH_POST:
		return oauth_form_add(form, "client_id", str_of(c->id), e) < 0
			     ? -1
			     : oauth_form_add(form, "client_secret",
					      secret_expose(c->secret, "proves who the client is"),
					      e);
	case OAUTH_NONE:
		break;
	}
	return oauth_form_add(form, "client_id", str_of(c->id), e);
}

/* --- the choice of a client --- */

/* A client whose credentials are of use to others is bound to the first issuer. That is stored
 * before the client is shown, whatever follows. */
static int client_check_given(struct mcp_oauth *o, struct err *e)
{
	bool shows_a_secret = o->given.secret || o->given.key ||
			      o->opt.grant == MCP_OAUTH_ENTERPRISE ||
			      o->opt.grant == MCP_OAUTH_WORKLOAD;

	if (o->given.issuer && strcmp(o->given.issuer, o->issuer.issuer) != 0)
		return err_set(
			e, ERR_UNTRUSTED,
			"the client %s with %.90s, but the server's authorization server is now "
			"%.90s",
			o->first_issuer ? "was used" : "is registered", o->given.issuer,
			o->issuer.issuer);
	if (o->given.issuer)
		return 0;
	if (oauth_token_check_issuer(o, o->given.id, e) < 0)
		return -1;
	if (!shows_a_secret)
		return 0;
	o->given.issuer = strdup(o->issuer.issuer);
	if (!o->given.issuer)
		return oauth_no_memory(e);
	o->first_issuer = true;
	oauth_token_keep_issuer(o);
	return 0;
}

static bool serves(const struct mcp_oauth *o, const struct oauth_client *c)
{
	return c->id && c->issuer && strcmp(c->issuer, o->issuer.issuer) == 0 &&
	       (!c->secret_expires || c->secret_expires > time(NULL));
}

int oauth_client_find(struct mcp_oauth *o, struct err *e)
{
	int rc;

	o->me = NULL;
	if (o->given.id) {
		if (client_check_given(o, e) < 0)
			return -1;
		o->me = &o->given;
		return 0;
	}
	if (o->issuer.reads_client_id_url && o->by_url.id) {
		o->me = &o->by_url;
		return 0;
	}
	if (serves(o, &o->client)) {
		o->me = &o->client;
		return 0;
	}
	rc = oauth_register_load(o, e);
	if (rc > 0 && serves(o, &o->client))
		o->me = &o->client;
	return rc < 0 ? -1 : 0;
}
